"""Figures of the tracklets of one video: their similarities, and their groups over time.

`polyp` is int[n], the polyp of each tracklet, numbered from 0 without gaps.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import Matrix
from polypcount.evaluation.figures import COLOURS, GREY, LARGEST_HEIGHT, PLAIN, blank, settle, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Integers = NDArray[np.integer]
_PANEL = 3.6  # inches, the side of a matrix
_LINE = 0.13  # inches, the height of a line of small text
_NARROWEST = 1 / 400  # of the width; shorter tracklets are drawn this wide
_LEGEND = "grey: a group of one tracklet      underlined: a group with tracklets of more than one polyp"


def draw_similarities(matrices: Mapping[str, Matrix], polyp: Integers, title: str) -> "Figure":
    """The similarities of the tracklets of a video side by side, ordered by polyp.

    Args:
        matrices: At least one matrix [n, n] in [0, 1] by its name.
        polyp: See above.
        title: Title of the figure.
    """
    from matplotlib.figure import Figure

    if not len(polyp):
        return blank("no tracklets", title)
    order = np.argsort(polyp, kind="stable")
    sizes = np.bincount(polyp)
    borders = np.cumsum(sizes) - 0.5
    figure = Figure(figsize=(_PANEL * len(matrices) + 2.1, _PANEL + 0.75), layout="compressed")
    panels = figure.subplots(1, len(matrices), squeeze=False)[0]
    line = min(1, max(0.3, 12 / len(sizes)))
    for axes, (name, matrix) in zip(panels, matrices.items(), strict=True):
        image = axes.imshow(matrix[np.ix_(order, order)], vmin=0, vmax=1, cmap="viridis")
        for border in borders[:-1]:
            axes.axhline(border, color="white", linewidth=line)
            axes.axvline(border, color="white", linewidth=line)
        axes.set_title(name, fontsize=10)
        axes.set_xticks([])
        axes.set_yticks([])
    named = np.flatnonzero(_PANEL * sizes / len(polyp) >= _LINE)
    panels[0].set_yticks((borders - sizes / 2)[named], [f"polyp {k + 1}" for k in named], fontsize=8)
    panels[0].tick_params(axis="y", length=0)
    panels[0].set_xlabel("1 tracklet" if len(polyp) == 1 else f"{len(polyp)} tracklets, by polyp", fontsize=9)
    figure.colorbar(image, ax=panels.tolist(), shrink=0.9, label="similarity")
    figure.suptitle(shown(title, 45 + 30 * (len(matrices) - 1)), fontsize=11, **PLAIN)
    return settle(figure)


def draw_timeline(
    start_frame: Integers,
    stop_frame: Integers,
    frame_count: int,
    fps: float | None,
    polyp: Integers,
    groups: Mapping[str, Integers],
    title: str,
) -> "Figure":
    """When the tracklets of a video are visible, and how each method grouped them.

    On top is the truth, with a lane and a colour for each polyp. Below is a block for each method. Its tracklets stay
    in the lane of their polyp and are coloured by group: a lane in several colours was fragmented, a colour in several
    lanes was merged. Groups of one tracklet are grey, groups of several polyps underlined. The largest group of a polyp
    has the polyp's colour. If there are more groups than colours, colours repeat, within a lane last of all.

    Args:
        start_frame: int[n], first frame of each tracklet.
        stop_frame: int[n], the frame after the last.
        frame_count: Frames of the video.
        fps: Frames per second; time is in minutes with it, else in frames.
        polyp: See above.
        groups: For each method the group of each tracklet, int[n].
        title: Title of the figure.
    """
    from matplotlib.figure import Figure

    if not len(polyp):
        return blank("no tracklets", title)
    scale = 1 / (60 * fps) if fps else 1.0
    polyps = int(polyp.max()) + 1
    half = np.maximum(stop_frame - start_frame, frame_count * _NARROWEST) / 2
    middle = np.clip((start_frame + stop_frame) / 2, half, frame_count - half)
    left, right = (middle - half) * scale, (middle + half) * scale
    own = np.array([COLOURS[k % len(COLOURS)] for k in range(polyps)])
    blocks = 1 + len(groups)
    inches = min(max(9 / (polyps * blocks), 0.08), 0.24, LARGEST_HEIGHT / (polyps * blocks))  # of a lane
    height = 72 * inches  # in points
    figure = Figure(figsize=(11, blocks * (polyps * inches + 0.36) + 1.1), layout="constrained")
    panels = figure.subplots(blocks, 1, squeeze=False, sharex=True)[:, 0]
    named = np.arange(0, polyps, math.ceil(_LINE / inches))
    for axes, method in zip(panels, [None, *groups], strict=True):
        if method is None:
            colours, merged, note = own[polyp], np.zeros(len(polyp), bool), f"polyps {polyps}"
        else:
            colours, merged, repeat = _colour_groups(groups[method], polyp, own)
            note = f"groups {len(np.unique(groups[method]))} / polyps {polyps}" + "\ncolours repeat" * repeat
        axes.hlines(range(polyps), 0, frame_count * scale, color="#EEEEEE", linewidth=0.8, zorder=0)
        axes.hlines(polyp - 0.06, left, right, colors=list(colours), linewidth=0.6 * height)
        axes.hlines(polyp[merged] + 0.36, left[merged], right[merged], colors="black", linewidth=0.12 * height)
        axes.set_title("truth" if method is None else shown(method, 60), loc="left", fontsize=9.5, pad=3, **PLAIN)
        axes.text(1.01, 0.5, note, transform=axes.transAxes, va="center", fontsize=9)
        axes.set_yticks(named, [f"polyp {k + 1}" for k in named], fontsize=7.5)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(polyps - 0.4, -0.6)
        axes.set_xlim(0, frame_count * scale)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[-1].set_xlabel("minutes" if fps else "frames")
    if groups:
        figure.supxlabel(_LEGEND, fontsize=8.5, color="#404040")
    figure.suptitle(shown(title, 90), fontsize=11, **PLAIN)
    return settle(figure)


def _colour_groups(
    group: Integers, polyp: Integers, own: NDArray[np.str_]
) -> tuple[NDArray[np.str_], NDArray[np.bool_], bool]:
    """Colour of each tracklet by its group [n], whether its group has several polyps [n], whether colours repeat."""
    colours, merged = np.full(len(group), GREY, own.dtype), np.zeros(len(group), bool)
    names, first, size = np.unique(group, return_index=True, return_counts=True)
    members = [group == names[k] for k in np.lexsort((first, -size)) if size[k] > 1]
    homes = [int(np.argmax(np.bincount(polyp[rows]))) for rows in members]
    # The largest group of each polyp chooses first, so that no other group takes the polyp's colour.
    largest = [home not in homes[:k] for k, home in enumerate(homes)]
    used = dict.fromkeys(COLOURS, 0)
    taken: list[set[str]] = [set() for _ in own]
    for k in sorted(range(len(members)), key=lambda k: not largest[k]):
        lanes = np.unique(polyp[members[k]])
        home = str(own[homes[k]])
        free = set(COLOURS).difference(*(taken[lane] for lane in lanes)) or set(COLOURS)
        least_used = min(free, key=lambda colour: (used[colour], colour in own, COLOURS.index(colour)))
        colour = home if largest[k] and home in free else least_used
        used[colour] += 1
        for lane in lanes:
            taken[lane].add(colour)
        colours[members[k]], merged[members[k]] = colour, len(lanes) > 1
    return colours, merged, max(used.values()) > 1
