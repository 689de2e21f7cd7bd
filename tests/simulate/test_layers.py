"""Compiled loops: textures are interpolated as by hand, and blur is a Gaussian, at any size."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from polypcount.simulate.camera import blur, develop
from polypcount.simulate.layers import packed, paint_fold, paint_liquid, paint_patch, paint_wall
from polypcount.simulate.noise import layered_noise

EVEN_LIGHT = np.array([1, 0, 0, 0, 9, 9], np.float32)  # neither falling off nor mirrored
CAMERA = np.array([1, 1, 1, 0, 0, 9, 9, 99, 1, 0], np.float32)


def noisy(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).uniform(0.1, 1, shape).astype(np.float32)


def view_of(width: int, height: int) -> NDArray[np.float32]:
    return np.array([-width / height / 2, -0.5, 1 / height, 1 / height], np.float32)


def test_a_patch_is_interpolated_between_its_points() -> None:
    planes = np.random.default_rng(1).integers(0, 256, (16, 16, 7), dtype=np.uint8)
    planes[..., 3], planes[..., 4:6], planes[..., 6] = 255, 128, 0
    canvas = np.zeros((3, 64, 64), np.float32)
    looks = np.array([1, 1, 1, 9, 0, 0, 1, 0, 0, 0], np.float32)
    paint_patch(canvas, view_of(64, 64), packed(planes), np.eye(3, dtype=np.float32), EVEN_LIGHT, noisy(8, 8), looks)
    places = (np.arange(64) + 0.5) / 4 - 0.5
    expected = [
        ndimage.map_coordinates(planes[..., c].astype(float), np.meshgrid(places, places, indexing="ij"), order=1)
        for c in range(3)
    ]
    apart = np.abs(np.sqrt(canvas) * 255 - np.array(expected))[:, 4:-4, 4:-4]
    assert apart.max() < 0.5, "places are in 16ths of a point, and these are"


@pytest.mark.parametrize("sigma", [0.7, 2.0, 2.9])
def test_blur_is_a_gaussian(sigma: float) -> None:
    canvas = noisy(3, 40, 51)
    expected = ndimage.gaussian_filter(
        canvas, (0, sigma, sigma), mode="nearest", radius=(0, *[int(np.ceil(2.5 * sigma))] * 2)
    )
    assert np.abs(blur(canvas, sigma, 0, 0) - expected).max() < 1e-5


def test_strong_blur_is_nearly_a_gaussian_on_fewer_pixels() -> None:
    canvas = np.asarray(ndimage.zoom(noisy(3, 13, 17), (1, 12, 12), order=1), np.float32)
    expected = ndimage.gaussian_filter(canvas, (0, 8, 8), mode="nearest")
    assert np.abs(blur(canvas, 8.0, 0, 0) - expected)[:, 20:-20, 20:-20].max() < 0.02


@pytest.mark.parametrize(("height", "width"), [(32, 40), (33, 41), (35, 43), (61, 37)])
@pytest.mark.parametrize("sigma", [0.0, 0.5, 5.0, 30.0])
def test_an_even_image_stays_even(height: int, width: int, sigma: float) -> None:
    even = np.full((3, height, width), 0.5, np.float32)
    for streak in ((0, 0), (9, 0), (-5, 40)):
        assert blur(even, sigma, *streak) == pytest.approx(even, abs=1e-5)


def test_motion_smears_along_its_way_only() -> None:
    canvas = np.zeros((3, 21, 31), np.float32)
    canvas[:, 10, 15] = 1
    smeared = blur(canvas, 0, 8.0, 0)
    assert smeared.sum() == pytest.approx(3, rel=1e-5)
    assert set(np.nonzero(smeared[0])[0]) == {10}
    assert len(np.nonzero(smeared[0])[1]) == 9


def test_a_part_is_painted_as_in_the_whole() -> None:
    noise = layered_noise(64, (0.1, 0.03), np.random.default_rng(0))
    wall = packed(np.random.default_rng(2).integers(0, 256, (512, 512, 5), dtype=np.uint8))
    place = np.array([0.2, 0.1, 0.3, 0.4, 3, 0.7, 0.5, -0.3], np.float32)
    fold = np.array([0.8, 0.6, 0.1, 0.03, 0.2, 0.03, 1, 0.4, 0.2], np.float32)
    liquid = np.array([0, 1, 0.2, 0.3, 0.7, 0.4, 0.3, 0.1], np.float32)
    light = np.array([1, 1, 0.1, 0.1, 0.05, 0], np.float32)
    whole, part = np.empty((3, 64, 80), np.float32), np.empty((3, 32, 32), np.float32)
    inner = view_of(80, 64)
    inner[:2] += np.array([24, 16], np.float32) / 64
    for canvas, view in ((whole, view_of(80, 64)), (part, inner)):
        paint_wall(canvas, view, wall, place, light)
        paint_fold(canvas, view, wall, noise, fold, light)
        paint_liquid(canvas, view, noise, liquid, light)
    assert np.mean(np.abs(whole[:, 16:48, 24:56] - part) > 0.01) < 0.02, "but for rounded places"


def test_development_without_noise() -> None:
    light = np.array([0.0, 0.2, 0.5, 1.0, 4.0], np.float32)
    canvas = np.tile(light, (3, 4, 1))
    faded = light * (1 + 0.16 * light) / (1 + 0.55 * light)
    expected = np.minimum(np.sqrt(1.25 * faded) * 255, 255)
    image = develop(canvas, view_of(5, 4), CAMERA, 3)
    assert np.abs(image[2, :, 1] - expected).max() <= 1


def test_red_out_and_narrow_band_change_the_colours() -> None:
    canvas = np.full((3, 4, 5), 0.4, np.float32)
    plain, red, narrow = (CAMERA.copy() for _ in range(3))
    red[9], narrow[3] = 0.9, 1
    means = [develop(canvas, view_of(5, 4), camera, 0).mean(axis=(0, 1)) for camera in (plain, red, narrow)]
    assert np.ptp(means[0]) == 0
    assert means[1][0] > 2 * means[1][1]
    assert means[2][1] > means[2][0]
