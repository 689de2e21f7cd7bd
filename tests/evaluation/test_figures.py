"""What the figures of an evaluation show, whatever the ids are made of, and how figures are saved."""

import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from polypcount.evaluation.figures import COLOURS, draw_fr_per_video, draw_trade_off, save_figure, shown
from polypcount.evaluation.figures_video import draw_similarities, draw_timeline
from tests.evaluation.drawn import HOSTILE, hexes, overlap, pixels, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAN = math.nan
TRADE = (
    {"average": ([0.0, 0.04, 0.1], [9.0, 4.0, 2.0]), "DBSCAN": ([0.01, 0.5], [6.0, 0.7])},
    [
        ("average", "closest", 0.06, 3.5),
        ("average", "budget", 0.03, 4.5),
        ("DBSCAN", "budget", NAN, 2.0),
        ("recipe", "fixed", 0.02, 5.0),
        ("none", "fixed", 0.0, 20.0),
        ("oracle", "fixed", 0.0, 1.0),
    ],
    0.05,
)


def points_of(axes: "Axes") -> list[tuple[float, float, str, str]]:
    """x, y, marker and colour of every mark."""
    found = []
    for line in axes.lines:
        if line.get_marker() not in ("None", None, ""):
            xy = np.asarray(line.get_xydata())
            found += [(float(x), float(y), str(line.get_marker()), hexes([line.get_color()])[0]) for x, y in xy]
    return found


# The trade-off


def test_operating_points_stand_where_they_came_out_in_the_colour_of_their_method() -> None:
    axes = draw_trade_off(*TRADE).axes[0]
    steps = {hexes([line.get_color()])[0]: line for line in axes.lines if line.get_drawstyle() == "steps-post"}
    average, dbscan, recipe = COLOURS[:3]
    assert list(steps) == [average, dbscan]
    assert points_of(axes) == [
        (0.06, 3.5, "o", average),
        (0.03, 4.5, "s", average),
        (0.02, 5.0, "D", recipe),
        (0.0, 20.0, "D", "#707070"),
        (0.0, 1.0, "D", "#000000"),
    ], "the one without an FPR is left out"
    assert np.asarray(steps[average].get_xydata()).tolist() == [[0, 9], [0.04, 4], [0.1, 2], [0.2, 2]], "up to the end"


def test_the_axes_hold_all_points_and_have_plain_ticks() -> None:
    figure = draw_trade_off(*TRADE)
    pixels(figure)
    axes = figure.axes[0]
    assert axes.get_xlim() == pytest.approx((0, 0.2))
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert low < 1
    assert high > 20
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "5", "10", "20"]
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [list(np.asarray(line.get_xdata())) for line in dashed] == [[0.05, 0.05]]


@pytest.mark.parametrize(
    ("target", "fpr", "end"), [(0.05, 0.3, 0.36), (0.05, 0.95, 1), (0.4, 0.1, 1), (0.05, 0.02, 0.2)]
)
def test_the_fpr_axis_reaches_past_target_and_points(target: float, fpr: float, end: float) -> None:
    axes = draw_trade_off({}, [("a", "fixed", fpr, 2.0)], target).axes[0]
    assert axes.get_xlim() == pytest.approx((0, end))


def test_legends_name_what_is_drawn_and_keep_apart() -> None:
    said = texts(draw_trade_off(*TRADE))
    assert {"average", "DBSCAN", "recipe", "none", "oracle", "target FPR 0.05"} <= set(said)
    assert sum(text.startswith(("closest:", "budget:", "fixed:")) for text in said) == 3
    assert "lost" not in texts(draw_trade_off({}, [("lost", "budget", NAN, 2.0)], 0.05))
    many = draw_trade_off({}, [(f"method {k}", "budget", 0.02, 2.0) for k in range(40)], 0.05)
    pixels(many)
    upper, lower = (legend.get_window_extent() for legend in many.legends)
    assert not upper.overlaps(lower)


def test_a_trade_off_of_nothing_and_of_hostile_names_is_drawn() -> None:
    pixels(draw_trade_off({}, [], 0.05))
    pixels(draw_trade_off({"empty": ([], [])}, [], 0.05))
    figure = draw_trade_off({name: ([0.0], [2.0]) for name in HOSTILE}, [(n, "fixed", 0.1, 3.0) for n in HOSTILE], 0.05)
    assert {"$", r"$\frac{1$", "_hidden"} <= set(texts(figure))


# FR per video


@pytest.mark.parametrize(("count", "methods"), [(1, 6), (60, 3), (300, 1)])
def test_every_video_has_a_row_with_its_marks(count: int, methods: int) -> None:
    rng = np.random.default_rng(0)
    fr = {f"method {k}": rng.uniform(0.4, 25, count) for k in range(methods)}
    videos = [f"video {row:04d}" for row in range(count)]
    figure = draw_fr_per_video(videos, fr, (np.arange(count) % 9).tolist())
    pixels(figure)
    axes = figure.axes[0]
    marks = points_of(axes)
    assert len(marks) == count * methods
    for k, values in enumerate(fr.values()):
        mine = marks[k * count : (k + 1) * count]
        assert [mark[0] for mark in mine] == values.tolist()
        assert [round(mark[1]) for mark in mine] == list(range(count)), "each in its row"
        assert {mark[3] for mark in mine} == {COLOURS[k % len(COLOURS)]}
    low, high = axes.get_xlim()
    assert low < min(mark[0] for mark in marks)
    assert high > max(mark[0] for mark in marks)
    assert axes.get_ylim() == (count - 0.5, -0.5), "the first on top"
    labels = axes.get_yticklabels()
    assert labels[0].get_text() == "video 0000 (0)"
    if count <= 225:
        assert [label.get_text() for label in labels] == [f"{name} ({k % 9})" for k, name in enumerate(videos)]
    assert not overlap(labels)


