"""Recordings and boxes in every form that they come in."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polypcount as pc
from polypcount.corpus import Boxes, Corpus, Video
from polypcount.counting import CountSettings, Recording, open_recording
from polypcount.encoder import Encoder, load_encoder
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.importers import write_boxes
from polypcount.importers.boxes.any_format import guess_format
from tests.counting.recordings import (
    FPS,
    FRAMES,
    HEIGHT,
    WIDTH,
    boxes,
    corpus,
    frame_at,
    recording,
    same_boxes,
    several,
    write_images,
    write_in,
    write_voc,
)

ONE_VIDEO = ["coco", "coco-results", "mot", "yolo", "frames-json", "voc", "cvat", "csv", "corpus"]
# Those of which a file or folder can have several videos.
MANY_VIDEOS = ["coco", "mot", "yolo", "cvat", "csv", "corpus"]


def read(source: Any, boxes: Any = None, **settings: Any) -> Recording:
    """Open a recording with these settings."""
    return open_recording(source, boxes, CountSettings(**settings))


def boxes_in(source: Any, boxes: Any = None, **settings: Any) -> Boxes:
    """The boxes of a recording that has some."""
    table = read(source, boxes, **settings).boxes
    assert table is not None
    return table


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The bundled one, loaded once."""
    return load_encoder()


@pytest.mark.parametrize("format", ONE_VIDEO)
def test_every_format_is_recognised_and_counts_the_same(format: str, tmp_path: Path, encoder: Encoder) -> None:
    place = write_in(format, tmp_path / "boxes", boxes(tracks=True))
    assert guess_format(place) == format
    recorded = read(recording(), place)
    assert same_boxes(recorded.boxes or Boxes.empty(), boxes(tracks=True))
    assert recorded.sources == (str(recording()), str(place))
    assert (recorded.video.id, recorded.video.frame_count, recorded.video.fps) == ("case", FRAMES, FPS)
    report = pc.count(recording(), place, encoder=encoder, settings=CountSettings(pictures=False))
    assert [one.polyp for one in report.tracklets] == [1, 2, 1, 2, 3]
    assert [one.start_frame for one in report.tracklets] == [5, 60, 80, 140, 190]


@pytest.mark.parametrize("format", ["coco", "mot", "yolo", "cvat", "csv"])
def test_the_folder_of_an_export_is_as_good_as_what_is_in_it(format: str, tmp_path: Path) -> None:
    folder = write_in(format, tmp_path / "boxes", boxes(tracks=True)).parent
    assert folder == tmp_path / "boxes"
    assert guess_format(folder) == format
    assert same_boxes(boxes_in(recording(), folder), boxes(tracks=True))


@pytest.mark.parametrize("format", MANY_VIDEOS)
def test_of_several_videos_the_one_of_the_recording_is_taken(format: str, tmp_path: Path) -> None:
    def written(*names: str) -> Path:
        folder = tmp_path / "-".join(names)
        if format == "corpus":
            several(*names).save(folder)
            return folder
        return write_boxes(several(*names), format, folder)

    for names in (("case", "other"), ("case.mp4", "other")):
        place = written(*names)
        assert guess_format(place) == format
        assert same_boxes(boxes_in(recording(), place), boxes(tracks=True))
        assert len(boxes_in(recording(), place, video="other")) == 1
    place = written("one", "two")
    with pytest.raises(DataError, match=r"has 2 videos \(one, two\)"):
        read(recording(), place)
    with pytest.raises(DataError, match="has no video 'three'; it has: one, two"):
        read(recording(), place, video="three")
    chosen = read(recording(), place, video="one")
    assert same_boxes(chosen.boxes or Boxes.empty(), boxes(tracks=True))
    assert chosen.video.id == "case"
    assert chosen.boxes is not None
    assert not chosen.boxes.video.any()


def test_one_video_of_another_name_is_taken_unless_a_name_is_given(tmp_path: Path) -> None:
    found = several("someone")
    assert same_boxes(boxes_in(recording(), found), boxes(tracks=True))
    assert len(boxes_in(recording(), found, video="someone")) == 170
    assert len(boxes_in(recording(), found, video="case")) == 170
    with pytest.raises(DataError, match="the corpus of boxes has no video 'else'; it has: someone"):
        read(recording(), found, video="else")
    many = several(*(f"v{number}" for number in range(9)))
    with pytest.raises(DataError, match=r"9 videos \(v0, v1, v2, v3, v4, \.\.\.\)"):
        read(recording(), many)
    table = many.boxes
    with pytest.raises(DataError, match="a table of boxes must be of one video"):
        read(recording(), table)


