"""The crop around a box."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.video import CropRule

side = st.integers(1, 2000)
coordinate = st.floats(-100, 2100, width=32)


@given(coordinate, coordinate, coordinate, coordinate, side, side, st.floats(0.5, 8), st.integers(1, 20))
def test_region_is_the_scaled_box_cut_off_at_the_edges(
    x1: float, y1: float, x2: float, y2: float, width: int, height: int, scale: float, minimum: int
) -> None:
    box = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    region = CropRule(scale=scale, minimum=minimum).region(box, width, height)
    for low, high, length, start, stop in (
        (box[0], box[2], width, region[0], region[2]),
        (box[1], box[3], height, region[1], region[3]),
    ):
        assert all(isinstance(value, int) for value in (start, stop))
        assert 0 <= start < stop <= length
        assert stop - start >= min(minimum, length)
        middle, reach = (low + high) / 2, (high - low) * scale / 2
        plain = [max(0, min(length, int(middle - reach))), max(0, min(length, int(middle + reach)))]
        if plain[1] - plain[0] >= min(minimum, length):
            assert [start, stop] == plain


def test_published_example() -> None:
    assert CropRule().region([600, 500, 700, 580], 1240, 1080) == (400, 340, 900, 740)
    assert CropRule().region([10, 500, 110, 580], 1240, 1080) == (0, 340, 310, 740)
    assert CropRule().region([600.5, 500.5, 610.4, 510.4], 1240, 1080) == (580, 480, 630, 530)


def test_a_box_outside_the_image_gives_its_nearest_edge() -> None:
    assert CropRule(minimum=8).region([-300, 5, -290, 6], 100, 50) == (0, 1, 8, 9)
    assert CropRule(minimum=8).region([300, 300, 301, 301], 100, 50) == (92, 42, 100, 50)


def test_crop_of_the_same_size_is_a_copy_of_pixels() -> None:
    frame = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    rule = CropRule(scale=2, size=20)
    np.testing.assert_array_equal(rule.crop(frame, [35, 25, 45, 35]), frame[20:40, 30:50])


def test_squash_stretches_both_ways() -> None:
    frame = np.zeros((100, 200, 3), np.uint8)
    frame[:, :100] = (200, 100, 50)
    crop = CropRule(scale=1, size=40).crop(frame, [0, 0, 200, 100])
    assert crop.shape == (40, 40, 3)
    assert crop.dtype == np.uint8
    assert (crop[:, :18] == (200, 100, 50)).all()
    assert (crop[:, 22:] == 0).all()


def test_pad_keeps_proportions() -> None:
    frame = np.full((100, 200, 3), 90, np.uint8)
    crop = CropRule(scale=1, size=40, shape="pad").crop(frame, [0, 0, 200, 100])
    assert (crop[10:30] == 90).all()
    assert (crop[:10] == 0).all()
    assert (crop[30:] == 0).all()
    tall = CropRule(scale=1, size=40, shape="pad").crop(frame, [0, 0, 25, 100])
    assert (tall[:, 15:25] == 90).all()
    assert (tall[:, :15] == 0).all()


def test_reducing_averages_instead_of_picking() -> None:
    frame = np.zeros((512, 512, 3), np.uint8)
    frame[::2] = 255
    crop = CropRule(scale=1, size=32).crop(frame, [0, 0, 512, 512])
    assert np.abs(crop[2:-2].astype(int) - 127).max() <= 2


def test_enlarging_is_smooth() -> None:
    frame = np.repeat(np.arange(0, 160, 10, dtype=np.uint8)[None, :, None], 16, axis=0).repeat(3, axis=2)
    crop = CropRule(scale=1, size=160).crop(frame, [0, 0, 16, 16])
    assert np.diff(crop[:, :, 0].astype(int), axis=1).max() <= 2


def test_rules_differ_by_fingerprint() -> None:
    rules = [CropRule(), CropRule(scale=4), CropRule(size=256), CropRule(shape="pad"), CropRule(minimum=1)]
    assert len({rule.fingerprint for rule in rules}) == len(rules)
    assert CropRule(scale=5).fingerprint == CropRule().fingerprint
    assert CropRule().roomier() == CropRule(size=256)


@pytest.mark.parametrize(
    "wrong", [{"scale": 0}, {"scale": float("nan")}, {"size": 0}, {"size": 2.5}, {"shape": "cut"}, {"minimum": 0}]
)
def test_wrong_rules_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DataError, match="crop: "):
        CropRule(**wrong)  # type: ignore[arg-type]


def test_wrong_boxes_are_refused() -> None:
    with pytest.raises(DataError, match="four numbers"):
        CropRule().region([0, 0, float("nan"), 1], 10, 10)
