"""Random changes to frames that a detector learns from: as recordings differ, and worse."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import affine_grid, avg_pool2d, conv2d, grid_sample, pad

from polypcount.detection.loss import Truth
from polypcount.detection.network import STRIDES
from polypcount.detection.recipe import FrameChanges
from polypcount.detection.windows import Window, draw_window, seen_boxes

_MOST_SPOTS = 12


class FrameBatch(NamedTuple):
    """Frames in squares, as they are kept.

    Attributes:
        images: uint8[n, side, side, 3], each frame in the middle of a black square.
        masks: uint8[n, side, side], 255 where a polyp is; zeros where it is not known.
        has_mask: bool[n].
        content: float64[n, 2], half of each frame's width and height in its square; the longer one is 1.
        boxes: n arrays float64[k, 4], boxes of polyps in the square, -1 to 1.
    """

    images: Tensor
    masks: Tensor
    has_mask: Tensor
    content: NDArray[np.float64]
    boxes: Sequence[NDArray[np.float64]]


def changed_frames(
    batch: FrameBatch, changes: FrameChanges, width: int, height: int, seed: Sequence[int]
) -> tuple[Tensor, Truth]:
    """Change each frame in its own random way.

    In this order: a part of the frame, perhaps turned, mirrored and stretched; a black border; exposure and colour; a
    veil; bright spots; blur and smear; noise; black frames.

    Args:
        batch: The frames.
        changes: How far to change them.
        width: Of the result.
        height: Of the result.
        seed: Of all random numbers.

    Returns:
        float32[n, 3, height, width], from 0 to 1, and where the polyps are in it.
    """
    rng = np.random.default_rng(list(seed))
    windows = [
        draw_window(content, boxes, width / height, changes, rng)
        for content, boxes in zip(batch.content, batch.boxes, strict=True)
    ]
    images, mask = sampled(batch, windows, width, height)
    images = _borders(images, changes, rng)
    images = _developed(images, changes, rng)
    if changes.glare:
        images = _spots(images, changes, rng)
    if changes.blur or changes.smear:
        images = _blurred(images, changes, rng)
    if changes.noise:
        strength = torch.from_numpy(rng.uniform(0, changes.noise, len(images)) * (rng.random(len(images)) < 0.3))
        grain = torch.randn(images.shape, generator=torch.Generator().manual_seed(int(rng.integers(2**62))))
        images = images + grain.to(images.device) * _each(strength, images)
    blank = rng.random(len(images)) < changes.blank
    images = (images * _each(torch.from_numpy(np.where(blank, 0.02, 1.0)), images)).clamp_(0, 1)
    truth = truth_of(windows, batch, mask, width, height)
    there = torch.from_numpy(~blank).to(images.device)
    return images, truth._replace(
        shown=truth.shown & there[:, None], mask=truth.mask * there[:, None, None], has_mask=truth.has_mask & there
    )


def sampled(batch: FrameBatch, windows: Sequence[Window], width: int, height: int) -> tuple[Tensor, Tensor]:
    """The windows of frames, float32[n, 3, height, width] from 0 to 1, and of masks, float32[n, height, width]."""
    affine = torch.from_numpy(
        np.stack([np.column_stack([window.axes, window.centre]) for window in windows]).astype(np.float32)
    ).to(batch.images.device)
    planes = torch.cat([batch.images.permute(0, 3, 1, 2), batch.masks[:, None]], 1).float().div_(255)
    grid = affine_grid(affine, [len(planes), 1, height, width], align_corners=False)
    found = grid_sample(planes, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return found[:, :3], found[:, 3]


def truth_of(windows: Sequence[Window], batch: FrameBatch, mask: Tensor, width: int, height: int) -> Truth:
    """Where the polyps of frames are in their windows. mask: float32[n, height, width] of the windows."""
    seen = [seen_boxes(window.boxes(boxes), width, height) for window, boxes in zip(windows, batch.boxes, strict=True)]
    most = max([1, *(len(boxes) for boxes, _, _ in seen)])
    xyxy = np.zeros((len(seen), most, 4), np.float32)
    shown, ignored = (np.zeros((len(seen), most), bool) for _ in range(2))
    for row, (boxes, found, little) in enumerate(seen):
        count = len(boxes)
        xyxy[row, :count], shown[row, :count], ignored[row, :count] = boxes, found, little
    boxes_on, shown_on, ignored_on = (torch.from_numpy(part).to(mask.device) for part in (xyxy, shown, ignored))
    small = avg_pool2d(mask[:, None], STRIDES[0])[:, 0]
    return Truth(boxes_on, shown_on, ignored_on, small, batch.has_mask.to(mask.device))


def _borders(images: Tensor, changes: FrameChanges, rng: np.random.Generator) -> Tensor:
    """Black outside an octagon or an oval, for some frames."""
    drawn = rng.random(len(images)) < changes.border
    if not drawn.any():
        return images
    height, width = images.shape[2:]
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    view = np.ones((len(images), height, width), np.float32)
    for row in np.flatnonzero(drawn):
        across, down = np.abs(x) / rng.uniform(0.85, 1.05), np.abs(y) / rng.uniform(0.85, 1.05)
        octagon = np.maximum(np.maximum(across, down), (across + down) / rng.uniform(1.3, 1.7))
        view[row] = (octagon if rng.random() < 0.5 else np.hypot(across, down) / rng.uniform(1.05, 1.3)) < 1
    return images * torch.from_numpy(view).to(images.device)[:, None]


def _developed(images: Tensor, changes: FrameChanges, rng: np.random.Generator) -> Tensor:
    """Exposure, colour, and a red or white veil."""
    count, most = len(images), math.log1p(changes.exposure)
    gamma, gain = np.exp(rng.uniform(-most, most, count)), np.exp(rng.uniform(-most, most, count) * 0.6)
    colour = np.exp(rng.normal(0, changes.colour, (count, 3)))
    contrast, saturation = np.exp(rng.normal(0, 1.5 * changes.colour, (2, count)))
    saturation = np.where(rng.random(count) < changes.grey, 0, saturation)
    veil = rng.uniform(0.2, 0.7, count) * (rng.random(count) < changes.veil)
    tint = np.where(rng.random((count, 1)) < 0.6, [[0.8, 0.15, 0.1]], [[0.9, 0.85, 0.8]])
    images = images.clamp(min=1e-4).log2_().mul_(_each(torch.from_numpy(gamma), images)).exp2_()
    images = images * _each(torch.from_numpy(gain[:, None] * colour), images)
    grey = images.mean(1, keepdim=True)
    middle = images.mean((1, 2, 3), keepdim=True)
    images = grey + (images - grey) * _each(torch.from_numpy(saturation), images)
    images = middle + (images - middle) * _each(torch.from_numpy(contrast), images)
    share = _each(torch.from_numpy(veil), images)
    return (images * (1 - share) + share * _each(torch.from_numpy(tint), images)).clamp_(0, 1)


def _spots(images: Tensor, changes: FrameChanges, rng: np.random.Generator) -> Tensor:
    """Reflections of the light: small white ovals."""
    height, width = images.shape[2:]
    light = np.zeros((len(images), height, width), np.float32)
    for row in np.flatnonzero(rng.random(len(images)) < changes.glare):
        for _ in range(int(rng.integers(1, _MOST_SPOTS + 1))):
            across, down = np.exp(rng.uniform(np.log(1.5), np.log(12), 2))
            x, y = rng.uniform(0, width), rng.uniform(0, height)
            left, right = int(max(0, x - 3 * across)), int(min(width, x + 3 * across + 1))
            top, bottom = int(max(0, y - 3 * down)), int(min(height, y + 3 * down + 1))
            one = np.exp(
                -(((np.arange(left, right) - x) / across) ** 2)[None]
                - (((np.arange(top, bottom) - y) / down) ** 2)[:, None]
            )
            light[row, top:bottom, left:right] = np.maximum(light[row, top:bottom, left:right], one)
    share = torch.from_numpy(np.clip(1.6 * light, 0, 1)).to(images.device)[:, None]
    return images * (1 - share) + share * 0.98


def _blurred(images: Tensor, changes: FrameChanges, rng: np.random.Generator) -> Tensor:
    """Out of focus for half of the frames, and smeared along x or y for a fifth."""
    count = len(images)
    radius = max(math.ceil(2.5 * changes.blur), changes.smear // 2, 1)
    steps = np.arange(-radius, radius + 1)
    sigma = rng.uniform(0, changes.blur, count) * (rng.random(count) < 0.5)
    smear = rng.uniform(0, changes.smear / 2, count) * (rng.random(count) < 0.2)
    along = rng.random(count) < 0.5
    kernels = []
    for moved in (smear * along, smear * ~along):
        weight = np.exp(
            -(np.maximum(np.abs(steps) - moved[:, None], 0) ** 2) / (2 * np.maximum(sigma, 0.05)[:, None] ** 2)
        )
        kernels.append(torch.from_numpy(weight / weight.sum(1, keepdims=True)).float().to(images.device))
    x_weight, y_weight = (kernel.repeat_interleave(3, 0)[:, None, None] for kernel in kernels)
    wide = pad(images.flatten(0, 1)[None], [radius] * 4, mode="replicate")
    return conv2d(conv2d(wide, x_weight, groups=3 * count), y_weight.mT, groups=3 * count).view(images.shape)


def _each(values: Tensor, images: Tensor) -> Tensor:
    """A value for each frame, [n], or for each of its colours, [n, 3], in the shape and type of the images."""
    shaped = values[:, None] if values.ndim == 1 else values
    return shaped[:, :, None, None].to(images)
