"""Views: pixels are converted when they are asked for, at any size, and are those of the frames."""

import gc
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import av
import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray
from PIL import Image as Pillow

from polypcount.errors import DataError, FileError
from polypcount.simulate import TimelineSettings, simulate_scenes
from polypcount.video import FrameSource, FrameView, open_source, resize, views
from polypcount.video.ahead import ahead
from polypcount.video.frames import Image
from tests.video.movies import HEIGHT, WIDTH, number_of, numbered, write_movie


def smooth(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    """A picture like that of a camera: without edges of one pixel, in all colours."""
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 16, width // 16, 3), np.uint8)
    return np.asarray(Pillow.fromarray(coarse).resize((width, height), Pillow.Resampling.BICUBIC))


def one_frame(path: Path, image: Image, **properties: int) -> Path:
    """A movie of one frame, lossless but for colours at half the resolution."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=25, options={"qp": "0"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = image.shape[1], image.shape[0], "yuv420p"
        for name, value in properties.items():
            setattr(stream.codec_context, name, value)
        frame = av.VideoFrame.from_ndarray(image, format="rgb24")
        target = {"dst_colorspace": properties.get("colorspace"), "dst_color_range": properties.get("color_range")}
        file.mux(stream.encode(frame.reformat(format="yuv420p", **target)))
        file.mux(stream.encode())
    return path


def first_view(source: FrameSource) -> FrameView:
    return next(views(source, [0]))[1]


def difference(one: Image, other: Image) -> float:
    assert one.shape == other.shape
    return float(np.abs(one.astype(int) - other).mean())


# Colour matrices of BT.709, BT.601 and "not said", with limited and full range.
@pytest.mark.parametrize("properties", [{}, {"colorspace": 1}, {"colorspace": 5}, {"colorspace": 1, "color_range": 2}])
@pytest.mark.parametrize("size", [(160, 128), (107, 90), (96, 77), (400, 320)])
def test_a_reduced_frame_is_the_whole_one_reduced(
    tmp_path: Path, properties: dict[str, int], size: tuple[int, int]
) -> None:
    view = first_view(open_source(one_frame(tmp_path / "a.mp4", smooth(640, 512), **properties)))
    assert (view.width, view.height) == (640, 512)
    small = view.scaled(*size)
    assert small.shape == (size[1], size[0], 3)
    assert small.dtype == np.uint8
    assert difference(small, resize(view.image, *size)) < 3, "levels of 255; colours are of half the resolution"
    assert np.abs(small.mean((0, 1)) - view.image.mean((0, 1))).max() < 2.5, "no change of colour or brightness"


def test_reducing_does_not_alias(tmp_path: Path) -> None:
    lines = np.zeros((512, 640, 3), np.uint8)
    lines[:, ::2] = 255  # finer than the reduced image can show
    small = first_view(open_source(one_frame(tmp_path / "a.mp4", lines))).scaled(151, 121)
    assert np.abs(small[3:-3, 3:-3].astype(int) - 127).max() < 12


def test_a_frame_can_be_enlarged_and_made_tiny(tmp_path: Path) -> None:
    view = first_view(open_source(one_frame(tmp_path / "a.mp4", smooth(96, 64))))
    assert difference(view.scaled(300, 200), resize(view.image, 300, 200)) < 3
    for size in ((1, 1), (2, 77), (96, 1), (3, 3)):
        assert view.scaled(*size).shape == (size[1], size[0], 3)
    with pytest.raises(DataError, match="not to 0 x 5"):
        view.scaled(0, 5)
    with pytest.raises(DataError, match="not to 100000 x 100000"):
        view.scaled(100_000, 100_000)


def test_views_of_a_movie_are_its_frames(tmp_path: Path) -> None:
    source = open_source(write_movie(tmp_path / "a.mp4", 60))
    wanted = [3, 4, 30, 59]
    expected = dict(source.frames(wanted))
    for index, view in views(source, wanted):
        view.scaled(24, 16)  # does not change what the whole frame is
        assert np.array_equal(view.image, expected[index])
        assert view.image is view.image
        assert view.scaled(WIDTH, HEIGHT) is view.image
        assert view.scaled(24, 16) is view.scaled(24, 16)
    with pytest.raises(DataError, match="no frame 60"):
        views(source, [60])


def test_several_views_are_held_and_used_by_other_threads(tmp_path: Path) -> None:
    source = open_source(write_movie(tmp_path / "a.mp4", 60, b_frames=3))
    small = {index: resize(image, 48, 32) for index, image in source.frames(range(60))}
    ring: deque[tuple[int, FrameView]] = deque(maxlen=8)
    with ThreadPoolExecutor(4) as pool:
        for index, view in ahead(views(source, range(60))):
            ring.append((index, view))
            oldest, kept = ring[0]
            found = pool.map(lambda which, view=kept: view.scaled(48, 32) if which else view.image, [0, 1, 0, 1])
            images = list(found)
            assert number_of(images[0]) == number_of(images[2]) == oldest
            assert difference(images[1], small[oldest]) < 6
            assert np.array_equal(images[1], images[3])
    assert [index for index, _ in ring] == list(range(52, 60)), "the last ones outlive their reader"
    gc.collect()
    assert [number_of(view.image) for _, view in ring] == list(range(52, 60))


def test_the_iterating_thread_converts_to_the_size_that_is_announced(tmp_path: Path) -> None:
    class Told:
        """Frames whose pixels say which thread asked for them."""

        width, height, fps, frame_count = 8, 8, None, 3

        def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
            raise AssertionError("the views are asked for")

        def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
            for index in np.asarray(wanted).tolist():
                yield index, FrameView(8, 8, self)

        def image(self) -> Image:
            raise AssertionError("the whole frame is not asked for")

        def scaled(self, width: int, height: int) -> Image:
            asked.append(threading.current_thread().name)
            return np.zeros((height, width, 3), np.uint8)

    asked: list[str] = []
    for _, view in ahead(views(Told(), range(3), lambda width, height: (width // 2, height // 4))):
        assert view.scaled(4, 2).shape == (2, 4, 3)
    assert len(asked) == 3
    assert all(name.startswith("ahead") for name in asked)


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_views_of_a_folder_of_images(tmp_path: Path, suffix: str) -> None:
    for number in range(3):
        Pillow.fromarray(smooth(640, 512, number)).save(tmp_path / f"{number}{suffix}", quality=95)
    source = open_source(tmp_path)
    expected = dict(source.frames(range(3)))
    for index, view in views(source, range(3)):
        for size in ((160, 128), (107, 90), (700, 600)):
            assert difference(view.scaled(*size), resize(expected[index], *size)) < 1
        assert np.array_equal(view.image, expected[index])


def test_a_damaged_image_of_a_folder_is_named(tmp_path: Path) -> None:
    for number in range(3):
        Pillow.fromarray(numbered(number)).save(tmp_path / f"{number}.jpg", quality=95)
    path = tmp_path / "1.jpg"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    source = open_source(tmp_path)
    found = views(source, range(3))
    assert number_of(next(found)[1].image) == 0
    damaged = next(found)[1]  # found out when its pixels are asked for
    for size in ((96, 64), (20, 10)):
        with pytest.raises(FileError, match=r"1\.jpg .*copy it again"):
            damaged.scaled(*size)
    assert number_of(next(found)[1].image) == 2
    at_once = views(source, range(3), lambda width, height: (width // 4, height // 4))
    next(at_once)
    with pytest.raises(FileError, match=r"1\.jpg .*copy it again"):
        next(at_once)
    path.write_bytes(simplejpeg.encode_jpeg(numbered(1))[:20])
    with pytest.raises(FileError, match=r"1\.jpg .*copy it again"):
        list(views(source, [1]))
    path.unlink()
    with pytest.raises(FileError, match=r"1\.jpg"):
        list(views(source, [1]))


def test_a_scene_is_drawn_small(tmp_path: Path) -> None:
    settings = TimelineSettings(width=320, height=256, minutes=0.2)
    corpus = simulate_scenes(tmp_path, 1, 3, "study", settings=settings, processes=1)
    source = open_source(str(corpus.videos[0].source))
    for index, view in views(source, [0, source.frame_count - 1]):
        assert np.array_equal(view.image, dict(source.frames([index]))[index])
        assert difference(view.scaled(160, 128), resize(view.image, 160, 128)) < 8, "noise is drawn anew"


def test_any_other_source_has_views_of_its_frames() -> None:
    class Plain:
        """A source that knows frames only."""

        width, height, fps, frame_count = WIDTH, HEIGHT, None, 5

        def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
            for index in np.asarray(wanted).tolist():
                yield index, numbered(index)

    for index, view in views(Plain(), [1, 4]):
        assert number_of(view.image) == index
        assert np.array_equal(view.scaled(40, 30), resize(numbered(index), 40, 30))
    with pytest.raises(DataError, match="a frame must be RGB"):
        FrameView.of(np.zeros((4, 4), np.uint8))
