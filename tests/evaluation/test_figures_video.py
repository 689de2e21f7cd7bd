"""What the figures of a video show, over sizes from nothing to much."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from polypcount.evaluation.figures import COLOURS, GREY
from polypcount.evaluation.figures_video import draw_similarities, draw_timeline
from tests.evaluation.drawn import HOSTILE, hexes, overlap, pixels, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Similarities


@pytest.mark.parametrize("n", [1, 2, 225])
def test_matrices_are_shown_by_polyp_then_as_given(n: int) -> None:
    rng = np.random.default_rng(n)
    polyp = np.unique(rng.integers(0, 5, n), return_inverse=True)[1]
    matrices = dict(zip("VTS", rng.uniform(size=(3, n, n)), strict=True))
    figure = draw_similarities(matrices, polyp, "video")
    pixels(figure)
    panels = figure.axes[:3]
    assert [axes.get_title() for axes in panels] == ["V", "T", "S"]
    expected = sorted(range(n), key=lambda row: (polyp[row], row))
    for axes, matrix in zip(panels, matrices.values(), strict=True):
        (image,) = axes.get_images()
        assert image.get_clim() == (0, 1)
        np.testing.assert_array_equal(np.asarray(image.get_array()), matrix[expected][:, expected])
        changes = [row + 0.5 for row in range(n - 1) if polyp[expected[row]] != polyp[expected[row + 1]]]
        across = [line.get_ydata() for line in axes.lines if np.ptp(np.asarray(line.get_ydata())) == 0]
        assert sorted(float(np.asarray(ys)[0]) for ys in across) == changes
    assert len(figure.axes) == 4, "one colour bar"
    assert not overlap(list(panels[0].get_yticklabels()))


def test_names_stand_beside_their_rows_unless_there_is_no_room() -> None:
    polyp = np.array([1] * 50 + [0] * 49 + [2])
    labels = draw_similarities({"V": np.eye(100)}, polyp, "video").axes[0].get_yticklabels()
    assert [(label.get_text(), label.get_position()[1]) for label in labels] == [("polyp 1", 24), ("polyp 2", 73.5)]


def test_no_tracklets_and_hostile_titles() -> None:
    nothing = np.empty(0, int)
    assert "no tracklets" in texts(draw_similarities({"V": np.empty((0, 0))}, nothing, HOSTILE[1]))
    assert "no tracklets" in texts(draw_timeline(nothing, nothing, 0, None, nothing, {"m": nothing}, "video"))
    for title in HOSTILE[1], HOSTILE[7]:
        pixels(draw_similarities({"V": np.eye(2)}, np.array([0, 1]), title))
    n = len(HOSTILE)
    groups = {name: np.arange(n) // 2 for name in HOSTILE}
    figure = draw_timeline(np.arange(n), np.arange(n) + 1, n, 30.0, np.arange(n), groups, HOSTILE[8])
    assert {"$", r"$\frac{1$", "_hidden"} <= set(texts(figure))


# The timeline


def bars(axes: "Axes") -> tuple[np.ndarray[Any, Any], list[str]]:
    """left, right and lane of each bar [n, 3], and their colours."""
    lines = axes.collections[1]
    segments = np.array([np.asarray(path.vertices) for path in lines.get_paths()])
    spans = np.stack([segments[:, 0, 0], segments[:, 1, 0], np.round(segments[:, 0, 1])], axis=1)
    return spans, hexes(lines.get_edgecolor())


def underlined(axes: "Axes") -> int:
    return len(axes.collections[2].get_paths())


POLYP = np.array([0, 0, 1, 1, 2, 2, 2])
START = np.array([0, 1000, 2000, 3000, 4000, 5000, 5900])
STOP = np.array([500, 1001, 2500, 3500, 4500, 5500, 6000])


def timeline(groups: dict[str, Any], fps: float | None = 25.0) -> "Figure":
    columns = {name: np.array(column) for name, column in groups.items()}
    return draw_timeline(START, STOP, 6000, fps, POLYP, columns, "video")


def test_bars_stand_at_their_time_in_the_lane_of_their_polyp() -> None:
    figure = timeline({"one": [5, 5, 6, 6, 7, 7, 7]})
    pixels(figure)
    for axes in figure.axes:
        spans, _ = bars(axes)
        assert spans[:, 2].tolist() == POLYP.tolist()
        minutes = np.delete(spans[:, :2], 1, axis=0)
        assert minutes == pytest.approx(np.delete(np.array([START, STOP]).T, 1, axis=0) / 1500)
        assert spans[1, 1] - spans[1, 0] == pytest.approx(4 / 400), "one frame is drawn wide enough to be seen"
        assert spans[1, :2].mean() == pytest.approx(1000.5 / 1500)
        assert axes.get_xlim() == (0, 4)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["polyp 1", "polyp 2", "polyp 3"]
    assert figure.axes[-1].get_xlabel() == "minutes"
    frames = timeline({}, fps=None).axes[-1]
    assert (frames.get_xlabel(), frames.get_xlim()) == ("frames", (0, 6000))


def test_a_right_grouping_looks_like_the_truth() -> None:
    truth, right = timeline({"right": [9, 9, 2, 2, 4, 4, 4]}).axes
    assert bars(truth)[1] == bars(right)[1] == [COLOURS[polyp] for polyp in POLYP]
    assert underlined(right) == 0
    assert [text.get_text() for text in right.texts] == ["groups 3 / polyps 3"]


def test_fragmented_merged_and_single_tracklets_look_different() -> None:
    axes = timeline({"m": [0, 0, 0, 0, 1, 1, 2]}).axes[1]
    colours = bars(axes)[1]
    assert len(set(colours[:4])) == 1, "merged: one colour in two lanes"
    assert underlined(axes) == 4
    assert colours[4] == colours[5] == COLOURS[2]
    assert colours[6] == GREY
    assert [text.get_text() for text in axes.texts] == ["groups 3 / polyps 3"]
    fragments = bars(timeline({"m": [0, 0, 1, 1, 2, 3, 3]}).axes[1])[1]
    assert fragments[4:] == [GREY, COLOURS[2], COLOURS[2]]


@pytest.mark.parametrize(("n", "polyps"), [(1, 1), (225, 6), (120, 40)])
def test_equal_groups_have_equal_colours_and_colours_repeat_late(n: int, polyps: int) -> None:
    rng = np.random.default_rng(n)
    start = np.sort(rng.integers(0, 60000, n))
    polyp = np.unique(rng.integers(0, polyps, n), return_inverse=True)[1]
    polyps = int(polyp.max()) + 1
    methods = {"few": rng.integers(0, 5, n), "many": polyp * 100 + rng.integers(0, 8, n), "none": np.arange(n)}
    figure = draw_timeline(start, start + rng.integers(1, 400, n), 60400, 30.0, polyp, methods, "video")
    pixels(figure)
    for axes, group in zip(figure.axes[1:], methods.values(), strict=True):
        colour = np.array(bars(axes)[1])
        assert len(colour) == n
        kinds, sizes = np.unique(group, return_counts=True)
        several = kinds[sizes > 1]
        shades = [set(colour[group == kind]) for kind in several]
        assert all(len(shade) == 1 for shade in shades)
        assert all(set(colour[group == kind]) == {GREY} for kind in kinds[sizes == 1])
        distinct = {next(iter(shade)) for shade in shades}
        repeats = len(several) > len(distinct)
        assert repeats == any("colours repeat" in text.get_text() for text in axes.texts)
        if polyps <= len(COLOURS):
            assert len(distinct) == min(len(several), len(COLOURS)), "no colour twice before each was used"
        per_lane = [{kind for kind in several if (polyp[group == kind] == lane).any()} for lane in range(polyps)]
        for mine in per_lane:
            if len(mine) <= 8 and len(several) > 8:
                assert len({colour[group == kind][0] for kind in mine}) == len(mine), "not twice in a lane"
        assert underlined(axes) == sum(len(set(polyp[group == kind])) > 1 for kind in group)
        assert not overlap(list(axes.get_yticklabels()))
        assert f"groups {len(kinds)} / polyps {len(set(polyp.tolist()))}" in axes.texts[0].get_text()


def test_many_fragments_of_one_polyp_leave_the_colour_of_another_to_it() -> None:
    # Groups of 3 to begin with, more than there are colours, and one of 2 that comes after them all.
    polyp = np.array([0] * 24 + [1] * 18 + [2] * 2)
    groups = {"m": np.array([k // 3 for k in range(42)] + [99, 99])}
    frames = np.arange(44)
    colours = bars(draw_timeline(frames, frames + 1, 44, None, polyp, groups, "video").axes[1])[1]
    assert [colour == COLOURS[2] for colour in colours] == [False] * 42 + [True] * 2
