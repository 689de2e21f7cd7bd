"""The detector's loss against nested loops, and the points that learn a polyp."""

import math

import pytest
import torch
from torch import Tensor

from polypcount.detection.loss import Truth, giou, iou, loss_parts, point_targets
from polypcount.detection.network import Found, points_of

WIDTH, HEIGHT = 128, 96
POINTS = points_of(WIDTH, HEIGHT)


def truth_of(*images: list[tuple[float, float, float, float]], ignored: tuple[int, int] | None = None) -> Truth:
    """Boxes of each image; `ignored` names one of them by image and row."""
    most = max(1, *map(len, images))
    xyxy, shown = torch.zeros(len(images), most, 4), torch.zeros(len(images), most, dtype=torch.bool)
    for row, boxes in enumerate(images):
        for k, box in enumerate(boxes):
            xyxy[row, k], shown[row, k] = torch.tensor(box), True
    left_out = torch.zeros_like(shown)
    if ignored is not None:
        left_out[ignored], shown[ignored] = True, False
    masks = torch.rand(len(images), HEIGHT // 8, WIDTH // 8, generator=torch.Generator().manual_seed(5))
    return Truth(xyxy, shown, left_out, masks, torch.arange(len(images)) % 2 == 0)


def guess(images: int, seed: int = 0) -> Found:
    """What a network might say: boxes around their points."""
    rng = torch.Generator().manual_seed(seed)
    sides = 4 + 30 * torch.rand(images, len(POINTS), 4, generator=rng)
    xyxy = torch.cat([POINTS - sides[..., :2], POINTS + sides[..., 2:]], 2)
    score = torch.randn(images, len(POINTS), generator=rng)
    return Found(score, xyxy, torch.randn(images, HEIGHT // 8, WIDTH // 8, generator=rng))


def plain_iou(a: list[float], b: list[float]) -> tuple[float, float]:
    """IoU and generalised IoU of two boxes."""
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    common = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    union = area[0] + area[1] - common
    hull = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    return common / union, common / union - (hull - union) / hull


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def plain_targets(found: Found, truth: Truth, image: int) -> dict[int, tuple[float, int]]:
    """By nested loops: the quality and the polyp of each point that learns one."""
    wanted: dict[int, list[tuple[float, float, int]]] = {}
    for k, box in enumerate(truth.xyxy[image].tolist()):
        if not truth.shown[image, k]:
            continue
        rows = []
        for point, (x, y) in enumerate(POINTS.tolist()):
            if box[0] < x < box[2] and box[1] < y < box[3]:
                overlap, _ = plain_iou(box, found.xyxy[image, point].tolist())
                rows.append((sigmoid(float(found.score[image, point])) ** 0.5 * overlap**6, overlap, point))
        for fit, overlap, point in sorted(rows, reverse=True)[:10]:
            wanted.setdefault(point, []).append((overlap, fit, k))
    owner = {point: max(claims) for point, claims in wanted.items()}
    targets = dict[int, tuple[float, int]]()
    for k in range(truth.xyxy.shape[1]):
        own = {point: claim for point, claim in owner.items() if claim[2] == k}
        if own:
            best_fit, best_overlap = max(c[1] for c in own.values()), max(c[0] for c in own.values())
            targets |= {p: (max(0.01, c[1] / best_fit * best_overlap), k) for p, c in own.items()}
    return targets


def test_targets_and_losses_are_those_of_nested_loops() -> None:
    truth = truth_of([(10, 10, 70, 60), (40, 30, 110, 90)], [], [(60, 5, 120, 40)])
    found = guess(3)
    targets = point_targets(found, truth, POINTS)
    score = box = mask = total = 0.0
    for image in range(3):
        expected = plain_targets(found, truth, image)
        assert set(torch.nonzero(targets.quality[image]).flatten().tolist()) == set(expected)
        for point in range(len(POINTS)):
            quality, k = expected.get(point, (0.0, -1))
            assert float(targets.quality[image, point]) == pytest.approx(quality, abs=1e-4)
            p = sigmoid(float(found.score[image, point]))
            score += (quality - p) ** 2 * -(quality * math.log(p) + (1 - quality) * math.log(1 - p))
            if k >= 0:
                _, overlap = plain_iou(truth.xyxy[image, k].tolist(), found.xyxy[image, point].tolist())
                box += quality * (1 - overlap)
                total += quality
        if truth.has_mask[image]:
            pairs = list(zip(found.mask[image].flatten().tolist(), truth.mask[image].flatten().tolist(), strict=True))
            entropies = [-(m * math.log(sigmoid(v)) + (1 - m) * math.log(1 - sigmoid(v))) for v, m in pairs]
            mask += sum(entropies) / len(entropies)
    parts = loss_parts(found, truth, POINTS)
    assert float(parts.score) == pytest.approx(score, rel=1e-3)
    assert float(parts.box) == pytest.approx(box, rel=1e-3)
    assert float(parts.mask) == pytest.approx(mask, rel=1e-4)
    assert float(parts.quality) == pytest.approx(total, rel=1e-3)
    assert float(parts.masks) == 2


def test_overlaps_are_those_of_plain_arithmetic() -> None:
    rng = torch.Generator().manual_seed(1)
    corners: Tensor = 100 * torch.rand(40, 2, 2, generator=rng)
    boxes = torch.cat([corners.amin(1), corners.amax(1) + 1], 1)
    for a, b in zip(boxes[:20], boxes[20:], strict=True):
        expected = plain_iou(a.tolist(), b.tolist())
        assert (float(iou(a, b)), float(giou(a, b))) == pytest.approx(expected, abs=1e-4)


def test_without_polyps_only_low_scores_are_learnt() -> None:
    parts = loss_parts(guess(2), truth_of([], []), POINTS)
    assert float(parts.quality) == float(parts.box) == 0
    assert float(parts.score) > 0


def test_points_inside_an_ignored_box_learn_nothing() -> None:
    truth, found = truth_of([(0, 0, 64, 96), (70, 10, 120, 80)], ignored=(0, 0)), guess(1)
    targets = point_targets(found, truth, POINTS)
    left = POINTS[:, 0] < 64
    assert not targets.weight[0, left].any()
    assert targets.weight[0, ~left].all()
    assert not targets.quality[0, left].any()


def test_a_polyp_that_no_box_overlaps_is_learnt_by_the_points_nearest_to_its_middle() -> None:
    found = guess(1)._replace(xyxy=torch.tensor([300.0, 300, 310, 310]).expand(1, len(POINTS), 4))
    targets = point_targets(found, truth_of([(30, 20, 94, 84)]), POINTS)
    chosen = torch.nonzero(targets.quality[0]).flatten()
    assert len(chosen) == 10
    assert (targets.quality[0, chosen] == pytest.approx(0.01)) is True
    assert ((POINTS[chosen] - torch.tensor([62.0, 52.0])).norm(dim=1) < 24).all()
