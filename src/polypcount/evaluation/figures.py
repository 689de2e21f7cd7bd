"""Figures of a study over videos, and the fonts, colours and files of all figures.

Every `draw_...` returns a `matplotlib.figure.Figure` that belongs to no window and leaves matplotlib's state unchanged.
Figures of a single video are in `figures_video`.
"""

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polypcount.storage import whole_file

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# After Okabe and Ito, then Tol: distinct for colour-blind readers, the first ones most, and dark enough on white.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#332288",
    "#999933", "#882255", "#DDCC77", "#AA4499", "#661100", "#117733",
)  # fmt: skip
GREY = "#A0A0A0"
_REFERENCES = {"none": "#707070", "oracle": "#000000"}
_RULES = {
    "closest": ("o", "closest: FPR nearest to target"),
    "budget": ("s", "budget: FPR within target"),
    "fixed": ("D", "fixed: nothing to choose"),
}
_SHAPES = "osD^vPX<>"
_FONT = "DejaVu Sans"  # comes with matplotlib, so figures are the same everywhere
# Any id is shown as it is, never parsed as mathematics or TeX, in the one font that `shown` has checked.
PLAIN: dict[str, Any] = {
    "parse_math": False,
    "usetex": False,
    "fontfamily": _FONT,
    "fontweight": "normal",
    "fontstyle": "normal",
}
LARGEST_HEIGHT = 80.0  # inches; above 430, a PNG would have more rows than matplotlib can draw
_DPI = 150
_NO_METADATA: dict[str, dict[str, None]] = {".png": {"Software": None}, ".svg": {"Creator": None, "Date": None}}
_SETTINGS_LOCK = threading.Lock()


