"""Pictures of a polyp: which frame shows it best, and what a view shows around it."""

import csv
from collections.abc import Callable

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from polypcount.counting.pictures import DecodedFrame, quality, view_picture, view_window
from polypcount.video.images import read_image
from tests.conftest import DATA

CVC = DATA / "cvc-clinicdb"


def seen(image: np.ndarray, xyxy: tuple[float, float, float, float] = (40, 30, 90, 80)) -> float:
    inside = (56, 56, 168, 168)
    return quality(image, inside, np.array(xyxy, np.float32), 128, 96)


def test_sharp_bright_large_and_central_is_better() -> None:
    rng = np.random.default_rng(0)
    sharp = rng.integers(80, 180, (224, 224, 3)).astype(np.uint8)
    soft = np.full((224, 224, 3), 130, np.uint8)
    dark = (sharp // 8).astype(np.uint8)
    assert seen(sharp) > seen(soft)
    assert seen(sharp) > seen(dark)
    assert seen(sharp) > seen(sharp, (60, 45, 66, 50))
    assert seen(sharp, (40, 25, 90, 75)) > seen(sharp, (0, 0, 50, 50))
    assert 0 <= seen(soft) < seen(sharp) <= 1


def test_quality_by_hand() -> None:
    # A checkerboard of 198 and 202: every Laplacian is 4 * 4 up or down, so its variance is 16^2, and the mean is 200.
    board = np.where(np.indices((224, 224)).sum(axis=0) % 2 == 0, 198, 202).astype(np.uint8)
    image = np.repeat(board[:, :, None], 3, axis=2)
    variance, exposure = 16.0**2 / 200**2, (245 - 200) / (245 - 180)
    size = min(np.sqrt(50 * 50 / (128 * 96)) / 0.3, 1)
    away = np.hypot((40 + 90) / 128 - 1, (30 + 80) / 96 - 1) / np.sqrt(2)
    expected = variance / (variance + 0.003) * exposure**2 * np.sqrt(size) * (1 + 1 - away) / 2
    assert seen(image) == pytest.approx(expected, rel=1e-3)
    # A highlight in the middle changes the exposure; the contrast at its edge does not count.
    image[100:120, 100:120] = 250
    exposure *= 1 - 20**2 / 112**2
    expected = variance / (variance + 0.003) * exposure**2 * np.sqrt(size) * (1 + 1 - away) / 2
    assert seen(image) == pytest.approx(expected, rel=1e-3)


def test_overexposed_is_worse() -> None:
    grey = np.clip(np.random.default_rng(0).normal(140, 6, (224, 224, 1)), 0, 255)
    image = np.repeat(grey, 3, axis=2)
    brighter = [seen(np.clip(image * gain, 0, 255).astype(np.uint8)) for gain in (1, 1.4, 1.7, 2)]
    assert brighter == sorted(brighter, reverse=True)
    assert brighter[0] > 4 * brighter[2]
    white = np.full((224, 224, 3), 255, np.uint8)
    assert seen(white) == 0


Frame = NDArray[np.uint8]


def real_polyps() -> list[tuple[Frame, NDArray[np.float32]]]:
    """A frame of each sequence of CVC-ClinicDB that is neither dark nor bright, and the box of its polyp."""
    with (CVC / "sequences.csv").open(newline="") as file:
        first = {row["sequence"]: row["frame"] for row in csv.DictReader(file)}
    polyps = []
    for number in first.values():
        frame = read_image(CVC / "Original" / f"{number}.png")
        rows, columns = np.nonzero(read_image(CVC / "Ground Truth" / f"{number}.png")[:, :, 0] > 127)
        x1, y1, x2, y2 = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        if 95 < frame[y1:y2, x1:x2].mean() < 165:
            polyps.append((frame, np.array([x1, y1, x2, y2], np.float32)))
    return polyps


def glare(frame: Frame, box: NDArray[np.float32]) -> Frame:
    """White spots over a tenth of the box."""
    rng, (x1, y1, x2, y2) = np.random.default_rng(1), box
    rows, columns = np.mgrid[: frame.shape[0], : frame.shape[1]]
    radius, spotted = np.sqrt(0.1 * (x2 - x1) * (y2 - y1) / 12 / np.pi), frame.copy()
    for _ in range(12):
        spotted[np.hypot(columns - rng.uniform(x1, x2), rows - rng.uniform(y1, y2)) < radius] = 253
    return spotted


WORSE: dict[str, Callable[[Frame, NDArray[np.float32]], Frame]] = {
    "overexposed": lambda frame, box: np.clip(frame * 1.5, 0, 255).astype(np.uint8),
    "glare": glare,
    "blurred": lambda frame, box: np.asarray(ndimage.gaussian_filter(frame, (2, 2, 0)), np.uint8),
    "dark": lambda frame, box: (frame * 0.4).astype(np.uint8),
}


@pytest.mark.skipif(not CVC.exists(), reason="the frames of CVC-ClinicDB are not here")
@pytest.mark.parametrize("worse", WORSE)
def test_a_real_polyp_is_seen_worse_in_a_spoilt_frame(worse: str) -> None:
    polyps = real_polyps()
    assert len(polyps) >= 15
    better = [
        view_picture(0, box, DecodedFrame(frame)).quality
        > view_picture(0, box, DecodedFrame(WORSE[worse](frame, box))).quality
        for frame, box in polyps
    ]
    assert np.mean(better) >= 0.9


@given(
    st.tuples(*[st.floats(-50, 700)] * 2),
    st.tuples(*[st.floats(0.5, 900)] * 2),
    st.integers(8, 640),
    st.integers(8, 640),
)
def test_a_view_lies_in_the_frame_and_holds_the_box(
    corner: tuple[float, float], size: tuple[float, float], width: int, height: int
) -> None:
    box = np.array([*corner, *(at + side for at, side in zip(corner, size, strict=True))], np.float32)
    inside = np.clip(box, 0, [width, height, width, height])
    if (inside[2:] - inside[:2]).min() <= 0:  # a box outside its frame is refused before
        return
    left, top, right, bottom = view_window(box, width, height)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    assert (np.array([left, top]) <= inside[:2] + 1).all()
    assert (np.array([right, bottom]) >= inside[2:] - 1).all()
    if max(inside[2:] - inside[:2]) <= min(width, height):
        assert abs((right - left) - (bottom - top)) <= 1


@pytest.mark.parametrize(
    "box",
    [(60, 40, 100, 80), (0, 0, 30, 30), (120, 70, 160, 120), (10, 50, 110, 60), (70, 0, 80, 120), (0, 0, 120, 120)],
)
def test_a_view_has_no_black_bars_where_the_frame_has_pixels(box: tuple[float, float, float, float]) -> None:
    frame = np.full((120, 160, 3), 150, np.uint8)
    left, top, right, bottom = (int(side) for side in box)
    frame[top:bottom, left:right] = (220, 40, 40)
    view = view_picture(3, np.array(box, np.float32), DecodedFrame(frame))
    image = simplejpeg.decode_jpeg(view.jpeg)
    assert image.shape == (224, 224, 3)
    assert image.max(axis=2).min() > 100
    # The box is where the picture says it is.
    x1, y1, x2, y2 = (round(side) for side in view.xyxy)
    assert (image[y1 + 4 : y2 - 4, x1 + 4 : x2 - 4, 1] < 90).all()
    outside = image[:, :, 1].copy()
    outside[max(y1 - 4, 0) : y2 + 4, max(x1 - 4, 0) : x2 + 4] = 150
    assert (outside > 100).all()


def test_a_view_of_a_box_longer_than_the_frame_is_high_ends_with_the_frame() -> None:
    frame = np.full((60, 200, 3), 150, np.uint8)
    image = simplejpeg.decode_jpeg(view_picture(0, np.array([0, 0, 120, 60], np.float32), DecodedFrame(frame)).jpeg)
    assert image[112].min() > 100
    assert image[:50].max() < 30
