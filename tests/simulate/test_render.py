"""Files of rendered procedures: what a scene draws, in any number of processes, and never drawn twice."""

import os
import shutil
import sys
from pathlib import Path
from typing import Literal

import pytest

import polypcount as pc
from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.simulate import Difficulty, TimelineSettings, render, simulate_scenes
from polypcount.simulate.scene import Scene
from polypcount.simulate.scene_file import SceneFile
from polypcount.video import open_video

from .drawn import difference

TINY = TimelineSettings(width=96, height=64, minutes=0.2, frame_step=4)
Form = Literal["mp4", "jpg"]


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Two procedures of 12 s, some 80 frames each."""
    return simulate_scenes(tmp_path_factory.mktemp("scenes"), 2, 1, "study", settings=TINY, processes=1)


@pytest.fixture(scope="module")
def rendered(scenes: Corpus) -> dict[Form, Corpus]:
    """Both as videos, and the first as images, by this process."""
    return {"mp4": render(scenes, processes=1), "jpg": render(first_of(scenes), "jpg", processes=1)}


def first_of(corpus: Corpus) -> Corpus:
    return corpus.select(videos=[corpus.videos[0].id])


def copied(scenes: Corpus, folder: Path) -> Corpus:
    """The same scenes elsewhere."""
    for video in scenes.videos:
        shutil.copy(str(video.source), folder)
    return simulate_scenes(folder, len(scenes.videos), 1, "study", settings=TINY, processes=1)


def folder_of(corpus: Corpus) -> Path:
    return Path(str(corpus.videos[0].source)).parent


def files_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time of change and content of what was drawn, by name."""
    drawn = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix != ".scene"]
    return {str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes()) for file in drawn}


@pytest.mark.parametrize(("form", "most"), [("mp4", 8), ("jpg", 4)])
def test_frame_k_is_what_the_scene_draws(scenes: Corpus, rendered: dict[Form, Corpus], form: Form, most: float) -> None:
    corpus = rendered[form]
    assert corpus.content_hash == scenes.select(videos=[video.id for video in corpus.videos]).content_hash
    assert pc.check(corpus).items == ()
    for video, drawn in zip(corpus.videos, scenes.videos, strict=False):
        assert Path(str(video.source)).name == (f"{video.id}.mp4" if form == "mp4" else video.id)
        source, scene = open_video(video), SceneFile.load(Path(str(drawn.source))).scene()
        assert (source.frame_count, source.width, source.height) == (video.frame_count, 96, 64)
        assert source.fps == pytest.approx(video.fps, abs=0.01)
        for frame, picture in source.frames([12, 40, video.frame_count - 13]):
            near = [difference(picture, scene.draw(frame + step)) for step in (-12, 0, 12)]
            assert near[1] < most, "compression, and the noise that it takes out"
            assert near[1] == min(near)


