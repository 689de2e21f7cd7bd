"""Draw the catalogue of cases, and update the table of scores in docs/cases.md.

Run: PYTHONPATH=. .venv/bin/python docs/draw_cases.py
"""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tests.cases.catalogue import CASES, Case

from polypcount.evaluation import VideoScores, score_video

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HERE = Path(__file__).parent
COLUMNS = 2
# Dark enough for white numbers, and distinct for colour-blind readers. Each group also has its number.
COLOURS = ("#0072B2", "#C04A00", "#00735C", "#8A4F9E")


def main() -> None:
    """Write docs/images/cases.svg and the table in docs/cases.md."""
    draw(HERE / "images" / "cases.svg")
    page = HERE / "cases.md"
    text = page.read_text(encoding="utf-8")
    filled = re.sub(r"(?s)(<!-- scores -->\n).*(\n<!-- end of scores -->)", rf"\g<1>{table()}\g<2>", text)
    page.write_text(filled, encoding="utf-8")


def table() -> str:
    """The cases with their stories and scores, in Markdown."""
    lines = ["| case | story | FR | FPR | TPR | count error |", "|---|---|---|---|---|---|"]
    for case in CASES:
        scores = _scores(case)
        shown = (_number(scores.fr), _number(scores.fpr), _number(scores.tpr), _signed(scores.count_error))
        lines.append(f"| {case.name} | {case.story} | {' | '.join(shown)} |")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Draw every case as a timeline, one row per polyp, into an SVG (or PNG) file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context({"svg.hashsalt": "cases", "font.size": 9, "font.family": "DejaVu Sans"}):
        rows = [CASES[first : first + COLUMNS] for first in range(0, len(CASES), COLUMNS)]
        heights = [max(len(_polyps(case)) for case in row) for row in rows]
        layout = ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.08)
        figure = Figure(figsize=(10, 0.36 * (sum(heights) + 1.2 * len(rows)) + 0.8), layout=layout)
        panels = figure.subplots(
            len(rows), COLUMNS, squeeze=False, sharex=True, height_ratios=[height + 1.2 for height in heights]
        )
        for panel, case, height in zip(panels.flat, CASES, np.repeat(heights, COLUMNS), strict=True):
            _draw_case(panel, case)
            panel.set_ylim(height - 0.4, -0.5)  # so that bars have the same height in every panel
        for panel in panels[-1]:
            panel.set_xlabel("frame")
        legend = "Bars are tracklets, rows the true polyps; colours and numbers are the groups that are judged"
        figure.suptitle(legend, size=10)
        path.parent.mkdir(exist_ok=True)
        # Without a date the file changes only when the picture does.
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_case(panel: "Axes", case: Case) -> None:
    scores = _scores(case)
    polyps = _polyps(case)
    for start, stop, polyp, group in zip(case.start_frame, case.stop_frame, case.polyp, case.groups, strict=True):
        panel.barh(int(polyp), stop - start, left=start, height=0.62, color=COLOURS[group % len(COLOURS)])
        panel.text((start + stop) / 2, polyp, str(group + 1), ha="center", va="center", color="white", weight="bold")
    panel.set_title(case.name, loc="left", weight="bold", size=9)
    rates = f"FR {_number(scores.fr)}   FPR {_number(scores.fpr)}   TPR {_number(scores.tpr)}"
    panel.set_title(f"{rates}   count error {_signed(scores.count_error)}", loc="right", size=8)
    panel.set_xlim(0, case.frame_count)
    panel.set_yticks(polyps, [f"polyp {'ABC'[polyp]}" if len(case.polyp) else "no tracklet" for polyp in polyps])
    panel.tick_params(axis="y", length=0)
    panel.spines[["top", "right", "left"]].set_visible(False)


def _polyps(case: Case) -> list[int]:
    """The rows to draw: the polyps that own a tracklet, or one row if there is none."""
    return sorted(set(case.polyp.tolist())) or [0]


def _scores(case: Case) -> VideoScores:
    return score_video(case.groups, case.polyp, case.annotated_polyps)


def _number(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.2f}"


def _signed(value: int) -> str:
    return f"{value:+d}".replace("-", "\N{MINUS SIGN}") if value else "0"


if __name__ == "__main__":
    main()
