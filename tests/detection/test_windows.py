"""Which part of a frame is shown, and where the polyps are in it."""

import numpy as np
import pytest

from polypcount.detection.recipe import FrameChanges
from polypcount.detection.windows import Window, draw_window, letterbox, seen_boxes

CONTENT = np.array([1.0, 0.8])
BOX = np.array([[-0.3, -0.2, 0.1, 0.3]])


def outline(box: np.ndarray) -> np.ndarray:
    """Points on the ellipse inside a box, float64[n, 2]."""
    angle = np.linspace(0, 2 * np.pi, 721)
    middle, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2
    return np.asarray(middle + half * np.column_stack([np.cos(angle), np.sin(angle)]))


@pytest.mark.parametrize("seed", range(12))
def test_a_box_is_the_one_around_its_turned_ellipse(seed: int) -> None:
    window = draw_window(CONTENT, BOX, 1.25, FrameChanges(empty=0), np.random.default_rng(seed))
    seen = (outline(BOX[0]) - window.centre) @ np.linalg.inv(window.axes).T
    expected = [*seen.min(axis=0), *seen.max(axis=0)]
    assert window.boxes(BOX)[0] == pytest.approx(expected, abs=1e-3)


def test_the_letterbox_shows_the_whole_frame_with_its_proportions() -> None:
    for content, aspect in ((CONTENT, 1.25), (np.array([0.5, 1.0]), 1.25), (np.array([1.0, 0.3]), 1.25)):
        window = letterbox(content, aspect)
        half = np.diag(window.axes)
        assert half[0] / half[1] == pytest.approx(aspect)
        assert (half >= content - 1e-12).all()
        assert min(half - content) == pytest.approx(0)
        assert window.boxes(np.array([[*-content, *content]]))[0].max() == pytest.approx(1)


def test_a_part_without_a_polyp_has_none() -> None:
    changes = FrameChanges(empty=1.0)
    free = 0
    for seed in range(40):
        window = draw_window(CONTENT, BOX, 1.25, changes, np.random.default_rng(seed))
        _, found, _ = seen_boxes(window.boxes(BOX), 320, 256)
        free += not found.any()
    assert free >= 30


def test_where_a_polyp_fills_the_frame_it_is_shown() -> None:
    whole = np.array([[-1.0, -0.8, 1.0, 0.8]])
    window = draw_window(CONTENT, whole, 1.25, FrameChanges(empty=1.0), np.random.default_rng(0))
    assert seen_boxes(window.boxes(whole), 320, 256)[1].all()


def test_polyps_are_found_if_enough_of_them_is_in_view() -> None:
    boxes = np.array(
        [
            [-0.5, -0.5, 0.5, 0.5],  # whole
            [0.5, 0.0, 1.5, 0.5],  # half of it
            [0.9, 0.0, 1.9, 0.5],  # a tenth
            [1.2, 0.0, 1.5, 0.5],  # outside
            [0.0, 0.0, 0.01, 0.01],  # less than 6 pixels
        ]
    )
    xyxy, found, ignored = seen_boxes(boxes, 200, 100)
    assert found.tolist() == [True, True, False, False, False]
    assert ignored.tolist() == [False, False, True, False, True]
    assert xyxy[0].tolist() == [50, 25, 150, 75]
    assert xyxy[1].tolist() == [150, 50, 200, 75]


def test_a_window_without_changes_keeps_the_frame_whole() -> None:
    still = FrameChanges(empty=0, zoom=1, shrink=1, stretch=0, rotation=0, flip=False)
    window = draw_window(CONTENT, np.empty((0, 4)), 1.25, still, np.random.default_rng(0))
    expected = letterbox(CONTENT, 1.25)
    assert isinstance(window, Window)
    assert window.axes == pytest.approx(expected.axes)
    assert window.centre == pytest.approx(expected.centre)
