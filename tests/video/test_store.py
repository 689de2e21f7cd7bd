"""The crop store: what it holds, when it is built again, and what is left when building fails."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from polypcount.corpus import Boxes, Corpus, FrameFiles, Tracklets, Video
from polypcount.errors import DataError, FileError
from polypcount.video import CropRule, CropStore, build_store, open_video, store_build
from polypcount.video.store_part import CropPart, cut_part
from tests.video.movies import HEIGHT, WIDTH, numbered, write_movie

RULE = CropRule(scale=2, size=48)


def make_corpus(folder: Path, frames: int = 30) -> Corpus:
    """Two videos, a file and a folder, with two boxes in every frame."""
    folder.mkdir(exist_ok=True)
    images = folder / "images"
    if not images.exists():
        images.mkdir()
        for number in range(frames):
            Image.fromarray(numbered(number)).save(images / f"{number}.jpg", quality=95)
        write_movie(folder / "a.mp4", frames)
    videos = (
        Video("film", frames, 25, WIDTH, HEIGHT, str(folder / "a.mp4")),
        Video("stills", frames, None, WIDTH, HEIGHT, str(images)),
    )
    video = np.repeat([0, 1], 2 * frames)
    frame = np.tile(np.repeat(np.arange(frames), 2), 2)
    left = np.arange(len(frame)) % 37
    boxes = Boxes(video, frame, np.stack([left, left / 2, left + 30, left / 2 + 24], axis=1))
    return Corpus(videos, boxes)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return make_corpus(tmp_path_factory.mktemp("store"))


@pytest.fixture
def cuts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the videos of which a part was cut."""
    ids: list[str] = []

    def counted(part: CropPart, path: Path, threads: int) -> int:
        ids.append(part.video.id)
        return cut_part(part, path, threads)

    monkeypatch.setattr(store_build, "cut_part", counted)
    return ids


def direct(corpus: Corpus, row: int, rule: CropRule) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    video = int(corpus.boxes.video[row])
    source = open_video(corpus.videos[video], corpus.files, video)
    ((_, frame),) = source.frames([corpus.boxes.frame[row]])
    return rule.crop(frame, corpus.boxes.xyxy[row])


def assert_holds(store: CropStore, corpus: Corpus, rows: list[int], rule: CropRule = RULE) -> None:
    crops = store.crops(rows)
    assert crops.shape == (len(rows), rule.size, rule.size, 3)
    for crop, row in zip(crops, rows, strict=True):
        assert np.abs(crop.astype(int) - direct(corpus, row, rule)).mean() < 4, row


