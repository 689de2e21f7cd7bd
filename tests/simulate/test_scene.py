"""Scenes: the same seed gives the same pixels in any order, and boxes lie around what is drawn."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.simulate import Difficulty, TimelineSettings
from polypcount.simulate.scene import Scene
from polypcount.video import CropRule

from .drawn import CLEAN, HEIGHT, WIDTH, Box, Picture, difference, procedure, scene_of, timeline

MIDDLE: Box = (60, 40, 100, 84)


def changed_box(one: Picture, other: Picture) -> list[int]:
    """Left, top, right, bottom of all that differs by more than the last level."""
    y, x = np.nonzero(np.abs(one.astype(np.int16) - other).max(axis=2) > 1)
    return [int(x.min()), int(y.min()), int(x.max()) + 1, int(y.max()) + 1]


def some_frames(scene: Scene) -> NDArray[np.int64]:
    """Frames with a polyp and without, in no order."""
    seen = np.unique(scene.boxes.frame)
    return np.array([seen[len(seen) // 2], 0, seen[0], seen[-1], scene.video.frame_count - 1], np.int64)


def test_the_same_seed_gives_the_same_pixels_and_another_others() -> None:
    first, second, other = (procedure(seed).scene() for seed in (4, 4, 5))
    for frame in some_frames(first).tolist():
        picture = first.draw(frame)
        assert picture.shape == (HEIGHT, WIDTH, 3)
        assert picture.dtype == np.uint8
        assert np.array_equal(picture, second.draw(frame))
        assert difference(picture, other.draw(frame)) > 10
    assert np.array_equal(first.boxes.xyxy, second.boxes.xyxy)


def test_the_order_of_drawing_does_not_matter() -> None:
    frames = some_frames(procedure(6).scene()).tolist()
    forwards, backwards, threads = (procedure(6).scene() for _ in range(3))
    expected = {frame: forwards.draw(frame) for frame in sorted(frames)}
    for frame in sorted(frames, reverse=True):
        assert np.array_equal(backwards.draw(frame), expected[frame])
    with ThreadPoolExecutor(4) as pool:
        for frame, picture in zip(frames * 2, pool.map(threads.draw, frames * 2), strict=True):
            assert np.array_equal(picture, expected[frame])


@pytest.mark.parametrize("tilt", [(0.0, 0.0), (0.9, -0.4)], ids=["front", "side"])
def test_the_box_is_around_the_polyp(tilt: tuple[float, float]) -> None:
    line = timeline({5: {0: MIDDLE}, 60: {0: (20, 30, 60, 60)}})
    line.visits[0].pose[:, 4:] = tilt
    seen = Difficulty(0, 0, 0, 0, 1, 0)
    polyp, nothing = (scene_of(line, seen, changed={0: kind}) for kind in ("bare", "unseen"))
    assert np.array_equal(polyp.boxes.xyxy, nothing.boxes.xyxy)
    for frame, box in zip((5, 60), polyp.boxes.xyxy, strict=True):
        changed = changed_box(polyp.draw(frame), nothing.draw(frame))
        assert np.abs(changed - box).max() <= 3, "tight on every side"
    wanted = line.corpus.boxes.xyxy
    middles = [(boxes[:, :2] + boxes[:, 2:]) / 2 for boxes in (polyp.boxes.xyxy, wanted)]
    assert np.abs(middles[0] - middles[1]).max() <= 3
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (polyp.boxes.xyxy, wanted)]
    if tilt == (0.0, 0.0):
        assert areas[0] == pytest.approx(areas[1], rel=0.15), "the size that is asked for"
    else:
        assert (areas[0] < 0.8 * areas[1]).all(), "smaller from the side"


def test_a_polyp_that_is_partly_outside() -> None:
    line = timeline({5: {0: (-30, 40, 30, 90)}, 9: {0: (60, 110, 100, 150)}})
    polyp, nothing = (scene_of(line, changed={0: kind}) for kind in ("bare", "unseen"))
    left, below = polyp.boxes.xyxy
    assert (left[0], below[3]) == (0, HEIGHT), "boxes end at the edge of the frame"
    # There it is black, so nothing is seen up to the very edge.
    assert np.abs(changed_box(polyp.draw(5), nothing.draw(5)) - left)[1:].max() <= 3
    assert np.abs(changed_box(polyp.draw(9), nothing.draw(9)) - below)[:3].max() <= 3


def test_two_polyps_in_a_frame() -> None:
    line = timeline({5: {0: (20, 40, 60, 80), 1: (100, 50, 140, 90)}, 6: {1: (100, 50, 140, 90)}})
    both = scene_of(line, changed={0: "bare", 1: "bare"})
    for polyp in (0, 1):
        other = scene_of(line, changed={polyp: "unseen", 1 - polyp: "bare"})
        (row,) = np.flatnonzero((both.boxes.frame == 5) & (both.boxes.polyp == polyp))
        assert np.abs(changed_box(both.draw(5), other.draw(5)) - both.boxes.xyxy[row]).max() <= 3
    parts = [picture[30:100, 80:160] for picture in (both.draw(5), both.draw(6))]
    assert difference(*parts) > 0, "polyp 1 with and without its neighbour"
    assert both.boxes.polyp.tolist() == [0, 1, 1]


def test_a_frame_without_a_polyp_and_a_procedure_without_any() -> None:
    line = timeline({5: {0: MIDDLE}})
    polyp, nothing = (scene_of(line, changed={0: kind}) for kind in ("bare", "unseen"))
    for frame in (4, 6, 99):
        assert np.array_equal(polyp.draw(frame), nothing.draw(frame))
    empty = scene_of(timeline({}))
    assert len(empty.boxes) == 0
    assert empty.draw(0).std() > 5, "the wall is there"


def test_a_region_is_the_same_part_of_the_whole_frame() -> None:
    scene = procedure(1).scene()
    boxes = scene.boxes
    found = []
    for row in range(0, len(boxes), max(1, len(boxes) // 8)):
        frame, box = int(boxes.frame[row]), boxes.xyxy[row]
        left, top, right, bottom = region = CropRule(scale=2).region(box, WIDTH, HEIGHT)
        found.append(difference(scene.draw(frame, region), scene.draw(frame)[top:bottom, left:right]))
    assert np.mean(found) < 3, "noise alone, which is drawn anew for each picture"
    whole = scene.draw(3, (0, 0, WIDTH, HEIGHT))
    assert np.array_equal(whole, scene.draw(3))


def test_a_crop_drawn_in_its_own_size_is_near_the_one_cut_from_the_frame() -> None:
    """In levels, noise included; benchmarks/rendering.py measures it over more crops."""
    scene = procedure(1, settings=TimelineSettings(width=640, height=512, minutes=0.2)).scene()
    boxes = scene.boxes
    for scale in (2.0, 5.0):
        rule, apart = CropRule(scale=scale, size=128), []
        for row in np.linspace(0, len(boxes) - 1, 5).astype(int).tolist():
            frame, box = int(boxes.frame[row]), boxes.xyxy[row]
            drawn = scene.draw(frame, rule.region(box, 640, 512), (128, 128))
            apart.append(difference(drawn, rule.crop(scene.draw(frame), box)))
        assert np.mean(apart) < 2.5
        assert np.max(apart) < 7, "a small box at the edge is drawn with more detail than the frame has"


def test_a_larger_frame_shows_the_same() -> None:
    small, large = (
        procedure(8, difficulty=CLEAN, settings=TimelineSettings(width=side * 5 // 4, height=side, minutes=0.2)).scene()
        for side in (128, 256)
    )
    frame = int(small.boxes.frame[0])
    assert np.abs(large.boxes.xyxy - 2 * small.boxes.xyxy).max() <= 5
    halved = large.draw(frame).reshape(128, 2, 160, 2, 3).mean(axis=(1, 3))
    assert difference(halved.astype(np.uint8), small.draw(frame)) < 6
