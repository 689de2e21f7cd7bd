"""Counting with a detector, in one pass over the frames."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polypcount as pc
from polypcount.corpus import Boxes
from polypcount.counting import CountReport, CountSettings
from polypcount.counting.detected import end_to_end
from polypcount.detection import Detector, load_detector
from polypcount.detection.false_alarms import FalseAlarmRule, tracklet_features
from polypcount.errors import DataError
from polypcount.video import open_source
from polypcount.video.write import write_video
from tests.counting.bright import (
    BY_LOOKS,
    FPS,
    FRAMES,
    HEIGHT,
    SCORE,
    SIDE,
    UNSEEN,
    WIDTH,
    bright,
    detector,
    frame_at,
    place,
)
from tests.counting.recordings import encoder_for_any_recording
from tests.detection.onnx_detectors import finder

RULE = json.dumps(BY_LOOKS)


@pytest.fixture(scope="module")
def report() -> CountReport:
    """Of two visits; the third is perhaps no polyp."""
    return pc.count(bright(), detector=detector(false_alarms=RULE), encoder=encoder_for_any_recording())


def silent(source: Path, finder: Detector | None = None, **settings: Any) -> CountReport:
    """Count without pictures."""
    return pc.count(
        source,
        detector=finder or detector(),
        encoder=encoder_for_any_recording(),
        settings=CountSettings(pictures=False, **settings),
    )


def spans(report: CountReport) -> list[tuple[int, int, int]]:
    return [(one.start_frame, one.stop_frame, one.box_count) for one in report.tracklets]


def test_a_tracklet_has_a_box_in_every_frame(report: CountReport) -> None:
    # It looks at frames 0, 2, 4, ...: the last look of each visit is at the last even frame.
    assert spans(report) == [(10, 61, 51), (90, 129, 39)]
    assert report.boxes is not None
    assert report.detected is not None
    assert report.tracklet is not None
    own = report.tracklet == 0
    frame, xyxy = report.boxes.frame[own], report.boxes.xyxy[own]
    assert frame.tolist() == list(range(10, 61))
    looked = (frame % 2 == 0) & ~np.isin(frame, UNSEEN)
    assert report.detected[own].tolist() == looked.tolist()
    expected = np.array([[x, y, x + SIDE, y + SIDE] for x, y in (place(at, 10, 20, 20) for at in frame.tolist())])
    assert np.abs(xyxy - expected).max() <= 2
    assert np.allclose(report.boxes.score[own], SCORE)


def test_boxes_in_between_lie_on_a_straight_line(report: CountReport) -> None:
    assert report.boxes is not None
    assert report.detected is not None
    frame, score = report.boxes.frame, report.boxes.score
    for row in np.flatnonzero(~report.detected).tolist():
        same = np.flatnonzero((report.boxes.track == report.boxes.track[row]) & report.detected)
        before = same[frame[same] < frame[row]].max()
        after = same[frame[same] > frame[row]].min()
        share = (frame[row] - frame[before]) / (frame[after] - frame[before])
        for values in (report.boxes.xyxy.astype(float), score.astype(float)):
            assert np.allclose(values[row], (1 - share) * values[before] + share * values[after], atol=1e-4)


def test_the_same_boxes_as_a_table_give_the_same_count(report: CountReport) -> None:
    assert report.boxes is not None
    assert report.tracklet is not None
    counted = np.flatnonzero(report.tracklet >= 0)
    boxes = report.boxes.take(counted)
    settings = CountSettings(pictures=False)
    table = pc.count(bright(), boxes, encoder=encoder_for_any_recording(), settings=settings)
    assert table.detector is None
    assert spans(table) == spans(report)
    assert [one.polyp for one in table.tracklets] == [one.polyp for one in report.tracklets]
    assert table.embeddings is not None
    assert report.embeddings is not None
    for name in ("vectors", "start_frame", "stop_frame", "box_count", "together"):
        assert np.array_equal(getattr(table.embeddings, name), getattr(report.embeddings, name))
    assert table.embeddings.frames == report.embeddings.frames
    assert np.array_equal(table.together, report.together)
    assert table.tracklet is not None
    assert np.array_equal(table.tracklet, report.tracklet[counted])


def test_the_live_counter_detects_too(report: CountReport) -> None:
    settings = CountSettings(fps=FPS, pictures=False)
    counter = pc.Counter(encoder_for_any_recording(), detector=detector(false_alarms=RULE), settings=settings)
    frame = np.empty((HEIGHT, WIDTH, 3), np.uint8)  # one buffer for all, as cameras give it
    for index, image in open_source(bright()).frames(np.arange(FRAMES)):
        frame[:] = image
        counter.update(index, frame)
    live = counter.finish()
    assert live.count == report.count == counter.count
    assert spans(live) == spans(report)
    assert live.interval == report.interval
    assert live.embeddings is not None
    assert report.embeddings is not None
    assert np.allclose(live.embeddings.vectors, report.embeddings.vectors, atol=1e-2)  # converted by another routine
    assert [one.scores for one in live.tracklets] == [one.scores for one in report.tracklets]
    (one,), (other,) = live.set_aside, report.set_aside
    assert (one.start_frame, one.stop_frame, one.scores) == (other.start_frame, other.stop_frame, other.scores)
    assert one.probability == other.probability
    assert live.detector == report.detector
    assert report.provenance.parameters["detector"] == live.provenance.parameters["detector"]
    with pytest.raises(DataError, match="not both"):
        counter.update(FRAMES, frame, [[0, 0, 5, 5]])
    with pytest.raises(DataError, match="or a detector"):
        pc.Counter(encoder_for_any_recording()).update(0, frame)


def test_the_report_says_what_the_detector_did(report: CountReport) -> None:
    assert report.detector is not None
    assert (report.detector.name, report.detector.step, report.detector.looks) == ("detector.onnx", 2, 100)
    assert not report.detector.bundled
    assert report.detector.note.startswith("The boxes were found by the detector detector.onnx. The interval does not")
    assert any("every second frame, 100 in all" in remark for remark in report.remarks)
    assert report.provenance.parameters["tracker"]["confidence"] == 0.6  # from detector.json
    assert report.provenance.parameters["detector"]["every"] == 2
    scores = report.tracklets[0].scores
    assert scores is not None
    assert [scores.mean, scores.best] == pytest.approx([SCORE, SCORE])
    assert scores.looks == 25  # of 26, since one was missed
    none = silent(bright(), tracker=pc.TrackRules(confidence=0.95))
    assert (none.count, none.interval) == (0, None)
    expected = "100 looks in 0:08 of recording, no box that begins a track: the highest score is 0.9, and a track"
    assert none.no_interval.startswith(expected)


def test_what_was_measured_end_to_end_is_said() -> None:
    measured = {"coverage": 0.925, "procedures": 40}
    whole = detector(end_to_end=json.dumps(measured))
    report = silent(bright(), whole, stop=70)
    assert report.detector is not None
    assert report.interval is not None
    assert "on 40 procedures counted from their pixels, it held the true number in 92 %" in report.detector.note
    assert "on 40 procedures" in report.interval.meaning
    assert "not accounted for" not in report.interval.meaning
    assert end_to_end(whole, "an encoder", "a method") == measured
    for more in ({"method": "another"}, {"encoder": "another"}, {"coverage": "high"}):
        other = detector(end_to_end=json.dumps({**measured, **more}))
        assert end_to_end(other, "an encoder", "a method") is None
    assert end_to_end(None, "an encoder", "a method") is end_to_end(detector(), "an encoder", "a method") is None


def test_tracklets_that_are_perhaps_no_polyp_are_kept_apart(report: CountReport) -> None:
    (one,) = report.set_aside
    assert (one.start_frame, one.stop_frame, one.box_count) == (150, 161, 11)
    rule = FalseAlarmRule.from_json(BY_LOOKS)
    features = tracklet_features([SCORE] * 6, 6)
    assert one.probability == pytest.approx(rule.probability(features[None])[0])
    assert (one.scores.looks, one.best_frame) == (6, 150)
    assert np.abs(np.array(one.best_box) - [30, 60, 78, 108]).max() <= 2
    assert one.whole is not None
    assert one.views
    assert report.left_out == 0
    assert report.tracklet is not None
    assert report.boxes is not None
    assert (report.tracklet[report.boxes.frame >= 150] == -1).all()
    assert report.remarks[0].startswith("1 tracklet is perhaps no polyp")


def test_nothing_but_perhaps_no_polyp() -> None:
    none = silent(bright(), detector(false_alarms=RULE), start=140)
    assert (none.count, len(none.set_aside)) == (0, 1)
    assert none.no_interval.endswith("those that are long enough are perhaps no polyps.")


def test_a_recording_of_60_frames_a_second(tmp_path: Path) -> None:
    frames = [frame_at(10 + index // 4 % 22) for index in range(123)]
    write_video(tmp_path / "case.mp4", frames, 60.0, quality=6)
    report = silent(tmp_path / "case.mp4")
    assert report.detector is not None
    assert (report.detector.step, report.detector.looks) == (6, 21)
    assert spans(report) == [(0, 121, 121)]


def test_a_short_clip_and_stills_are_looked_at_in_every_frame(tmp_path: Path) -> None:
    from PIL import Image

    write_video(tmp_path / "short.mp4", [frame_at(index) for index in range(10, 55)], FPS, quality=8)
    (tmp_path / "stills").mkdir()
    for index in range(60):
        Image.fromarray(frame_at(index)).save(tmp_path / "stills" / f"{index:03}.jpg")
    (tmp_path / "stills" / "040.jpg").write_bytes((tmp_path / "stills" / "040.jpg").read_bytes()[:900])
    for name, looks, boxes in (("short.mp4", 45, 45), ("stills", 59, 49)):
        report = silent(tmp_path / name)
        assert report.detector is not None
        assert (report.detector.step, report.detector.looks) == (1, looks)
        assert sum(one.box_count for one in report.tracklets) == boxes


def test_portrait_grey_and_black_recordings(tmp_path: Path) -> None:
    tall = np.zeros((60, 240, 120, 3), np.uint8)
    tall[:, 60:120, 30:80] = 250
    write_video(tmp_path / "tall.mp4", tall, FPS, quality=6)
    write_video(tmp_path / "black.mp4", np.zeros((60, 96, 128, 3), np.uint8), FPS)
    found = silent(tmp_path / "tall.mp4")
    assert found.boxes is not None
    assert np.abs(found.boxes.xyxy - [30, 60, 80, 120]).max() <= 4
    none = pc.count(tmp_path / "black.mp4", detector=detector(), encoder=encoder_for_any_recording())
    assert (none.count, none.interval) == (0, None)
    assert "30 looks in 0:02 of recording" in none.no_interval
    assert "there is no box at all" in none.no_interval
    none.save(tmp_path / "report")


def test_a_part_is_looked_at_from_its_first_frame() -> None:
    report = silent(bright(), start=95, stop="6s")
    assert spans(report) == [(95, 130, 35)]
    assert report.detector is not None
    assert report.detector.looks == 28  # frames 95, 97, ... 149


def test_a_detector_and_boxes_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not both"):
        pc.count(bright(), Boxes.empty(), detector=detector())
    model = finder(tmp_path / "own.onnx", "yolo-classes", (128, 96))
    report = silent(bright(), load_detector(model))
    assert report.detector is not None
    assert report.detector.name == "own.onnx"
    assert report.provenance.parameters["tracker"]["confidence"] == 0.5