def test_equal_values_of_two_methods_do_not_hide_each_other() -> None:
    first, second = points_of(draw_fr_per_video(["a"], {"one": [1.0], "two": [1.0]}, [3]).axes[0])
    assert first[0] == second[0] == 1
    assert first[1] != second[1]
    assert first[2:] != second[2:]


def test_undefined_fr_is_left_out_and_a_row_without_any_says_so() -> None:
    figure = draw_fr_per_video(["a", "b"], {"one": [NAN, 2.0], "two": [NAN, NAN]}, [0, 2])
    drawn = [mark for mark in points_of(figure.axes[0]) if not math.isnan(mark[0])]
    assert [mark[0] for mark in drawn] == [2.0]
    assert [text.get_text() for text in figure.axes[0].texts] == ["no FR"]


def test_hostile_videos_and_methods() -> None:
    fr = {name: np.arange(1.0, len(HOSTILE) + 1) for name in HOSTILE}
    figure = draw_fr_per_video(HOSTILE, fr, [0] * len(HOSTILE))
    said = texts(figure)
    assert {"$ (0)", r"$\frac{1$ (0)", "_hidden (0)", "<svg>&amp;--><!-- (0)", "_hidden"} <= set(said)
    assert max(map(len, said)) < 50
    assert not overlap(figure.axes[0].get_yticklabels())


# Text, and files


def test_shown_names_are_one_short_line_that_can_be_drawn() -> None:
    assert shown("001-003") == "001-003"
    assert shown("a\nb\t c") == "a b c"
    assert shown("abcdefghij", 7) == "abc…hij"
    assert shown("息\x07") == "□□"
    assert len(shown("x" * 300)) == 28


def test_every_character_that_is_shown_has_a_glyph() -> None:
    from matplotlib.figure import Figure

    from polypcount.evaluation.figures import PLAIN

    figure = Figure()
    drawable = [letter for letter in map(chr, range(0x110000)) if shown(letter) == letter]
    assert len(drawable) > 5000
    for first in range(0, len(drawable), 100):
        figure.text(0, 0, "".join(drawable[first : first + 100]), fontsize=2, **PLAIN)
    pixels(figure)


DRAWN: list[Callable[[], "Figure"]] = [
    lambda: draw_trade_off(*TRADE),
    lambda: draw_fr_per_video(HOSTILE, {name: np.arange(1.0, 12) for name in HOSTILE}, range(11)),
    lambda: draw_similarities({"V": np.eye(30), "S": np.eye(30)}, np.arange(30) % 11, HOSTILE[4]),
    lambda: draw_timeline(
        np.arange(7), np.arange(2, 9), 9, 25.0, np.arange(7) // 3, {HOSTILE[4]: np.arange(7) // 2}, HOSTILE[4]
    ),
]


@pytest.mark.parametrize(("draw", "kind"), [(0, ".png"), (1, ".svg"), (2, ".png"), (3, ".svg")])
def test_the_same_data_give_the_same_bytes(draw: int, kind: str, tmp_path: Path) -> None:
    figure = DRAWN[draw]()
    paths = [tmp_path / f"first{kind}", tmp_path / "deeper" / f"again{kind}", tmp_path / f"anew{kind}"]
    for drawn, path in zip((figure, figure, DRAWN[draw]()), paths, strict=True):
        save_figure(drawn, path)
    content = paths[0].read_bytes()
    assert content == paths[1].read_bytes() == paths[2].read_bytes()
    for trace in (b"matplotlib.org", b"dc:date", b"CreationDate", b"Producer"):
        assert trace not in content, "nor who made it, nor when"
    if kind == ".svg":
        ET.fromstring(content)
    else:
        from PIL import Image

        with Image.open(paths[0]) as image:
            inches = figure.get_size_inches() * 150
            assert np.abs(np.array(image.size) - inches).max() <= 1


def test_many_threads_draw_the_same_and_no_setting_of_matplotlib_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib as mpl

    monkeypatch.setitem(mpl.rcParams, "svg.hashsalt", "another")
    before = dict(mpl.rcParams)
    save_figure(DRAWN[3](), tmp_path / "alone.svg")
    paths = [tmp_path / f"{k}.svg" for k in range(3)]
    threads = [threading.Thread(target=lambda path=path: save_figure(DRAWN[3](), path)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.read_bytes() for path in paths} == {(tmp_path / "alone.svg").read_bytes()}
    assert dict(mpl.rcParams) == before


def test_the_old_file_survives_a_save_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(b"old")
    figure = draw_trade_off({}, [], 0.05)

    def half(file: Path, **_: object) -> None:
        file.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(figure, "savefig", half)
        with pytest.raises(OSError, match="No space left"):
            save_figure(figure, path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("figure.png", b"old")]
    save_figure(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG")
