"""Corpora of scenes: sound, with no still twice, and nothing in common between what is learnt from and studied."""

import os
from pathlib import Path

import numpy as np
import pytest

import polypcount as pc
from polypcount.corpus import Corpus, Video
from polypcount.errors import DataError, FileError
from polypcount.simulate import Difficulty, TimelineSettings, figures, list_stills, simulate_scenes, simulate_timelines
from polypcount.simulate.scene_file import SceneFile
from polypcount.simulate.scenes import write_benchmark
from polypcount.simulate.stills import Still

from .drawn import HEIGHT, SHORT, WIDTH, still, write_still, write_stills


def scene_files(corpus: Corpus) -> list[SceneFile]:
    return [SceneFile.load(Path(str(video.source))) for video in corpus.videos]


def used_stills(corpus: Corpus) -> list[str]:
    return [found.image for scene in scene_files(corpus) for found in scene.stills if found is not None]


@pytest.fixture(scope="module")
def stills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_stills(tmp_path_factory.mktemp("stills"), 58)


def test_the_corpus_is_sound_and_can_be_saved(tmp_path: Path) -> None:
    corpus = simulate_scenes(tmp_path / "pixels", 3, 5, "study", settings=SHORT, split="study", processes=1)
    assert pc.check(corpus).items == ()
    timelines = simulate_timelines(3, 5, "study", SHORT)
    assert [video.id for video in corpus.videos] == [video.id for video in timelines.videos]
    assert corpus.polyps == timelines.polyps
    assert np.array_equal(corpus.boxes.frame, timelines.boxes.frame), "frames and polyps are the timeline's"
    assert np.array_equal(corpus.boxes.polyp, timelines.boxes.polyp)
    assert {(video.width, video.height, video.split) for video in corpus.videos} == {(WIDTH, HEIGHT, "study")}
    x1, y1, x2, y2 = corpus.boxes.xyxy.T
    assert ((x1 >= 0) & (y1 >= 0) & (x2 <= WIDTH) & (y2 <= HEIGHT) & (x2 - x1 >= 3) & (y2 - y1 >= 3)).all()
    corpus.save(tmp_path)
    assert Corpus.load(tmp_path).content_hash == corpus.content_hash
    assert corpus.provenance is not None
    assert corpus.provenance.parameters["looks"]["blur"] == 1.0


def test_the_same_seed_in_any_number_of_processes(tmp_path: Path) -> None:
    corpora = [simulate_scenes(tmp_path / str(n), 3, 5, settings=SHORT, processes=n) for n in (1, 2)]
    assert corpora[0].content_hash == corpora[1].content_hash
    for video in corpora[0].videos:
        name = Path(str(video.source)).name
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    more = simulate_scenes(tmp_path / "more", 4, 5, settings=SHORT, processes=1)
    first = [video.id for video in corpora[0].videos]
    assert more.select(videos=first).content_hash == corpora[0].content_hash
    harder = simulate_scenes(tmp_path / "view", 3, 5, settings=SHORT, processes=1, difficulty=Difficulty(view=0))
    assert harder.content_hash != corpora[0].content_hash, "polyps that do not turn have other boxes"


def test_no_still_is_used_twice_and_every_polyp_has_one(stills: Path, tmp_path: Path) -> None:
    listed = list_stills(stills)
    corpus = simulate_scenes(tmp_path, 1, 1, "study", stills=listed, settings=SHORT, processes=1)
    used = used_stills(corpus)
    assert len(used) == len(set(used)) == len(corpus.polyps)
    assert pc.check(corpus).items == ()
    other = simulate_scenes(tmp_path / "b", 1, 2, "study", stills=listed, settings=SHORT, processes=1)
    assert used_stills(other)[0] != used[0], "another seed takes others"


