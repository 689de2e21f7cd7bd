"""What the detector learns: which points show a polyp, and where its box is."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from polypcount.detection.network import Found

_CANDIDATES = 10  # points that learn one polyp
_SCORE_POWER, _IOU_POWER = 0.5, 6.0
_TINY = 1e-9


class Truth(NamedTuple):
    """The polyps of n images, at most g in one.

    Attributes:
        xyxy: float[n, g, 4], boxes in pixels of the input; zeros where there is none.
        shown: bool[n, g], boxes to find.
        ignored: bool[n, g], boxes of which too little is in view: finding them is neither right nor wrong.
        mask: float[n, h / 8, w / 8], share of polyp pixels.
        has_mask: bool[n], whether the mask is known.
    """

    xyxy: Tensor
    shown: Tensor
    ignored: Tensor
    mask: Tensor
    has_mask: Tensor


class Targets(NamedTuple):
    """What each of p points of n images should say.

    Attributes:
        quality: float[n, p], the score that it should have: 0 for no polyp, up to the IoU of the best box of its polyp.
        xyxy: float[n, p, 4], the box that it should give, where quality is above 0.
        weight: float[n, p], 0 for points inside an ignored box, otherwise 1.
    """

    quality: Tensor
    xyxy: Tensor
    weight: Tensor


class LossParts(NamedTuple):
    """Sums over the images of a process, and what they are divided by."""

    score: Tensor
    box: Tensor
    mask: Tensor
    quality: Tensor
    masks: Tensor


@torch.no_grad()
def point_targets(found: Found, truth: Truth, points: Tensor) -> Targets:
    """Give each polyp the points that are best for it, as in task-aligned learning.

    Of the points inside a box, the 10 with the largest a = score^0.5 * IoU^6 learn it. Their quality is a, divided by
    its largest value for this polyp and multiplied by the largest IoU, and at least 0.01. A point that several polyps
    would take learns the one that its box overlaps most. A box without a point inside is learnt by none.

    Args:
        found: What the network says now.
        truth: What is there.
        points: float[p, 2], see `points_of`.
    """
    inside = ((points > truth.xyxy[:, :, None, :2]) & (points < truth.xyxy[:, :, None, 2:])).all(3)  # [n, g, p]
    ignored = (inside & truth.ignored[:, :, None]).any(1)
    candidates = inside & truth.shown[:, :, None]
    overlap = iou(truth.xyxy[:, :, None], found.xyxy[:, None]).clamp(min=0) * candidates
    fit = found.score.sigmoid()[:, None].pow(_SCORE_POWER) * overlap.pow(_IOU_POWER) * candidates
    # Where no box overlaps the polyp yet, the points nearest to its middle are taken.
    far = (points - (truth.xyxy[:, :, None, :2] + truth.xyxy[:, :, None, 2:]) / 2).square().sum(3)
    order = fit + candidates * _TINY / (1 + far)
    best = order.topk(min(_CANDIDATES, order.shape[2]), dim=2)
    chosen = torch.zeros_like(order).scatter_(2, best.indices, (best.values > 0).to(order.dtype)) > 0
    owner = torch.where(chosen, overlap + _TINY, -1.0).argmax(1)  # [n, p]
    chosen &= functional.one_hot(owner, chosen.shape[1]).transpose(1, 2).bool()
    fit, overlap = fit * chosen, overlap * chosen
    scaled = fit / fit.amax(2, keepdim=True).clamp(min=_TINY) * overlap.amax(2, keepdim=True)
    quality = torch.where(chosen, scaled.clamp(min=0.01), 0.0).amax(1)
    xyxy = truth.xyxy.gather(1, owner[:, :, None].expand(-1, -1, 4))
    return Targets(quality, xyxy, 1 - (ignored & (quality == 0)).to(quality.dtype))


def loss_parts(found: Found, truth: Truth, points: Tensor) -> LossParts:
    """The three losses, summed.

    score: quality focal loss, (q - p)^2 * cross-entropy(p, q) with p = sigmoid(score) and q the quality.
    box:   q * (1 - GIoU), over points with q > 0.
    mask:  cross-entropy, mean over the pixels of an image, over images whose mask is known.
    """
    targets = point_targets(found, truth, points)
    entropy = functional.binary_cross_entropy_with_logits(found.score, targets.quality, reduction="none")
    score = ((targets.quality - found.score.sigmoid()).square() * entropy * targets.weight).sum()
    positive = targets.quality > 0
    quality = targets.quality[positive]
    box = (quality * (1 - giou(found.xyxy[positive], targets.xyxy[positive]))).sum()
    pixels = functional.binary_cross_entropy_with_logits(found.mask, truth.mask, reduction="none")
    mask = (pixels.mean((1, 2)) * truth.has_mask).sum()
    return LossParts(score, box, mask, targets.quality.sum(), truth.has_mask.sum().to(score.dtype))


def iou(one: Tensor, other: Tensor) -> Tensor:
    """Intersection over union of boxes float[..., 4], which are broadcast; 0 where both are without area."""
    common = _area(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    union = _area(one[..., :2], one[..., 2:]) + _area(other[..., :2], other[..., 2:]) - common
    return common / union.clamp(min=_TINY)


def giou(one: Tensor, other: Tensor) -> Tensor:
    """Generalised IoU of boxes float[..., 4]: IoU - (hull - union) / hull; the hull is the smallest box around both."""
    common = _area(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    union = _area(one[..., :2], one[..., 2:]) + _area(other[..., :2], other[..., 2:]) - common
    hull = _area(torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:]))
    return common / union.clamp(min=_TINY) - (hull - union) / hull.clamp(min=_TINY)


def _area(low: Tensor, high: Tensor) -> Tensor:
    return (high - low).clamp(min=0).prod(-1)
