"""The point at which recordings are counted, found on procedures with known polyps, and how it varies among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Grid, Method, ProbabilityLinkage, fit_pair_probability
from polypcount.clustering.base import completed
from polypcount.clustering.grid import steps
from polypcount.corpus import Embeddings
from polypcount.errors import DataError
from polypcount.evaluation.pairs import SweepCounts
from polypcount.evaluation.scenes import StudyVideo, kept_in_study, study_videos
from polypcount.evaluation.sweeps import sweep_videos

THRESHOLDS = steps(0.005, 0.995, 0.005)
_FEWEST_VIDEOS = 10


def counting_point(
    sets: Sequence[Embeddings],
    selected_on: str,
    *,
    method: Method | None = None,
    grid: Grid | None = None,
    level: float = 0.9,
    most_fpr: float = 0.1,
    min_frames: int = 30,
    threads: int | None = None,
) -> dict[str, Any]:
    """The parameters that count best, and for each procedure the value of the last one that counts it right.

    Best is the lowest mean over procedures of abs(groups - polyps), each set of embeddings weighing the same, among
    points whose mean FPR is at most `most_fpr`; then the lowest FPR. The last parameter of the grid, which decides how
    much is joined, is then varied: a procedure's right value is the one with the smallest abs(groups - polyps), of
    several the one nearest to the chosen. For a new procedure of the same kind any of these is as good as another.

    sets: of one encoder, with known polyps. selected_on: what they are, in words.
    method, grid: average linkage on P(same polyp), fitted on these procedures, where not given; see
        `ProbabilityLinkage`. level: of the intervals to be made.
    Returns the entry `counting` of operating-points.json.
    """
    if len({one.encoder for one in sets}) > 1:
        raise DataError("vectors of different encoders cannot share an operating point; embed all with the same one")
    videos: list[StudyVideo] = []
    weight: list[float] = []
    for one in sets:
        kept = kept_in_study(one, min_frames=min_frames, drop_unlabelled=False)
        found = [video for video in study_videos(kept, cannot_link=True) if video.polyps]
        videos += found
        weight += [1 / max(len(found), 1)] * len(found)
    if len(videos) < _FEWEST_VIDEOS:
        raise DataError(f"counting is learnt from at least {_FEWEST_VIDEOS} procedures, found {len(videos)}")
    chosen_method = method or _fitted(videos)
    points = completed(chosen_method, grid or Grid({"threshold": THRESHOLDS}))
    counts = [sweep.counts for sweep in sweep_videos(chosen_method, videos, points, threads=threads)]
    wrong = np.array([abs(one.groups - video.polyps) for one, video in zip(counts, videos, strict=True)], np.float64)
    fpr = _mean_fpr(counts)
    share = np.array(weight) / sum(weight)
    cost = np.where(fpr <= most_fpr, share @ wrong, np.inf)
    if not np.isfinite(cost).any():
        raise DataError(f"no point of the grid has a mean FPR of at most {most_fpr}; allow more, or search more points")
    best = int(np.lexsort((fpr, np.round(cost, 12)))[0])
    parameters = points.point(best)
    varied = list(points.axes)[-1]
    values = np.array(points.axes[varied])
    block = slice(best - best % len(values), best - best % len(values) + len(values))
    right = [_right_value(values, row[block], parameters[varied]) for row in wrong]
    settings = {name: value for name, value in chosen_method.get_params().items() if name not in points.axes}
    return {
        "method": chosen_method.name,
        "parameters": {**settings, **parameters},
        "cannot_link": True,
        "varied": varied,
        "values": sorted(right),
        "level": level,
        "selected_on": selected_on,
        "measured": {
            "selection_procedures": len(videos),
            "selection_mean_absolute_error": float(share @ wrong[:, best]),
            "selection_exact": float(share @ (wrong[:, best] == 0)),
            "selection_fpr": float(fpr[best]),
        },
    }


def _fitted(videos: Sequence[StudyVideo]) -> ProbabilityLinkage:
    found = fit_pair_probability([video.scene for video in videos], [video.truth for video in videos])
    return ProbabilityLinkage(intercept=found.intercept, looks=found.looks, time=found.time)


def _mean_fpr(counts: Sequence[SweepCounts]) -> NDArray[np.float64]:
    """float64[points], mean over the videos that have two polyps."""
    rates = [
        one.false_positive / (one.false_positive + one.true_negative)
        for one in counts
        if (one.false_positive[0] + one.true_negative[0]) > 0
    ]
    if not rates:
        raise DataError("no procedure has two polyps, so nothing tells how much may be joined")
    return np.asarray(np.mean(rates, axis=0))


def _right_value(values: NDArray[np.float64], wrong: NDArray[np.float64], chosen: float) -> float:
    """Of the values that are least wrong the one nearest to the chosen."""
    least = values[wrong == wrong.min()]
    return float(least[np.argmin(abs(least - chosen))])
