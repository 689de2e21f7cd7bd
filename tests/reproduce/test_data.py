"""The benchmark made of the datasets."""

from pathlib import Path

import pytest

from polypcount.corpus import Corpus, check
from polypcount.errors import DataError, FileError
from polypcount.reproduce import Benchmark, real_benchmark
from tests.reproduce.miniature import CASES, LEARNT, STUDIED, TRAINING


def test_study_videos_are_not_learnt_from(benchmark_of_datasets: Benchmark) -> None:
    learn, study = benchmark_of_datasets.learn, benchmark_of_datasets.study
    assert [video.id for video in study.videos] == list(STUDIED)
    assert {video.split for video in study.videos} == {"study"}
    assert len(study.polyps) == sum(STUDIED.values())
    assert len(learn.polyps) == LEARNT
    assert {video.dataset for video in learn.videos} == {"real-colon", "ldpolypvideo", "sun", "polypsset"}
    assert "study" not in {video.split for video in learn.videos}
    assert not check(learn, study).errors


def test_corpora_are_kept_and_written_once(datasets: dict[str, Path], tmp_path: Path) -> None:
    first = real_benchmark(datasets, tmp_path)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    second = real_benchmark(datasets, tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == written
    assert (first.learn_key, first.study_key) == (second.learn_key, second.study_key)
    assert Corpus.load(tmp_path / "study").content_hash == first.study.content_hash


def test_real_colon_is_needed_and_any_others_add_to_it(datasets: dict[str, Path], tmp_path: Path) -> None:
    alone = real_benchmark({"real-colon": datasets["real-colon"]}, tmp_path)
    assert [video.id for video in alone.learn.videos] == list(TRAINING)
    assert [video.id for video in alone.study.videos] == list(STUDIED)
    assert alone.note.startswith("learnt from REAL-Colon alone (2 videos, 6 polyps); the paper adds LDPolypVideo, SUN")
    two = real_benchmark({name: datasets[name] for name in ("sun", "real-colon")}, tmp_path)
    assert len(two.learn.polyps) == sum(TRAINING.values()) + CASES
    assert two.note.startswith("learnt from REAL-Colon and SUN (12 videos, 16 polyps)")
    assert two.study_key == alone.study_key
    assert two.learn_key != alone.learn_key
    with pytest.raises(DataError, match="the folder of real-colon is needed"):
        real_benchmark({"sun": datasets["sun"]}, tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        real_benchmark({**datasets, "sun": tmp_path / "nowhere"}, tmp_path)


def test_keys_follow_the_content_of_files(tmp_path: Path) -> None:
    """A scene is a file whose content decides about the pixels."""
    from polypcount.corpus import Video

    scene = tmp_path / "a.scene"
    keys = []
    for text in ("one", "two"):
        scene.write_text(text)
        corpus = Corpus((Video("a", 10, source=str(scene)),))
        keys.append(Benchmark("render-0", corpus, corpus).learn_key)
    assert keys[0] != keys[1]