def test_too_few_stills_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        simulate_scenes(tmp_path, 19, 1, "study", stills=[Still("a", "b")] * 46, settings=SHORT)
    assert "47 polyps, and there are 46 stills" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_a_bad_still_is_named(stills: Path, tmp_path: Path, processes: int) -> None:
    colour, mask = still(0)
    image, small = write_still(tmp_path, "bad", colour, mask[:100])
    with pytest.raises(FileError, match=r"masks/bad\.png must have the size of .*images/bad\.png") as caught:
        simulate_scenes(
            tmp_path, 2, 1, "study", stills=[Still(str(image), str(small))] * 9, settings=SHORT, processes=processes
        )
    assert "\n" not in str(caught.value)


def test_no_procedures_and_less(tmp_path: Path) -> None:
    assert simulate_scenes(tmp_path, 0, 1).videos == ()
    with pytest.raises(DataError, match="the number of procedures must be at least 0, found -1"):
        simulate_scenes(tmp_path, -1, 1)


def test_a_procedure_without_polyps_is_a_scene_too(tmp_path: Path) -> None:
    """14 of the 60 procedures have none."""
    corpus = simulate_scenes(tmp_path, 6, 0, "all", settings=SHORT, processes=1)
    empty = [row for row in range(6) if not (corpus.boxes.video == row).any()]
    assert empty
    scene = SceneFile.load(Path(str(corpus.videos[empty[0]].source))).scene()
    assert scene.draw(0).shape == (HEIGHT, WIDTH, 3)


def test_a_folder_that_is_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    out = tmp_path / "link" / "sim"
    corpus = simulate_scenes(out / "pixels", 1, 1, settings=SHORT, processes=1)
    corpus.save(out)  # refused among files that have nothing to do with it
    assert [video.source for video in Corpus.load(out).videos] == [video.source for video in corpus.videos]
    assert all(os.path.exists(str(video.source)) for video in corpus.videos)


def one_polyp_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take after the shortest procedures with one polyp, of each part, so that little has to be drawn."""
    single = [p._replace(frame_count=2000, polyp_frames=200) for p in figures.REAL_COLON if p.polyps == 1]
    monkeypatch.setattr(figures, "REAL_COLON", tuple(single))


def test_learn_and_study_of_a_benchmark_share_nothing(
    stills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_polyp_each(monkeypatch)
    heard: list[tuple[int, int]] = []
    learn, study = write_benchmark(
        tmp_path, render=0, stills=stills, identities=5, processes=1, progress=lambda *told: heard.append(told)
    )
    assert len(study.videos) == len(study.polyps) == 19
    assert len(learn.polyps) >= 5
    assert {video.split for video in learn.videos} == {"train"}
    assert {video.split for video in study.videos} == {"study"}
    assert pc.check(learn, study).items == ()
    used = [used_stills(corpus) for corpus in (learn, study)]
    assert not set(used[0]) & set(used[1])
    assert [len(set(names)) for names in used] == [len(learn.polyps), len(study.polyps)]
    assert heard == [(done, heard[-1][1]) for done in range(1, heard[-1][1] + 1)]


def test_renders_of_a_benchmark_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_polyp_each(monkeypatch)
    renders = [write_benchmark(tmp_path / str(k), render=k, stills=None, identities=1, processes=1) for k in (0, 1)]
    hashes = {corpus.content_hash for both in renders for corpus in both}
    assert len(hashes) == 4
    assert pc.check(renders[0][0], renders[0][1]).items == ()


def test_as_many_polyps_to_learn_from_as_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(folder: Path, procedures: int, seed: int, like: figures.SplitPart, **_: object) -> Corpus:
        asked.append(len(simulate_timelines(procedures, seed, like, TimelineSettings(minutes=0.2)).polyps))
        return Corpus((Video("v", 1),))

    monkeypatch.setattr("polypcount.simulate.scenes.simulate_scenes", counted)
    for identities in (85, 86, 300):
        write_benchmark(tmp_path, render=0, stills=None, identities=identities)
    assert asked == [85, 47, 170, 47, 340, 47]
