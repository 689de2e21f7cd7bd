"""Operating points for counting, chosen on recordings with known polyps.

The vectors are those that `count` computes: `embed` looks at the same boxes of a tracklet, and time is a share of the
same duration. So a point is chosen on the same kind of data that it is used for.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import (
    METHODS,
    Grid,
    Method,
    OperatingPoint,
    ProbabilityLinkage,
    Scope,
    fit_pair_probability,
)
from polypcount.clustering.base import completed
from polypcount.clustering.grid import ALPHAS, GAMMAS, PREFERENCES, steps
from polypcount.corpus import Embeddings, Provenance
from polypcount.counting.bands import fit_bands
from polypcount.counting.counted_videos import CountedVideo, counted_videos
from polypcount.errors import DataError
from polypcount.evaluation.pairs import SweepCounts
from polypcount.evaluation.sweeps import sweep_videos

_FEWEST_VIDEOS = 10
_THRESHOLDS = steps(0.005, 0.995, 0.005)
# The values that are searched for each method; the last parameter decides how much is joined.
GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    ProbabilityLinkage.name: {"threshold": _THRESHOLDS},
    "threshold": {"threshold": _THRESHOLDS},
    "agglomerative": {"threshold": _THRESHOLDS},
    "temporal-agglomerative": {"gamma": GAMMAS["coarse"], "alpha": ALPHAS["coarse"], "threshold": _THRESHOLDS},
    "ap": {"preference": PREFERENCES["fine"]},
    "temporal-ap": {"gamma": GAMMAS["coarse"], "alpha": ALPHAS["coarse"], "preference": PREFERENCES["fine"]},
}
DEFAULT_METHOD = ProbabilityLinkage.name


def calibrate(
    sets: Sequence[Embeddings],
    selected_on: str,
    *,
    methods: Sequence[str] = tuple(GRIDS),
    level: float = 0.9,
    most_fpr: float = 0.1,
    number: bool = True,
    threads: int | None = None,
) -> dict[str, OperatingPoint]:
    """Choose an operating point for each method.

    Only parameters whose mean FPR is at most `most_fpr` are eligible. The best ones have the lowest mean error over
    recordings. The error is abs(groups - polyps), and each set of embeddings has the same weight. Ties go to the lowest
    FPR. Then the last parameter of the grid is varied: the right value for a recording has the smallest error. Ties go
    to the value nearest to the chosen one. For a new recording of the same kind, all these values are equally good.
    How far the count may be off is kept in the bands of a point; see `fit_bands`.

    Args:
        sets: Embeddings of one encoder, made by `embed` with the boxes that `count` looks at, or by `count` itself,
            with known polyps. Tracklets of a detector's boxes may be without a polyp: these are false alarms.
        selected_on: What these recordings are, in words.
        methods: Names of methods; see `GRIDS`.
        level: Level of the intervals, such as 0.9.
        most_fpr: Highest mean FPR of a point.
        number: Whether the number of tracklets is evidence for the default method.
        threads: One for each core by default.

    Raises:
        DataError: The embeddings are of several encoders or of other boxes, or there are too few recordings.
    """
    if len({one.encoder for one in sets}) > 1:
        raise DataError("vectors of different encoders cannot share an operating point; embed all with the same one")
    videos: list[CountedVideo] = []
    weights: list[float] = []
    for embeddings in sets:
        refuse_other_boxes(embeddings.provenance)
        of_set = counted_videos(embeddings)
        videos += of_set
        weights += [1 / max(len(of_set), 1)] * len(of_set)
    if len(videos) < _FEWEST_VIDEOS:
        raise DataError(f"an operating point needs at least {_FEWEST_VIDEOS} recordings, found {len(videos)}")
    share = np.array(weights) / sum(weights)
    points = (
        _chosen(_method(name, videos, number=number), GRIDS[name], videos, share, selected_on, level, most_fpr, threads)
        for name in methods
    )
    scope = _scope(videos)
    return {point.method: point.model_copy(update={"scope": scope}) for point in points}


def _scope(videos: Sequence[CountedVideo]) -> Scope:
    """The fewest and most tracklets, and the shortest and longest duration, of these recordings."""
    tracklets = [len(video.truth) for video in videos]
    seconds = [one.video.frame_count / one.video.fps for one in videos if one.video.fps is not None]
    return Scope(
        tracklets=(min(tracklets), max(tracklets)),
        seconds=(min(seconds), max(seconds)) if len(seconds) == len(videos) else None,
    )


def refuse_other_boxes(provenance: Provenance) -> None:
    """Raise `DataError` unless vectors with this provenance are of the boxes that `count` looks at."""
    if provenance.made_by == "embed" and provenance.parameters.get("looked_at") != "count":
        raise DataError("the vectors are of other boxes than those that count looks at; embed without a stride")
    for parent in provenance.parents:
        refuse_other_boxes(parent)


def _method(name: str, videos: Sequence[CountedVideo], *, number: bool) -> Method:
    if name != ProbabilityLinkage.name:
        return METHODS[name]()
    inputs, truths = [video.tracklets for video in videos], [video.truth for video in videos]
    fitted = fit_pair_probability(inputs, truths, number=number)
    # More alike never means less likely, and nearer in time never does either.
    looks, time = max(fitted.looks, 0.0), min(fitted.time, 0.0)
    return ProbabilityLinkage(intercept=fitted.intercept, looks=looks, time=time, number=fitted.number)


def _chosen(
    method: Method,
    axes: Mapping[str, tuple[float, ...]],
    videos: Sequence[CountedVideo],
    share: NDArray[np.float64],
    selected_on: str,
    level: float,
    most_fpr: float,
    threads: int | None,
) -> OperatingPoint:
    points = completed(method, Grid(axes))
    counts = [sweep.counts for sweep in sweep_videos(method, videos, points, threads=threads)]
    errors = np.array([abs(one.groups - video.polyps) for one, video in zip(counts, videos, strict=True)], np.float64)
    fpr = _mean_fpr(counts)
    cost = np.where(fpr <= most_fpr, share @ errors, np.inf)
    if not np.isfinite(cost).any():
        raise DataError(f"{method.name}: no point of the grid has a mean FPR of at most {most_fpr}")
    best = int(np.lexsort((fpr, np.round(cost, 12)))[0])
    parameters, varied = points.point(best), list(points.axes)[-1]
    values = np.array(points.axes[varied])
    block = slice(best - best % len(values), best - best % len(values) + len(values))
    right = [_right_value(values, row[block], parameters[varied]) for row in errors]
    settings = {name: value for name, value in method.get_params().items() if name not in points.axes}
    point = OperatingPoint(
        method=method.name,
        parameters={**settings, **parameters},
        cannot_link=True,
        varied=varied,
        values=tuple(sorted(right)),
        level=level,
        selected_on=selected_on,
        measured={
            "selection_procedures": float(len(videos)),
            "selection_mean_absolute_error": float(share @ errors[:, best]),
            "selection_exact": float(share @ (errors[:, best] == 0)),
            "selection_fpr": float(fpr[best]),
        },
    )
    return point.model_copy(update={"bands": fit_bands(point, videos, axes[varied], level)})


def _mean_fpr(counts: Sequence[SweepCounts]) -> NDArray[np.float64]:
    """Mean FPR over the videos that have two polyps, float64[points]."""
    rates = [
        one.false_positive / (one.false_positive + one.true_negative)
        for one in counts
        if (one.false_positive[0] + one.true_negative[0]) > 0
    ]
    if not rates:
        raise DataError("no recording has two polyps, so it cannot be measured how much may be joined")
    return np.asarray(np.mean(rates, axis=0))


def _right_value(values: NDArray[np.float64], errors: NDArray[np.float64], chosen: float) -> float:
    """The value with the smallest error; of equals, the one nearest to the chosen value."""
    least = values[errors == errors.min()]
    return float(least[np.argmin(abs(least - chosen))])
