"""Counting a recording, whole and while it runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped, unused-ignore]

import polypcount as pc
from polypcount.corpus import Boxes, Tracklets, tracklets_together
from polypcount.counting import (
    CountInterval,
    CountReport,
    CountSettings,
    open_recording,
    operating_point,
    write_operating_points,
)
from polypcount.counting.remarks import mask_remark
from polypcount.encoder import Encoder, bundled_folder, load_encoder
from polypcount.errors import DataError, FileError
from polypcount.video import FrameMask, open_source
from tests.conftest import DATA
from tests.counting.recordings import (
    FPS,
    FRAMES,
    HEIGHT,
    WIDTH,
    boxes,
    corpus,
    encoder_for_any_recording,
    frame_at,
    looks,
    recording,
    write_in,
)


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The bundled one, loaded once."""
    return load_encoder()


def silent(source: Any, boxes: Any = None, **settings: Any) -> CountReport:
    """Count without pictures."""
    return pc.count(source, boxes, settings=CountSettings(pictures=False, **settings))


def claimed(source: Any, boxes: Any = None, **settings: Any) -> tuple[CountReport, CountInterval]:
    """Count with an interval, however short the recording is."""
    report = pc.count(
        source, boxes, encoder=encoder_for_any_recording(), settings=CountSettings(pictures=False, **settings)
    )
    assert report.interval is not None
    return report, report.interval


def spans(report: CountReport) -> list[tuple[int, int, int]]:
    return [(one.start_frame, one.stop_frame, one.polyp) for one in report.tracklets]


def test_three_polyps_of_which_two_come_back() -> None:
    report = pc.count(recording(), boxes(tracks=True))
    assert spans(report) == [(5, 45, 1), (60, 100, 2), (80, 120, 1), (140, 180, 2), (190, 200, 3)]
    assert report.count == 3
    assert [polyp.tracklets for polyp in report.polyps] == [(0, 2), (1, 3), (4,)]
    assert report.visible_frames(report.polyps[0]) == 80
    assert report.seconds_of(80) == pytest.approx(80 / FPS)
    assert report.together.shape == (5, 5)
    assert set(report.seconds) == {"open", "mask", "track", "decode", "crop", "pictures", "embed", "group"}
    for tracklet in report.tracklets:
        assert tracklet.whole is not None
        assert 1 <= len(tracklet.views) <= 4
        assert all(tracklet.start_frame <= view.frame < tracklet.stop_frame for view in tracklet.views)


def test_the_same_whatever_the_boxes_know() -> None:
    by_track = silent(recording(), boxes(tracks=True))
    by_polyp = silent(recording(), boxes(polyps=True))
    by_tracker = silent(recording(), boxes())
    assert spans(by_track) == spans(by_polyp) == spans(by_tracker)
    assert np.array_equal(by_track.together, by_tracker.together)
    assert by_tracker.provenance.parameters["tracker"] is not None
    assert by_track.provenance.parameters["tracker"] is None
    assert any("tracked" in remark for remark in by_tracker.remarks)


def test_five_missing_frames_are_bridged_and_six_are_not() -> None:
    for missing, tracklets in ((5, 1), (6, 2)):
        table = boxes(only=slice(0, 1))
        kept = table.take(np.flatnonzero((table.frame < 20) | (table.frame >= 20 + missing)))
        assert len(silent(recording(), kept).tracklets) == tracklets


