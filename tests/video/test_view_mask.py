"""What of a frame is shown: on drawn frames, whose view is known, and on real ones."""

import csv
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from polypcount.errors import DataError
from polypcount.video import FrameMask, find_view, open_source, parse_rectangle
from tests.conftest import DATA

Image = NDArray[np.uint8]
View = NDArray[np.bool_]
WIDTH, HEIGHT = 960, 720
OUTSIDE = {"Name: Jane Roe": (10, 10), "1948-03-02 ID 4711": (10, 50), "12:40:31": (820, 690)}


def inside(shape: str, x: float = 520, y: float = 360, size: float = 340) -> View:
    """Where a drawn endoscope has its view, in a picture of 960 x 720."""
    columns, rows = np.meshgrid(np.arange(WIDTH) + 0.5 - x, np.arange(HEIGHT) + 0.5 - y)
    if shape == "circle":
        return np.asarray(np.hypot(columns, rows) < size)
    across, down = np.abs(columns), np.abs(rows)
    return np.asarray((across < size) & (down < size) & (across + down < 1.45 * size))


def drawn(view: View, seed: int, border: int = 0, vignette: float = 0.9) -> Image:
    """Mucosa with a dark lumen somewhere, darker to the rim of the view, and a noisy border around it."""
    mucosa, ground = pictures(seed, border, vignette)
    return np.where(view[..., None], mucosa, ground)


@lru_cache(maxsize=64)
def pictures(seed: int, border: int, vignette: float) -> tuple[Image, Image]:
    """Mucosa and border without end."""
    rng = np.random.default_rng(seed)
    columns, rows = np.meshgrid(np.linspace(-1, 1, WIDTH), np.linspace(-1, 1, HEIGHT))
    lumen = np.hypot(columns - rng.uniform(-0.4, 0.4), rows - rng.uniform(-0.4, 0.4))
    light = np.clip(0.2 + lumen, 0, 1) * (1 - vignette * np.clip(np.hypot(columns, rows), 0, 1) ** 2)
    mucosa = light[..., None] * [220, 130, 100] + rng.normal(25, 3, (HEIGHT, WIDTH, 1))
    ground = rng.normal(border, 1, (HEIGHT, WIDTH, 1))
    return mucosa.clip(0, 255).astype(np.uint8), ground.clip(0, 255).astype(np.uint8)


def written(frame: Image, texts: dict[str, tuple[int, int]] = OUTSIDE) -> Image:
    picture = Pillow.fromarray(frame)
    for text, place in texts.items():
        ImageDraw.Draw(picture).text(place, text, fill="white", font=ImageFont.load_default(26))
    return np.array(picture)


def with_inset(frame: Image) -> Image:
    """A small bright picture in the lower left corner, which the drawn views do not reach."""
    frame = frame.copy()
    frame[560:700, 10:150] = np.random.default_rng(0).integers(60, 255, (140, 140, 3))
    return frame


def cover(found: View | None, view: View) -> float:
    """Share of the picture that is kept besides the view, all of which must be."""
    assert found is not None
    assert found.shape == view.shape
    assert found.dtype == bool
    assert found[view].all(), f"{(view & ~found).sum()} pixels of the view were cut away"
    return float((found & ~view).mean())


@pytest.mark.parametrize(("shape", "border"), [("circle", 0), ("octagon", 22)])
def test_the_view_is_kept_and_everything_around_it_is_black(shape: str, border: int) -> None:
    view = inside(shape)
    frames = [with_inset(written(drawn(view, seed, border))) for seed in range(8)]
    found = find_view(frames)
    assert cover(found, view) < 0.05
    masked = FrameMask(view=found).apply(frames[0])
    assert np.array_equal(masked[view], frames[0][view])
    assert not masked[560:700, 10:150].any(), "the inset"
    assert not masked[:80, :250].any(), "what is written above"
    assert not masked[680:, 800:].any(), "what is written below"


def test_one_frame_is_enough_where_it_is_bright() -> None:
    view = inside("octagon")
    assert cover(find_view([written(drawn(view, 0, vignette=0.5))]), view) < 0.05