def test_a_video_of_a_corpus_folder_is_chosen_by_its_id(tmp_path: Path) -> None:
    videos = tuple(Video(name, FRAMES, FPS, WIDTH, HEIGHT, str(recording())) for name in ("one", "two"))
    table = boxes(tracks=True)
    Corpus(videos, Boxes(table.video + 1, table.frame, table.xyxy, track=table.track)).save(tmp_path / "corpus")
    with pytest.raises(DataError, match=r"corpus has 2 videos \(one, two\)") as caught:
        read(tmp_path / "corpus")
    assert caught.value.mend == ("video", "all")
    assert len(boxes_in(tmp_path / "corpus", None, video="one")) == 0
    assert same_boxes(boxes_in(tmp_path / "corpus", None, video="two"), table)
    # Boxes from elsewhere take the place of its own; the id chooses the recording, and the boxes if they have several.
    for format in ("csv", "mot", "frames-json"):
        place = write_in(format, tmp_path / format, table)
        found = read(tmp_path / "corpus", place, video="one")
        assert (found.video.id, same_boxes(found.boxes or Boxes.empty(), table)) == ("one", True)
    assert len(boxes_in(tmp_path / "corpus", several("two", "one"), video="one")) == 1


@pytest.mark.parametrize("format", ["coco", "mot", "frames-json", "voc", "cvat", "corpus"])
@pytest.mark.parametrize(("size", "told"), [((320, HEIGHT), "width of 320"), ((WIDTH, 256), "height of 256")])
def test_boxes_for_another_frame_size_are_refused(
    format: str, size: tuple[int, int], told: str, tmp_path: Path
) -> None:
    place = write_in(format, tmp_path / "boxes", boxes(tracks=True), size=size)
    with pytest.raises(DataError, match=f"boxes.* is for frames with a {told} pixels, and those of .*case.mp4 have"):
        read(recording(), place)


def test_yolo_boxes_are_shares_of_any_size(tmp_path: Path) -> None:
    table = boxes(tracks=True)
    larger = Boxes(table.video, table.frame, table.xyxy * 3, track=table.track)
    place = write_in("yolo", tmp_path / "boxes", larger, size=(3 * WIDTH, 3 * HEIGHT))
    assert same_boxes(boxes_in(recording(), place), table)
    (place / "seqinfo.ini").unlink()
    assert np.allclose(boxes_in(recording(), place).xyxy, table.xyxy, atol=1e-3)


@pytest.mark.parametrize("format", ["csv", "coco-results"])
def test_boxes_outside_the_frame_are_of_another_size(format: str, tmp_path: Path) -> None:
    table = boxes(tracks=True)
    larger = Boxes(table.video, table.frame, table.xyxy * 6, track=table.track)
    place = write_in(format, tmp_path / "boxes", larger)
    with pytest.raises(DataError, match=r"frame 21 has a box at .*, outside its 160 x 128 pixels"):
        read(recording(), place)


@pytest.mark.parametrize("format", [name for name in ONE_VIDEO if name not in ("voc", "corpus")])
def test_boxes_beyond_the_last_frame_are_of_another_recording(format: str, tmp_path: Path) -> None:
    place = write_in(format, tmp_path / "boxes", boxes(tracks=True))
    short = write_images(tmp_path / "short", [0, 1, 2])
    Corpus((Video("short", 3, None, WIDTH, HEIGHT, str(short)),), Boxes.empty()).save(tmp_path / "corpus")
    for source in (short, tmp_path / "corpus"):
        with pytest.raises(DataError, match=r"boxes up to frame|image number") as caught:
            read(source, place)
        assert str(place) in str(caught.value)


def shifted(table: Boxes, frames: int) -> Boxes:
    """The same boxes, so many frames later."""
    return Boxes(table.video, table.frame + frames, table.xyxy, table.score, table.polyp, table.track)


