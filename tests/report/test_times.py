"""A recording with a variable frame rate: every time in a report is that of the frame itself."""

import csv
import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from polypcount import CountReport, count
from polypcount.corpus import Corpus, Video
from polypcount.counting import CountSettings
from polypcount.errors import DataError
from polypcount.report import SummaryRow, read_count, write_annotated
from polypcount.report.cards import card_of
from polypcount.report.timeline import timelines
from polypcount.video import open_source
from tests.counting.recordings import FRAMES, TRACKLETS, boxes, frame_at
from tests.report.reports import report_of
from tests.video.movies import write_movie

FIRST_MS = 1480


def uneven_times_ms() -> list[int]:
    """Fast, slow, and a pause of five seconds at frame 130; the first frame is not at 0."""
    steps = np.random.default_rng(0).integers(25, 45, FRAMES - 1)
    steps[60:120] *= 3
    steps[129] = 5000
    return [FIRST_MS, *(FIRST_MS + np.cumsum(steps)).tolist()]


TIMES_MS = uneven_times_ms()
SECONDS = (np.array(TIMES_MS) - FIRST_MS) / 1000


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_frames(tmp_path_factory.mktemp("uneven") / "uneven.mp4", TIMES_MS)


@pytest.fixture(scope="module")
def counted(uneven: Path) -> CountReport:
    return count(uneven, boxes(polyps=True), settings=CountSettings(min_frames=5))


def write_frames(path: Path, times_ms: list[int]) -> Path:
    """The frames of the tests' recording, at these times."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=25)
        stream.height, stream.width = frame_at(0).shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.time_base = Fraction(1, 1000)
        for number, time in enumerate(times_ms):
            frame = av.VideoFrame.from_ndarray(frame_at(number), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return path


def shown(path: Path) -> NDArray[np.float64]:
    """When the frames of a file are shown, in seconds, by decoding them all."""
    with av.open(str(path)) as file:
        return np.array([frame.time for frame in file.decode(video=0)])


def duration_of(frames: range) -> float:
    return float(np.diff(SECONDS)[frames.start : frames.stop].sum())


def test_the_file_is_what_the_test_says(uneven: Path) -> None:
    times = shown(uneven)
    assert times[0] == pytest.approx(FIRST_MS / 1000, abs=0.001)
    assert times - times[0] == pytest.approx(SECONDS, abs=0.001)


def test_a_report_has_the_times_of_the_frames(counted: CountReport, tmp_path: Path) -> None:
    values = read_count(counted.save(tmp_path / "report"))
    assert values["video"]["variable_frame_rate"] is True
    assert values["video"]["duration_seconds"] == pytest.approx(SECONDS[-1], abs=0.06)  # and the last frame
    for tracklet, (start, stop, *_) in zip(values["tracklets"], TRACKLETS, strict=True):
        assert (tracklet["start_frame"], tracklet["stop_frame"]) == (start, stop)
        assert tracklet["start_seconds"] == pytest.approx(SECONDS[start], abs=0.001)
        assert tracklet["stop_seconds"] == pytest.approx(SECONDS[stop], abs=0.001)
    for polyp in values["polyps"]:
        own = [range(*TRACKLETS[row][:2]) for row in polyp["tracklets"]]
        assert polyp["first_seen_seconds"] == pytest.approx(SECONDS[own[0].start], abs=0.001)
        assert polyp["last_seen_seconds"] == pytest.approx(SECONDS[own[-1].stop - 1], abs=0.001)
        assert polyp["visible_seconds"] == pytest.approx(sum(map(duration_of, own)), abs=0.002)
        assert polyp["best_frame"]["seconds"] == pytest.approx(SECONDS[polyp["best_frame"]["frame"]], abs=0.001)
    with (tmp_path / "report" / "tracklets.csv").open(newline="") as file:
        starts = [float(row["start_seconds"]) for row in csv.DictReader(file)]
    assert starts == pytest.approx([SECONDS[start] for start, *_ in TRACKLETS], abs=0.001)
    assert SummaryRow.of_report(tmp_path / "report").duration_seconds == values["video"]["duration_seconds"]


def test_the_page_has_the_times_of_the_frames(counted: CountReport) -> None:
    end = float(SECONDS[-1])
    polyp = counted.polyps[1]
    own = [range(*TRACKLETS[row][:2]) for row in polyp.tracklets]
    facts = dict(card_of(counted, polyp).facts)
    assert facts["First seen"] == f"0:0{int(SECONDS[own[0].start] * 10) / 10:.1f}"
    visible = float(facts["Visible for"].split("\N{NO-BREAK SPACE}")[0])
    assert visible == pytest.approx(sum(map(duration_of, own)), abs=0.06)
    (drawing,) = timelines(counted)
    bars = [bar for lane in drawing.lanes.values() for bar in lane]
    for bar, (start, stop, *_) in zip(sorted(bars, key=lambda bar: bar.left), TRACKLETS, strict=True):
        assert bar.left == pytest.approx(100 * SECONDS[start] / end, abs=0.4)
        assert bar.left + bar.width == pytest.approx(100 * SECONDS[stop] / end, abs=0.4)


def test_the_annotated_video_keeps_the_times(counted: CountReport, uneven: Path, tmp_path: Path) -> None:
    path = write_annotated(counted, open_source(uneven), tmp_path / "annotated.mp4")
    assert shown(path) == pytest.approx(SECONDS, abs=0.001)
    assert open_source(path).frame_count == FRAMES


def test_an_even_recording_has_no_times_of_its_own(tmp_path: Path) -> None:
    path = write_frames(tmp_path / "even.mp4", [1000 + 40 * frame for frame in range(FRAMES)])
    report = count(path, boxes(tracks=True), settings=CountSettings(pictures=False))
    assert report.times is None
    assert report.seconds_of(50) == pytest.approx(2)


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".ts"])
def test_containers_say_when_frames_are_shown(tmp_path: Path, suffix: str) -> None:
    times_ms = list(itertools.accumulate([500, *([20, 60] * 20), *([200] * 20)]))
    path = write_movie(tmp_path / f"a{suffix}", len(times_ms), times_ms=times_ms)
    times = open_source(path).times  # type: ignore[attr-defined]
    assert times[:-1] == pytest.approx((np.array(times_ms) - 500) / 1000, abs=0.0015)
    assert times[-1] > times[-2]


@pytest.mark.parametrize("frame_count", [210, 225])
def test_a_corpus_may_have_fewer_or_more_frames_than_the_file(uneven: Path, tmp_path: Path, frame_count: int) -> None:
    video = Video("case", frame_count, 20.0, 160, 128, str(uneven))
    Corpus((video,), boxes(tracks=True)).save(tmp_path / "corpus")
    report = count(tmp_path / "corpus", settings=CountSettings(pictures=False))
    assert report.seconds_of(190) == pytest.approx(SECONDS[190], abs=0.001)
    end = report.seconds_of(frame_count)
    assert end is not None
    if frame_count < FRAMES:
        assert end == pytest.approx(SECONDS[frame_count], abs=0.001)
    else:
        assert end == pytest.approx(open_source(uneven).times[-1] + 5 / 20)  # type: ignore[attr-defined]


def test_times_need_boxes_and_one_for_each_frame() -> None:
    good = report_of([1], times=np.arange(441) / 20)
    for change in ({"times": np.arange(440.0)}, {"boxes": None, "tracklet": None}):
        with pytest.raises(DataError, match="times"):
            replace(good, **change)
