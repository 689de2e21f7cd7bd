"""What the figures of a video show, over sizes from nothing to much."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from polypcount.errors import DataError
from polypcount.evaluation.figures import COLOURS, GREY
from polypcount.evaluation.figures_video import draw_similarities, draw_timeline
from tests.evaluation.drawn import HOSTILE, hexes, overlap, pixels, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAN = math.nan

# Similarities


@pytest.mark.parametrize("n", [1, 2, 19, 225, 600])
def test_matrices_are_shown_by_polyp_then_as_given(n: int) -> None:
    rng = np.random.default_rng(n)
    polyp = rng.integers(-1, 5, n)
    names = [f"polyp {k}" for k in range(5)]
    visual, temporal, fused = rng.uniform(size=(3, n, n))
    figure = draw_similarities(visual, temporal, fused, polyp, names, "video")
    pixels(figure)
    panels = figure.axes[:3]
    assert [axes.get_title()[0] for axes in panels] == ["V", "T", "S"]
    expected = sorted(range(n), key=lambda row: (polyp[row] < 0, polyp[row], row))
    for axes, matrix in zip(panels, (visual, temporal, fused), strict=True):
        (image,) = axes.get_images()
        assert image.get_clim() == (0, 1)
        np.testing.assert_array_equal(np.asarray(image.get_array()), matrix[expected][:, expected])
        changes = [row + 0.5 for row in range(n - 1) if polyp[expected[row]] != polyp[expected[row + 1]]]
        across = [line.get_ydata() for line in axes.lines if np.ptp(np.asarray(line.get_ydata())) == 0]
        assert sorted(float(np.asarray(ys)[0]) for ys in across) == changes
    assert len(figure.axes) == 4, "one colour bar"
    assert not overlap(list(panels[0].get_yticklabels()))


def test_names_stand_beside_their_rows_unless_there_is_no_room() -> None:
    polyp = [1] * 50 + [0] * 49 + [2]
    names = ["first", "second", "narrow", "unused"]
    figure = draw_similarities(np.eye(100), None, None, polyp, names, "video")
    labels = figure.axes[0].get_yticklabels()
    assert [(label.get_text(), label.get_position()[1]) for label in labels] == [("first", 24), ("second", 73.5)]


def test_a_matrix_that_is_not_given_is_left_out() -> None:
    figure = draw_similarities(None, None, np.eye(2), [0, 0], ["p"], "video")
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == ["S: both"]
    with pytest.raises(DataError, match="at least one"):
        draw_similarities(None, None, None, [0], ["p"], "video")


def test_no_tracklets_hostile_names_and_undefined_similarities() -> None:
    assert "no tracklets" in texts(draw_similarities(np.empty((0, 0)), None, None, [], [], HOSTILE[1]))
    n = len(HOSTILE)
    for title in HOSTILE[1], HOSTILE[7]:
        pixels(draw_similarities(np.full((n, n), NAN), None, None, range(n), HOSTILE, title))


@pytest.mark.parametrize(
    ("matrix", "polyp"), [(np.eye(2), [0]), (np.eye(1), [1]), (np.eye(1), [-2]), (np.eye(1), [0.5])]
)
def test_matrices_and_polyps_that_do_not_fit_are_refused(matrix: Any, polyp: Any) -> None:
    with pytest.raises(DataError):
        draw_similarities(matrix, None, None, polyp, ["p"], "video")


# The timeline


def bars(axes: "Axes") -> tuple[np.ndarray[Any, Any], list[str]]:
    """left, right and lane of each bar [n, 3], and their colours."""
    from matplotlib.collections import PolyCollection

    found = next(one for one in axes.collections if isinstance(one, PolyCollection))
    corners = np.array([np.asarray(path.vertices)[:4] for path in found.get_paths()])
    lane = np.round(corners[:, :, 1].mean(axis=1))
    spans = np.stack([corners[:, :, 0].min(axis=1), corners[:, :, 0].max(axis=1), lane], axis=1)
    return spans, hexes(found.get_facecolor())


def underlined(axes: "Axes") -> int:
    from matplotlib.collections import PolyCollection

    return sum(len(one.get_paths()) for one in axes.collections if isinstance(one, PolyCollection)) - len(bars(axes)[0])


POLYP = [0, 0, 1, 1, 2, 2, 2]
START = [0, 1000, 2000, 3000, 4000, 5000, 5900]
STOP = [500, 1001, 2500, 3500, 4500, 5500, 6000]
NAMES = ["p1", "p2", "p3"]


def timeline(groups: dict[str, Any], fps: float | None = 25.0) -> "Figure":
    return draw_timeline(START, STOP, 6000, fps, POLYP, NAMES, groups, "video")


def test_bars_stand_at_their_time_in_the_lane_of_their_polyp() -> None:
    figure = timeline({"one": [5, 5, 6, 6, 7, 7, 7]})
    pixels(figure)
    for axes in figure.axes:
        spans, _ = bars(axes)
        assert spans[:, 2].tolist() == POLYP
        minutes = np.delete(spans[:, :2], 1, axis=0)
        assert minutes == pytest.approx(np.delete(np.array([START, STOP]).T, 1, axis=0) / 1500)
        assert spans[1, 1] - spans[1, 0] == pytest.approx(4 / 400), "one frame is drawn wide enough to be seen"
        assert spans[1, :2].mean() == pytest.approx(1000.5 / 1500)
        assert axes.get_xlim() == (0, 4)
        assert [label.get_text() for label in axes.get_yticklabels()] == NAMES
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


@pytest.mark.parametrize(("n", "polyps"), [(1, 1), (2, 2), (19, 3), (225, 6), (225, 1), (600, 40)])
def test_equal_groups_have_equal_colours_and_colours_repeat_late(n: int, polyps: int) -> None:
    rng = np.random.default_rng(n)
    start = np.sort(rng.integers(0, 60000, n))
    polyp = rng.integers(0, polyps, n)
    methods = {"few": rng.integers(0, 5, n), "many": polyp * 100 + rng.integers(0, 8, n), "none": np.arange(n)}
    names = [f"polyp {k}" for k in range(polyps)]
    figure = draw_timeline(start, start + rng.integers(1, 400, n), 60400, 30.0, polyp, names, methods, "video")
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


def test_tracklets_of_no_known_polyp_have_a_lane_but_do_not_count() -> None:
    start = np.array([0, 5, 8, 9])
    figure = draw_timeline(start, start + 1, 10, None, [-1, 0, 0, -1], ["p", "unused"], {"m": [1, 1, 2, 3]}, "video")
    truth, found = figure.axes
    assert [label.get_text() for label in truth.get_yticklabels()] == ["p", "no known polyp"]
    assert bars(truth)[1] == [GREY, COLOURS[0], COLOURS[0], GREY]
    assert found.texts[0].get_text() == "groups 2 / polyps 1"
    assert underlined(found) == 0, "nobody knows whether that is merged"


def test_many_fragments_of_one_polyp_leave_the_colour_of_another_to_it() -> None:
    # Groups of 3 to begin with, more than there are colours, and one of 2 that comes after them all.
    polyp = [0] * 24 + [1] * 18 + [2] * 2
    groups = {"m": [k // 3 for k in range(42)] + [99, 99]}
    names = ["large", "middling", "small"]
    colours = bars(draw_timeline(range(44), range(1, 45), 44, None, polyp, names, groups, "video").axes[1])[1]
    assert [colour == COLOURS[2] for colour in colours] == [False] * 42 + [True] * 2


def test_timelines_without_tracklets_and_with_hostile_names() -> None:
    assert "no tracklets" in texts(draw_timeline([], [], 0, None, [], [], {"m": []}, "video"))
    n = len(HOSTILE)
    groups = {name: np.arange(n) // 2 for name in HOSTILE}
    figure = draw_timeline(np.arange(n), np.arange(n) + 1, n, 30.0, range(n), HOSTILE, groups, HOSTILE[8])
    assert {"$", r"$\frac{1$", "_hidden"} <= set(texts(figure))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stop_frame": [11]}, "at most 10"),
        ({"stop_frame": [3]}, "must start before it stops"),
        ({"start_frame": [1, 2]}, "found 2 rows for 1"),
        ({"fps": 0.0}, "fps"),
        ({"fps": NAN}, "fps"),
        ({"polyp": [1]}, "at most 0"),
        ({"groups": {"m": [-1]}}, "'m' row 0: .*at least 0"),
        ({"groups": {"m": [0, 1]}}, "'m' must have a row per tracklet"),
    ],
)
def test_what_is_no_timeline_is_refused(change: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {"start_frame": [3], "stop_frame": [5], "frame_count": 10, "fps": 25.0, "polyp": [0]}
    with pytest.raises(DataError, match=says):
        draw_timeline(**{**good, "polyp_names": ["p"], "groups": {}, "title": "video", **change})
