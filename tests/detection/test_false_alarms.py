"""The rule that keeps false alarms of a detector apart."""

import json
import math

import numpy as np
import pytest

from polypcount.detection.false_alarms import FEATURES, FalseAlarmRule, tracklet_features
from polypcount.errors import DataError

RULE = FalseAlarmRule(weights=(2.0, -1.0, 0.5, 3.0), intercept=-2.5, threshold=0.4)


def test_features_by_hand() -> None:
    # Six looks, in four of them a box. The 90 % quantile of four values lies at 0.9 * 3 = 2.7 of the way.
    mean, high, looks, share = tracklet_features([0.4, 0.9, 0.6, 0.5], 6)
    assert mean == pytest.approx((0.4 + 0.9 + 0.6 + 0.5) / 4)
    assert high == pytest.approx(0.6 + 0.7 * (0.9 - 0.6))
    assert looks == pytest.approx(math.log(4))
    assert share == pytest.approx(4 / 6)
    for scores, count in (([], 3), ([0.5, 0.5], 1)):
        with pytest.raises(DataError, match="1 to"):
            tracklet_features(scores, count)


def test_the_probability_is_the_logistic_function_of_the_weighted_sum() -> None:
    features = np.random.default_rng(0).normal(size=(20, len(FEATURES)))
    for row, found in zip(features, RULE.probability(features), strict=True):
        total = RULE.intercept
        for weight, value in zip(RULE.weights, row, strict=True):
            total += weight * value
        assert found == pytest.approx(1 / (1 + math.exp(-total)))
    assert RULE.probability(np.full((1, 4), 1e6)).tolist() == [1.0]
    assert RULE.probability(np.empty((0, 4))).shape == (0,)
    with pytest.raises(DataError, match=r"\[n, 4\]"):
        RULE.probability([[1.0, 2.0]])


def test_a_fitted_rule_has_the_gradient_of_its_loss_at_zero() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([rng.random((300, 2)), np.log(rng.integers(1, 200, 300)), rng.random(300)])
    labels = rng.random(300) < RULE.probability(features)
    rule = FalseAlarmRule.fit(features, labels, threshold=0.3, fitted_on="drawn")
    assert (rule.threshold, rule.fitted_on) == (0.3, "drawn")
    # The loss: minus the log-likelihood, plus half the squared weights of the standardised features.
    deviation = features.std(axis=0)
    standard = (features - features.mean(axis=0)) / deviation
    missed = rule.probability(features) - labels
    assert missed.sum() == pytest.approx(0, abs=0.05)
    assert standard.T @ missed + np.array(rule.weights) * deviation == pytest.approx([0] * 4, abs=0.05)
    for wrong in (np.ones(300, bool), np.zeros(300, bool)):
        with pytest.raises(DataError, match="one kind is missing"):
            FalseAlarmRule.fit(features, wrong)
    with pytest.raises(DataError, match="299 a label"):
        FalseAlarmRule.fit(features, labels[:-1])


def test_it_is_kept_as_json() -> None:
    assert FalseAlarmRule.from_json(json.loads(json.dumps(RULE.to_json()))) == RULE
    for changed, told in (
        ({"threshold": 1.5}, "detector.json: threshold"),
        ({"weights": [1, 2]}, "weights"),
        ({"weights": [1, 2, 3, math.nan]}, "detector.json"),
        ({"slope": 1}, "slope"),
    ):
        with pytest.raises(DataError, match=told):
            FalseAlarmRule.from_json({**RULE.to_json(), **changed}, "detector.json")
