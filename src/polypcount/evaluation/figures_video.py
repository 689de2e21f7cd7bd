"""Figures of the tracklets of one video: how alike they are, and how they were grouped over time."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.columns import Int32Column, int_column
from polypcount.errors import DataError
from polypcount.evaluation.figures import COLOURS, GREY, LARGEST_HEIGHT, PLAIN, blank, settle, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ints = NDArray[np.int64]
_PANEL = 3.6  # inches, the side of a matrix
_LINE = 0.13  # inches, what a line of small text takes
_NARROWEST = 1 / 400  # of the width; of a tracklet that lasts less, this much is drawn
_UNKNOWN = "no known polyp"
_READING = "grey: a group of one tracklet      underlined: a group with tracklets of more than one polyp"


def draw_similarities(
    visual: ArrayLike | None,
    temporal: ArrayLike | None,
    fused: ArrayLike | None,
    polyp: ArrayLike,
    polyp_names: Sequence[str],
    title: str,
) -> "Figure":
    """The similarities of the n tracklets of a video side by side, put in order by polyp, then as given.

    visual, temporal, fused: [n, n] in [0, 1]; one that is None is left out. NaN is shown in grey.
    polyp: int[n], index into polyp_names; -1, not known, comes last.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    owner = _owners(polyp, polyp_names)
    given = {"V: looks": visual, "T: time": temporal, "S: both": fused}
    matrices = {name: np.asarray(matrix, np.float64) for name, matrix in given.items() if matrix is not None}
    if not matrices:
        raise DataError("at least one of the similarities must be given")
    for name, matrix in matrices.items():
        if matrix.shape != (len(owner), len(owner)):
            raise DataError(f"{name[0]} must be [{len(owner)}, {len(owner)}], as tracklets, found {list(matrix.shape)}")
    if not len(owner):
        return blank("no tracklets", title)
    order = np.argsort(owner, kind="stable")
    lanes, sizes = np.unique(owner, return_counts=True)
    borders = np.cumsum(sizes) - 0.5
    figure = Figure(figsize=(_PANEL * len(matrices) + 2.1, _PANEL + 0.75), layout="compressed")
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    line = min(1, max(0.3, 12 / len(lanes)))
    colours = colormaps["viridis"].with_extremes(bad=GREY)
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        image = axes.imshow(matrix[np.ix_(order, order)], vmin=0, vmax=1, cmap=colours)
        for border in borders[:-1]:
            axes.axhline(border, color="white", linewidth=line)
            axes.axvline(border, color="white", linewidth=line)
        axes.set_title(name, fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    wide = _PANEL * sizes / len(owner) >= _LINE
    labels = [_name(lane, polyp_names) for lane in lanes[wide]]
    panels[0].set_yticks((borders - sizes / 2)[wide], labels, fontsize=8, **PLAIN)
    panels[0].tick_params(axis="y", length=0)
    panels[0].set_xlabel("1 tracklet" if len(owner) == 1 else f"{len(owner)} tracklets, by polyp", fontsize=9)
    figure.colorbar(image, ax=panels.tolist(), shrink=0.9, label="similarity")
    figure.suptitle(shown(title, 45 + 30 * (len(matrices) - 1)), fontsize=11, **PLAIN)
    return settle(figure)


def draw_timeline(
    start_frame: ArrayLike,
    stop_frame: ArrayLike,
    frame_count: int,
    fps: float | None,
    polyp: ArrayLike,
    polyp_names: Sequence[str],
    groups: Mapping[str, ArrayLike],
    title: str,
) -> "Figure":
    """When the n tracklets of a video are seen, and how each method grouped them.

    start_frame, stop_frame: int[n], seen from start_frame up to, not including, stop_frame.
    frame_count, fps: of the video; without fps, time is shown in frames, else in minutes.
    polyp: int[n], index into polyp_names; -1, not known, gets the last lane.
    groups: per method the group of each tracklet, int[n] of at least 0.

    On top the truth: a lane and a colour per polyp. Below, a block per method, in which tracklets keep the lane of
    their polyp and are coloured by group: a lane in several colours was fragmented, a colour in several lanes merged.
    Groups of one tracklet are grey, those of several polyps underlined. The largest group of a polyp has the polyp's
    colour; where groups outnumber colours, these repeat, within a lane last of all. Groups and polyps are counted over
    the tracklets whose polyp is known, as FR does.
    """
    from matplotlib.figure import Figure

    owner = _owners(polyp, polyp_names)
    labels = {method: int_column(repr(method), "group", column) for method, column in groups.items()}
    start = int_column("timeline", "start_frame", start_frame)
    stop = int_column("timeline", "stop_frame", stop_frame, maximum=frame_count)
    _refuse_unsuitable(start, stop, fps, owner, labels)
    if not len(owner):
        return blank("no tracklets", title)
    scale = 1 / (60 * fps) if fps is not None else 1.0
    lanes, lane = np.unique(owner, return_inverse=True)
    known = owner < len(polyp_names)
    polyps = len(np.unique(owner[known]))
    spans = _spans(start, stop, frame_count) * scale
    own = np.array([GREY if polyp == len(polyp_names) else COLOURS[k % len(COLOURS)] for k, polyp in enumerate(lanes)])

    blocks = 1 + len(labels)
    height = min(max(9 / (len(lanes) * blocks), 0.08), 0.24, LARGEST_HEIGHT / (len(lanes) * blocks))
    figure = Figure(figsize=(11, blocks * (len(lanes) * height + 0.36) + 1.1), layout="constrained")
    panels = figure.subplots(blocks, 1, squeeze=False, sharex=True)[:, 0]
    for axes, method in zip(panels, [None, *labels], strict=True):
        if method is None:
            colours, merged, says = own[lane], np.zeros(len(lane), bool), f"polyps {polyps}"
        else:
            colours, merged, repeat = _colour_groups(labels[method], lane, own)
            found = len(np.unique(labels[method][known]))
            says = f"groups {found} / polyps {polyps}" + ("\ncolours repeat" if repeat else "")
        _draw_bars(axes, spans, lane, colours, merged)
        axes.set_title("truth" if method is None else shown(method, 60), loc="left", fontsize=9.5, pad=3, **PLAIN)
        axes.text(1.01, 0.5, says, transform=axes.transAxes, va="center", fontsize=9)
        named = np.arange(0, len(lanes), math.ceil(_LINE / height))
        axes.set_yticks(named, [_name(lanes[k], polyp_names) for k in named], fontsize=7.5, **PLAIN)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlim(0, frame_count * scale)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[-1].set_xlabel("frames" if fps is None else "minutes")
    if labels:
        figure.supxlabel(_READING, fontsize=8.5, color="#404040")
    figure.suptitle(shown(title, 90), fontsize=11, **PLAIN)
    return settle(figure)


def _owners(polyp: ArrayLike, names: Sequence[str]) -> Ints:
    """The polyp of each tracklet, int64[n]; the one after the last where it is not known."""
    owner = int_column("tracklets", "polyp", polyp, minimum=-1, maximum=len(names) - 1)
    return np.where(owner < 0, len(names), owner)


def _refuse_unsuitable(
    start: Int32Column, stop: Int32Column, fps: float | None, owner: Ints, labels: Mapping[str, Int32Column]
) -> None:
    for name, column in [("start_frame", start), ("stop_frame", stop), *labels.items()]:
        if len(column) != len(owner):
            raise DataError(f"{name!r} must have a row per tracklet, found {len(column)} rows for {len(owner)}")
    if (start >= stop).any():
        raise DataError(f"tracklet {int(np.argmax(start >= stop))} must start before it stops")
    if fps is not None and not (math.isfinite(fps) and fps > 0):
        raise DataError(f"fps must be above 0, or None where it is not known, found {fps}")


def _spans(start: Int32Column, stop: Int32Column, end: int) -> NDArray[np.float64]:
    """The frames where each bar begins and ends, [n, 2]: around the middle of the tracklet, wide enough to be seen."""
    half = np.maximum(stop - start, end * _NARROWEST) / 2.0
    middle = np.clip(start + (stop - start) / 2, half, end - half)
    return np.stack([middle - half, middle + half], axis=1)


def _colour_groups(
    group: Int32Column, lane: Ints, own: NDArray[np.str_]
) -> tuple[NDArray[np.str_], NDArray[np.bool_], bool]:
    """The colour of each tracklet by its group [n], whether its group is of several polyps [n], whether colours repeat.

    own: the colour of each lane, grey where the polyp is not known.
    """
    colours = np.full(len(group), GREY, own.dtype)
    merged = np.zeros(len(group), bool)
    names, first, size = np.unique(group, return_index=True, return_counts=True)
    members = [group == names[k] for k in np.lexsort((first, -size)) if size[k] > 1]
    homes = [int(np.argmax(np.bincount(lane[mine]))) for mine in members]
    # The largest group of each polyp chooses before all others, so that none of those takes the polyp's colour from it.
    claims = [home not in homes[:k] for k, home in enumerate(homes)]
    used = dict.fromkeys(COLOURS, 0)
    taken: list[set[str]] = [set() for _ in own]
    for k in sorted(range(len(members)), key=lambda k: not claims[k]):
        touched = np.unique(lane[members[k]])
        home = str(own[homes[k]])
        free = set(COLOURS).difference(*(taken[place] for place in touched)) or set(COLOURS)
        colour = home if claims[k] and home in free else min(free, key=lambda c: (used[c], c in own, COLOURS.index(c)))
        used[colour] += 1
        for place in touched:
            taken[place].add(colour)
        colours[members[k]], merged[members[k]] = colour, (own[touched] != GREY).sum() > 1
    return colours, merged, max(used.values()) > 1


def _draw_bars(
    axes: "Axes",
    spans: NDArray[np.float64],
    lane: Ints,
    colours: NDArray[np.str_],
    underlined: NDArray[np.bool_],
) -> None:
    """A bar per tracklet, in the order given, and a line below those that are underlined."""
    from matplotlib.collections import PolyCollection

    def boxes(which: NDArray[np.bool_], top: float, bottom: float) -> list[NDArray[np.float64]]:
        left, right = spans[which].T
        upper, lower = lane[which] + top, lane[which] + bottom
        corners = np.stack([left, upper, left, lower, right, lower, right, upper], axis=1)
        return list(corners.reshape(-1, 4, 2))

    axes.hlines(np.unique(lane), 0, 1, transform=axes.get_yaxis_transform(), color="#EEEEEE", linewidth=0.8, zorder=0)
    everyone = np.ones(len(lane), bool)
    axes.add_collection(PolyCollection(boxes(everyone, -0.36, 0.24), facecolors=list(colours), linewidths=0))
    if underlined.any():
        axes.add_collection(PolyCollection(boxes(underlined, 0.3, 0.42), facecolors="black", linewidths=0))


def _name(owner: int, names: Sequence[str]) -> str:
    return shown(names[owner], 22) if owner < len(names) else _UNKNOWN
