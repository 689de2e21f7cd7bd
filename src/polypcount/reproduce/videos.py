"""FR of each video, by row."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from polypcount.evaluation.figures import blank, draw_fr_per_video
from polypcount.evaluation.tables import Table
from polypcount.reproduce.results import Run, VideoResult
from polypcount.reproduce.rows import ROWS, TABLES
from polypcount.reproduce.tables import number, rules_of
from polypcount.storage import csv_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = TABLES["table-1"].lines
_Key = tuple[str, str]  # benchmark and video


def fr_by_video(runs: Sequence[Run], rule: str) -> dict[_Key, float]:
    """FR of each video, mean over seeds; NaN for a video without tracklets."""
    values: dict[_Key, list[float]] = {}
    for run in runs:
        for video in run.videos.get(rule, ()):
            values.setdefault((run.benchmark, video.video), []).append(video.fr)
    return {key: float(np.mean(fr)) for key, fr in values.items()}


def video_table(runs: Mapping[str, Sequence[Run]]) -> Table:
    """A line for each video, with the FR of the rows of Table 1 under each rule."""
    known = _videos(runs)
    columns = [(line.row, rule) for line in _LINES for rule in rules_of(runs.get(line.row, ()))]
    fr = [fr_by_video(runs[row], rule) for row, rule in columns]
    rows = tuple(
        (*key, str(video.tracklets), str(video.polyps), *(number(each.get(key, math.nan), 2) for each in fr))
        for key, video in known.items()
    )
    titles = [row if rule == "fixed" else f"{row}, {rule}" for row, rule in columns]
    header = ("benchmark", "video", "tracklets", "polyps", *titles)
    note = "FR of each video, held out; mean over seeds. Polyps: those that have a tracklet."
    return Table("Each video", header, rows, (note,))


def video_csv(runs: Mapping[str, Sequence[Run]]) -> str:
    """A line for each video of each run of any row: FR, FPR, and the parameters that were chosen on the others."""
    results = [
        (run, rule, video)
        for row in ROWS
        for run in runs.get(row, ())
        for rule in rules_of([run])
        for video in run.videos.get(rule, ())
    ]
    names = sorted({name for _, _, video in results for name in video.parameters})
    header = ("benchmark", "video", "tracklets", "polyps", "row", "rule", "seed", "fr", "fpr", "selected_fpr")
    rows = [
        [
            *(run.benchmark, video.video, video.tracklets, video.polyps, run.row, rule, run.seed),
            *(video.fr, video.fpr, video.selected_fpr),
            *(video.parameters.get(name) for name in names),
        ]
        for run, rule, video in results
    ]
    return csv_text([*header, *names], rows)


def draw_videos(runs: Mapping[str, Sequence[Run]]) -> "Figure":
    """FR of each video by the rows of Table 1, under `closest` or the only rule; mean over seeds."""
    known = _videos(runs)
    fr = {}
    for line in _LINES:
        if rules := rules_of(runs.get(line.row, ())):
            values = fr_by_video(runs[line.row], rules[0])
            fr[line.row] = [values.get(key, math.nan) for key in known]
    if not known:
        return blank("nothing was run", "FR of each video")
    several = len({benchmark for benchmark, _ in known}) > 1
    names = [f"{benchmark} {video}" if several else video for benchmark, video in known]
    return draw_fr_per_video(names, fr, [video.polyps for video in known.values()])


def _videos(runs: Mapping[str, Sequence[Run]]) -> dict[_Key, VideoResult]:
    """The videos of the rows of Table 1, in the order of the runs."""
    return {
        (run.benchmark, video.video): video
        for line in _LINES
        for run in runs.get(line.row, ())
        for videos in run.videos.values()
        for video in videos
    }
