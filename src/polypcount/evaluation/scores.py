"""How good the grouping of one video is."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polypcount.corpus.columns import Int32Column
from polypcount.errors import DataError
from polypcount.evaluation.pairs import PairCounts, cell, group_and_polyp, pair_counts, ratio, sharing

DERIVED = ("fr", "fr_all", "count_error", "count_error_all", "fpr", "tpr", "precision")
MEASURED = (
    "adjusted_rand",
    "homogeneity",
    "completeness",
    "v_measure",
    "bcubed_precision",
    "bcubed_recall",
    "bcubed_f1",
)


@dataclass(frozen=True)
class VideoScores:
    """Scores of the grouping of one video; NaN where a score is undefined.

    One tracklet is a group and a polyp of its own: FR 1, entropies 0, B-cubed 1, and no pairs. H is the entropy.

    Attributes:
        tracklets: Number of tracklets.
        groups: Number of groups: the count of polyps that the grouping gives.
        polyps: Number of polyps that have a tracklet.
        annotated_polyps: Number of polyps of the video, including those without a tracklet.
        pairs: Pairs of tracklets in one group or two, of one polyp or two.
        adjusted_rand: (Rand - expected Rand) / (1 - expected Rand), Rand = (TP + TN) / pairs; 1 where the groups are
            the polyps, also where that is 0 / 0; NaN below 2 tracklets.
        homogeneity: 1 - H(polyp | group) / H(polyp), 1 where H(polyp) = 0; NaN without tracklets.
        completeness: 1 - H(group | polyp) / H(group), 1 where H(group) = 0; NaN without tracklets.
        v_measure: Harmonic mean of homogeneity and completeness; NaN without tracklets.
        bcubed_precision: Mean over tracklets of the share of its group that is of its polyp; NaN without tracklets.
        bcubed_recall: Mean over tracklets of the share of its polyp that is in its group; NaN without tracklets.
        bcubed_f1: Harmonic mean of these two; NaN without tracklets.
    """

    tracklets: int
    groups: int
    polyps: int
    annotated_polyps: int
    pairs: PairCounts
    adjusted_rand: float
    homogeneity: float
    completeness: float
    v_measure: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float

    @property
    def fr(self) -> float:
        """Fragmentation rate, groups / polyps; NaN without tracklets."""
        return ratio(self.groups, self.polyps)

    @property
    def fr_all(self) -> float:
        """Groups / annotated polyps; NaN where none is annotated, 0 where some are and none has a tracklet."""
        return ratio(self.groups, self.annotated_polyps)

    @property
    def count_error(self) -> int:
        """Groups - polyps: positive where too many were counted."""
        return self.groups - self.polyps

    @property
    def count_error_all(self) -> int:
        """Groups - annotated polyps."""
        return self.groups - self.annotated_polyps

    @property
    def fpr(self) -> float:
        """False positive rate, FP / (FP + TN) over pairs of tracklets; NaN below 2 polyps."""
        return self.pairs.fpr

    @property
    def tpr(self) -> float:
        """True positive rate, TP / (TP + FN) over pairs of tracklets; NaN where no polyp has 2."""
        return self.pairs.tpr

    @property
    def precision(self) -> float:
        """TP / (TP + FP) over pairs of tracklets; NaN where no group has 2."""
        return self.pairs.precision

    def to_dict(self) -> dict[str, Any]:
        """The scores as JSON values; undefined is None."""
        counted = {name: getattr(self, name) for name in ("tracklets", "groups", "polyps", "annotated_polyps")}
        scores = {name: getattr(self, name) for name in (*DERIVED, *MEASURED)}
        defined = {name: None if math.isnan(value) else value for name, value in scores.items()}
        return {**counted, "pairs": asdict(self.pairs), **defined}


def score_video(labels: ArrayLike, truth: ArrayLike, annotated_polyps: int | None = None) -> VideoScores:
    """Judge the grouping of the n tracklets of one video.

    Args:
        labels: int[n], the group of each tracklet, any numbers of at least 0.
        truth: int[n], the polyp of each tracklet, any numbers of at least 0.
        annotated_polyps: Number of polyps of the video; by default those with a tracklet.
    """
    group, polyp = group_and_polyp(labels, truth)
    groups, polyps = len(np.unique(group)), len(np.unique(polyp))
    if annotated_polyps is not None and annotated_polyps < polyps:
        raise DataError(
            f"annotated_polyps must be at least {polyps}, the polyps that have a tracklet, found {annotated_polyps}"
        )
    return VideoScores(
        tracklets=len(group),
        groups=groups,
        polyps=polyps,
        annotated_polyps=polyps if annotated_polyps is None else int(annotated_polyps),
        pairs=pair_counts(group, polyp),
        **_agreement(group, polyp),
        **_bcubed(group, polyp),
    )


def _agreement(group: Int32Column, polyp: Int32Column) -> dict[str, float]:
    from sklearn.metrics import adjusted_rand_score, homogeneity_completeness_v_measure

    names = ("homogeneity", "completeness", "v_measure")
    values = homogeneity_completeness_v_measure(polyp, group) if len(group) else (math.nan,) * 3
    # scikit-learn scores a partition of no or one element as perfect; without a pair there is nothing to judge.
    rand = float(adjusted_rand_score(polyp, group)) if len(group) > 1 else math.nan
    return {"adjusted_rand": rand, **{name: float(value) for name, value in zip(names, values, strict=True)}}


def _bcubed(group: Int32Column, polyp: Int32Column) -> dict[str, float]:
    shared = sharing(cell(group, polyp))
    precision = ratio(float((shared / sharing(group)).sum()), len(group))
    recall = ratio(float((shared / sharing(polyp)).sum()), len(group))
    f1 = ratio(2 * precision * recall, precision + recall)
    return {"bcubed_precision": precision, "bcubed_recall": recall, "bcubed_f1": f1}