def test_a_view_that_the_picture_cuts_off() -> None:
    view = inside("circle", x=480, size=450)
    assert 0.8 < view.mean() < 0.95
    assert view[:, 480].all(), "it goes over the edges above and below"
    assert cover(find_view([written(drawn(view, seed), {"ID 4711": (5, 5)}) for seed in range(8)]), view) < 0.05


def test_text_over_the_view_stays_and_does_not_widen_it() -> None:
    view = inside("circle")
    frames = [written(drawn(view, seed), {"Roe, Jane 1948-03-02 written over the rim": (20, 340)}) for seed in range(8)]
    for frame in frames:
        frame[500:524, 100:400] = 255  # a gauge
    found = find_view(frames)
    assert cover(found, view) < 0.05
    masked = FrameMask(view=found).apply(frames[0])
    assert np.array_equal(masked[view], frames[0][view])
    assert not masked[330:380, :150].any()
    assert not masked[500:524, :180].any()


def test_what_is_dark_in_some_frames_is_view() -> None:
    view = inside("octagon")
    frames = [drawn(view, seed) for seed in range(8)]
    for frame in frames[:7]:
        frame[:, :400] //= 40
    assert cover(find_view(frames), view) < 0.05


def test_a_dark_lumen_leaves_no_hole_and_no_thin_rim() -> None:
    view = inside("octagon")
    frame = drawn(view, 0, vignette=0.0)
    frame[inside("octagon", size=315)] = 0
    assert cover(find_view([frame] * 8), view) < 0.05


def test_a_view_that_becomes_larger_counts_as_large() -> None:
    frames = [drawn(inside("octagon", size=250), seed) for seed in range(7)] + [drawn(inside("octagon"), 7)]
    assert cover(find_view(frames), inside("octagon")) < 0.05


def test_a_single_picture_without_border_is_not_believed() -> None:
    view = inside("octagon")
    menu = np.full((HEIGHT, WIDTH, 3), (40, 60, 160), np.uint8)
    assert cover(find_view([menu, *(drawn(view, seed) for seed in range(7))]), view) < 0.05
    assert find_view([menu, menu, *(drawn(view, seed) for seed in range(6))]) is None, "two of eight are"


def test_a_thin_frame_around_the_picture_is_no_view() -> None:
    view = inside("octagon", size=300)
    frames = [drawn(view, seed) for seed in range(8)]
    for frame in frames:
        frame[[4, 5, -6, -5], 4:-4] = 200
        frame[4:-4, [4, 5, -6, -5]] = 200
    assert cover(find_view(frames), view) < 0.05


def test_two_views_side_by_side_are_both_kept() -> None:
    view = inside("circle", x=235, size=225) | inside("circle", x=715, size=190)
    assert cover(find_view([written(drawn(view, seed)) for seed in range(8)]), view) < 0.05


@pytest.mark.parametrize("vignette", [0.0, 0.6])
def test_a_view_that_fills_the_picture_needs_no_mask(vignette: float) -> None:
    everywhere = np.ones((HEIGHT, WIDTH), bool)
    assert find_view([drawn(everywhere, seed, vignette=vignette) for seed in range(8)]) is None


def test_nothing_to_find() -> None:
    black = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    assert find_view([]) is None
    assert find_view([black] * 8) is None
    assert find_view([written(black)] * 8) is None
    assert find_view([np.full((HEIGHT, WIDTH, 3), 200, np.uint8)]) is None
    assert find_view([np.full((1, 1, 3), 200, np.uint8)]) is None
    assert find_view([drawn(inside("circle", size=60), 0)]) is None, "too small to be a view"


def test_frames_of_another_size_are_looked_at_too() -> None:
    view = inside("octagon")
    small = [np.asarray(Pillow.fromarray(drawn(view, seed)).resize((480, 360))) for seed in range(4)]
    assert cover(find_view([drawn(view, 0), *small]), view) < 0.05


