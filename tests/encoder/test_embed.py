"""Embedding a corpus, against one tracklet at a time."""

import importlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Tracklets, Video
from polypcount.encoder import Encoder, embed, load_encoder, save_encoder
from polypcount.errors import DataError, FileError
from polypcount.tracking import link_tracklets
from polypcount.video import open_video
from tests.conftest import Run
from tests.encoder.encoders import make


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return load_encoder(save_encoder(make(), tmp_path_factory.mktemp("encoder") / "a"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two videos of images, of which the second is listed by name; two polyps in the first."""
    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("images")
    videos, names = [], []
    for name, frames in (("a", 60), ("b", 12)):
        (root / name).mkdir()
        for frame in range(frames):
            still = rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)
            Image.fromarray(still).save(root / name / f"{'x' if name == 'b' else ''}{frame}.png")
            if name == "b":
                names.append(f"x{frame}.png")
        videos.append(Video(name, frames, 25.0, 64, 48, source=str(root / name)))
    rows = [(0, frame, 5, 0) for frame in range(45)] + [(0, frame, 30, 1) for frame in range(20, 60)]
    rows += [(1, frame, 20, 2) for frame in range(12)]
    video, frame, x, polyp = np.array(rows).T
    xyxy = np.column_stack([x, 10 + frame % 5, x + 15, 25 + frame % 5])
    polyps = (Polyp("p0", "a"), Polyp("p1", "a"), Polyp("p2", "b"))
    files = FrameFiles(np.ones(12, np.int32), np.arange(12), np.array(names, object))
    return Corpus(tuple(videos), Boxes(video, frame, xyxy, polyp=polyp), polyps, files=files)


def plain(
    corpus: Corpus, tracklets: Tracklets, tracklet: int, encoder: Encoder, stride: int | None
) -> NDArray[np.float32]:
    """The vector of one tracklet, frame by frame."""
    rows = tracklets.rows(tracklet)
    if stride is None:
        rows = rows[::2] if len(rows) > 32 else rows
    elif len(rows[::stride]) >= 8:
        rows = rows[::stride]
    video = int(tracklets.video[tracklet])
    source = open_video(corpus.videos[video], corpus.files, video)
    frames = dict(source.frames(corpus.boxes.frame[rows]))
    rule = encoder.spec.preprocessing.crop
    crops = [rule.crop(frames[int(corpus.boxes.frame[row])], corpus.boxes.xyxy[row]) for row in rows]
    features = np.concatenate([encoder.encode_frames(crop[None]) for crop in crops])
    return np.asarray(encoder.encode_sequences(features[None], np.ones((1, len(features)), bool))[0])


@pytest.mark.parametrize(("stride", "crops"), [(None, 23 + 20 + 12), (4, 12 + 10 + 12), (1, 45 + 40 + 12)])
def test_vectors_equal_one_tracklet_at_a_time(
    corpus: Corpus, encoder: Encoder, tmp_path: Path, stride: int | None, crops: int
) -> None:
    tracklets = link_tracklets(corpus.boxes)
    told: list[tuple[int, int]] = []
    found = embed(corpus, tracklets, encoder, stride=stride, cache=tmp_path, progress=lambda d, t: told.append((d, t)))
    assert len(found) == len(tracklets) == 3
    assert found.encoder == encoder.fingerprint
    for k in range(3):
        row = np.flatnonzero((found.video == tracklets.video[k]) & (found.start_frame == tracklets.start_frame[k]))[0]
        assert found.vectors[row] == pytest.approx(plain(corpus, tracklets, k, encoder, stride), abs=1e-4)
    assert told[-1] == (crops, crops)
    assert found.provenance.parameters["looked_at"] == (stride or "count")
    assert found.together.tolist() == [[0, 1]]


def test_vectors_of_frames_are_those_of_tracklets_of_one_frame(
    corpus: Corpus, encoder: Encoder, tmp_path: Path
) -> None:
    tracklets = link_tracklets(corpus.boxes)
    found = embed(corpus, tracklets, encoder, cache=tmp_path, min_frames=40, frames=True)
    plain_vectors = embed(corpus, tracklets, encoder, cache=tmp_path, min_frames=40)
    assert plain_vectors.frames is None
    assert np.array_equal(found.vectors, plain_vectors.vectors)
    assert found.frames is not None
    assert np.bincount(found.frames.tracklet).tolist() == [23, 20]
    assert found.frames.frame[found.frames.tracklet == 1].tolist() == list(range(20, 60, 2))
    apart = np.full(len(corpus.boxes), -1)
    rows = tracklets.rows(1)[::2]
    apart[rows] = np.arange(len(rows))
    alone = embed(corpus, Tracklets.gather(corpus.boxes, apart), encoder, cache=tmp_path)
    assert found.frames.vectors[found.frames.tracklet == 1] == pytest.approx(alone.vectors, abs=1e-5)
    nothing = embed(corpus, tracklets, encoder, cache=tmp_path, min_frames=1000, frames=True)
    assert nothing.frames is not None
    assert len(nothing.frames.frame) == 0


def test_features_are_kept(corpus: Corpus, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracklets = link_tracklets(corpus.boxes)
    first = embed(corpus, tracklets, encoder, cache=tmp_path)
    kept = sorted(tmp_path.glob("*.npy"))
    assert len(kept) == 2
    opened: list[str] = []
    module = importlib.import_module("polypcount.encoder.features")
    real = module.open_part

    def counting(part: object, threads: int) -> object:
        opened.append(part.video.id)  # type: ignore[attr-defined]
        return real(part, threads)

    monkeypatch.setattr(module, "open_part", counting)
    again = embed(corpus, tracklets, encoder, cache=tmp_path)
    assert opened == []
    assert np.array_equal(again.vectors, first.vectors)
    kept[0].write_bytes(b"damaged")
    embed(corpus, tracklets, encoder, cache=tmp_path)
    assert len(opened) == 1
    embed(corpus, tracklets, encoder, cache=tmp_path, stride=3)
    assert len(opened) == 2, "other frames of the first video, the same of the second"


def test_other_pixels_of_the_same_size_and_time_are_other_features(
    corpus: Corpus, encoder: Encoder, tmp_path: Path
) -> None:
    vectors = []
    for name, value in (("one", 10), ("two", 200)):
        folder = tmp_path / name
        folder.mkdir()
        for frame in range(9):
            Image.fromarray(np.full((48, 64, 3), value, np.uint8)).save(folder / f"{frame}.bmp")
            os.utime(folder / f"{frame}.bmp", (1, 1))
        boxes = Boxes(np.zeros(9, int), np.arange(9), np.tile([5, 5, 20, 20], (9, 1)), polyp=np.zeros(9, int))
        videos = (Video("case", 9, 25.0, 64, 48, source=str(folder)),)
        alone = Corpus(videos, boxes, (Polyp("p", "case"),))
        vectors.append(embed(alone, link_tracklets(boxes), encoder, cache=tmp_path / "cache").vectors)
    assert not np.allclose(vectors[0], vectors[1])


def test_damaged_features_are_made_again(corpus: Corpus, encoder: Encoder, tmp_path: Path) -> None:
    tracklets = link_tracklets(corpus.boxes)
    expected = embed(corpus, tracklets, encoder, cache=tmp_path).vectors
    for damage in (b"", b"PK\x03\x04" + bytes(5000), b"\x93NUMPY" + bytes(100), None):
        for file in tmp_path.glob("*.npy"):
            content = file.read_bytes()
            file.write_bytes(content[:-4] + b"\xff\xff\xff\xff" if damage is None else damage)
        assert np.array_equal(embed(corpus, tracklets, encoder, cache=tmp_path).vectors, expected)


def test_a_long_tracklet_is_looked_at_evenly(
    corpus: Corpus, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("polypcount.encoder.embed"), "_MOST", 9)
    told: list[tuple[int, int]] = []
    tracklets = link_tracklets(corpus.boxes)
    embed(corpus, tracklets, encoder, stride=1, cache=tmp_path, progress=lambda d, t: told.append((d, t)))
    assert told[-1] == (27, 27)


def test_short_tracklets_can_be_left_out(corpus: Corpus, encoder: Encoder, tmp_path: Path) -> None:
    tracklets = link_tracklets(corpus.boxes)
    found = embed(corpus, tracklets, encoder, cache=tmp_path, min_frames=30)
    assert found.box_count.tolist() == [45, 40]
    assert len(found.polyps) == 3
    assert len(embed(corpus, tracklets, encoder, cache=tmp_path, min_frames=1000)) == 0


def test_bad_input(corpus: Corpus, encoder: Encoder, tmp_path: Path) -> None:
    tracklets = link_tracklets(corpus.boxes)
    with pytest.raises(DataError, match="stride must be at least 1"):
        embed(corpus, tracklets, encoder, stride=0)
    with pytest.raises(DataError, match="without a stride"):
        embed(corpus, tracklets, encoder, stride=4, frames=True)
    with pytest.raises(FileError, match=r"cannot be written: .* POLYPCOUNT_CACHE moves the cache"):
        embed(corpus, tracklets, encoder, cache=Path(str(corpus.videos[1].source)) / "x3.png")
    other = Corpus(corpus.videos, corpus.boxes.take(np.arange(40)), corpus.polyps)
    with pytest.raises(DataError, match="the tracklets are not of this corpus"):
        embed(other, tracklets, encoder, cache=tmp_path)
    for gone, kind, message in ((None, DataError, "video a has no pixels"), ("/no/where", FileError, "does not exist")):
        videos = (replace(corpus.videos[0], source=gone), corpus.videos[1])
        with pytest.raises(kind, match=message):
            embed(Corpus(videos, corpus.boxes, corpus.polyps, files=corpus.files), tracklets, encoder, cache=tmp_path)
    far = Boxes(corpus.boxes.video, corpus.boxes.frame, corpus.boxes.xyxy + 500, polyp=corpus.boxes.polyp)
    with pytest.raises(FileError, match=r"video a: frame 0 has a box at \[505.0, .* outside its 64 x 48 pixels"):
        embed(
            Corpus(corpus.videos, far, corpus.polyps, files=corpus.files), link_tracklets(far), encoder, cache=tmp_path
        )
    source = Path(str(corpus.videos[1].source)) / "x3.png"
    content = source.read_bytes()
    source.write_bytes(content[:50])
    try:
        with pytest.raises(FileError, match=r"video b: .*x3\.png is not a readable") as problem:
            embed(corpus, tracklets, encoder, cache=tmp_path)
    finally:
        source.write_bytes(content)
    assert "\n" not in str(problem.value)
    assert len(list(tmp_path.glob("*.npy"))) == 1, "what was done before is kept"


def test_the_command(polypcount: Run, corpus: Corpus, encoder: Encoder, tmp_path: Path) -> None:
    folder, out = corpus.save(tmp_path / "corpus"), tmp_path / "vectors.parquet"
    env = {"POLYPCOUNT_CACHE": str(tmp_path / "cache")}
    done = polypcount("embed", folder, "--encoder", encoder.folder, "--out", out, env=env)
    assert done.returncode == 0, done.stderr
    assert "2 tracklets of at least 30 boxes, of 3; 43 crops" in done.stdout
    assert "2 of 3 polyps own a tracklet that is long enough" in done.stdout
    none = polypcount(
        "embed", folder, "--encoder", encoder.folder, "--out", out, "--force", "--min-frames", 99, env=env
    )
    assert none.returncode == 2
    assert "none of 3 tracklets has 99 boxes (--min-frames)" in none.stderr
    again = polypcount("embed", folder, "--encoder", encoder.folder, "--out", out, env=env)
    assert again.returncode == 2
    assert "exists already; choose another name, or replace it (--force)" in again.stderr
    wrong = polypcount("embed", folder, "--encoder", tmp_path, "--out", tmp_path / "b.npz", env=env)
    assert wrong.returncode == 2
    assert "holds no encoder" in wrong.stderr
    assert wrong.stderr.count("\n") == 1