@pytest.mark.parametrize("form", ["mp4", "jpg"])
def test_several_processes_give_the_same_bytes_as_one(
    scenes: Corpus, rendered: dict[Form, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    monkeypatch.setattr(sys.modules["polypcount.simulate.rendering"], "_FRAMES_A_TASK", 25)
    heard: list[tuple[int, int]] = []
    corpus = copied(scenes if form == "mp4" else first_of(scenes), tmp_path)
    render(corpus, form, processes=2, progress=lambda *counts: heard.append(counts))
    total = sum(video.frame_count for video in corpus.videos)
    assert heard[0] == (0, total)
    assert heard[-1] == (total, total)
    assert len(heard) == 1 + (2 if form == "mp4" else -(-total // 25))
    ours, theirs = files_in(folder_of(scenes)), files_in(tmp_path)
    assert len(theirs) == (2 if form == "mp4" else total)
    assert {name: content for name, (_, content) in theirs.items()} == {name: ours[name][1] for name in theirs}


def test_threads_of_one_video_give_the_same_bytes(scenes: Corpus, rendered: dict[Form, Corpus], tmp_path: Path) -> None:
    drawn = render(copied(first_of(scenes), tmp_path), processes=3)
    expected = Path(str(rendered["mp4"].videos[0].source)).read_bytes()
    assert Path(str(drawn.videos[0].source)).read_bytes() == expected


@pytest.mark.parametrize("form", ["mp4", "jpg"])
def test_what_is_there_is_not_drawn_again(
    scenes: Corpus, rendered: dict[Form, Corpus], monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    folder = folder_of(scenes)
    before = files_in(folder)

    def refuse(*_: object) -> None:
        raise AssertionError("nothing is to be drawn")

    monkeypatch.setattr(Scene, "draw", refuse)
    heard: list[tuple[int, int]] = []
    corpus = scenes if form == "mp4" else first_of(scenes)
    again = render(corpus, form, processes=1, progress=lambda *counts: heard.append(counts))
    assert files_in(folder) == before
    assert again.videos == rendered[form].videos
    assert heard == [(sum(video.frame_count for video in corpus.videos),) * 2]


def test_after_an_interruption_what_is_there_is_kept(
    scenes: Corpus, rendered: dict[Form, Corpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = copied(first_of(scenes), tmp_path)
    folder = Path(str(rendered["jpg"].videos[0].source))
    (tmp_path / folder.name).mkdir()
    for image in sorted(folder.iterdir())[60:]:  # as if another process had drawn them
        shutil.copy(image, tmp_path / folder.name)
    draw, drawn = Scene.draw, []

    def stopped(self: Scene, frame: int) -> object:
        drawn.append(frame)
        if len(drawn) == 40:
            raise KeyboardInterrupt
        return draw(self, frame)

    monkeypatch.setattr(Scene, "draw", stopped)
    with pytest.raises(KeyboardInterrupt):
        render(corpus, "jpg", processes=1)
    kept = files_in(tmp_path)
    assert len(kept) == corpus.videos[0].frame_count - 60 + 39
    render(corpus, "jpg", processes=1)
    done, whole = files_in(tmp_path), files_in(folder_of(scenes))
    assert {name: done[name] for name in kept} == kept
    assert drawn[40:] == list(range(39, 60)), "it goes on where it was"
    assert {name: content for name, (_, content) in done.items()} == {name: whole[name][1] for name in done}


def test_a_video_that_was_begun_is_not_there(scenes: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = copied(first_of(scenes), tmp_path)
    draw = Scene.draw

    def stopped(self: Scene, frame: int) -> object:
        if frame == 30:
            raise KeyboardInterrupt
        return draw(self, frame)

    monkeypatch.setattr(Scene, "draw", stopped)
    with pytest.raises(KeyboardInterrupt):
        render(corpus, processes=1)
    assert files_in(tmp_path) == {}


def test_a_changed_scene_is_drawn_again(scenes: Corpus, rendered: dict[Form, Corpus], tmp_path: Path) -> None:
    corpus = copied(scenes, tmp_path)
    for video in rendered["mp4"].videos:
        shutil.copy(str(video.source), tmp_path)
    before = files_in(tmp_path)
    first = Path(str(corpus.videos[0].source))
    SceneFile.load(first).save(first)
    render(corpus, processes=1)
    assert files_in(tmp_path) == before, "saved again without a change"
    changed = simulate_scenes(tmp_path, 1, 1, "study", settings=TINY, difficulty=Difficulty(light=0), processes=1)
    os.utime(str(changed.videos[0].source), ns=(before[f"{changed.videos[0].id}.mp4"][0] + 1,) * 2)
    render(corpus, processes=1)
    after = files_in(tmp_path)
    assert [after[name][1] != before[name][1] for name in sorted(before)] == [True, False]


def test_what_cannot_be_drawn_is_told_in_one_line(scenes: Corpus, tmp_path: Path) -> None:
    corpus = copied(first_of(scenes), tmp_path)
    place = Path(str(corpus.videos[0].source))
    content = place.read_bytes()
    place.write_text("damaged")
    for form in ("mp4", "jpg"):
        with pytest.raises(FileError, match=r"\.scene is not valid JSON") as caught:
            render(corpus, form, processes=1)
        assert "\n" not in str(caught.value)
    place.write_bytes(content)
    place.with_suffix("").write_text("a file where the folder should be")
    with pytest.raises(FileError, match="images cannot be written: "):
        render(corpus, "jpg", processes=1)


def test_no_procedures() -> None:
    assert render(Corpus(())).videos == ()