def test_real_sequences_lose_nothing_of_their_view() -> None:
    folder = DATA / "cvc-clinicdb"
    if not folder.exists():
        pytest.skip("CVC-ClinicDB is not here")
    sequences: dict[str, list[str]] = {}
    with (folder / "sequences.csv").open() as file:
        for row in csv.DictReader(file):
            sequences.setdefault(row["sequence"], []).append(row["frame"])
    for number in ("2", "7"):  # the first has two sizes of view, the other dark parts
        paths = [folder / "Original" / f"{frame}.png" for frame in sequences[number]]
        frames = np.stack([np.asarray(Pillow.open(path).convert("RGB")) for path in paths])
        found = find_view(frames[:: max(1, len(frames) // 8)])
        assert found is not None
        assert 0.65 < found.mean() < 0.8
        brightest = frames.max(axis=(0, 3))
        outside = (brightest > np.percentile(brightest, 2) + 20) & ~found
        assert outside.mean() < 0.001, "colours bleed over the rim in the JPEG files that these were"


def test_the_clip_keeps_all_but_its_corners() -> None:
    path = DATA / "ldpolypvideo-clip" / "clip.mp4"
    if not path.exists():
        pytest.skip("the clip is not here")
    found = find_view(image for _, image in open_source(path).frames(range(0, 53, 7)))
    assert found is not None
    assert 0.92 < found.mean() < 0.97
    assert not found[[0, 0, -1, -1], [0, -1, 0, -1]].any()
    assert found[240, 5:-5].all()
    assert found[5:-5, 280].all()


def test_rectangles_are_blackened_and_nothing_else() -> None:
    frame = np.full((40, 60, 3), 9, np.uint8)
    masked = FrameMask(((10, 5, 20, 3), (50, 30, 100, 100), (-4, -4, 5, 5))).apply(frame)
    expected = frame.copy()
    expected[5:8, 10:30] = 0
    expected[30:, 50:] = 0
    expected[0, 0] = 0
    assert np.array_equal(masked, expected)
    assert (frame == 9).all(), "the frame itself stays"


def test_without_anything_to_mask_the_frame_is_given_back() -> None:
    frame = np.full((40, 60, 3), 9, np.uint8)
    assert FrameMask().apply(frame) is frame


def test_a_view_is_scaled_to_frames_of_another_size() -> None:
    view = np.zeros((4, 6), bool)
    view[1:3, 2:5] = True
    mask = FrameMask(((0, 0, 1, 1),), view)
    for factor in (1, 3):
        shown = mask.apply(np.full((4 * factor, 6 * factor, 3), 9, np.uint8)).all(axis=2)
        assert np.array_equal(shown, np.kron(view, np.ones((factor, factor), bool)))
    assert np.array_equal(mask.apply(np.full((2, 3, 3), 9, np.uint8))[..., 0] > 0, view[1::2, 1::2])


@pytest.mark.parametrize("rectangle", [(60, 0, 5, 5), (0, 40, 5, 5), (-5, 0, 5, 5), (0, -9, 5, 5)])
def test_a_rectangle_that_would_mask_nothing_is_refused(rectangle: tuple[int, int, int, int]) -> None:
    with pytest.raises(DataError, match="outside of the frame, which is 60 x 40"):
        FrameMask((rectangle,)).apply(np.zeros((40, 60, 3), np.uint8))


def test_rectangles_are_read() -> None:
    assert parse_rectangle("0,10, 300,80") == (0, 10, 300, 80)
    for text in ("", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1.5,2,3,4"):
        with pytest.raises(DataError, match="x,y,width,height in whole pixels are expected"):
            parse_rectangle(text)
    for text in ("0,0,0,5", "0,0,5,-1"):
        with pytest.raises(DataError, match="the last two above 0"):
            parse_rectangle(text)


def test_a_view_of_another_kind_is_refused() -> None:
    for view in (np.ones((4, 4)), np.ones(4, bool), np.ones((0, 4), bool)):
        with pytest.raises(DataError, match="view must be bool"):
            FrameMask(view=view)  # type: ignore[arg-type]
