"""How probable it is that two tracklets are one polyp, fitted on videos with known polyps, and groups by that."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from polypcount.clustering.grid import THRESHOLDS
from polypcount.clustering.methods import Agglomerative
from polypcount.clustering.scene import Scene
from polypcount.clustering.similarity import Matrix, visual_similarity
from polypcount.errors import DataError

# Too little to be seen where both kinds of pairs overlap; where they do not, it keeps the coefficients finite.
L2 = 1e-4


@dataclass(frozen=True)
class PairProbability:
    """P(same polyp) = sigmoid(intercept + looks * cosine + time * log1p(100 * gap)).

    cosine: of the vectors of two tracklets, -1 to 1; that with a zero vector is 0.
    gap: abs(position - position) / duration of the video, so that 100 * gap is in hundredths of the video. The
        logarithm tells a return after a moment from one after minutes, and treats all that is far apart much alike.
    """

    intercept: float
    looks: float
    time: float

    def __post_init__(self) -> None:
        for name, value in (("intercept", self.intercept), ("looks", self.looks), ("time", self.time)):
            if not math.isfinite(value):
                raise DataError(f"pair probability: {name} must be a finite number, found {value}")

    def probabilities(self, scene: Scene) -> Matrix:
        """P of every two tracklets of a video, float64[n, n], symmetric, with 1 on the diagonal."""
        cosine, time = _features(scene)
        found: Matrix = expit(self.intercept + self.looks * cosine + self.time * time)
        np.fill_diagonal(found, 1)
        return found


def fit_pair_probability(scenes: Sequence[Scene], truths: Sequence[ArrayLike]) -> PairProbability:
    """Logistic regression over the pairs of tracklets of several videos.

    The coefficients minimise the mean over videos of the mean over a video's pairs of -log P(what the pair is), plus
    L2 / 2 * (looks^2 + time^2). So a video with many tracklets says no more than another, and within a video pairs of
    one polyp and of two have the share that they have there. A video without a pair says nothing.

    truths: for each video int[n], the polyp of each tracklet; those below 0 are not known and left out.
    Where no pair is of one polyp, or none of two, there is nothing to tell apart: an error.
    """
    from sklearn.linear_model import LogisticRegression

    if len(scenes) != len(truths):
        raise DataError(f"there must be the polyps of each of the {len(scenes)} videos, found those of {len(truths)}")
    pairs = [_labelled_pairs(scene, np.asarray(truth)) for scene, truth in zip(scenes, truths, strict=True)]
    pairs = [pair for pair in pairs if len(pair[1])]
    same = np.concatenate([same for _, same in pairs]) if pairs else np.empty(0, bool)
    if same.all() or not same.any():
        raise DataError(
            "a probability is learnt from pairs of tracklets of one polyp and pairs of two, found "
            f"{int(same.sum())} and {int((~same).sum())}: add videos in which polyps return, and videos with several"
        )
    weight = np.concatenate([np.full(len(same), 1 / len(same) / len(pairs)) for _, same in pairs])
    # Exact in a few steps, since there are three numbers to find; scikit-learn's C is 1 / L2 for weights that add to 1.
    model = LogisticRegression(C=1 / L2, solver="newton-cholesky", tol=1e-9, max_iter=1000)
    model.fit(np.concatenate([features for features, _ in pairs]), same, sample_weight=weight)
    looks, time = model.coef_[0].tolist()
    return PairProbability(float(model.intercept_[0]), looks, time)


class ProbabilityLinkage(Agglomerative):
    """Average linkage on P(same polyp): groups join while the mean P between them is more than `threshold`.

    intercept, looks, time: of a `PairProbability`, see there. They are fitted on other videos and so have no default;
    hence it is not among `METHODS`, which are known by name alone.
    """

    name = "probability-linkage"
    needs_positions = True
    presets: ClassVar = {preset: {"threshold": values} for preset, values in THRESHOLDS.items()}
    linkage: Literal["average", "complete", "single"] = "average"
    alpha = 1.0
    gamma = 0.0

    def __init__(self, threshold: float = 0.5, *, intercept: float, looks: float, time: float) -> None:
        self.threshold = threshold
        self.intercept = intercept
        self.looks = looks
        self.time = time

    def _looks(self, scene: Scene) -> Matrix:
        probability = PairProbability(self.intercept, self.looks, self.time)
        return scene.constraints.unite(probability.probabilities(scene))


def _features(scene: Scene) -> tuple[Matrix, Matrix]:
    """Cosine and log1p(100 * gap) of every two tracklets, float64[n, n] each."""
    scene.temporal(0.0)  # for its checks: positions are there, finite, and in one unit with the duration
    positions = np.asarray(scene.positions, np.float64)
    gap = np.abs(positions[:, None] - positions) / scene.duration
    return 2 * visual_similarity(scene.vectors) - 1, np.log1p(100 * gap)


def _labelled_pairs(scene: Scene, truth: NDArray[np.integer]) -> tuple[Matrix, NDArray[np.bool_]]:
    """Features float64[pairs, 2] of the pairs of tracklets with known polyps, and whether they are of one polyp."""
    if truth.shape != (len(scene),):
        raise DataError(f"truth must have one polyp for each of {len(scene)} tracklets, found {list(truth.shape)}")
    known = np.flatnonzero(truth >= 0)
    left, right = known[np.array(np.triu_indices(len(known), 1))]
    features = np.stack([feature[left, right] for feature in _features(scene)], axis=1)
    return features, truth[left] == truth[right]
