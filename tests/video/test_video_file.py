"""Video files: the frame that is asked for is the frame that is given."""

from pathlib import Path

import av
import numpy as np
import pytest

from polypcount.errors import DataError, FileError
from polypcount.video import open_source
from polypcount.video.video_file import VideoFile
from tests.conftest import DATA
from tests.video.movies import HEIGHT, WIDTH, number_of, write_movie

CLIP = DATA / "ldpolypvideo-clip" / "clip.mp4"


def numbers(source: VideoFile, wanted: object) -> list[tuple[int, int]]:
    return [(index, number_of(picture)) for index, picture in source.frames(wanted)]  # type: ignore[arg-type]


def assert_exact(path: Path, frames: int) -> VideoFile:
    """Every index alone, and all of them, and some with gaps, show their own number."""
    source = open_source(path)
    assert isinstance(source, VideoFile)
    assert source.frame_count == frames
    assert (source.width, source.height) == (WIDTH, HEIGHT)
    assert numbers(source, range(frames)) == [(index, index) for index in range(frames)]
    for index in range(0, frames, 5):
        assert numbers(source, [index]) == [(index, index)]
    for stride in (4, 29):
        assert numbers(source, np.arange(3, frames, stride)) == [(k, k) for k in range(3, frames, stride)]
    return source


@pytest.mark.parametrize(("b_frames", "gop"), [(0, 1), (3, 12), (3, 250)])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".ts"])
def test_every_index_is_exact(tmp_path: Path, suffix: str, b_frames: int, gop: int) -> None:
    path = write_movie(tmp_path / f"a{suffix}", 61, gop=gop, b_frames=b_frames)
    assert assert_exact(path, 61).fps == 25


@pytest.mark.parametrize(
    ("codec", "suffix"), [("mpeg4", ".avi"), ("mjpeg", ".avi"), ("mpeg2video", ".mpg"), ("mpeg4", ".mp4")]
)
def test_older_codecs_are_exact(tmp_path: Path, codec: str, suffix: str) -> None:
    assert_exact(write_movie(tmp_path / f"a{suffix}", 61, codec=codec, b_frames=2), 61)


@pytest.mark.parametrize("name", ["a.h264", "a.hevc"])
def test_streams_without_times_are_counted(tmp_path: Path, name: str) -> None:
    codec = "libx264" if name == "a.h264" else "libx265"
    options = {} if name == "a.h264" else {"x265-params": "log-level=none"}
    assert_exact(write_movie(tmp_path / name, 40, codec=codec, options=options), 40)


def test_open_groups_of_pictures_are_exact(tmp_path: Path) -> None:
    options = {"x264-params": "open-gop=1:keyint=10:min-keyint=10:scenecut=0:bframes=3:b-adapt=0"}
    assert_exact(write_movie(tmp_path / "a.mkv", 75, options=options), 75)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv"])
def test_uneven_times_are_exact(tmp_path: Path, suffix: str) -> None:
    times = np.cumsum(5 + np.random.default_rng(0).integers(1, 400, 80)).tolist()
    assert_exact(write_movie(tmp_path / f"a{suffix}", 80, times_ms=times), 80)


def test_long_gaps_are_passed_over_by_seeking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = VideoFile(write_movie(tmp_path / "a.mp4", 400, gop=20))
    seen: list[int] = []
    original = VideoFile._numbered

    def counted(self: VideoFile, frames: object) -> object:
        for index, frame in original(self, frames):  # type: ignore[arg-type]
            seen.append(index)
            yield index, frame

    monkeypatch.setattr(VideoFile, "_numbered", counted)
    assert numbers(source, [3, 205, 206, 390]) == [(3, 3), (205, 205), (206, 206), (390, 390)]
    assert len(seen) < 60


def test_a_wrong_frame_count_in_the_header_does_not_matter(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "a.avi", 30, codec="mjpeg")
    data = bytearray(path.read_bytes())
    for header in (data.index(b"avih") + 8 + 16, data.index(b"strh") + 8 + 32):
        data[header : header + 4] = (7).to_bytes(4, "little")
    path.write_bytes(data)
    assert_exact(path, 30)


def test_frames_before_the_start_of_an_edited_recording_do_not_count(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "a.mp4", 40, b_frames=0, gop=40)
    data = bytearray(path.read_bytes())
    entry = data.index(b"elst") + 4 + 8  # duration and media time of the first entry, in 1/1000 s and 1/12800 s
    data[entry + 4 : entry + 8] = (512 * 10).to_bytes(4, "big")
    data[entry : entry + 4] = (30 * 40).to_bytes(4, "big")
    path.write_bytes(data)
    with av.open(str(path)) as file:
        shown = [number_of(np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)) for frame in file.decode(video=0)]
    source = VideoFile(path)
    assert [number for _, number in numbers(source, range(source.frame_count))] == shown
    assert numbers(source, [25]) == [(25, shown[25])]


