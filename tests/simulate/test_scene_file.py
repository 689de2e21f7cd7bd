"""Scenes on disk: read back as written, refused in one line where damaged, and sources of frames like any other."""

import contextlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.simulate import Difficulty, TimelineSettings
from polypcount.simulate.scene_file import SceneFile, SceneSource
from polypcount.simulate.stills import Still
from polypcount.video import CropRule, build_store, open_source

from .drawn import HEIGHT, WIDTH, difference, procedure, still, write_still

SCENE = procedure(3)


def changed(**values: object) -> SceneFile:
    return SCENE.model_copy(update=values)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene that no test changes."""
    place = tmp_path_factory.mktemp("scenes") / "a.scene"
    SCENE.save(place)
    return place


def test_round_trip(tmp_path: Path) -> None:
    scene = SceneFile(
        seed=7,
        index=2,
        like="train",
        settings=TimelineSettings(width=320, height=256, minutes=1.5, neighbours=0.5),
        looks=Difficulty(occlusion=0.5, view=2),
        stills=(None, Still("/a/é.jpg", "/b/é.png")),
    )
    scene.save(tmp_path / "new" / "folder" / "a.scene")
    assert SceneFile.load(tmp_path / "new" / "folder" / "a.scene") == scene


def test_a_file_with_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    place = tmp_path / "a.scene"
    SCENE.save(place)
    before = place.stat()
    SCENE.save(place)
    assert (place.stat().st_mtime_ns, place.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    other = changed(looks=Difficulty(blur=0.5))
    other.save(place)
    assert SceneFile.load(place) == other
    place.write_bytes(b"\xff\xfe no text")
    SCENE.save(place)
    assert SceneFile.load(place) == SCENE
    assert [file.name for file in tmp_path.iterdir()] == ["a.scene"]


def test_a_place_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match=r"a\.scene cannot be written: ") as caught:
        SCENE.save(tmp_path / "file" / "a.scene")
    assert "\n" not in str(caught.value)


def content(**changes: object) -> bytes:
    values = {
        **dict(SCENE),
        "settings": asdict(SCENE.settings),
        "looks": asdict(SCENE.looks),
        "stills": [None],
        **changes,
    }
    return json.dumps({name: value for name, value in values.items() if value != "left out"}).encode()


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "JSON"),
        (b"\x00\x01\xff", "JSON"),
        (b"[]", "format"),
        (content(settings="left out"), "settings"),
        (content(format="another"), "format"),
        (content(format_version=3), "version 3"),
        (content(format_version=1), r"older version \(1\).* simulate it again"),
        (content(like="some"), "like"),
        (content(seed=-1), "seed"),
        (content(index="0"), "index"),
        (content(settings={"width": 10**9, "height": 128}), "width"),
        (content(settings={"nonsense": 1}), "settings.nonsense"),
        (content(settings={"minutes": float("nan")}), "NaN"),
        (content(looks={"blur": 99}), "blur"),
        (content(looks={"fog": 1}), "looks.fog"),
        (content(stills=None), "stills"),
        (content(stills=[{"image": "a.png"}]), "stills"),
        (content() + b" " * (1 << 20), "too large"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, data: bytes, field: str) -> None:
    path = tmp_path / "a.scene"
    path.write_bytes(data)
    with pytest.raises(FileError, match=field) as caught:
        SceneFile.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(FileError):
        open_source(path)


@settings(max_examples=40)
@given(data=st.data())
def test_any_change_of_bytes_is_a_scene_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    bytes_ = bytearray(content())
    for _ in range(data.draw(st.integers(1, 4))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    place = tmp_path_factory.mktemp("damaged") / "a.scene"
    place.write_bytes(bytes_)
    with contextlib.suppress(PolypcountError):
        SceneFile.load(place).scene()


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"a\.scene does not exist"):
        SceneFile.load(tmp_path / "a.scene")
    with pytest.raises(FileError, match="is not a file"):
        SceneFile.load(tmp_path)


def test_as_many_stills_as_polyps(tmp_path: Path) -> None:
    assert len(SCENE.timeline().corpus.polyps) == 1
    with pytest.raises(DataError, match="the scene has 1 polyps and 2 stills; simulate it again"):
        changed(stills=(None, None)).scene()


def test_runs_that_never_fit_end_in_an_error_and_not_in_a_loop() -> None:
    short = TimelineSettings(run_seconds=0.01, run_spread=0, neighbours=0, minutes=0.2)
    with pytest.raises(DataError, match="do not fit into a procedure"):
        changed(settings=short, index=4).timeline()  # one with many polyps


def test_it_is_a_source_of_frames(path: Path) -> None:
    source, scene = open_source(path), SCENE.scene()
    assert isinstance(source, SceneSource)
    video = scene.video
    assert (source.frame_count, source.width, source.height, source.fps) == (
        video.frame_count,
        WIDTH,
        HEIGHT,
        video.fps,
    )
    frames = list(source.frames([9, 2, 9]))
    assert [frame for frame, _ in frames] == [2, 9]
    for frame, picture in frames:
        assert np.array_equal(picture, scene.draw(frame))
    assert list(source.frames([])) == []


@pytest.mark.parametrize("frame", [-1, SCENE.timeline().corpus.videos[0].frame_count])
def test_a_frame_out_of_range_is_refused(path: Path, frame: int) -> None:
    source = SceneSource(path)
    with pytest.raises(DataError, match=f"there is no frame {frame}; its frames are 0 to {source.frame_count - 1}"):
        list(source.frames([0, frame]))
    with pytest.raises(DataError, match=f"there is no frame {frame}"):
        source.crop(frame, np.array([0, 0, 50, 50], np.float32), CropRule(size=32))


@pytest.mark.parametrize("shape", ["squash", "pad"])
def test_crops_are_close_to_those_cut_from_frames(path: Path, shape: Any) -> None:
    source, boxes = SceneSource(path), SCENE.scene().boxes
    rule = CropRule(scale=3, size=48, shape=shape)
    for row in (0, len(boxes) // 2, len(boxes) - 1):
        frame = int(boxes.frame[row])
        ((_, picture),) = source.frames([frame])
        drawn, cut = source.crop(frame, boxes.xyxy[row], rule), rule.crop(picture, boxes.xyxy[row])
        assert difference(drawn, cut) < 8
        if shape == "pad":
            beside = (cut == 0).all(axis=2)
            assert beside.any()
            assert (drawn[beside] == 0).all()


def test_a_changed_file_is_another_scene(tmp_path: Path) -> None:
    place = tmp_path / "a.scene"
    SCENE.save(place)
    ((_, before),) = open_source(place).frames([5])
    procedure(SCENE.seed + 1).save(place)
    ((_, after),) = open_source(place).frames([5])
    assert difference(before, after) > 5


def test_a_crop_store_of_a_scene(path: Path, tmp_path: Path) -> None:
    timeline = SCENE.timeline().corpus
    video = replace(timeline.videos[0], source=str(path))
    corpus = Corpus((video,), SCENE.scene().boxes, timeline.polyps)
    rule = CropRule(scale=2, size=64)
    store = build_store(corpus, [0, 7], rule, tmp_path / "crops")
    for row, picture in zip((0, 7), store.crops([0, 7]), strict=True):
        expected = SceneSource(path).crop(int(corpus.boxes.frame[row]), corpus.boxes.xyxy[row], rule)
        assert difference(picture, expected) < 4, "but for JPEG"


def test_boxes_of_another_size_are_refused_by_the_store(path: Path, tmp_path: Path) -> None:
    video = Video("v", 300, 25.0, 640, 512, source=str(path))
    corpus = Corpus((video,), Boxes([0], [4], [[10, 10, 60, 60]]))
    with pytest.raises(FileError, match=r"video v: .*a\.scene: frame 4 has 160 x 128 pixels"):
        build_store(corpus, [0], CropRule(size=32), tmp_path / "crops")


def test_a_frame_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.scene"
    procedure(3, settings=TimelineSettings(width=16384, height=16384, minutes=0.2)).save(place)
    with pytest.raises(FileError, match=r"a frame may have up to .* pixels, found 16384 x 16384"):
        open_source(place)


def test_a_still_that_has_gone_is_named(tmp_path: Path) -> None:
    image, mask = write_still(tmp_path, "x", *still(0))
    place = tmp_path / "a.scene"
    changed(stills=(Still(str(image), str(mask)),)).save(place)
    frames = SCENE.timeline().corpus.boxes.frame
    frame = int(frames[len(frames) // 2])
    ((_, picture),) = SceneSource(place).frames([frame])
    assert difference(picture, SCENE.scene().draw(frame)) > 0.5, "a polyp of the still, not a drawn one"
    image.unlink()
    place.write_text(place.read_text() + "\n")
    with pytest.raises(FileError, match=r"x\.png is not a readable image: No such file"):
        list(SceneSource(place).frames([frame]))