def draw_trade_off(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    points: Sequence[tuple[str, str, float, float]],
    target_fpr: float,
) -> "Figure":
    """FR against FPR: what each method can reach, and its results on videos that it was not tuned on.

    The FPR axis ends at the larger of 4 * target and 1.2 * the largest FPR of a point, but at 1 at most.

    Args:
        curves: For each method the FPR [k], rising, and the lowest FR [k] at it, above 0; drawn as steps.
        points: (method, rule, FPR, FR); a point whose FPR or FR is NaN is left out.
        target_fpr: Above 0, at most 1.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    defined = [point for point in points if not (math.isnan(point[2]) or math.isnan(point[3]))]
    end = min(1.0, max([4 * target_fpr, *(1.2 * point[2] for point in defined)]))
    colours = colour_methods([*curves, *(point[0] for point in points)])
    figure = Figure(figsize=(8.6, max(4.8, _legend_height(len(colours)) + 1.2)), layout="constrained")
    axes = figure.add_subplot()
    heights = [point[3] for point in defined]
    for method, (rates, lowest) in curves.items():
        fpr, fr = np.asarray(rates, np.float64), np.asarray(lowest, np.float64)
        heights += fr[fpr <= end].tolist()
        if len(fpr):  # an FR that is reached at one FPR is reached at every higher one
            fpr, fr = np.append(fpr, max(end, fpr[-1])), np.append(fr, fr[-1])
            axes.plot(fpr, fr, color=colours[method], drawstyle="steps-post", linewidth=1.6, alpha=0.85)
    for method, rule, rate, height in defined:
        style: dict[str, Any] = {"color": colours[method], "markersize": 8, "markeredgecolor": "white"}
        axes.plot([rate], [height], _RULES[rule][0], clip_on=False, zorder=4, **style)
    axes.axvline(target_fpr, color="black", linewidth=0.9, linestyle="--", zorder=1)
    above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
    axes.annotate(f"target FPR {target_fpr:g}", (target_fpr, 1), (0, 4), fontsize=9, **above)
    axes.axhline(1, color=GREY, linewidth=0.9, zorder=1)
    axes.set_xlim(0, end)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_yscale("log")
    _fr_ticks(axes.yaxis, heights)
    axes.set_xlabel("FPR: share of pairs of two polyps that were merged")
    axes.set_ylabel("FR: groups per polyp, 1 is right")
    axes.spines[["top", "right"]].set_visible(False)
    drawn = [name for name in colours if name in curves or name in {point[0] for point in defined}]
    lines = [Line2D([], [], color=colours[name], linewidth=4) for name in drawn]
    _add_legend(figure, lines, drawn, "outside right upper", "method")
    rules = [rule for rule in _RULES if rule in {point[1] for point in defined}]
    marks = [Line2D([], [], color="black", marker=_RULES[rule][0], linestyle="none") for rule in rules]
    _add_legend(figure, marks, [_RULES[rule][1] for rule in rules], "outside right lower", "operating point, by rule")
    return settle(figure)


def draw_fr_per_video(videos: Sequence[str], fr: Mapping[str, ArrayLike], polyps: Sequence[int]) -> "Figure":
    """FR of every video, a row each, with a mark for each method.

    Args:
        videos: n ids, from top to bottom.
        fr: For each method the FR [n], above 0; NaN is left out, and a row without a value says so.
        polyps: Number of polyps of each video.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    values = np.array(list(fr.values()), np.float64)
    row_height = min(max(0.22, 0.04 * len(fr) + 0.1), LARGEST_HEIGHT / len(videos))
    height = max(2.4, row_height * len(videos) + 0.9, _legend_height(len(fr)))
    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for row in range(1, len(videos), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#F2F2F2", linewidth=0, zorder=0)
    axes.axvline(1, color="black", linewidth=0.9, zorder=1)
    handles = []
    for number, colour in enumerate(colour_methods(fr).values()):
        level = np.arange(len(videos)) + (0.7 * (number + 0.5) / len(fr) - 0.35)  # so that equal values do not overlap
        style: dict[str, Any] = {"color": colour, "marker": _SHAPES[number % len(_SHAPES)], "linestyle": "none"}
        axes.plot(values[number], level, markersize=5, markeredgewidth=0, zorder=3, **style)
        handles.append(Line2D([], [], markersize=6, markeredgewidth=0, **style))
    for row in np.flatnonzero(np.isnan(values).all(axis=0)).tolist():
        axes.annotate("no FR", (1, row), (4, 0), textcoords="offset points", va="center", fontsize=8, color="#606060")
    _fr_ticks(axes.xaxis, values[~np.isnan(values)].tolist())
    named = list(range(0, len(videos), math.ceil(0.14 / row_height)))
    axes.set_yticks(named, [f"{shown(videos[row], 32)} ({polyps[row]})" for row in named], fontsize=8, **PLAIN)
    axes.set_ylim(len(videos) - 0.5, -0.5)
    axes.set_xlabel("FR: groups per polyp, 1 is right")
    axes.set_ylabel("video (number of polyps)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if len(videos) > 30:
        axes.tick_params(axis="x", top=True, labeltop=True)
    _add_legend(figure, handles, list(fr), "outside right upper", "method")
    return settle(figure)


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure as .png (150 dpi) or .svg, whole or not at all; returns the path. Same data, same bytes."""
    import matplotlib as mpl

    # matplotlib takes the salt of the ids in an SVG from its global settings only.
    with _SETTINGS_LOCK, mpl.rc_context({"svg.hashsalt": "polypcount"}), whole_file(path) as unfinished:
        figure.savefig(unfinished, format=path.suffix[1:], dpi=_DPI, metadata=_NO_METADATA[path.suffix])
    return path


def shown(name: str, limit: int = 28) -> str:
    """A name as one line of at most `limit` characters, cut in the middle; a character without a glyph becomes □."""
    line = " ".join(str(name).split())
    if len(line) > limit:
        tail = (limit - 1) // 2
        line = f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"
    return "".join(letter if letter.isprintable() and ord(letter) in _glyphs() else "□" for letter in line)


def colour_methods(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method, in the order given; the references none and oracle are grey and black."""
    names = dict.fromkeys(methods)
    others = [name for name in names if name not in _REFERENCES]
    return {name: _REFERENCES.get(name) or COLOURS[others.index(name) % len(COLOURS)] for name in names}


def settle(figure: "Figure") -> "Figure":
    """Lay the figure out once; laid out again at each save, it would come out slightly different."""
    figure.set_dpi(_DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def blank(message: str, title: str = "") -> "Figure":
    """A figure with only a message."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1.6))
    figure.text(0.5, 0.4, message, ha="center", va="center", color="#505050")
    figure.suptitle(shown(title, 60), fontsize=11, **PLAIN)
    return figure


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(_FONT)).get_charmap())


def _fr_ticks(axis: "Axis", values: Sequence[float]) -> None:
    """Scale a log axis to the values and to 1 and 2, with the ticks 1, 2, 5, 10, 20 and so on as plain numbers."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = min([1.0, *values]) / 1.12, max([2.0, *values]) * 1.12
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    axis.set_view_interval(low, high, ignore=True)
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter("{x:g}")


def _legend_height(entries: int) -> float:
    return 0.19 * entries + 0.4  # inches


def _add_legend(
    figure: "Figure",
    handles: "Sequence[Line2D]",
    names: Sequence[str],
    place: Literal["outside right upper", "outside right lower"],
    title: str,
) -> None:
    if handles:
        # A legend leaves out labels that begin with "_", unless they are set afterwards.
        style: dict[str, Any] = {"fontsize": 8.5, "title_fontsize": 9, "alignment": "left", "frameon": False}
        legend = figure.legend(handles, ["-"] * len(names), loc=place, title=title, **style)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set(text=shown(name, 32), **PLAIN)
