"""How well a detector that is being trained finds the polyps of frames that it does not learn from."""

import math
from collections.abc import Callable

import numpy as np
import torch

from polypcount.detection.changed_frames import sampled
from polypcount.detection.frames import LearningPixels
from polypcount.detection.matching import curve_of, matched_boxes
from polypcount.detection.network import DetectorNetwork
from polypcount.detection.outputs import without_overlaps
from polypcount.detection.recipe import DetectorRecipe
from polypcount.detection.settings import DetectorSettings
from polypcount.detection.windows import letterbox
from polypcount.encoder.lite0 import MEAN, STD
from polypcount.tracking import evenly

_AT_ONCE = 16
_LEAST_SCORE = 0.02


def average_precision(
    network: DetectorNetwork, pixels: LearningPixels, recipe: DetectorRecipe, between: Callable[[], object]
) -> float | None:
    """Average precision at an IoU of 0.5 of whole frames; None where no frame shows a polyp.

    Args:
        network: The network.
        pixels: The frames.
        recipe: How many frames, and the size of the input.
        between: Called before each batch; it may raise to end the validation.
    """
    width, height = recipe.model.width, recipe.model.height
    device = next(network.parameters()).device
    mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (MEAN, STD))
    rows = evenly(len(pixels.frames), recipe.validation.most)
    image, boxes, scores, true_image, true_boxes = [], [], [], [], []
    network.eval()
    for start in range(0, len(rows), _AT_ONCE):
        between()
        batch = pixels.read(rows[start : start + _AT_ONCE])
        windows = [letterbox(content, width / height) for content in batch.content]
        with torch.inference_mode():
            images, _ = sampled(
                batch._replace(images=batch.images.to(device), masks=batch.masks.to(device)), windows, width, height
            )
            found = network((images - mean) / std)
        for row, window in enumerate(windows):
            number = start + row
            truth = (window.boxes(batch.boxes[row]) + 1) * np.array([width, height] * 2) / 2
            true_image.append(np.full(len(truth), number))
            true_boxes.append(truth)
            score = found.score[row].sigmoid().cpu().numpy()
            order = np.argsort(-score, kind="stable")
            order = order[score[order] >= _LEAST_SCORE]
            xyxy = found.xyxy[row].cpu().numpy()[order]
            kept = without_overlaps(xyxy, DetectorSettings().iou)
            image.append(np.full(len(kept), number))
            boxes.append(xyxy[kept])
            scores.append(score[order][kept])
    true_xyxy = np.concatenate(true_boxes)
    if not len(true_xyxy):
        return None
    sizes = np.tile([float(width), float(height)], (len(rows), 1))
    matched = matched_boxes(
        np.concatenate(image),
        np.concatenate(boxes),
        np.concatenate(scores),
        np.concatenate(true_image),
        true_xyxy,
        sizes,
    )
    value = curve_of(matched, np.ones(len(rows))).average_precision
    return None if math.isnan(value) else value
