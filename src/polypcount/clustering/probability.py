"""The probability that two tracklets are one polyp, fitted on videos with known polyps, and grouping by it."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from polypcount.clustering.grid import THRESHOLDS
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.methods import Agglomerative
from polypcount.clustering.similarity import Block, Matrix, cosine_matrix
from polypcount.errors import DataError

# Without effect where both kinds of pairs overlap; where they do not, it keeps the coefficients finite.
L2 = 1e-4


@dataclass(frozen=True)
class PairProbability:
    """P(same polyp) = sigmoid(intercept + looks * cosine + time * log1p(100 * gap) + number * log(n)).

    The cosine is that of the vectors of two tracklets, from -1 to 1; with a zero vector it is 0. The gap is
    abs(position - position) / duration of the video, so 100 * gap is in hundredths of the video. The logarithm
    separates a return after a moment from one after minutes, and treats all long gaps nearly alike. There are
    n tracklets in the video: the more there are, the more of them are of one polyp, since polyps are few.
    """

    intercept: float
    looks: float
    time: float
    number: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not math.isfinite(value):
                raise DataError(f"pair probability: {name} must be a finite number, found {value}")

    def probabilities(self, tracklets: GroupingInput) -> Matrix:
        """P of every pair of tracklets of a video, float64[n, n], symmetric, with 1 on the diagonal."""
        gaps, intercept = tracklets.log_gaps(), self.intercept + self.number * log_number(tracklets)

        def weigh(block: Matrix, where: Block) -> None:
            block *= 2
            block -= 1  # the cosine
            block *= self.looks
            block += intercept
            block += self.time * gaps[where]
            expit(block, out=block)

        return cosine_matrix(tracklets.vectors, weigh)


def log_number(tracklets: GroupingInput) -> float:
    """The logarithm of the number of tracklets of a video."""
    return math.log(max(len(tracklets), 1))


def fit_pair_probability(
    inputs: Sequence[GroupingInput], truths: Sequence[ArrayLike], *, number: bool = False
) -> PairProbability:
    """Logistic regression over the pairs of tracklets of several videos.

    The coefficients minimise the mean over videos of the mean over a video's pairs of -log P(what the pair is), plus
    L2 / 2 * (looks^2 + time^2 + number^2). So each video with a pair has the same weight, however many tracklets it
    has.

    Args:
        inputs: The tracklets of each video, with positions.
        truths: For each video int[n], the polyp of each tracklet; those below 0 are unknown and left out.
        number: Whether the number of tracklets is used; otherwise its coefficient is 0.

    Raises:
        DataError: No pair is of one polyp, or no pair is of two polyps.
    """
    from sklearn.linear_model import LogisticRegression

    if len(inputs) != len(truths):
        raise DataError(f"there must be the polyps of each of the {len(inputs)} videos, found those of {len(truths)}")
    pairs = [_labelled_pairs(tracklets, np.asarray(truth)) for tracklets, truth in zip(inputs, truths, strict=True)]
    pairs = [pair for pair in pairs if len(pair[1])]
    same = np.concatenate([same for _, same in pairs]) if pairs else np.empty(0, bool)
    if same.all() or not same.any():
        raise DataError(
            "a probability is fitted on pairs of tracklets of one polyp and pairs of two polyps, found "
            f"{int(same.sum())} and {int((~same).sum())}: add videos in which polyps return, and videos with several"
        )
    weight = np.concatenate([np.full(len(same), 1 / len(same) / len(pairs)) for _, same in pairs])
    # scikit-learn's C is 1 / L2 for weights that add up to 1. Newton's method is exact for three coefficients.
    model = LogisticRegression(C=1 / L2, solver="newton-cholesky", tol=1e-9, max_iter=1000)
    used = 3 if number else 2
    model.fit(np.concatenate([features for features, _ in pairs])[:, :used], same, sample_weight=weight)
    return PairProbability(float(model.intercept_[0]), *model.coef_[0].tolist())


class ProbabilityLinkage(Agglomerative):
    """Average linkage on P(same polyp): groups join while the mean P between them is more than `threshold`.

    The coefficients are those of a `PairProbability`. They are fitted on other videos, so they have no default, and the
    method is not among `METHODS`, which can be built by name alone.
    """

    name = "probability-linkage"
    needs_positions = True
    presets: ClassVar = {preset: {"threshold": values} for preset, values in THRESHOLDS.items()}
    linkage: Literal["average", "complete", "single"] = "average"
    alpha = 1.0
    gamma = 0.0

    def __init__(
        self, threshold: float = 0.5, *, intercept: float, looks: float, time: float, number: float = 0.0
    ) -> None:
        self.threshold = threshold
        self.intercept = intercept
        self.looks = looks
        self.time = time
        self.number = number

    def _visual(self, tracklets: GroupingInput) -> Matrix:
        probability = PairProbability(self.intercept, self.looks, self.time, self.number)
        return tracklets.constraints.unite(probability.probabilities(tracklets))


def _features(tracklets: GroupingInput) -> tuple[Matrix, Matrix]:
    """Cosine and log1p(100 * gap) of every pair of tracklets, float64[n, n] each."""
    return 2 * cosine_matrix(tracklets.vectors) - 1, tracklets.log_gaps()


def _labelled_pairs(tracklets: GroupingInput, truth: NDArray[np.integer]) -> tuple[Matrix, NDArray[np.bool_]]:
    """Features float64[pairs, 3] of the pairs of labelled tracklets, and whether they are of one polyp, bool[pairs]."""
    if truth.shape != (len(tracklets),):
        raise DataError(f"truth must have one polyp for each of {len(tracklets)} tracklets, found {list(truth.shape)}")
    labelled = np.flatnonzero(truth >= 0)
    left, right = labelled[np.array(np.triu_indices(len(labelled), 1))]
    alike, gaps = (feature[left, right] for feature in _features(tracklets))
    features = np.column_stack([alike, gaps, np.full(len(alike), log_number(tracklets))])
    return features, truth[left] == truth[right]
