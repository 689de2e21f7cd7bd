"""Figures of an evaluation over videos, and how any figure is lettered, coloured and saved.

Every `draw_...` returns a `matplotlib.figure.Figure` that belongs to no window and leaves matplotlib's state as it was.
Figures of a single video are in `figures_video`.
"""

import io
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import DataError, FileError
from polypcount.whole import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_Corner = Literal["outside right upper", "outside right lower"]
# After Okabe and Ito, then Tol: apart for colour-blind readers, the first ones most, and all dark enough on white.
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
_FONT = "DejaVu Sans"  # comes with matplotlib, so that a figure is the same everywhere
# Any id is shown as it is, never read as mathematics or TeX, in the one face that `shown` has checked.
PLAIN: dict[str, Any] = {
    "parse_math": False,
    "usetex": False,
    "fontfamily": _FONT,
    "fontweight": "normal",
    "fontstyle": "normal",
}
LARGEST_HEIGHT = 80.0  # inches; above 430, a PNG would have more rows than matplotlib can draw
_DPI = 150
_NOT_WRITTEN: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
_ONE_SALT = threading.Lock()


def draw_trade_off(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    points: Sequence[tuple[str, str, float, float]],
    target_fpr: float,
) -> "Figure":
    """FR against FPR: what each method can reach, and where it came out on videos it was not tuned on.

    curves: per method the FPR [k], rising, and the lowest FR [k] reached at it; drawn as steps, each up to the next.
    points: (method, rule, FPR, FR), the rule being closest, budget or fixed; one whose FPR or FR is NaN is left out.
    target_fpr: from 0 to 1, the FPR that was aimed at.

    The FPR axis ends at the larger of 4 * target and 1.2 * the largest FPR of a point, at 1 at the latest; at 0.1 where
    both are 0.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if not 0 <= target_fpr <= 1:
        raise DataError(f"the target FPR must be between 0 and 1, found {target_fpr}")
    defined = [point for point in points if not (math.isnan(point[2]) or math.isnan(point[3]))]
    for method, rule, rate, _ in defined:
        if rule not in _RULES or not 0 <= rate <= 1:
            raise DataError(
                f"a point of {method!r} must have an FPR from 0 to 1 and a rule of {', '.join(_RULES)}, "
                f"found {rate} and {rule!r}"
            )
    end = min(1.0, max([4 * target_fpr, *(1.2 * point[2] for point in defined)])) or 0.1
    colours = colour_methods([*curves, *(point[0] for point in points)])
    figure = Figure(figsize=(8.6, max(4.8, _legend_height(len(colours)) + 1.2)), layout="constrained")
    axes = figure.add_subplot()
    heights = _fr_values("points", [point[3] for point in defined]).tolist()
    for method, (fpr, fr) in curves.items():
        heights += _draw_curve(axes, method, fpr, fr, colours[method], end)
    for method, rule, rate, height in defined:
        look: dict[str, Any] = {"color": colours[method], "markersize": 8, "markeredgecolor": "white"}
        axes.plot([rate], [height], _RULES[rule][0], clip_on=False, zorder=4, **look)
    axes.axvline(target_fpr, color="black", linewidth=0.9, linestyle="--", zorder=1)
    above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
    axes.annotate(f"target FPR {target_fpr:g}", (target_fpr, 1), (0, 4), fontsize=9, **above)
    axes.axhline(1, color=GREY, linewidth=0.9, zorder=1)
    axes.set_xlim(0, end)
    axes.xaxis.set_major_formatter(_plain_number)
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


def draw_fr_per_video(videos: Sequence[str], fr: Mapping[str, ArrayLike], polyps: ArrayLike) -> "Figure":
    """FR of every video, a row each, with a mark per method.

    videos: [n] ids, from top to bottom.
    fr: per method the FR [n]; NaN is left out, and a row that has no other says so.
    polyps: int[n], how many polyps each video has.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if not len(videos):
        return blank("no videos")
    counts = np.asarray(polyps)
    values = {method: _fr_values(method, column) for method, column in fr.items()}
    if wrong := [column.shape for column in (*values.values(), counts) if column.shape != (len(videos),)]:
        raise DataError(f"FR and polyps must have a value for each of {len(videos)} videos, found {list(wrong[0])}")
    row = min(max(0.22, 0.04 * len(values) + 0.1), LARGEST_HEIGHT / len(videos))
    figure = Figure(figsize=(9, max(2.4, row * len(videos) + 0.9, _legend_height(len(values)))), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    for place in range(1, len(videos), 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#F2F2F2", linewidth=0, zorder=0)
    axes.axvline(1, color="black", linewidth=0.9, zorder=1)
    handles = []
    for place, (method, colour) in enumerate(colour_methods(values).items()):
        # Equal values stand one below the other.
        level = np.arange(len(videos)) + (0.7 * (place + 0.5) / len(values) - 0.35)
        shape = _SHAPES[place % len(_SHAPES)]
        axes.plot(values[method], level, shape, color=colour, markersize=5, markeredgewidth=0, zorder=3)
        handles.append(Line2D([], [], color=colour, marker=shape, markersize=6, markeredgewidth=0, linestyle="none"))
    everything = np.array([*values.values(), np.full(len(videos), np.nan)])
    for place in np.flatnonzero(np.isnan(everything).all(axis=0)).tolist():
        axes.annotate("no FR", (1, place), (4, 0), textcoords="offset points", va="center", fontsize=8, color="#606060")
    _fr_ticks(axes.xaxis, everything[~np.isnan(everything)])
    named = list(range(0, len(videos), math.ceil(0.14 / row)))
    labels = [f"{shown(videos[place], 32)} ({counts[place]})" for place in named]
    axes.set_yticks(named, labels, fontsize=8, **PLAIN)
    axes.set_ylim(len(videos) - 0.5, -0.5)
    axes.set_xlabel("FR: groups per polyp, 1 is right")
    axes.set_ylabel("video (number of polyps)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if len(videos) > 30:
        axes.tick_params(axis="x", top=True, labeltop=True)
    _add_legend(figure, handles, list(values), "outside right upper", "method")
    return settle(figure)


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure as .png (150 dpi), .svg or .pdf, whole or not at all; returns the path. Same data, same bytes."""
    import matplotlib as mpl

    kind = path.suffix.lower()
    if kind not in _NOT_WRITTEN:
        raise FileError(f"{path}: figures are saved as .png, .svg or .pdf, found {path.suffix or 'no suffix'}")
    drawn = io.BytesIO()
    # matplotlib takes the salt of the ids in an SVG from its global settings alone; nothing else there is touched.
    with _ONE_SALT:
        before = mpl.rcParams["svg.hashsalt"]
        mpl.rcParams["svg.hashsalt"] = "polypcount"
        try:
            figure.savefig(drawn, format=kind[1:], dpi=_DPI, metadata=_NOT_WRITTEN[kind])
        finally:
            mpl.rcParams["svg.hashsalt"] = before
    try:
        with whole_file(path) as unfinished:
            unfinished.write_bytes(drawn.getbuffer())
    except OSError as problem:
        raise FileError(f"{path}: the figure could not be saved: {problem.strerror or problem}") from problem
    return path


def shown(name: str, limit: int = 28) -> str:
    """A name as one line of at most `limit` characters, cut in the middle; a character that has no glyph becomes □."""
    line = " ".join(str(name).split())
    if len(line) > limit:
        tail = (limit - 1) // 2
        line = f"{line[: limit - 1 - tail]}…{line[len(line) - tail :]}"
    return "".join(letter if letter.isprintable() and ord(letter) in _glyphs() else "□" for letter in line)


def colour_methods(methods: Iterable[str]) -> dict[str, str]:
    """A colour for each method, in the order given, once each; the references none and oracle are grey and black."""
    names = dict.fromkeys(methods)
    others = [name for name in names if name not in _REFERENCES]
    return {name: _REFERENCES.get(name) or COLOURS[others.index(name) % len(COLOURS)] for name in names}


def settle(figure: "Figure") -> "Figure":
    """Lay the figure out once and for all; laid out again at each save, it would come out a little different."""
    figure.set_dpi(_DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def blank(message: str, title: str = "") -> "Figure":
    """A figure that has only something to say."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1.6))
    figure.text(0.5, 0.4, message, ha="center", va="center", color="#505050")
    if title:
        figure.suptitle(shown(title, 60), fontsize=11, **PLAIN)
    return figure


@cache
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    return frozenset(get_font(findfont(_FONT)).get_charmap())


def _draw_curve(axes: "Axes", method: str, rates: ArrayLike, lowest: ArrayLike, colour: str, end: float) -> list[float]:
    """Draw what a method can reach; returns its FR up to the end of the FPR axis."""
    fpr, fr = np.asarray(rates, np.float64), _fr_values(method, lowest)
    if fpr.ndim != 1 or fpr.shape != fr.shape:
        raise DataError(f"the curve of {method!r} must have an FR for each FPR, found {fr.size} for {fpr.size}")
    defined = np.isfinite(fpr) & np.isfinite(fr)
    fpr, fr = fpr[defined], fr[defined]
    heights: list[float] = fr[fpr <= end].tolist()
    if method in _REFERENCES:
        axes.plot(fpr, fr, "D", color=colour, markersize=6, clip_on=False, zorder=3)
    elif len(fpr):
        # What is reached at one FPR is within reach of every higher one.
        fpr, fr = np.append(fpr, max(end, fpr[-1])), np.append(fr, fr[-1])
        axes.plot(fpr, fr, color=colour, drawstyle="steps-post", linewidth=1.6, alpha=0.85)
    return heights


def _fr_values(of: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as float64[n]; an error where one is neither above 0 and finite nor NaN."""
    column = np.asarray(values, np.float64)
    wrong = (column <= 0) | np.isinf(column)
    if wrong.any():
        raise DataError(f"FR must be above 0 and finite, or NaN, found {column[wrong][0]} of {of!r}")
    return column


def _plain_number(value: float, _: object = None) -> str:
    """A tick as a plain number, with no more digits than it takes."""
    return f"{value:g}"


def _fr_ticks(axis: "Axis", values: Sequence[float] | NDArray[np.float64]) -> None:
    """Scale a log axis to the values and to 1 and 2, with the ticks 1, 2, 5, 10, 20 and so on as plain numbers."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = min([1.0, *values]) / 1.12, max([2.0, *values]) * 1.12
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    axis.set_view_interval(low, high, ignore=True)
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(_plain_number)


def _legend_height(entries: int) -> float:
    return 0.19 * entries + 0.4  # inches


def _add_legend(
    figure: "Figure", handles: "Sequence[Line2D]", names: Sequence[str], place: _Corner, title: str
) -> None:
    if not handles:
        return
    # A legend of older matplotlib leaves out labels that begin with "_"; as texts put in afterwards they stay.
    style: dict[str, Any] = {"fontsize": 8.5, "title_fontsize": 9, "alignment": "left", "frameon": False}
    legend = figure.legend(handles, ["-"] * len(names), loc=place, title=title, **style)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=shown(name, 32), **PLAIN)
