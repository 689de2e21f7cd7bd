"""Counting a recording, whole and while it runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polypcount as pc
from polypcount.counting import CountingPoint, CountReport, open_procedure
from polypcount.encoder import load_encoder
from polypcount.errors import DataError, FileError
from polypcount.video import open_source
from tests.conftest import DATA
from tests.counting.recordings import FPS, FRAMES, boxes, corpus, frame_at, looks, recording


def spans(report: CountReport) -> list[tuple[int, int, int]]:
    return [(one.start_frame, one.stop_frame, one.polyp) for one in report.tracklets]


def test_three_polyps_of_which_two_come_back() -> None:
    report = pc.count(recording(), boxes(tracks=True))
    assert spans(report) == [(5, 45, 1), (60, 100, 2), (80, 120, 1), (140, 180, 2), (190, 200, 3)]
    assert report.count == 3
    assert report.interval.low <= 3 <= report.interval.high
    assert [polyp.tracklets for polyp in report.polyps] == [(0, 2), (1, 3), (4,)]
    assert report.visible_frames(report.polyps[0]) == 80
    assert report.seconds_of(80) == pytest.approx(80 / FPS)
    assert report.together.shape == (5, 5)
    assert set(report.seconds) == {"track", "decode", "crop", "pictures", "embed", "group", "all"}
    for tracklet in report.tracklets:
        assert tracklet.whole is not None
        assert 1 <= len(tracklet.views) <= 4
        assert all(tracklet.start_frame <= view.frame < tracklet.stop_frame for view in tracklet.views)


def test_the_same_whatever_the_boxes_know() -> None:
    by_track = pc.count(recording(), boxes(tracks=True), pictures=False)
    by_polyp = pc.count(recording(), boxes(polyps=True), pictures=False)
    by_tracker = pc.count(recording(), boxes(), pictures=False)
    assert spans(by_track) == spans(by_polyp) == spans(by_tracker)
    assert np.array_equal(by_track.together, by_tracker.together)
    assert by_tracker.provenance.parameters["tracker"] is not None
    assert by_track.provenance.parameters["tracker"] is None
    assert any("tracked" in remark for remark in by_tracker.remarks)


def test_five_missing_frames_are_bridged_and_six_are_not() -> None:
    for missing, tracklets in ((5, 1), (6, 2)):
        table = boxes(only=slice(0, 1))
        kept = table.take(np.flatnonzero((table.frame < 20) | (table.frame >= 20 + missing)))
        assert len(pc.count(recording(), kept, pictures=False).tracklets) == tracklets


def test_every_box_has_its_polyp() -> None:
    report = pc.count(recording(), boxes(tracks=True), pictures=False)
    counted, polyps = report.counted_boxes()
    assert np.array_equal(counted.polyp, boxes(polyps=True).polyp)
    assert [polyp.id for polyp in polyps] == ["case-1", "case-2", "case-3"]
    short = pc.count(recording(), boxes(tracks=True), min_frames=30, pictures=False)
    assert short.left_out == 1
    assert (short.counted_boxes()[0].polyp == -1).sum() == 10


@pytest.mark.parametrize("tracks", [True, False])
def test_frame_by_frame_it_ends_with_the_same_answer(tracks: bool) -> None:
    table = boxes(tracks=tracks)
    whole = pc.count(recording(), table)
    counter, counts = pc.Counter(fps=FPS), []
    for index, image in open_source(recording()).frames(np.arange(FRAMES)):
        mine = table.frame == index
        track = table.track[mine] if tracks else None
        counts.append(counter.update(index, image, table.xyxy[mine], score=table.score[mine], track=track))
    live = counter.finish()
    assert spans(live) == spans(whole)
    assert np.array_equal(live.together, whole.together)
    assert np.array_equal(live.repeated, whole.repeated)
    assert live.interval == whole.interval
    assert [one.whole for one in live.tracklets] == [one.whole for one in whole.tracklets]
    assert counts[4] == 0
    assert counts[50] == 1
    assert counts[115] == 2
    assert counts[-1] == live.count == counter.count == 3
    assert live.boxes is None


def test_a_counter_that_keeps_boxes_tells_their_polyps() -> None:
    table = boxes()
    counter = pc.Counter(fps=FPS, follow=False, keep_boxes=True, pictures=False)
    for index in range(FRAMES):
        assert counter.update(index, frame_at(index), table.xyxy[table.frame == index]) == 0
    report = counter.finish(FRAMES + 30)
    assert report.video.frame_count == FRAMES + 30
    assert np.array_equal(report.counted_boxes()[0].polyp, boxes(polyps=True).polyp)


def test_a_track_that_goes_over_to_another_polyp_is_split() -> None:
    # One track number for two polyps that are seen one right after the other at one place.
    frames = []
    for polyp in (0, 1):
        image = frame_at(0)
        image[16:112, 30:126] = looks(polyp).repeat(2, axis=0).repeat(2, axis=1)
        frames += [image] * 40
    box = np.array([[30, 16, 126, 112]], np.float32)
    counter = pc.Counter(fps=FPS)
    for index, image in enumerate(frames):
        counter.update(index, image, box, track=[4])
    report = counter.finish()
    assert [(one.start_frame, one.stop_frame, one.box_count) for one in report.tracklets] == [(0, 40, 40), (40, 80, 40)]
    assert report.count == 2


def test_no_boxes_are_no_polyps() -> None:
    none = boxes().take(np.empty(0, np.int64))
    report = pc.count(recording(), none)
    assert (report.count, report.interval.low, report.interval.high) == (0, 0, 0)
    assert report.remarks[0] == "There are no boxes, so there is nothing to count."
    assert pc.Counter().finish().count == 0


def test_one_box_in_one_frame() -> None:
    report = pc.count(recording(), boxes(tracks=True, only=slice(0, 1)).take(np.array([0])), min_frames=1)
    assert spans(report) == [(5, 6, 1)]
    again = pc.count(recording(), boxes(tracks=True, only=slice(0, 1)).take(np.array([0])))
    assert again.count == 0
    assert again.left_out == 1


def test_a_corpus_folder_brings_its_boxes(tmp_path: Path) -> None:
    corpus(polyps=True).save(tmp_path / "corpus")
    assert pc.count(tmp_path / "corpus", pictures=False).count == 3


def test_the_operating_point_is_kept_with_the_encoder(tmp_path: Path) -> None:
    point = CountingPoint.of(load_encoder())
    strict = replace(point, parameters={**point.parameters, point.varied: 1.0}, values=(1.0,))
    assert pc.count(recording(), boxes(tracks=True), method=strict, pictures=False).count == 5
    with pytest.raises(DataError, match="no parameter 'shine'"):
        replace(point, varied="shine")
    with pytest.raises(DataError, match="no method 'guess'"):
        replace(point, method="guess")


def test_what_cannot_be_counted_says_why(tmp_path: Path) -> None:
    late = boxes(tracks=True)
    late = type(late)(late.video, late.frame + 100, late.xyxy, track=late.track)
    with pytest.raises(DataError, match=r"boxes up to frame 299, and the recording has frames 0 to 219"):
        pc.count(recording(), late)
    beside = type(late)([0], [5], [[500, 10, 520, 30]])
    with pytest.raises(DataError, match="outside its 160 x 128 pixels"):
        pc.count(recording(), beside)
    with pytest.raises(DataError, match="comes without boxes"):
        pc.count(recording())
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(FileError, match=r"empty\.mp4"):
        pc.count(tmp_path / "empty.mp4", boxes(tracks=True))
    whole = recording().read_bytes()
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    with pytest.raises((FileError, DataError), match=r"cut\.mp4"):
        pc.count(tmp_path / "cut.mp4", boxes(tracks=True))
    counter = pc.Counter()
    counter.update(3, frame_at(3), [])
    with pytest.raises(DataError, match="rising order"):
        counter.update(3, frame_at(3), [])
    with pytest.raises(DataError, match="equally long"):
        counter.update(4, frame_at(4), [[0, 0, 5, 5]], score=[1, 1])
    with pytest.raises(DataError, match="outside its 160 x 128 pixels"):
        counter.update(4, frame_at(4), [[500, 0, 505, 5]])
    with pytest.raises(DataError, match="RGB uint8"):
        counter.update(4, frame_at(4)[:, :, 0], [[0, 0, 5, 5]])
    with pytest.raises(DataError, match="track"):
        counter.update(4, frame_at(4), [[0, 0, 5, 5]], track=[2**40])
    counter.update(4, frame_at(4), [[0, 0, 5, 5]], track=[7])  # no boxes before, so tracks may begin now
    with pytest.raises(DataError, match="all boxes, or of none"):
        counter.update(5, frame_at(5), [[0, 0, 5, 5]])


def test_boxes_without_a_track_among_others_are_told() -> None:
    table = boxes(tracks=True)
    some = type(table)(table.video, table.frame, table.xyxy, track=np.where(table.track > 2, -1, table.track))
    report = pc.count(recording(), some, pictures=False)
    assert report.count == 2
    assert any("50 of 170 boxes have neither a polyp nor a track" in remark for remark in report.remarks)


def test_a_recording_without_a_rate_is_told_in_frames(tmp_path: Path) -> None:
    from PIL import Image

    for index in range(60):
        Image.fromarray(frame_at(index)).save(tmp_path / f"{index:03}.png")
    own = boxes(tracks=True, only=slice(0, 1))
    report = pc.count(tmp_path, own)
    assert report.video.fps is None
    assert report.seconds_of(10) is None
    assert any("--fps" in remark for remark in report.remarks)
    assert pc.count(tmp_path, own, fps=25).video.fps == 25


@pytest.mark.skipif(not (DATA / "ldpolypvideo-clip").exists(), reason="the real clip is not here")
def test_two_polyps_at_once_in_a_real_clip_are_two() -> None:
    clip = DATA / "ldpolypvideo-clip"
    report = pc.count(clip / "clip.mp4", clip / "boxes.json")
    assert report.count == 2
    assert report.interval.low == 2
    assert open_procedure(clip / "clip.mp4").video.frame_count == 53


def test_boxes_that_a_detector_misses_break_no_tracklet() -> None:
    table = boxes()
    kept = np.random.default_rng(2).random(len(table)) > 0.1
    report = pc.count(recording(), table.take(np.flatnonzero(kept)), pictures=False)
    whole = pc.count(recording(), table, pictures=False)
    assert len(report.tracklets) == len(whole.tracklets)
    assert [one.polyp for one in report.tracklets] == [one.polyp for one in whole.tracklets]


def test_a_stream_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polypcount.counting.counter.MOST_TRACKLETS", 6)
    counter = pc.Counter(fps=FPS, min_frames=2)
    for visit in range(30):
        image = frame_at((20, 70, 195)[visit % 3])
        for index in range(3):
            counter.update(visit * 100 + index, image, [[10, 10, 140, 110]], track=[visit])
    assert len(counter._tally.ended) <= 6
    assert len(counter._going_on) == len(counter._gatherer._open) == 1
    assert len(counter._tally._together) == 0
    report = counter.finish()
    assert sum(one.box_count for one in report.tracklets) == 90 - 3 * report.retired
    assert any("bound memory" in remark for remark in report.remarks)
