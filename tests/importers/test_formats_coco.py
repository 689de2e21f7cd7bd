"""COCO files and lists of detections: the smallest of each kind, and what is wrong with bad ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from polypcount.errors import DataError
from tests.importers.format_cases import read, refused, rows, told

BOX = [10, 20, 30, 40]
XYXY = (10.0, 20.0, 40.0, 60.0)


def save(folder: Path, content: Any, name: str = "boxes.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def coco(images: list[Any], annotations: list[Any], **more: Any) -> dict[str, Any]:
    return {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "polyp"}], **more}


def one(annotation: dict[str, Any], **image: Any) -> dict[str, Any]:
    return coco([{"id": 1, "file_name": "0005.jpg", **image}], [{"id": 1, "image_id": 1, "bbox": BOX, **annotation}])


def test_one_video_from_file_names(tmp_path: Path) -> None:
    images = [{"id": 7, "file_name": "f_0003.jpg", "width": 64, "height": 48}, {"id": 8, "file_name": "f_0010.jpg"}]
    path = save(tmp_path, coco(images, [{"id": 1, "image_id": 7, "bbox": BOX}]))
    corpus = read("coco", path)
    (video,) = corpus.videos
    assert (video.id, video.frame_count, video.width, video.height) == ("boxes", 11, 64, 48)
    assert rows(corpus) == [("boxes", 3, XYXY, 1.0, None, -1)]
    assert len(corpus.files) == 0


def test_videos_from_folders_and_ids_as_text(tmp_path: Path) -> None:
    images = [{"id": "a", "file_name": "v1/1.jpg"}, {"id": "b", "file_name": "v2\\2.jpg"}]
    annotations = [
        {"id": 1, "image_id": "a", "bbox": BOX, "track_id": 3},
        {"id": 2, "image_id": "b", "bbox": BOX, "track_id": 3, "score": 0.5},
    ]
    corpus = read("coco", save(tmp_path, coco(images, annotations)))
    assert rows(corpus) == [("v1", 1, XYXY, 1.0, "v1_3", -1), ("v2", 2, XYXY, 0.5, "v2_3", -1)]


def test_cocovid_videos(tmp_path: Path) -> None:
    videos = [{"id": 1, "name": "case1", "fps": 25, "width": 64, "height": 48, "length": 100}, {"id": 2}]
    images = [
        {"id": 1, "video_id": 1, "frame_id": 4, "file_name": "x.jpg"},
        {"id": 2, "video_id": "2", "frame_id": 0.0, "file_name": "y.jpg"},
    ]
    annotations = [
        {"image_id": 1, "bbox": BOX, "instance_id": 9, "track_id": 2},
        {"image_id": 2, "bbox": BOX, "instance_id": 9},
    ]
    corpus = read("coco", save(tmp_path, coco(images, annotations, videos=videos)))
    assert [(video.id, video.frame_count, video.fps) for video in corpus.videos] == [
        ("case1", 100, 25.0),
        ("2", 1, None),
    ]
    assert rows(corpus) == [("2", 0, XYXY, 1.0, "2_9", -1), ("case1", 4, XYXY, 1.0, "case1_9", 2)]


def test_video_ids_without_videos(tmp_path: Path) -> None:
    images = [{"id": 1, "video_id": 5, "frame_index": 2}, {"id": 2, "video_id": 6, "frame_index": 3}]
    corpus = read("coco", save(tmp_path, coco(images, [])))
    assert [(video.id, video.frame_count) for video in corpus.videos] == [("5", 3), ("6", 4)]


@pytest.mark.parametrize("key", ["identity_id", "unique_id"])
def test_identity_before_track(tmp_path: Path, key: str) -> None:
    corpus = read("coco", save(tmp_path, one({key: "001-001_1", "track_id": 4})))
    assert rows(corpus) == [("boxes", 5, XYXY, 1.0, "001-001_1", 4)]


def test_text_identity_in_two_videos_is_kept_apart(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a/1.jpg"}, {"id": 2, "file_name": "b/1.jpg"}]
    annotations = [
        {"id": n, "image_id": n % 2 + 1, "bbox": BOX, "identity_id": identity}
        for n, identity in enumerate(["p", "p", "q", None])
    ]
    corpus = read("coco", save(tmp_path, coco(images, annotations)))
    assert sorted(polyp.id for polyp in corpus.polyps) == ["a_p", "b_p", "q"]


def test_names_that_cannot_be_kept_apart_are_refused(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a/1.jpg"}, {"id": 2, "file_name": "b/1.jpg"}]
    annotations = [
        {"image_id": 1, "bbox": BOX, "identity_id": 1},
        {"image_id": 2, "bbox": BOX, "identity_id": "a_b_1"},
        {"image_id": 2, "bbox": BOX, "identity_id": "a_1"},
    ]
    corpus = read("coco", save(tmp_path, coco(images, annotations)))
    assert sorted(polyp.id for polyp in corpus.polyps) == ["a_1", "a_b_1", "b_a_1"]
    videos = [{"id": 1, "file_name": "a/1.jpg"}, {"id": 2, "file_name": "a_b/1.jpg"}, {"id": 3, "file_name": "c/1.jpg"}]
    clash = [
        {"image_id": 1, "bbox": BOX, "identity_id": "b_p"},
        {"image_id": 3, "bbox": BOX, "identity_id": "b_p"},
        {"image_id": 2, "bbox": BOX, "identity_id": "p"},
        {"image_id": 3, "bbox": BOX, "identity_id": "p"},
    ]
    refused("coco", save(tmp_path, coco(videos, clash)), "2 polyps of different videos would have the id a_b_p")


def test_ids_as_tracks(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "1.jpg"}]
    annotations = [{"image_id": 1, "bbox": BOX, "identity_id": identity} for identity in ("x", 0, "y", "x")]
    corpus = read("coco", save(tmp_path, coco(images, annotations)), ids="track")
    assert corpus.boxes.track.tolist() == [1, 0, 2, 1]
    assert corpus.polyps == ()
    both = one({"identity_id": "x", "track_id": 7})
    assert rows(read("coco", save(tmp_path, both), ids="track"))[0][4:] == (None, 7)


def test_frames_without_numbers_are_ranks(tmp_path: Path) -> None:
    names = ["b2.jpg", "b10.jpg", "start.jpg", "cam_20181001100941.jpg"]
    images = [{"id": n, "file_name": name} for n, name in enumerate(names)]
    annotations = [{"image_id": n, "bbox": BOX, "score": n} for n in range(4)]
    corpus = read("coco", save(tmp_path, coco(images, annotations)))
    assert [(row[3], row[1]) for row in rows(corpus)] == [(0, 0), (1, 1), (3, 2), (2, 3)]


def test_first_frame_and_box_and_video(tmp_path: Path) -> None:
    path = save(tmp_path, one({}))
    corpus = read("coco", path, first_frame=5, box="xyxy", video="case", fps=25.0, frame_count=9)
    assert rows(corpus) == [("case", 0, (10.0, 20.0, 30.0, 40.0), 1.0, None, -1)]
    assert (corpus.videos[0].fps, corpus.videos[0].frame_count) == (25.0, 9)
    refused("coco", path, "images[0].file_name", "numbered from 6, found 5", "first_frame", first_frame=6)
    refused("coco", path, "images[0].file_name", "0 to 4, found 5", frame_count=5)


def test_sizes_that_differ_are_remarked(tmp_path: Path) -> None:
    sizes = [(64, 48), (64, 48), (32, 32)]
    images = [{"id": n, "file_name": f"{n}.jpg", "width": w, "height": h} for n, (w, h) in enumerate(sizes)]
    corpus = read("coco", save(tmp_path, coco(images, [])))
    assert (corpus.videos[0].width, corpus.videos[0].height) == (64, 48)
    assert "1 of 3 images have another size than 64 x 48" in told(corpus, "remarks")[0]


def test_image_files_are_listed_where_they_are(tmp_path: Path) -> None:
    for name in ("images/v/3.png", "images/v/7.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8)).save(tmp_path / name)
    images = [{"id": 1, "file_name": "v/7.png"}, {"id": 2, "file_name": "v/3.png"}]
    path = save(tmp_path, coco(images, []))
    beside = read("coco", path)
    assert beside.videos[0].source == str(tmp_path / "images" / "v")
    assert (beside.files.frame.tolist(), beside.files.name.tolist()) == ([3, 7], ["3.png", "7.png"])
    given = read("coco", path, source=tmp_path / "images" / "v")
    assert given.videos[0].source == str(tmp_path / "images" / "v")
    assert given.files.name.tolist() == ["3.png", "7.png"]
    film = tmp_path / "film.mp4"
    film.touch()
    assert len(read("coco", path, source=film).files) == 0
    refused("coco", path, "nowhere does not exist", source=tmp_path / "nowhere")


def test_options_for_one_video(tmp_path: Path) -> None:
    path = save(tmp_path, coco([{"id": 1, "file_name": "a/1.jpg"}, {"id": 2, "file_name": "b/1.jpg"}], []))
    for setting in ({"video": "x"}, {"frame_count": 7}, {"source": tmp_path}):
        with pytest.raises(DataError, match=r"is for one video; .* holds 2"):
            read("coco", path, **setting)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"bbox": [1, 2, 3]}, ("annotations[0].bbox", "four numbers", "[1, 2, 3]")),
        ({"bbox": None}, ("annotations[0].bbox", "None")),
        ({"bbox": [1, 2, "3", 4]}, ("annotations[0].bbox",)),
        ({"bbox": [1, 2, True, 4]}, ("annotations[0].bbox",)),
        ({"bbox": [1, 2, float("nan"), 4]}, ("annotations[0].bbox", "nan")),
        ({"bbox": [1, 2, 10**400, 4]}, ("annotations[0].bbox",)),
        ({"bbox": [1, 2, 0, 4]}, ("annotations[0]: the box must have x1 < x2",)),
        ({"bbox": [1, 2, 1e39, 4]}, ("annotations[0]: the box must be four finite numbers",)),
        ({"score": "high"}, ("annotations[0].score", "'high'")),
        ({"score": 1e39}, ("annotations[0]: the score must be a finite number",)),
        ({"image_id": 2}, ("annotations[0].image_id", "found 2")),
        ({"image_id": [1]}, ("annotations[0].image_id", "[1]")),
        ({"id": None}, ("annotations[0].id",)),
        ({"identity_id": "\ud800"}, ("annotations[0].identity_id", "ud800")),
        ({"identity_id": -2}, ("annotations[0].identity_id", "-2")),
        ({"identity_id": True}, ("annotations[0].identity_id",)),
        ({"track_id": 1.5}, ("annotations[0].track_id", "1.5")),
    ],
)
def test_bad_annotation(tmp_path: Path, change: dict[str, Any], parts: tuple[str, ...]) -> None:
    path = save(tmp_path, one(change))
    refused("coco", path, str(path), *parts, "skip_bad")
    corpus = read("coco", path, skip_bad=True)
    assert len(corpus.boxes) == 0
    assert len(told(corpus, "left_out")) == 1


@pytest.mark.parametrize(
    ("images", "part"),
    [
        ([{"id": 1}, {"id": "1"}], "images[1].id"),
        ([7], "images[0]: an object is expected, found 7"),
        ([{"id": 1, "file_name": 3}], "images[0].file_name"),
        ([{"id": 1, "file_name": "\ud800/1.jpg"}], "images[0].file_name"),
        ([{"id": 1, "width": -4, "height": 4}], "images[0]: width"),
        ([{"id": 1, "video_id": []}], "images[0].video_id"),
        ([{"id": 1, "frame_id": "x"}], "images[0].frame_id"),
        ([{"id": 1, "frame_id": 3}, {"id": 2, "frame_id": 3}], "images[1].frame_id"),
        ([{"id": 1, "frame_id": 2**40}], "images[0].frame_id"),
    ],
)
def test_bad_image(tmp_path: Path, images: list[Any], part: str) -> None:
    path = save(tmp_path, coco(images, []))
    refused("coco", path, part)
    assert len(told(read("coco", path, skip_bad=True), "left_out")) == 1


@pytest.mark.parametrize(
    ("videos", "part"),
    [
        ([{"id": 1}, {"id": 2}], "images[0].video_id"),
        ([{"id": 1, "name": "a"}, {"id": 2, "name": "a"}], "videos[1].name"),
        ([{"id": 1, "fps": 0}], "videos[0]: fps"),
        ([{"id": 1, "length": "x"}], "videos[0].length"),
        ([{"id": 1, "length": 5}], "images[0].file_name: frames are numbered 0 to 4, found 5"),
    ],
)
def test_bad_video(tmp_path: Path, videos: list[Any], part: str) -> None:
    path = save(tmp_path, {**one({}), "videos": videos})
    refused("coco", path, part)
    read("coco", path, skip_bad=True)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "boxes.json is not valid JSON: "),
        ("[" * 100_000, "boxes.json is not valid JSON: maximum recursion depth"),
        ("1" * 5000, "boxes.json is not valid JSON: Exceeds the limit"),
        ("[]", "coco-results"),
        ("3", "an object with images and annotations"),
        ('{"images": []}', "annotations must be a list, found None"),
        ('{"images": {}, "annotations": []}', "images must be a list"),
        ('{"images": [], "annotations": [], "videos": 3}', "videos must be a list"),
    ],
)
def test_not_coco(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(text)
    refused("coco", path, part)
    refused("coco", path, part, skip_bad=True)


def test_results_by_number(tmp_path: Path) -> None:
    found = [
        {"image_id": 3, "category_id": 1, "bbox": BOX, "score": 0.25},
        {"image_id": "frame_0007.jpg", "category_id": 1, "bbox": BOX, "score": 0.5, "track_id": 2},
    ]
    corpus = read("coco-results", save(tmp_path, found), width=64, height=48, fps=30, first_frame=1)
    assert rows(corpus) == [("boxes", 2, XYXY, 0.25, None, -1), ("boxes", 6, XYXY, 0.5, None, 2)]
    assert (corpus.videos[0].frame_count, corpus.videos[0].width) == (7, 64)


def test_results_by_coco_file(tmp_path: Path) -> None:
    images = [{"id": 11, "file_name": "a/1.jpg", "width": 64, "height": 48}, {"id": 12, "file_name": "b/2.jpg"}]
    listed = save(tmp_path, coco(images, []), "images.json")
    corpus = read("coco-results", save(tmp_path, [{"image_id": 12, "bbox": BOX, "score": 1}]), images=listed)
    assert [(video.id, video.frame_count, video.width) for video in corpus.videos] == [("a", 2, 64), ("b", 3, None)]
    assert rows(corpus) == [("b", 2, XYXY, 1.0, None, -1)]
    refused("coco-results", save(tmp_path, [{"image_id": 1, "bbox": BOX}]), "[0].image_id", "found '1'", images=listed)


def test_results_by_folder(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in (1, 2, 10):
        Image.new("L", (64, 48)).save(folder / f"f{number}.png")
    path = save(tmp_path, [{"image_id": "f10", "bbox": BOX}, {"image_id": "f2.png", "bbox": BOX}])
    corpus = read("coco-results", path, images=folder, first_frame=1)
    assert [row[1] for row in rows(corpus)] == [1, 9]
    assert (corpus.videos[0].source, corpus.videos[0].width, corpus.videos[0].frame_count) == (str(folder), 64, 10)
    assert corpus.files.name.tolist() == ["f1.png", "f2.png", "f10.png"]
    refused("coco-results", save(tmp_path, [{"image_id": "f3", "bbox": BOX}]), "[0].image_id", "f3", images=folder)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({}, "the format of a file with images and annotations is coco"),
        ([3], "[0]: an object is expected"),
        ([{"image_id": None, "bbox": BOX}], "[0].image_id"),
        ([{"image_id": "x", "bbox": BOX}], "[0].image_id: the number of a frame"),
        ([{"image_id": 1, "bbox": BOX, "track_id": "x"}], "[0].track_id"),
        ([{"image_id": 1, "bbox": BOX, "score": None}, {"image_id": 1}], "[1].bbox"),
    ],
)
def test_bad_results(tmp_path: Path, content: Any, part: str) -> None:
    refused("coco-results", save(tmp_path, content), part)


@pytest.mark.parametrize(
    ("polyp", "part"),
    [
        ({"id": "p", "video_id": 9}, "polyps[0]"),
        ({"id": "p", "video_id": 1, "size_mm": -3}, "polyps[0].size_mm"),
    ],
)
def test_bad_polyp(tmp_path: Path, polyp: dict[str, Any], part: str) -> None:
    refused("coco", save(tmp_path, {**one({}), "videos": [{"id": 1}], "polyps": [polyp]}), part)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ([], "a list `frames`"),
        ({"frames": [3]}, "frames[0]: a list of boxes"),
        ({"frames": [[], [3]]}, "frames[1][0]: an object"),
        ({"frames": [[{"bbox": [1, 2]}]]}, "frames[0][0].bbox"),
        ({"frames": [[{"bbox": BOX, "polyp": 3}]]}, "frames[0][0]: track must be a whole number and polyp a text"),
        ({"frames": [], "width": -4}, "boxes.json: width"),
    ],
)
def test_bad_frames_json(tmp_path: Path, content: Any, part: str) -> None:
    refused("frames-json", save(tmp_path, content), part)


def test_frames_json(tmp_path: Path) -> None:
    boxes = [{"bbox": [10, 20, 40, 60], "score": 0.5, "track": 3, "polyp": "p"}]
    path = save(tmp_path, {"width": 64, "height": 48, "fps": 25, "frames": [[], boxes]})
    corpus = read("frames-json", path)
    assert rows(corpus) == [("boxes", 1, XYXY, 0.5, "p", 3)]
    video = corpus.videos[0]
    assert (video.frame_count, video.width, video.height, video.fps) == (2, 64, 48, 25.0)


def test_what_needs_no_import_or_has_no_images(tmp_path: Path) -> None:
    path = save(tmp_path, [{"image_id": 1, "bbox": BOX}])
    (tmp_path / "empty").mkdir()
    refused("coco-results", path, "holds no images", images=tmp_path / "empty")
    read("coco-results", path).save(tmp_path / "corpus")
    refused("coco-results", tmp_path / "corpus", "is a corpus already")
    with pytest.raises(DataError, match="the id of a video must be a text"):
        read("coco-results", path, video="")