def test_the_boxes_file_is_parsed_once(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    parsed: list[int] = []

    def counted(text: Any, **options: Any) -> Any:
        parsed.append(len(text))
        return loads(text, **options)

    place = write_in("coco", tmp_path / "boxes", boxes(tracks=True))
    loads, size = json.loads, place.stat().st_size
    monkeypatch.setattr(json, "loads", counted)
    assert pc.count(recording(), place, encoder=encoder, settings=CountSettings(pictures=False)).count == 3
    assert parsed.count(size) == 1


def test_every_box_has_its_polyp() -> None:
    report = silent(recording(), boxes(tracks=True))
    counted, polyps = report.counted_boxes()
    assert np.array_equal(counted.polyp, boxes(polyps=True).polyp)
    assert [polyp.id for polyp in polyps] == ["case-1", "case-2", "case-3"]
    short = silent(recording(), boxes(tracks=True), min_frames=30)
    assert short.left_out == 1
    assert (short.counted_boxes()[0].polyp == -1).sum() == 10


@pytest.mark.parametrize("tracks", [True, False])
def test_frame_by_frame_it_ends_with_the_same_answer(tracks: bool) -> None:
    table = boxes(tracks=tracks)
    whole = pc.count(recording(), table)
    counter, counts = pc.Counter(settings=CountSettings(fps=FPS)), []
    for index, image in open_source(recording()).frames(np.arange(FRAMES)):
        mine = table.frame == index
        track = table.track[mine] if tracks else None
        counts.append(counter.update(index, image, table.xyxy[mine], score=table.score[mine], track=track))
    live = counter.finish()
    assert spans(live) == spans(whole)
    assert np.array_equal(live.together, whole.together)
    assert np.array_equal(live.repeated, whole.repeated)
    assert live.interval == whole.interval
    # More frames of a long tracklet go by than are looked at in the end, so its best picture may be a better one.
    assert live.tracklets[-1].whole == whole.tracklets[-1].whole
    for one, other in zip(live.tracklets, whole.tracklets, strict=True):
        assert one.whole is not None
        assert other.whole is not None
        assert one.whole.quality >= other.whole.quality
    assert counts[4] == 0
    assert counts[50] == 1
    assert counts[115] == 2
    assert counts[-1] == live.count == counter.count == 3
    assert live.boxes is None


def test_embed_count_and_the_live_counter_give_equal_vectors(encoder: Encoder, tmp_path: Path) -> None:
    known = corpus(polyps=True)
    embedded = pc.embed(known, pc.link_tracklets(known.boxes), encoder, frames=True, cache=tmp_path)
    whole = pc.count(recording(), boxes(polyps=True), encoder=encoder, settings=CountSettings(pictures=False))
    counter = pc.Counter(encoder, settings=CountSettings(fps=FPS, pictures=False), follow=False)
    table = boxes(tracks=True)
    for index, image in open_source(recording()).frames(np.arange(FRAMES)):
        own = table.frame == index
        assert counter.update(index, image, table.xyxy[own], track=table.track[own]) == 0
    live = counter.finish(FRAMES + 30)
    assert live.video.frame_count == FRAMES + 30
    for report in (whole, live):
        assert report.embeddings is not None
        assert report.embeddings.frames is not None
        assert embedded.frames is not None
        assert report.embeddings.encoder == embedded.encoder
        assert report.embeddings.start_frame.tolist() == embedded.start_frame.tolist()
        assert np.allclose(report.embeddings.vectors, embedded.vectors, atol=1e-5)
        assert report.embeddings.together.tolist() == embedded.together.tolist()
        assert report.embeddings.frames.frame.tolist() == embedded.frames.frame.tolist()
        assert np.allclose(report.embeddings.frames.vectors, embedded.frames.vectors, atol=1e-5)


def test_a_track_that_goes_over_to_another_polyp_is_split() -> None:
    # One track number for two polyps that are seen one right after the other at one place.
    frames = []
    for polyp in (0, 1):
        image = frame_at(0)
        image[16:112, 30:126] = looks(polyp).repeat(2, axis=0).repeat(2, axis=1)
        frames += [image] * 40
    box = np.array([[30, 16, 126, 112]], np.float32)
    counter = pc.Counter(settings=CountSettings(fps=FPS))
    for index, image in enumerate(frames):
        counter.update(index, image, box, track=[4])
    report = counter.finish()
    assert [(one.start_frame, one.stop_frame, one.box_count) for one in report.tracklets] == [(0, 40, 40), (40, 80, 40)]
    assert report.count == 2


def test_no_boxes_are_no_polyps() -> None:
    none = boxes().take(np.empty(0, np.int64))
    report = pc.count(recording(), none)
    assert (report.count, report.interval) == (0, None)
    assert report.no_interval == "There are no boxes, so there is nothing to count."
    live = pc.Counter().finish()
    assert (live.count, live.interval, live.no_interval) == (0, None, "There were no boxes.")


def test_one_box_in_one_frame() -> None:
    report = silent(recording(), boxes(tracks=True, only=slice(0, 1)).take(np.array([0])), min_frames=1)
    assert spans(report) == [(5, 6, 1)]
    again = silent(recording(), boxes(tracks=True, only=slice(0, 1)).take(np.array([0])))
    assert again.count == 0
    assert again.left_out == 1


def test_a_corpus_folder_brings_its_boxes(tmp_path: Path) -> None:
    corpus(polyps=True).save(tmp_path / "corpus")
    assert silent(tmp_path / "corpus").count == 3


def test_methods_have_their_operating_points(encoder: Encoder, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(bundled_folder(), tmp_path / "encoder")
    strict = operating_point(encoder)
    strict = strict.model_copy(update={"parameters": {**strict.parameters, strict.varied: 1.0}, "values": (1.0,)})
    alone = strict.model_copy(
        update={"method": "threshold", "parameters": {"threshold": 0.0}, "varied": "threshold", "values": (0.0,)}
    )
    write_operating_points(folder, {strict.method: strict, "threshold": alone}, strict.method)
    table = boxes(tracks=True)
    quiet = CountSettings(pictures=False)
    assert pc.count(recording(), table, encoder=folder, settings=quiet).count == 5
    joined = pc.count(recording(), table, encoder=folder, settings=quiet.model_copy(update={"method": "threshold"}))
    assert joined.count == 2  # one for each of the two that are seen in one frame
    assert joined.provenance.parameters["method"] == "threshold"
    with pytest.raises(DataError, match="guess") as caught:
        silent(recording(), table, method="guess")
    assert caught.value.mend == ("method",)
    (folder / "operating-points.json").unlink()
    with pytest.raises(FileError, match="no operating point"):
        pc.count(recording(), table, encoder=folder)


def test_the_papers_own_grouping_counts(encoder: Encoder) -> None:
    report, interval = claimed(recording(), boxes(tracks=True), method="temporal-ap")
    assert report.provenance.parameters["method"] == "temporal-ap"
    assert 2 <= report.count <= 5
    assert interval.low <= report.count <= interval.high


@pytest.mark.parametrize("polyps", [2, 3, 4, 5])
def test_a_known_number_of_polyps_is_kept_to(polyps: int) -> None:
    report, interval = claimed(recording(), boxes(tracks=True), polyps=polyps)
    assert (report.count, interval.low, interval.high) == (polyps, polyps, polyps)
    assert "given as" in interval.meaning
    assert report.provenance.parameters["polyp_range"] == [polyps, polyps]


def test_a_number_that_cannot_be_is_told() -> None:
    few = silent(recording(), boxes(tracks=True), max_polyps=1)
    assert few.count == 2  # two are seen in one frame
    assert any("at most 1" in remark for remark in few.remarks)
    assert few.interval is None
    assert "could not be met" in few.no_interval
    many = silent(recording(), boxes(tracks=True), min_polyps=9)
    assert many.count == 5
    assert any("at least 9" in remark for remark in many.remarks)
    with pytest.raises(DataError, match="min_polyps"):
        CountSettings(min_polyps=3, max_polyps=2)
    with pytest.raises(DataError, match="polyps"):
        CountSettings(polyps=3, max_polyps=4)


def test_bad_settings_name_the_key() -> None:
    for key in ("fps", "min_frames", "colour"):
        with pytest.raises(DataError, match=key):
            CountSettings(**{key: 0})  # type: ignore[arg-type]


def test_it_is_said_what_was_blacked_out() -> None:
    view, rectangle = FrameMask(view=np.ones((4, 4), bool)), FrameMask(((0, 0, 2, 2),))
    assert "outside the endoscope's view was blacked out" in mask_remark(view, mask_border=True)
    both = FrameMask(((0, 0, 2, 2),), np.ones((4, 4), bool))
    assert "so were the given rectangles" in mask_remark(both, mask_border=True)
    assert "look for burned-in text" in mask_remark(None, mask_border=True)
    assert "look for burned-in text" in mask_remark(rectangle, mask_border=True)
    assert "left as it is" in mask_remark(None, mask_border=False)
    assert "only the given rectangles" in mask_remark(rectangle, mask_border=False)


def test_the_border_is_masked_by_default(tmp_path: Path, encoder: Encoder) -> None:
    from polypcount.video.write import write_video

    y, x = np.mgrid[:HEIGHT, :WIDTH]
    outside = np.hypot(x - WIDTH / 2, y - HEIGHT / 2) > 62
    frames = []
    for frame in range(60):
        image = frame_at(frame)
        image[outside] = 0
        image[4:16, 2:20] = 200  # burned-in text
        frames.append(image)
    write_video(tmp_path / "round.mp4", frames, FPS, quality=8)
    table = boxes(tracks=True, only=slice(0, 1))
    masked = pc.count(tmp_path / "round.mp4", table, encoder=encoder)
    assert masked.mask is not None
    assert masked.mask.view is not None
    assert any("blacked out" in remark for remark in masked.remarks)
    plain = pc.count(tmp_path / "round.mp4", table, encoder=encoder, settings=CountSettings(mask_border=False))
    assert plain.mask is None
    counter = pc.Counter(encoder, settings=CountSettings(fps=FPS))
    for index, image in enumerate(frames):
        own = table.frame == index
        counter.update(index, image, table.xyxy[own], track=table.track[own])
    live = counter.finish()
    for report, corner in ((masked, 0), (live, 0), (plain, 200)):
        (tracklet,) = report.tracklets
        assert tracklet.whole is not None
        shown = simplejpeg.decode_jpeg(tracklet.whole.jpeg)[4:16, 4:16]
        assert abs(float(shown.mean()) - corner) < 25
    assert np.array_equal(masked.together, plain.together)


def test_what_cannot_be_counted_says_why(tmp_path: Path) -> None:
    late = boxes(tracks=True)
    late = type(late)(late.video, late.frame + 100, late.xyxy, track=late.track)
    with pytest.raises(DataError, match=r"boxes up to frame 299, and the recording has frames 0 to 219"):
        pc.count(recording(), late)
    beside = type(late)([0], [5], [[500, 10, 520, 30]])
    with pytest.raises(DataError, match="outside its 160 x 128 pixels"):
        pc.count(recording(), beside)
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


def test_what_is_too_short_is_told() -> None:
    report = silent(recording(), boxes(tracks=True), min_frames=30)
    (remark,) = [remark for remark in report.remarks if "not counted" in remark]
    assert remark.startswith("1 of 5 tracklets, with 6% of the boxes")


def test_scores_in_percent_are_refused() -> None:
    table = boxes()
    percent = type(table)(table.video, table.frame, table.xyxy, np.full(len(table), 87, np.float32))
    with pytest.raises(DataError, match=r"from 0 to 1.*found 87"):
        silent(recording(), percent)


def test_a_frame_with_thousands_of_boxes_is_named() -> None:
    count = 1001
    many = Boxes(np.zeros(count, np.int32), np.full(count, 7), np.tile([10, 10, 60, 60], (count, 1)))
    with pytest.raises(DataError, match="frame 7 has 1,001 boxes"):
        silent(recording(), many)


@pytest.mark.parametrize("frames", [[7] * 20_000 + [8] * 20_000, [7] * 200_000], ids=["two frames", "one frame"])
def test_frames_with_very_many_boxes_are_named_at_once(frames: list[int]) -> None:
    count = len(frames)
    many = Boxes(np.zeros(count, np.int32), frames, np.tile([10, 10, 60, 60], (count, 1)), track=np.arange(count))
    with pytest.raises(DataError, match=rf"frame 7 has {frames.count(7):,} boxes, at most 1,000 can be handled"):
        silent(recording(), many)
    tracklets = Tracklets.gather(many, np.arange(count))
    with pytest.raises(DataError, match=r"video 0: frame 7 has .* at most 1,000"):
        tracklets_together(many, tracklets)
    # Nothing that short is counted, so it has no pairs.
    assert len(tracklets_together(many, tracklets, least_boxes=2)) == 0


def test_a_live_frame_with_thousands_of_boxes_is_named(encoder: Encoder) -> None:
    image = np.zeros((128, 160, 3), np.uint8)
    with pytest.raises(DataError, match=r"live: frame 3 has 1,001 boxes, at most 1,000 can be handled"):
        pc.Counter(encoder).update(3, image, np.tile([10, 10, 60, 60], (1001, 1)))


def test_boxes_without_a_track_among_others_are_told() -> None:
    table = boxes(tracks=True)
    some = type(table)(table.video, table.frame, table.xyxy, track=np.where(table.track > 2, -1, table.track))
    report = silent(recording(), some)
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
    assert any("frame rate" in remark for remark in report.remarks)
    assert silent(tmp_path, own, fps=25).video.fps == 25


@pytest.mark.skipif(not (DATA / "ldpolypvideo-clip").exists(), reason="the real clip is not here")
def test_two_polyps_at_once_in_a_real_clip_are_two() -> None:
    clip = DATA / "ldpolypvideo-clip"
    report, interval = claimed(clip / "clip.mp4", clip / "boxes.json")
    assert report.count == interval.high == 2
    assert interval.low == 0, "a detector's boxes of two seconds may all be false alarms"
    assert open_recording(clip / "clip.mp4").video.frame_count == 53


def test_boxes_that_a_detector_misses_break_no_tracklet() -> None:
    table = boxes()
    kept = np.random.default_rng(2).random(len(table)) > 0.1
    report = silent(recording(), table.take(np.flatnonzero(kept)))
    whole = silent(recording(), table)
    assert len(report.tracklets) == len(whole.tracklets)
    assert [one.polyp for one in report.tracklets] == [one.polyp for one in whole.tracklets]


def test_a_stream_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polypcount.counting.counter.MOST_TRACKLETS", 6)
    counter = pc.Counter(settings=CountSettings(fps=FPS, min_frames=2))
    for visit in range(30):
        image = frame_at((20, 70, 195)[visit % 3])
        for index in range(3):
            counter.update(visit * 100 + index, image, [[10, 10, 140, 110]], track=[visit])
    assert len(counter._ended.evidence) <= 6
    assert counter._tracklets is not None
    assert len(counter._tracklets.open) == len(counter._collector._open) == 1
    assert len(counter._ended.together) == 0
    report = counter.finish()
    assert sum(one.box_count for one in report.tracklets) == 90 - 3 * report.retired
    assert any("bound memory" in remark for remark in report.remarks)