@pytest.mark.parametrize("format", ["coco", "coco-results", "voc", "cvat", "csv", "mot", "yolo"])
def test_frames_may_be_numbered_otherwise(format: str, tmp_path: Path) -> None:
    first = 0 if format in ("mot", "yolo") else 1  # where the format itself counts from the other one
    place = write_in(format, tmp_path / "boxes", shifted(boxes(tracks=True), 2 * first - 1))
    for file in place.glob("0000.xml"):
        file.unlink()
    assert same_boxes(boxes_in(recording(), place, first_frame=first), boxes(tracks=True))
    assert not same_boxes(boxes_in(recording(), place), boxes(tracks=True))


def test_a_box_after_the_end_by_one_hints_at_the_first_frame(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text(f"frame,x1,y1,x2,y2\n1,0,0,9,9\n{FRAMES},0,0,9,9\n")
    with pytest.raises(DataError, match=r"boxes up to frame 220, and the recording has frames 0 to 219") as caught:
        read(recording(), tmp_path / "boxes.csv")
    assert caught.value.mend == ("first_frame",)
    found = boxes_in(recording(), tmp_path / "boxes.csv", first_frame=1)
    assert found.frame.tolist() == [0, FRAMES - 1]
    with pytest.raises(FileError, match=r"boxes\.csv:2: frames are numbered from 2, found 1"):
        read(recording(), tmp_path / "boxes.csv", first_frame=2)


def test_settings_where_nothing_is_read_are_refused(tmp_path: Path) -> None:
    corpus().save(tmp_path / "corpus")
    given: tuple[Any, ...] = (boxes(), corpus(), tmp_path / "corpus")
    for table in given:
        with pytest.raises(DataError, match="first_frame"):
            read(recording(), table, first_frame=1)
    with pytest.raises(DataError, match="first_frame"):
        read(tmp_path / "corpus", None, first_frame=1)
    place = write_in("frames-json", tmp_path / "boxes", boxes())
    with pytest.raises(DataError, match="frames-json"):
        read(recording(), place, first_frame=1)


@pytest.mark.parametrize("numbers", [range(8), range(1, 9), range(10, 90, 10)])
def test_boxes_by_name_are_on_the_image_of_that_name(numbers: range, tmp_path: Path) -> None:
    images = write_images(tmp_path / "images", numbers)
    third, last = numbers[2], numbers[7]
    box = [20.0, 20.0, 68.0, 68.0]
    (tmp_path / "voc").mkdir()
    (tmp_path / "yolo").mkdir()
    for number in (third, last):
        write_voc(tmp_path / "voc" / f"image_{number:04}.xml", [(box, 3)])
        (tmp_path / "yolo" / f"image_{number:04}.txt").write_text("0 0.275 0.34375 0.3 0.375\n")
    listed: list[dict[str, Any]] = [{"id": number, "file_name": f"image_{number:04}.png"} for number in numbers]
    found = [{"id": number, "image_id": number, "bbox": [20, 20, 48, 48]} for number in (last, third)]
    (tmp_path / "coco.json").write_text(json.dumps({"images": listed, "annotations": found}))
    for place in (tmp_path / "voc", tmp_path / "yolo", tmp_path / "coco.json"):
        table = boxes_in(images, place)
        assert table.frame.tolist() == [2, 7], place
        assert np.allclose(table.xyxy, box, atol=1e-3)
    with pytest.raises(DataError, match=r"image number \d+"):
        read(write_images(tmp_path / "few", numbers[:5]), tmp_path / "voc")
    # Frame ids tell frames, whatever the images are called.
    for image in listed:
        image["frame_id"] = image["id"] // max(1, numbers.step) - 1 + (numbers[0] == 0)
    (tmp_path / "coco.json").write_text(json.dumps({"images": listed, "annotations": found}))
    assert boxes_in(images, tmp_path / "coco.json").frame.tolist() == [2, 7]


def test_images_without_numbers_are_frames_in_their_order(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images", range(3))
    for image, name in zip(sorted(images.iterdir()), "abc", strict=True):
        image.rename(images / f"{name}.png")
    (tmp_path / "voc").mkdir()
    write_voc(tmp_path / "voc" / "0001.xml", [([20, 20, 68, 68], 0)])
    assert boxes_in(images, tmp_path / "voc").frame.tolist() == [1]
    assert boxes_in(images, tmp_path / "voc", first_frame=1).frame.tolist() == [0]


def test_a_folder_of_images_counts_as_the_recording_does(tmp_path: Path, encoder: Encoder) -> None:
    images = write_images(tmp_path / "case", range(1, 61))
    for format in ("csv", "voc"):
        table = boxes(tracks=True, only=slice(0, 1))
        place = write_in(format, tmp_path / format, shifted(table, format == "voc"))
        recorded = read(images, place)
        assert (recorded.video.id, recorded.video.frame_count, recorded.video.fps) == ("case", 60, None)
        assert same_boxes(recorded.boxes or Boxes.empty(), table)
    assert pc.count(images, tmp_path / "voc", encoder=encoder, settings=CountSettings(pictures=False)).count == 1
    (images / "deeper").mkdir()
    assert read(images / "deeper" / "..").video.id == "case"


def test_a_dicom_file_counts_as_the_recording_does(tmp_path: Path, encoder: Encoder) -> None:
    pytest.importorskip("pydicom")
    from pydicom.uid import ExplicitVRLittleEndian

    from tests.video.test_dicom import write_dicom

    pixels = np.stack([frame_at(frame) for frame in range(60)]).tobytes()
    size = {"Rows": HEIGHT, "Columns": WIDTH}
    timed = write_dicom(tmp_path / "timed.dcm", pixels, ExplicitVRLittleEndian, 60, CineRate=30, **size)
    place = write_in("csv", tmp_path / "boxes", boxes(tracks=True, only=slice(0, 1)))
    recorded = read(timed, place, fps=10)
    assert (recorded.video.id, recorded.video.frame_count, recorded.video.fps) == ("timed", 60, 30)
    untimed = write_dicom(tmp_path / "no_suffix", pixels, ExplicitVRLittleEndian, 60, **size)
    assert read(untimed, place).video.fps is None
    report = pc.count(untimed, place, encoder=encoder, settings=CountSettings(pictures=False, fps=10))
    assert (report.count, report.video.fps, report.video.id) == (1, 10, "no_suffix")


def test_the_frame_rate_is_the_recording_s_then_the_user_s_then_that_of_the_boxes(tmp_path: Path) -> None:
    images = write_images(tmp_path / "images", range(3))
    one = boxes(tracks=True).take(np.empty(0, int))
    told = write_in("coco", tmp_path / "coco", one)
    silent = write_in("csv", tmp_path / "csv", boxes(tracks=True))
    silent.write_text("frame,x1,y1,x2,y2\n")
    assert read(recording(), told, fps=50).video.fps == FPS
    assert read(images, told, fps=50).video.fps == 50
    assert read(images, told).video.fps == FPS
    assert read(images, silent).video.fps is None
    for wrong in (0, -25, float("nan"), float("inf")):
        with pytest.raises(DataError, match="fps"):
            read(recording(), told, fps=wrong)
    for known, expected in ((12.5, 12.5), (None, 50)):
        shutil.rmtree(tmp_path / "corpus", ignore_errors=True)
        Corpus((Video("a", 3, known, WIDTH, HEIGHT, str(images)),), Boxes.empty()).save(tmp_path / "corpus")
        assert read(tmp_path / "corpus", None, fps=50).video.fps == expected


def test_a_recording_that_was_cut_off_is_one_line(tmp_path: Path) -> None:
    from tests.video.movies import write_movie

    whole = write_movie(tmp_path / "whole.ts", 60).read_bytes()
    (tmp_path / "cut.ts").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cut.mp4").write_bytes(recording().read_bytes()[:4500])  # after the first frames
    (tmp_path / "head.mp4").write_bytes(recording().read_bytes()[:2000])  # within the description of them
    (tmp_path / "boxes.csv").write_text("frame,x1,y1,x2,y2\n0,0,0,9,9\n59,0,0,9,9\n")
    assert len(boxes_in(tmp_path / "whole.ts", tmp_path / "boxes.csv")) == 2
    for name, told in (("cut.ts", "boxes up to frame 59"), ("cut.mp4", "boxes up to frame 59"), ("head.mp4", "cannot")):
        with pytest.raises(PolypcountError, match=f"{name}.*{told}") as caught:
            read(tmp_path / name, tmp_path / "boxes.csv")
        assert "\n" not in str(caught.value)
    with pytest.raises(FileError, match="nowhere does not exist"):
        read(tmp_path / "nowhere", tmp_path / "boxes.csv")


def test_a_recording_without_boxes_has_none() -> None:
    assert read(recording()).boxes is None
    report = pc.count(recording(), settings=CountSettings(pictures=False))
    assert report.detector is not None
    assert report.detector.bundled
