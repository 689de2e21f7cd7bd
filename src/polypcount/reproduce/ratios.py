"""How many times lower the FR of ours is than that of earlier methods, with an interval over videos."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.evaluation import RULES
from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run
from polypcount.reproduce.rows import TABLES
from polypcount.reproduce.tables import number, score_spread
from polypcount.storage import csv_text

OTHERS = ("tpc", "mve", "sfe")
_NOTES = (
    "Ratio: mean FR of the other row / mean FR of ours, over the runs (seed and render) that both have. Above 1, ours "
    "is lower. Interval: 95 %, percentiles of 10,000 draws of videos with replacement within each render, the same "
    "videos for both rows; FR of a video is first averaged over seeds. It says how much the choice of videos matters, "
    "not how much training varies.",
    "Reading: 'lower' or 'higher' (ours) if the interval leaves out 1, else 'open'. FPR: mean over runs. A ratio at "
    "different FPR compares different trade-offs.",
    "Published: the ratio of the FR that the paper prints. Its text has 2.2 for TPC, and 3.6 and 4.0 for SFE and MVE, "
    "which is the other way round than its table.",
)


@dataclass(frozen=True)
class Ratio:
    """Mean FR of a row / mean FR of ours.

    Attributes:
        ratio: The ratio.
        low: Lower end of the 95 % percentile interval over videos; NaN if a render has fewer than two videos.
        high: Its upper end.
        videos: Number of videos.
        runs: Number of runs of each row.
    """

    ratio: float
    low: float
    high: float
    videos: int
    runs: int

    @property
    def reading(self) -> str:
        """Whether ours is "lower" or "higher"; "open" if the interval holds 1, "-" without an interval."""
        if math.isnan(self.low):
            return "-"
        return "lower" if self.low > 1 else "higher" if self.high < 1 else "open"


def fr_ratio(
    ours: Sequence[Run], other: Sequence[Run], rule: str, *, resamples: int = 10_000, seed: int = 0
) -> Ratio | None:
    """The ratio over the runs that both rows have; None if there is none.

    A mean is over runs, and in each over its videos. For the interval, the n videos of each render are drawn n times
    with replacement, the same for both rows and for all seeds.

    Args:
        ours: Runs of ours.
        other: Runs of the other row.
        rule: Rule of the operating point.
        resamples: Number of draws.
        seed: The same seed draws the same videos.
    """
    paired = _paired(ours, other, rule)
    if not paired:
        return None
    rng = np.random.default_rng(seed)
    runs = sum(seeds for seeds, _ in paired)
    mean, drawn = np.zeros(2), np.zeros((resamples, 2))
    for seeds, fr in paired:
        n, weight = len(fr), seeds / runs
        mean += weight * fr.mean(axis=0)
        times = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
        drawn += weight * (times @ fr) / n
    low, high = math.nan, math.nan
    if min(len(fr) for _, fr in paired) > 1:
        low, high = np.quantile(drawn[:, 1] / drawn[:, 0], [0.025, 0.975]).tolist()
    return Ratio(float(mean[1] / mean[0]), low, high, sum(len(fr) for _, fr in paired), runs)


def ratio_table(runs: Mapping[str, Sequence[Run]]) -> Table:
    """Ratios of each other row and rule, to read."""
    header = ("ours against", "rule", "ratio", "95 % interval", "reading", "FPR, other", "FPR, ours", "videos", "runs")
    rows = tuple(
        (
            other,
            rule,
            number(found.ratio, 2),
            f"{number(found.low, 2)} to {number(found.high, 2)}" if not math.isnan(found.low) else "-",
            found.reading,
            *(number(score_spread(runs[name], rule, "fpr").mean, 4) for name in (other, "ours")),
            str(found.videos),
            str(found.runs),
            number(_published(other), 2),
        )
        for other, rule, found in _all(runs)
    )
    return Table("Ratios of FR", (*header, "published"), rows, _NOTES)


def ratio_csv(runs: Mapping[str, Sequence[Run]]) -> str:
    """The same with all digits."""
    rows = [
        [other, rule, found.ratio, found.low, found.high, found.reading, found.videos, found.runs, _published(other)]
        for other, rule, found in _all(runs)
    ]
    return csv_text(["other", "rule", "ratio", "low", "high", "reading", "videos", "runs", "published"], rows)


def _all(runs: Mapping[str, Sequence[Run]]) -> list[tuple[str, str, Ratio]]:
    tried = [
        (other, rule, fr_ratio(runs.get("ours", ()), runs.get(other, ()), rule)) for other in OTHERS for rule in RULES
    ]
    return [(other, rule, found) for other, rule, found in tried if found is not None]


def _published(other: str) -> float:
    fr = {line.row: line.published.fr for line in TABLES["table-1"].lines if line.published}
    return fr[other] / fr["ours"]


def _paired(ours: Sequence[Run], other: Sequence[Run], rule: str) -> list[tuple[int, NDArray[np.float64]]]:
    """For each render the number of seeds of both rows, and float64[videos, 2], the FR of ours and of the other."""
    first, second = ({(run.benchmark, run.seed): run for run in runs if rule in run.videos} for runs in (ours, other))
    paired = []
    for benchmark in dict.fromkeys(name for name, seed in first if (name, seed) in second):
        seeds = [key for key in first if key[0] == benchmark and key in second]
        fr = [
            [{video.video: video.fr for video in runs[key].videos[rule]} for key in seeds] for runs in (first, second)
        ]
        names = [name for name in fr[0][0] if all(name in one for row in fr for one in row)]
        values = np.array([[[one[name] for one in row] for row in fr] for name in names]).reshape(len(names), 2, -1)
        means = values.mean(axis=2)
        means = means[~np.isnan(means).any(axis=1)]  # FR of a video without tracklets
        if len(means):
            paired.append((len(seeds), means))
    return paired