def test_crops_are_those_cut_directly(corpus: Corpus, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    rows = np.arange(0, len(corpus.boxes), 3)
    store = build_store(corpus, rows[::-1], RULE, tmp_path, lambda done, total: calls.append((done, total)))
    assert calls[0] == (0, len(rows))
    assert calls[-1] == (len(rows), len(rows))
    assert store.rows.tolist() == rows.tolist()
    assert len(store) == len(rows)
    assert_holds(store, corpus, [0, 117, 60, 3, 57, 0])
    assert store.jpeg(3)[:2] == b"\xff\xd8"
    assert store.has([0, 1, 3]).tolist() == [True, False, True]
    assert store.crops([0, 3], size=32).shape == (2, 32, 32, 3)
    assert store.crops([]).shape == (0, 48, 48, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["crops.arrow"]
    with pytest.raises(DataError, match="no crop of box row 4"):
        store.crops([3, 4])


def test_crops_of_a_tracklet(corpus: Corpus, tmp_path: Path) -> None:
    label = np.full(len(corpus.boxes), -1)
    label[10:20:2] = 0
    tracklets = Tracklets.gather(corpus.boxes, label)
    store = build_store(corpus, tracklets.order, RULE, tmp_path)
    assert_holds(store, corpus, tracklets.rows(0).tolist())


def test_several_processes_give_the_same(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(0, 120, 2)
    one = build_store(corpus, rows, RULE, tmp_path / "one", processes=1)
    monkeypatch.setattr(store_build, "_FEW_CROPS", 0)
    monkeypatch.setattr(store_build, "_PART_CROPS", 7)
    two = build_store(corpus, rows, RULE, tmp_path / "two", processes=2)
    assert len(two.parts) == 10
    np.testing.assert_array_equal(one.crops(rows), two.crops(rows))


def test_threads_and_other_processes_may_share_a_store(corpus: Corpus, tmp_path: Path) -> None:
    rows = np.arange(120)
    store = pickle.loads(pickle.dumps(build_store(corpus, rows, RULE, tmp_path)))
    whole = store.crops(rows)
    with ThreadPoolExecutor(8) as pool:
        for row, crop in zip(rows, pool.map(lambda row: store.crops([row])[0], rows), strict=True):
            np.testing.assert_array_equal(crop, whole[row])


def test_only_what_changed_is_cut_again(corpus: Corpus, tmp_path: Path, cuts: list[str]) -> None:
    rows = np.arange(0, 120, 4)
    build_store(corpus, rows, RULE, tmp_path)
    assert cuts == ["film", "stills"]
    build_store(corpus, rows, RULE, tmp_path)
    assert len(cuts) == 2
    build_store(corpus, np.append(rows, 119), RULE, tmp_path)
    assert cuts[2:] == ["stills"]
    columns = corpus.boxes.columns()
    moved = columns["xyxy"].copy()
    moved[0] += 1
    changed = Corpus(corpus.videos, Boxes(**{**columns, "xyxy": moved}))
    assert_holds(build_store(changed, rows, RULE, tmp_path), changed, [0, 4, 116])
    assert cuts[3:] == ["film", "stills"]
    other = CropRule(scale=3, size=48)
    assert_holds(build_store(corpus, rows, other, tmp_path), corpus, [0, 116], other)
    assert cuts[5:] == ["film", "stills"]
    # The same boxes under other row numbers: nothing to cut.
    second = corpus.select(videos=["stills"])
    assert_holds(build_store(second, np.arange(0, 60, 4), other, tmp_path), second, [0, 56], other)
    assert len(cuts) == 7


def test_a_changed_source_is_cut_again(tmp_path: Path, cuts: list[str]) -> None:
    corpus = make_corpus(tmp_path / "data", 10)
    build_store(corpus, [0, 1, 22, 23], RULE, tmp_path / "crops")
    os.utime(tmp_path / "data" / "a.mp4", ns=(1, 1))
    os.utime(tmp_path / "data" / "images" / "9.jpg", ns=(1, 1))
    build_store(corpus, [0, 1, 22, 23], RULE, tmp_path / "crops")
    assert cuts == ["film", "stills", "film"]


@pytest.mark.parametrize("processes", [1, 2])
def test_building_goes_on_after_a_stop(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, processes: int
) -> None:
    monkeypatch.setattr(store_build, "_PART_CROPS", 6)
    monkeypatch.setattr(store_build, "_FEW_CROPS", 0)

    def stop(done: int, total: int) -> None:
        if done >= total / 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(corpus, np.arange(120), RULE, tmp_path, stop, processes=processes)
    assert not (tmp_path / "crops.arrow").exists()
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) >= 4
    parts[0].write_bytes(b"damaged")
    cuts = request.getfixturevalue("cuts")  # not before: processes cannot count
    assert_holds(build_store(corpus, np.arange(120), RULE, tmp_path, processes=1), corpus, [0, 31, 119])
    assert len(cuts) == 20 - len(parts) + 1, "what was finished is not cut again"
    assert [path.name for path in tmp_path.iterdir()] == ["crops.arrow"]


def test_another_process_may_finish_the_same_store_first(corpus: Corpus, tmp_path: Path) -> None:
    def other(done: int, total: int) -> None:
        if done == total:  # all parts are there; the other one joins and removes them
            build_store(corpus, np.arange(20), RULE, tmp_path, processes=1)

    assert_holds(build_store(corpus, np.arange(20), RULE, tmp_path, other, processes=1), corpus, [0, 19])


def failing(corpus: Corpus, folder: Path, rows: object) -> str:
    with pytest.raises((FileError, DataError)) as caught:
        build_store(corpus, rows, RULE, folder)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_failures_are_one_line_and_leave_the_store(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "data", 10)
    folder = tmp_path / "crops"
    build_store(corpus, [0, 22], RULE, folder)
    before = (folder / "crops.arrow").read_bytes()
    film, stills = corpus.videos

    (tmp_path / "data" / "images" / "3.jpg").write_bytes(b"\xff\xd8\xff damaged")
    assert "video stills: " in (text := failing(corpus, folder, np.arange(40)))
    assert "3.jpg is not a readable" in text

    longer = Corpus((Video("film", 99, source=film.source), stills), Boxes([0, 0], [4, 50], [[0, 0, 9, 9]] * 2))
    text = failing(longer, folder, [0, 1])
    assert "video film: " in text
    assert "frame 50 cannot be read; 1 of the 2 wanted frames" in text

    listed = Corpus((stills,), Boxes([0], [1], [[0, 0, 9, 9]]), files=FrameFiles([0], [0], ["0.jpg"]))
    assert "frame 1 cannot be read" in failing(listed, folder, [0])
    gone = Corpus((stills,), Boxes([0], [1], [[0, 0, 9, 9]]), files=FrameFiles([0], [1], ["gone.jpg"]))
    assert "gone.jpg does not exist" in failing(gone, folder, [0])

    wrong_size = Corpus((Video("film", 10, None, 1920, 1080, film.source),), Boxes([0], [4], [[0, 0, 9, 9]]))
    assert "frame 4 has 96 x 64 pixels, and the boxes are for 1920 x 1080" in failing(wrong_size, folder, [0])

    no_source = Corpus((Video("film", 10),), Boxes([0], [4], [[0, 0, 9, 9]]))
    assert "video film has no pixels" in failing(no_source, folder, [0])
    assert "no box row 40; the corpus has 40 boxes" in failing(corpus, folder, [40])

    assert (folder / "crops.arrow").read_bytes() == before


def test_a_damaged_store_is_named_and_can_be_built_again(corpus: Corpus, tmp_path: Path) -> None:
    path = build_store(corpus, [0, 1], RULE, tmp_path).path
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"ARROW1" + bytes(200)):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"crops\.arrow is not a crop store"):
            CropStore.open(tmp_path)
    build_store(corpus, [0, 1], RULE, tmp_path)
    assert path.read_bytes() == whole
    at = whole.index(b"\xff\xd8\xff")
    path.write_bytes(whole[:at] + bytes(100) + whole[at + 100 :])
    with pytest.raises(FileError, match="the crop of box row 0 is damaged"):
        CropStore.open(path).crops([1, 0])
    with pytest.raises(FileError, match="does not exist"):
        CropStore.open(tmp_path / "nowhere")


def test_no_rows_give_an_empty_store(corpus: Corpus, tmp_path: Path) -> None:
    store = build_store(corpus, [], RULE, tmp_path)
    assert len(store) == 0
    assert store.crops([]).shape == (0, 48, 48, 3)
    with pytest.raises(DataError, match="no crop"):
        store.crops([0])
