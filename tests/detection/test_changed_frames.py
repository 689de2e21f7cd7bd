"""Frames that are changed at random: the polyps stay where the truth says, and the seed decides all."""

import numpy as np
import pytest
import torch

from polypcount.detection.changed_frames import FrameBatch, changed_frames, sampled
from polypcount.detection.recipe import FrameChanges
from polypcount.detection.windows import letterbox

SIDE, WIDTH, HEIGHT = 120, 80, 64  # of the proportions of the content, so that there is no room to shift
CONTENT = np.array([1.0, 0.8])
OFF = FrameChanges.model_validate(
    dict.fromkeys(("empty", "stretch", "rotation", "border", "exposure", "colour", "grey", "veil", "blur"), 0.0)
    | {"zoom": 1.0, "shrink": 1.0, "flip": False, "smear": 0, "noise": 0.0, "glare": 0.0, "blank": 0.0}
)
GEOMETRY = {"zoom": 1.5, "shrink": 1.5, "stretch": 0.3, "rotation": 180.0, "flip": True}


def bright_ovals(count: int) -> FrameBatch:
    """Grey frames with a white oval each, and its mask and box."""
    rng = np.random.default_rng(0)
    images = np.zeros((count, SIDE, SIDE, 3), np.uint8)
    images[:, 12:108] = 60
    masks, boxes = np.zeros((count, SIDE, SIDE), np.uint8), []
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    for row in range(count):
        middle, half = rng.uniform(40, 80, 2), rng.uniform(10, 20, 2)
        inside = ((x - middle[0]) / half[0]) ** 2 + ((y - middle[1]) / half[1]) ** 2 < 1
        images[row, inside], masks[row, inside] = 255, 255
        corners = np.concatenate([middle - half, middle + half])
        boxes.append(corners[None] / (SIDE / 2) - 1)
    known = torch.ones(count, dtype=torch.bool)
    return FrameBatch(torch.from_numpy(images), torch.from_numpy(masks), known, np.tile(CONTENT, (count, 1)), boxes)


def test_without_changes_a_frame_is_letterboxed() -> None:
    batch = bright_ovals(3)
    images, truth = changed_frames(batch, OFF, WIDTH, HEIGHT, [0])
    window = letterbox(CONTENT, WIDTH / HEIGHT)
    expected, _ = sampled(batch, [window] * 3, WIDTH, HEIGHT)
    assert torch.allclose(images, expected, atol=1e-3)
    whole = (window.boxes(batch.boxes[0]) + 1) * np.array([WIDTH, HEIGHT] * 2) / 2
    assert truth.xyxy[0].numpy() == pytest.approx(whole, abs=1e-4)
    assert truth.shown.all()


def test_boxes_and_masks_are_where_the_polyp_is_seen() -> None:
    batch = bright_ovals(40)
    images, truth = changed_frames(batch, OFF.model_copy(update=GEOMETRY), WIDTH, HEIGHT, [1])
    compared = 0
    for row in range(40):
        bright = np.argwhere(images[row].mean(0).numpy() > 0.6)[:, ::-1]
        box = truth.xyxy[row, 0].numpy()
        inner = box[0] > 1 and box[1] > 1 and box[2] < WIDTH - 1 and box[3] < HEIGHT - 1
        if truth.shown[row, 0] and inner:
            compared += 1
            assert [*bright.min(axis=0), *(bright.max(axis=0) + 1)] == pytest.approx(box, abs=2)
            area = float(truth.mask[row].sum()) * 64
            assert area == pytest.approx(len(bright), rel=0.12)
    assert compared > 20


def test_the_seed_decides_everything() -> None:
    batch, changes = bright_ovals(4), FrameChanges()
    first, again, other = (changed_frames(batch, changes, WIDTH, HEIGHT, [7, seed]) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert all(torch.equal(a, b) for a, b in zip(first[1], again[1], strict=True))
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("name", ["border", "exposure", "colour", "veil", "blur", "smear", "noise", "glare"])
def test_every_change_changes_pixels_and_no_box(name: str) -> None:
    batch, value = bright_ovals(24), 13 if name == "smear" else 1.0
    plain, truth = changed_frames(batch, OFF, WIDTH, HEIGHT, [3])
    changed, same = changed_frames(batch, OFF.model_copy(update={name: value}), WIDTH, HEIGHT, [3])
    assert torch.equal(truth.xyxy, same.xyxy)
    assert torch.equal(truth.shown, same.shown)
    assert (changed - plain).abs().amax((1, 2, 3)).gt(0.02).sum() >= 3
    assert 0 <= float(changed.min()) <= float(changed.max()) <= 1


def test_a_black_frame_shows_no_polyp() -> None:
    images, truth = changed_frames(bright_ovals(4), OFF.model_copy(update={"blank": 1.0}), WIDTH, HEIGHT, [0])
    assert float(images.max()) < 0.05
    assert not truth.shown.any()
    assert not truth.mask.any()


def test_grey_frames_have_no_colour() -> None:
    batch = bright_ovals(2)
    batch.images[..., 0] //= 2
    images, _ = changed_frames(batch, OFF.model_copy(update={"grey": 1.0}), WIDTH, HEIGHT, [0])
    assert torch.allclose(images[:, 0], images[:, 1], atol=1e-3)
    assert torch.allclose(images[:, 0], images[:, 2], atol=1e-3)
