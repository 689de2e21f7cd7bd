"""Augmentation of clips: every formula against numpy and scipy, and what all of them promise together."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor
from torch.nn.functional import interpolate

from polypcount.errors import DataError
from polypcount.training import Augmentation, augment

Array = NDArray[np.float64]
COLUMNS = [
    *("left_right", "top_bottom", "rotation", "shift_x", "shift_y", "scale"),
    *("brightness", "contrast", "saturation", "hue", "exposure", "blur"),
]
GEOMETRY: dict[str, Any] = {"flip": True, "rotation": 35.0, "shift": 0.2, "scale": 0.5}
COLOUR: dict[str, Any] = {"brightness": 0.3, "contrast": 0.4, "saturation": 0.5, "hue": 0.2, "exposure": 0.6}
ALL: dict[str, Any] = {**GEOMETRY, **COLOUR, "blur": 1.2}
EXTREME: dict[str, Any] = {
    **{"flip": True, "rotation": 180, "shift": 1, "scale": 9},
    **{"brightness": 1, "contrast": 1, "saturation": 1, "hue": 0.5, "exposure": 9, "blur": 20},
}
GREY = np.array([0.299, 0.587, 0.114])
CLOSE = 2e-5  # a two-hundredth of the step between two values of a pixel


def some_clips(n: int = 3, t: int = 2, height: int = 18, width: int = 18, seed: int = 0) -> Tensor:
    """Random, but smooth enough that a thousandth of a pixel does not show."""
    rng = np.random.default_rng(seed)
    rough = ndimage.gaussian_filter(rng.normal(size=(n, t, height, width, 3)), (0, 0, 1, 1, 0))
    return torch.tensor(np.clip(128 + 160 * rough, 0, 255).astype(np.uint8))


def run(clips: Tensor, size: int, seed: int = 0, **chosen: Any) -> Array:
    """Clips as [n, t, size, size, 3]."""
    out = augment(clips, Augmentation(**chosen), size, torch.Generator().manual_seed(seed))
    assert out.dtype == torch.float32
    assert out.shape == (*clips.shape[:2], 3, size, size)
    return out.permute(0, 1, 3, 4, 2).double().numpy()


def draws(n: int, seed: int = 0) -> list[dict[str, float]]:
    """What each clip draws, from -1 to 1, a row a clip and a column a parameter."""
    numbers = torch.rand(n, len(COLUMNS), dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return [dict(zip(COLUMNS, row, strict=True)) for row in numbers.tolist()]


def plain(clips: Tensor) -> Array:
    values: Array = clips.numpy() / 255
    return values


def moved(frame: Array, size: int, drawn: dict[str, float], chosen: dict[str, Any]) -> Array:
    """A frame [h, w, 3] resampled pixel by pixel, in pixels from the middle of the result."""
    height, width = frame.shape[:2]
    angle = math.radians(chosen.get("rotation", 0) * drawn["rotation"])
    zoom = (1 + chosen.get("scale", 0)) ** drawn["scale"]
    places = np.empty((2, size, size))
    for row in range(size):
        for column in range(size):
            x = column - (size - 1) / 2 - chosen.get("shift", 0) * drawn["shift_x"] * size
            y = row - (size - 1) / 2 - chosen.get("shift", 0) * drawn["shift_y"] * size
            back = complex(x, y) * complex(math.cos(angle), -math.sin(angle)) / zoom
            x = -back.real if chosen.get("flip") and drawn["left_right"] < 0 else back.real
            y = -back.imag if chosen.get("flip") and drawn["top_bottom"] < 0 else back.imag
            places[:, row, column] = y * height / size + (height - 1) / 2, x * width / size + (width - 1) / 2
    sampled = [ndimage.map_coordinates(frame[..., c], places, order=1, mode="nearest") for c in range(3)]
    return np.stack(sampled, axis=-1)


def coloured(clip: Array, drawn: dict[str, float], chosen: dict[str, Any]) -> Array:
    """A clip [t, h, w, 3] with one change of colour after the other, not cut off yet."""
    factor = {name: 1 + chosen.get(name, 0) * drawn[name] for name in ("brightness", "contrast", "saturation")}
    out = np.power(clip, (1 + chosen.get("exposure", 0)) ** drawn["exposure"]) * factor["brightness"]
    mean = (out @ GREY).mean()
    out = mean + factor["contrast"] * (out - mean)
    grey = (out @ GREY)[..., None]
    out = grey + factor["saturation"] * (out - grey)
    yiq = np.array([GREY, [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    lightness, i, q = np.moveaxis(out @ yiq.T, -1, 0)
    tint = (i + 1j * q) * np.exp(2j * np.pi * chosen.get("hue", 0) * drawn["hue"])
    turned: Array = np.linalg.solve(yiq, np.stack([lightness, tint.real, tint.imag]).reshape(3, -1))
    return turned.T.reshape(clip.shape)


def blurred(clip: Array, drawn: dict[str, float], chosen: dict[str, Any]) -> Array:
    deviation = chosen["blur"] * (drawn["blur"] + 1) / 2
    radius = math.ceil(3 * chosen["blur"])
    out: Array = ndimage.gaussian_filter(clip, deviation, mode="nearest", radius=radius, axes=(1, 2))
    return out


def test_off_is_the_plain_values() -> None:
    clips = some_clips()
    assert Augmentation().off
    found = augment(clips, Augmentation(), 18, torch.Generator())
    assert torch.equal(found, clips.permute(0, 1, 4, 2, 3) / 255)


@pytest.mark.parametrize(("height", "width", "size"), [(20, 20, 18), (18, 18, 20), (24, 15, 18)])
def test_without_geometry_it_is_the_plain_resize(height: int, width: int, size: int) -> None:
    clips = some_clips(height=height, width=width)
    found = augment(clips, Augmentation(), size, torch.Generator())
    frames = (clips.permute(0, 1, 4, 2, 3) / 255).flatten(0, 1)
    expected = interpolate(frames, (size, size), mode="bilinear", align_corners=False)
    assert torch.allclose(found.flatten(0, 1), expected, atol=CLOSE)


@pytest.mark.parametrize("name", ALL)
def test_one_setting_turns_it_on(name: str) -> None:
    assert not Augmentation(**{name: ALL[name]}).off
    clips = some_clips()
    assert not np.allclose(run(clips, 18, **{name: ALL[name]}), plain(clips), atol=0.01)


def test_flips_are_exact_and_each_has_a_chance_of_a_half() -> None:
    clips = some_clips(n=400, t=1, height=6, width=6)
    found, values = run(clips, 6, flip=True), plain(clips)
    seen = {(1, 1): 0, (-1, 1): 0, (1, -1): 0, (-1, -1): 0}
    for clip, value, drawn in zip(found, values, draws(400), strict=True):
        steps = (-1 if drawn["top_bottom"] < 0 else 1, -1 if drawn["left_right"] < 0 else 1)
        assert clip == pytest.approx(value[:, :: steps[0], :: steps[1]], abs=CLOSE)
        seen[steps] += 1
    assert all(70 < count < 130 for count in seen.values())


@settings(max_examples=12)
@given(
    names=st.sets(st.sampled_from(list(GEOMETRY)), min_size=1),
    seed=st.integers(0, 10_000),
    sides=st.tuples(st.integers(8, 20), st.integers(8, 20), st.integers(6, 20)),
)
def test_geometry_equals_a_resampling_pixel_by_pixel(names: set[str], seed: int, sides: tuple[int, int, int]) -> None:
    chosen = {name: GEOMETRY[name] for name in names}
    clips = some_clips(n=2, t=1, height=sides[0], width=sides[1], seed=seed)
    found = run(clips, sides[2], seed, **chosen)
    for clip, value, drawn in zip(found, plain(clips), draws(2, seed), strict=True):
        assert clip[0] == pytest.approx(moved(value[0], sides[2], drawn, chosen), abs=10 * CLOSE)


def test_zoom_makes_the_polyp_larger_and_shift_moves_it_right_and_down() -> None:
    y, x = np.mgrid[:40, :40] - 19.5
    disc = np.repeat(np.where(np.hypot(x, y) < 8, 255, 0)[..., None], 3, axis=-1).astype(np.uint8)
    clips = torch.tensor(disc).expand(20, 1, 40, 40, 3)
    area = plain(clips)[0].sum()
    for clip, drawn in zip(run(clips, 40, scale=0.5), draws(20), strict=True):
        assert clip.sum() / area == pytest.approx(1.5 ** (2 * drawn["scale"]), rel=0.03)
    for clip, drawn in zip(run(clips, 40, shift=0.2), draws(20), strict=True):
        middle = ndimage.center_of_mass(clip[0, ..., 0])
        assert middle == pytest.approx((19.5 + 8 * drawn["shift_y"], 19.5 + 8 * drawn["shift_x"]), abs=0.01)


def test_borders_are_drawn_out_and_never_mirrored() -> None:
    clips = torch.zeros(30, 1, 20, 20, 3, dtype=torch.uint8)
    clips[..., 5:15, 5:15, :] = 255  # in a mirrored border it would come back
    for clip, drawn in zip(run(clips, 20, shift=1), draws(30), strict=True):
        if max(abs(drawn["shift_x"]), abs(drawn["shift_y"])) > 0.8:
            assert clip.max() == pytest.approx(0, abs=CLOSE)


@settings(max_examples=15)
@given(names=st.sets(st.sampled_from(list(COLOUR)), min_size=1), seed=st.integers(0, 10_000))
def test_colours_equal_one_change_after_the_other(names: set[str], seed: int) -> None:
    chosen = {name: COLOUR[name] for name in names}
    clips = some_clips(n=2, height=6, width=6, seed=seed)
    for clip, value, drawn in zip(run(clips, 6, seed, **chosen), plain(clips), draws(2, seed), strict=True):
        assert clip == pytest.approx(np.clip(coloured(value, drawn, chosen), 0, 1), abs=CLOSE)


def test_hue_leaves_grey_alone() -> None:
    grey = torch.arange(225, dtype=torch.uint8).view(1, 1, 15, 15, 1).repeat(20, 1, 1, 1, 3)
    assert run(grey, 15, hue=0.5) == pytest.approx(plain(grey), abs=CLOSE)


def test_half_a_turn_of_hue_is_the_same_either_way_and_twice_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    clips = some_clips(n=1) // 8 + 112  # so pale that nothing is cut off
    once = []
    for number in (0.0, 1.0):
        monkeypatch.setattr(torch, "rand", lambda *size, number=number, **_: torch.full(size, number))
        once.append(run(clips, 18, hue=0.5))
    assert once[0] == pytest.approx(once[1], abs=CLOSE)
    assert not np.allclose(once[0], plain(clips), atol=0.02)
    twice = run(torch.tensor(np.rint(once[0] * 255).astype(np.uint8)), 18, hue=0.5)
    assert twice == pytest.approx(plain(clips), abs=0.01), "but for rounding to bytes"


@settings(max_examples=10)
@given(blur=st.floats(0.05, 6), seed=st.integers(0, 10_000))
def test_blur_equals_scipy(blur: float, seed: int) -> None:
    clips = some_clips(n=3, height=12, width=12, seed=seed)
    for clip, value, drawn in zip(run(clips, 12, seed, blur=blur), plain(clips), draws(3, seed), strict=True):
        assert clip == pytest.approx(blurred(value, drawn, {"blur": blur}), abs=CLOSE)


def test_a_deviation_of_nothing_leaves_that_clip_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = torch.full((3, len(COLUMNS)), 0.5, dtype=torch.float64)
    numbers[1] = 0
    monkeypatch.setattr(torch, "rand", lambda *_, **__: numbers)
    clips = some_clips()
    found = run(clips, 18, blur=2.0)
    assert np.array_equal(found[1].astype(np.float32), (clips[1] / 255).numpy())
    assert not np.allclose(found[[0, 2]], plain(clips)[[0, 2]], atol=0.01)


@pytest.mark.parametrize("left_out", [None, "flip", "rotation", "hue", "blur"])
def test_every_setting_draws_the_same_whatever_else_is_on(left_out: str | None) -> None:
    chosen = {"blur": 0.0, **{name: value for name, value in ALL.items() if name != left_out}}
    clips = some_clips(n=5, height=20, width=20)  # more than are worked on at once
    for clip, value, drawn in zip(run(clips, 18, 4, **chosen), plain(clips), draws(5, 4), strict=True):
        expected = np.stack([moved(frame, 18, drawn, chosen) for frame in value])
        expected = coloured(blurred(expected, drawn, chosen) if chosen["blur"] else expected, drawn, chosen)
        assert clip == pytest.approx(np.clip(expected, 0, 1), abs=30 * CLOSE)


def test_frames_of_a_clip_are_changed_alike_and_clips_are_not() -> None:
    still = some_clips(n=1, t=1).repeat(4, 5, 1, 1, 1)
    found = run(still, 16, **ALL)
    assert found == pytest.approx(np.repeat(found[:, :1], 5, axis=1), abs=1e-6)
    for first in range(4):
        for second in range(first):
            assert not np.allclose(found[first], found[second], atol=0.02)
    clips, order = some_clips(t=6), [3, 0, 5, 1, 4, 2]
    assert run(clips[:, order], 16, **ALL) == pytest.approx(run(clips, 16, **ALL)[:, order], abs=1e-5)


def test_the_same_state_gives_the_same_and_the_next_one_another() -> None:
    clips, generator = some_clips(), torch.Generator().manual_seed(7)
    first, second = (augment(clips, Augmentation(**ALL), 16, generator) for _ in range(2))
    assert np.array_equal(run(clips, 16, seed=7, **ALL), first.permute(0, 1, 3, 4, 2).double().numpy())
    assert not torch.allclose(first, second, atol=0.02)
    torch.manual_seed(1)
    assert np.array_equal(run(clips, 16, seed=7, **ALL), run(clips, 16, seed=7, **ALL)), "only from the generator"


def test_how_many_threads_there_are_makes_no_difference() -> None:
    clips, threads = some_clips(n=7), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(clips, 16, **ALL)
        torch.set_num_threads(3)
        assert run(clips, 16, **ALL) == pytest.approx(one, abs=1e-5)
    finally:
        torch.set_num_threads(threads)


@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
    size=st.integers(1, 9),
    kind=st.sampled_from(["black", "white", "smooth", "noise"]),
)
def test_the_extremes_stay_finite_and_within_0_and_1(
    seed: int, shape: tuple[int, int, int, int], size: int, kind: str
) -> None:
    clips = some_clips(*shape, seed=seed)
    if kind == "noise":
        clips = torch.randint(0, 256, clips.shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    elif kind != "smooth":
        clips = torch.full_like(clips, 0 if kind == "black" else 255)
    found = run(clips, size, seed, **EXTREME)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
    if kind == "black":
        assert found.max() == 0


def test_padding_is_harmless() -> None:
    clips = some_clips(n=4, t=4)
    padded = clips.clone()
    padded[2:] = 0
    found = run(padded, 16, **ALL)
    assert np.array_equal(found[:2], run(clips, 16, **ALL)[:2]), "other clips do not notice"
    assert found[2:].max() == 0
    padded[:2, 2:] = 0
    without = {**ALL, "contrast": 0.0}  # the one that looks at other frames
    found = run(padded, 16, **without)
    assert found[:2, :2] == pytest.approx(run(clips, 16, **without)[:2, :2], abs=1e-6)
    assert found[:2, 2:].max() == 0


def test_it_stays_float32_under_autocast() -> None:
    clips = some_clips()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run(clips, 16, **ALL)
    assert np.array_equal(found, run(clips, 16, **ALL))


def test_no_clip_is_no_clip() -> None:
    assert run(some_clips()[:0], 16, **ALL).shape == (0, 2, 16, 16, 3)


@pytest.mark.parametrize(
    "clips",
    [some_clips().float(), some_clips()[0], some_clips()[:, :0]],
    ids=["float", "one clip", "no frame"],
)
def test_other_clips_are_refused(clips: Tensor) -> None:
    with pytest.raises(DataError, match=r"clips must be uint8 \[n, t, h, w, 3\], found torch"):
        augment(clips, Augmentation(), 16, torch.Generator())
