"""Which tracklets of a detector are perhaps no polyp: a small rule on the scores of their boxes."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from polypcount.errors import DataError
from polypcount.storage import Schema, check

FEATURES = ("mean score", "high score", "log looks", "share of looks")
_HIGH = 0.9  # quantile of the scores
_Weights = Annotated[tuple[float, ...], Field(min_length=len(FEATURES), max_length=len(FEATURES), strict=False)]


class FalseAlarmRule(Schema):
    """How likely a tracklet of a detector shows a polyp, and from which probability on it is counted.

    probability = 1 / (1 + exp(-(intercept + sum over j of weights[j] * features[j])))

    Attributes:
        weights: One for each of `FEATURES`; see `tracklet_features`.
        intercept: The sum for a tracklet whose features are all 0.
        threshold: Tracklets with a lower probability are perhaps no polyp, and are not counted.
        fitted_on: The recordings that the rule was fitted on, in words; empty where that was not kept.
    """

    weights: _Weights
    intercept: float
    threshold: Annotated[float, Field(ge=0, le=1)]
    fitted_on: str = ""

    @classmethod
    def from_json(cls, values: Any, where: str = "a rule for false alarms") -> Self:
        """The rule of these JSON values. where: What they are, for the message.

        Raises:
            DataErrors: One line for each key that is unknown, missing or of another kind.
        """
        return check(cls, values, where)

    def to_json(self) -> dict[str, Any]:
        """The values that `from_json` reads."""
        return self.model_dump(mode="json")

    def probability(self, features: ArrayLike) -> NDArray[np.float64]:
        """The probability that each tracklet shows a polyp, float64[n]. features: float[n, 4] of `FEATURES`."""
        logit = _table(features) @ np.array(self.weights) + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(logit, -500, 500))))

    @classmethod
    def fit(cls, features: ArrayLike, is_polyp: ArrayLike, *, threshold: float = 0.5, fitted_on: str = "") -> Self:
        """Fit the rule by logistic regression, with an L2 penalty of 1 on weights of standardised features.

        Args:
            features: float[n, 4] of `FEATURES`, of tracklets of recordings with known polyps.
            is_polyp: bool[n], whether a tracklet shows a polyp.
            threshold: That of the rule.
            fitted_on: The recordings, in words.
        """
        from sklearn.linear_model import LogisticRegression

        table, labels = _table(features), np.asarray(is_polyp, bool)
        if len(table) != len(labels):
            raise DataError(f"false alarms: {len(table)} tracklets have features, and {len(labels)} a label")
        if labels.all() or not labels.any():
            raise DataError("false alarms: tracklets of polyps and tracklets of none are needed; one kind is missing")
        mean, deviation = table.mean(axis=0), table.std(axis=0)
        deviation[deviation < 1e-9] = 1.0
        fitted = LogisticRegression(C=1.0, max_iter=1000).fit((table - mean) / deviation, labels)
        weights = fitted.coef_[0] / deviation
        values: Mapping[str, Any] = {
            "weights": weights.tolist(),
            "intercept": float(fitted.intercept_[0] - weights @ mean),
            "threshold": threshold,
            "fitted_on": fitted_on,
        }
        return cls.from_json(values)


def tracklet_features(scores: ArrayLike, looks: int) -> NDArray[np.float64]:
    """The features of a tracklet, float64[4]: what a detector says about it over time.

    - mean score: the mean of the scores
    - high score: their 90 % quantile
    - log looks: the natural logarithm of the number of looks with a box
    - share of looks: looks with a box / looks from the first to the last of them

    Args:
        scores: float[m], scores of the boxes that the detector gave it, one for each look with a box.
        looks: How often the detector looked, from the first box to the last one.
    """
    values = np.asarray(scores, np.float64)
    if not 1 <= len(values) <= looks:
        raise DataError(f"false alarms: a tracklet has boxes in 1 to {looks} looks, found {len(values)} scores")
    return np.array([values.mean(), np.quantile(values, _HIGH), np.log(len(values)), len(values) / looks])


def _table(features: ArrayLike) -> NDArray[np.float64]:
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or table.shape[1] != len(FEATURES) or not np.isfinite(table).all():
        raise DataError(
            f"false alarms: features must be finite numbers [n, {len(FEATURES)}], found {list(table.shape)}"
        )
    return table
