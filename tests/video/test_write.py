"""Writing a video, read back through our own reader."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount.errors import DataError, FileError
from polypcount.video import open_source, write_video
from tests.video.movies import number_of, numbered


def numbers(count: int) -> Iterator[NDArray[np.uint8]]:
    return (numbered(k) for k in range(count))


@pytest.mark.parametrize(("fps", "count"), [(25, 300), (30000 / 1001, 40), (29.97, 40), (1, 40), (12.5, 40)])
def test_frame_k_is_frame_k(tmp_path: Path, fps: float, count: int) -> None:
    assert write_video(tmp_path / "a.mp4", numbers(count), fps) == count
    source = open_source(tmp_path / "a.mp4")
    assert (source.frame_count, source.width, source.height) == (count, 96, 64)
    assert source.fps == pytest.approx(fps, abs=1e-6)
    assert [(k, number_of(picture)) for k, picture in source.frames(range(count))] == [(k, k) for k in range(count)]
    assert [number_of(picture) for _, picture in source.frames([7, count - 3])] == [7, count - 3]


@pytest.mark.parametrize("count", [1, 2])
def test_few_frames(tmp_path: Path, count: int) -> None:
    assert write_video(tmp_path / "a.mp4", numbers(count), 25) == count
    source = open_source(tmp_path / "a.mp4")
    assert (source.frame_count, source.fps) == (count, 25)
    assert [number_of(picture) for _, picture in source.frames(range(count))] == list(range(count))


def test_colours_come_back(tmp_path: Path) -> None:
    colours = np.array(
        [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (128, 128, 128), (200, 80, 60)]
    )
    patches = np.repeat(colours.astype(np.uint8)[None], 32, axis=0).repeat(32, axis=1)
    write_video(tmp_path / "a.mp4", [patches] * 3, 25)
    _, found = next(iter(open_source(tmp_path / "a.mp4").frames([1])))
    assert np.abs(found[16, 16::32].astype(int) - colours).max() <= 4
    with av.open(str(tmp_path / "a.mp4")) as file:
        stream = file.streams.video[0]
        assert [stream.color_primaries, stream.color_trc, stream.colorspace, stream.color_range] == [1, 1, 1, 1]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")


def test_the_same_frames_give_the_same_bytes(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", numbers(60), 25)
    time.sleep(1.1)  # a date would be in whole seconds
    write_video(tmp_path / "b.mp4", numbers(60), 25)
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_what_makes_the_bytes_differ_on_a_busy_machine_is_off(tmp_path: Path) -> None:
    """It shows in few runs (`benchmarks/same_bytes.py`), so the settings in the file are looked at."""
    write_video(tmp_path / "a.mp4", numbers(5), 25)
    content = (tmp_path / "a.mp4").read_bytes()
    assert b"mbtree=0" in content
    assert b"threads=4" in content


def test_the_index_is_in_front_so_that_a_browser_can_begin_at_once(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", numbers(5), 25)
    content = (tmp_path / "a.mp4").read_bytes()
    assert 0 < content.index(b"moov") < content.index(b"mdat")


def test_quality_changes_size_and_error(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (8, 64, 96, 3), np.uint8)
    found = []
    for quality in (1, 23, 51):
        write_video(tmp_path / "a.mp4", noise, 25, quality=quality)
        read = np.stack([picture for _, picture in open_source(tmp_path / "a.mp4").frames(range(8))])
        found.append(((tmp_path / "a.mp4").stat().st_size, -np.abs(read.mean(axis=3) - noise.mean(axis=3)).mean()))
    assert found == sorted(found, reverse=True)
    assert found[0][0] > 2 * found[1][0] > 4 * found[2][0]


def test_an_array_that_is_used_again_is_copied(tmp_path: Path) -> None:
    def same_array() -> Iterator[NDArray[np.uint8]]:
        picture = numbered(0)
        for k in range(40):
            picture[:] = numbered(k)
            yield picture

    write_video(tmp_path / "a.mp4", same_array(), 25)
    assert [number_of(picture) for _, picture in open_source(tmp_path / "a.mp4").frames(range(40))] == list(range(40))


def test_pictures_need_not_lie_in_one_piece(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [np.asfortranarray(numbered(5)), numbered(6)[::-1][::-1]], 25)
    assert [number_of(picture) for _, picture in open_source(tmp_path / "a.mp4").frames([0, 1])] == [5, 6]


def picture(height: int = 64, width: int = 96) -> NDArray[np.uint8]:
    return np.zeros((height, width, 3), np.uint8)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "a video needs at least one frame, found none"),
        ([picture(64, 95)], "frame 0 has 95 x 64 pixels, .* even width and height"),
        ([picture(63, 96)], "frame 0 has 96 x 63 pixels, .* even width"),
        ([picture(), picture(), picture(64, 94)], "frame 2 has 94 x 64 pixels, and the first has 96 x 64"),
        ([picture().astype(np.float32)], r"frame 0 must be RGB uint8\[height, width, 3\], found float32\[64, 96, 3\]"),
        ([picture()[..., 0]], r"found uint8\[64, 96\]"),
        ([picture(), "x"], "frame 1 must be .* found str"),
    ],
)
def test_bad_frames_are_one_line_and_leave_nothing(tmp_path: Path, frames: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        write_video(tmp_path / "a.mp4", frames, 25)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("settings", [{"fps": 0}, {"fps": float("nan")}, {"fps": 1e6}, {"quality": 0}, {"quality": 52}])
def test_bad_settings_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"{next(iter(settings))} must be a"):
        write_video(tmp_path / "a.mp4", numbers(2), **{"fps": 25, **settings})


@pytest.mark.parametrize("make", [lambda: OSError(5, "gone"), lambda: KeyboardInterrupt(), lambda: FileError("x")])
@pytest.mark.parametrize("after", [0, 5])
def test_a_failing_iterator_leaves_what_was_there(
    tmp_path: Path, make: Callable[[], BaseException], after: int
) -> None:
    (tmp_path / "a.mp4").write_bytes(b"before")
    problem = make()

    def failing() -> Iterator[NDArray[np.uint8]]:
        yield from numbers(after)
        raise problem

    with pytest.raises(type(problem)) as caught:
        write_video(tmp_path / "a.mp4", failing(), 25)
    assert caught.value is problem
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.mp4", b"before")]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="is a folder; give the name of a file to write"):
        write_video(tmp_path, numbers(2), 25)
    with pytest.raises(FileError, match=r"a\.mp4: the video cannot be written: ") as caught:
        write_video(tmp_path / "file" / "a.mp4", numbers(2), 25)
    assert "\n" not in str(caught.value)
    assert write_video(tmp_path / "new" / "folder" / "a.mp4", numbers(2), 25) == 2


def test_a_full_disk_is_told_in_one_line(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = np.random.default_rng(0).integers(0, 256, (40, 64, 96, 3), np.uint8)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(FileError, match=r"a\.mp4: the video cannot be written: ") as caught:
            write_video(tmp_path / "a.mp4", noise, 25, quality=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_frames_are_shown_at_the_given_times(tmp_path: Path) -> None:
    times = np.array([0, 0.04, 0.040001, 0.5, 0.51, 2.0])  # two that are nearer than the clock of the file can tell
    frames = [np.full((32, 48, 3), 20 * number, np.uint8) for number in range(5)]
    assert write_video(tmp_path / "a.mp4", frames, 10.0, times=times) == 5
    with av.open(str(tmp_path / "a.mp4")) as file:
        shown = [frame.time for frame in file.decode(video=0)]
        assert file.duration is not None
        assert file.duration / 1e6 == pytest.approx(2.0, abs=0.01)
    assert shown == pytest.approx(times[:-1], abs=1e-4)