def test_a_recording_that_begins_between_keyframes_starts_with_what_can_be_seen(tmp_path: Path) -> None:
    whole = write_movie(tmp_path / "a.ts", 60, gop=20)
    with av.open(str(whole)) as file:
        starts = [packet.pos for packet in file.demux(video=0) if packet.pos is not None]
    cut = tmp_path / "b.ts"
    cut.write_bytes(whole.read_bytes()[starts[5] // 188 * 188 :])
    with av.open(str(cut)) as file:
        shown = [number_of(np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)) for frame in file.decode(video=0)]
    source = VideoFile(cut)
    assert [number for _, number in numbers(source, range(source.frame_count))] == shown
    assert numbers(source, [source.frame_count - 3]) == [(source.frame_count - 3, shown[-3])]


@pytest.mark.parametrize(
    ("suffix", "container"), [(".mkv", {}), (".avi", {}), (".ts", {}), (".mp4", {"movflags": "faststart"})]
)
def test_a_file_cut_off_gives_what_is_there_and_then_says_so(
    tmp_path: Path, suffix: str, container: dict[str, str]
) -> None:
    path = write_movie(tmp_path / f"a{suffix}", 60, container=container)
    with av.open(str(path)) as file:
        places = [packet.pos for packet in file.demux(video=0) if packet.pos is not None]
    path.write_bytes(path.read_bytes()[: places[36] + 9])
    source = VideoFile(path, expected_frames=60)
    assert 5 < source.frame_count < 60
    got: list[tuple[int, int]] = []
    with pytest.raises(FileError) as caught:
        got.extend(numbers_until_error(source, got))
    assert [index for index, _ in got] == list(range(len(got)))
    assert len(got) > 5
    assert all(index == number for index, number in got)
    text = str(caught.value)
    assert f"{path}: frame {len(got)} cannot be read; {len(got)} of the 60 wanted frames" in text
    assert f"holds {source.frame_count} frames" in text
    assert "\n" not in text


def numbers_until_error(source: VideoFile, got: list[tuple[int, int]]) -> list[tuple[int, int]]:
    for index, picture in source.frames(range(60)):
        got.append((index, number_of(picture)))
    return []


def test_an_mp4_without_its_index_cannot_be_read(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "a.mp4", 30)
    path.write_bytes(path.read_bytes()[:-1500])
    with pytest.raises(FileError, match="cut off or damaged: copy it again"):
        VideoFile(path)


def test_damage_in_the_middle_costs_only_the_damaged_frames(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "a.mp4", 60, gop=10, b_frames=0)
    with av.open(str(path)) as file:
        packets = [(packet.pos, packet.size) for packet in file.demux(video=0) if packet.size]
    data = bytearray(path.read_bytes())
    at, size = packets[25]
    assert at is not None
    data[at : at + size] = b"\xff" * size
    path.write_bytes(data)
    source = VideoFile(path)
    got: list[tuple[int, int]] = []
    with pytest.raises(FileError, match="frame 25 cannot be read; 59 of the 60"):
        got.extend(numbers_until_error(source, got))
    assert [index for index, _ in got] == [*range(25), *range(26, 60)]
    assert numbers(source, [30, 59]) == [(30, 30), (59, 59)]


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n", b"ffconcat version 1.0\nfile a\n"]
)
def test_what_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(content)
    with pytest.raises(FileError, match="cannot be read as a video"):
        open_source(path)


def test_wanted_frames_are_checked_at_once_sorted_and_given_once(tmp_path: Path) -> None:
    source = VideoFile(write_movie(tmp_path / "a.mp4", 60))
    for wrong in ([-1], [60], [0, 99], [0.5], ["a"]):
        with pytest.raises(DataError, match=r"a\.mp4"):
            source.frames(wrong)
    assert numbers(source, [40, 3, 40, 7]) == [(3, 3), (7, 7), (40, 40)]
    assert numbers(source, []) == []


@pytest.mark.skipif(not CLIP.exists(), reason="ldpolypvideo-clip is not there")
def test_real_clip_equals_plain_decoding() -> None:
    source = open_source(CLIP)
    assert (source.frame_count, source.width, source.height) == (53, 560, 480)
    with av.open(str(CLIP)) as file:
        plain = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    for wanted in (range(53), [52], range(1, 53, 17)):
        for index, picture in source.frames(wanted):
            np.testing.assert_array_equal(picture, plain[index])


def test_times_beyond_any_recording_are_not_used(tmp_path: Path) -> None:
    path = write_movie(tmp_path / "a.mkv", 20, b_frames=0, times_ms=[40 * n + (n > 9) * 10**12 for n in range(20)])
    source = assert_exact(path, 20)
    assert source.times is None
