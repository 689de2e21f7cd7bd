"""`polypcount simulate` with pixels."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from polypcount.cli.main import app
from polypcount.cli.simulate import Like, PixelFiles, simulate
from polypcount.corpus import Corpus, Video, check
from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.simulate import Difficulty
from polypcount.simulate.scene import Scene
from polypcount.simulate.scene_file import SceneSource
from polypcount.video import open_video
from tests.conftest import Run
from tests.simulate.drawn import difference, write_stills


def run(out: Path, procedures: int = 1, size: str = "96x64", **options: object) -> None:
    simulate(out, procedures, size=size, minutes=0.2, like=Like.STUDY, **options)  # type: ignore[arg-type]


def drawn(video: Video, pixels: Path, frame: int) -> float:
    """How far a frame of a video is from what its scene draws."""
    ((_, picture),) = open_video(video).frames([frame])
    ((_, expected),) = SceneSource(pixels / f"{video.id}.scene").frames([frame])
    return difference(picture, expected)


def test_the_page_names_every_option_and_every_difficulty() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text(encoding="utf-8")
    options = set(re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE))
    command = get_command(app).commands["simulate"]  # type: ignore[attr-defined]
    assert options == {name for option in command.params for name in option.opts if name.startswith("--")}
    names = [field.name for field in fields(Difficulty)]
    assert re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE) == names
    assert f"Difficulty({', '.join(names)})" in page


def test_videos(polypcount: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sim"
    done = polypcount("simulate", out, "--procedures", 1, "--size", "96x64", "--minutes", "0.2", "--like", "study")
    assert (done.returncode, done.stderr) == (0, "")
    corpus = Corpus.load(out)
    (video,) = corpus.videos
    frames = f"{video.frame_count:,} frames"
    assert re.fullmatch(
        rf"{re.escape(str(out))}: 1 .* polyps, \d+ boxes, {frames}, \d+ drawn in a second\n", done.stdout
    )
    assert check(corpus).items == ()
    assert (video.width, video.height) == (96, 64)
    assert drawn(video, out / "pixels", 200) < 7
    with pytest.raises(FileError, match="holds a corpus already"):
        run(out)
    run(out, force=True)
    assert capsys.readouterr().out.endswith(f"{frames}, all there already\n")


def test_images_of_an_odd_size(tmp_path: Path) -> None:
    run(tmp_path, size="97x65", form=PixelFiles.JPG)
    (video,) = Corpus.load(tmp_path).videos
    images = sorted(Path(str(video.source)).iterdir())
    assert [image.name for image in images] == [f"{frame:06d}.jpg" for frame in range(video.frame_count)]
    assert drawn(video, tmp_path / "pixels", 100) < 3


def test_scenes_and_difficulty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pictures = []
    for difficulty in (0, 2):
        out = tmp_path / str(difficulty)
        run(out, form=PixelFiles.SCENES, difficulty=difficulty)
        assert capsys.readouterr().out.endswith("boxes, pixels drawn when read\n")
        corpus = Corpus.load(out)
        assert [file.suffix for file in (out / "pixels").iterdir()] == [".scene"]
        ((_, picture),) = open_video(corpus.videos[0]).frames([int(corpus.boxes.frame[0])])
        pictures.append(picture)
    assert difference(*pictures) > 5


def test_a_recording_without_a_polyp(polypcount: Run, tmp_path: Path) -> None:
    options = ("--procedures", 1, "--size", "96x64", "--minutes", "0.2", "--like", "none", "--as", "scenes")
    done = polypcount("simulate", tmp_path / "sim", *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 simulated, 0 polyps, 0 boxes" in done.stdout
    (video,) = Corpus.load(tmp_path / "sim").videos
    assert video.id == "sim-none-0-000"
    assert next(iter(open_video(video).frames([5])))[1].std() > 5


def test_boxes_of_a_detector(polypcount: Run, tmp_path: Path) -> None:
    options = ("--procedures", 2, "--minutes", 1, "--like", "study", "--timelines-only")
    for kind in ("truth", "detector"):
        assert polypcount("simulate", tmp_path / kind, *options, "--boxes-like", kind).returncode == 0
    truth, found = (Corpus.load(tmp_path / kind) for kind in ("truth", "detector"))
    assert found.polyps == truth.polyps
    assert (found.boxes.polyp == -1).all()
    assert 0.75 < (found.boxes.score >= 0.5).sum() / len(truth.boxes) < 1.1
    assert polypcount("check", tmp_path / "detector").returncode == 0


def test_polyps_from_stills(tmp_path: Path) -> None:
    stills = write_stills(tmp_path / "stills", 4)
    run(tmp_path / "sim", stills=[stills], form=PixelFiles.SCENES)
    scene = next((tmp_path / "sim" / "pixels").iterdir()).read_text()
    assert str(stills / "images") in scene
    with pytest.raises(DataError, match="47 polyps, and there are 4 stills"):
        run(tmp_path / "sim", 19, stills=[stills], form=PixelFiles.SCENES, force=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": "97x64"}, "even width and height, found 97x64"),
        ({"size": "32x32"}, "width must be from 64"),
        ({"stills": [Path("nowhere")]}, "nowhere cannot be "),
        ({"timelines_only": True, "stills": [Path("nowhere")]}, "--timelines-only"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(PolypcountError, match=message):
        run(tmp_path / "out", **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_things_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "pixels").mkdir()
    (tmp_path / "pixels" / "a.scene").write_bytes(b"")
    (tmp_path / "letter.txt").write_bytes(b"")
    with pytest.raises(FileError, match="is not empty and not a corpus"):
        run(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["letter.txt", "pixels"]


def test_stopped_and_started_again_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polypcount.simulate.rendering.available_cores", lambda: 1)
    draw, scenes = Scene.draw, []

    def stopped(self: Scene, frame: int) -> object:
        if self not in scenes:
            scenes.append(self)
        if len(scenes) == 2:
            raise KeyboardInterrupt
        return draw(self, frame)

    with monkeypatch.context() as patch:
        patch.setattr(Scene, "draw", stopped)
        with pytest.raises(KeyboardInterrupt, match="the same command continues from here"):
            run(tmp_path, 2)
    (video,) = (tmp_path / "pixels").glob("*.mp4")
    assert sorted(file.suffix for file in (tmp_path / "pixels").iterdir()) == [".mp4", ".scene", ".scene"]
    assert not (tmp_path / "corpus.json").exists()
    drawn_at = video.stat().st_mtime_ns
    run(tmp_path, 2)
    assert video.stat().st_mtime_ns == drawn_at
    assert max(drawn(video, tmp_path / "pixels", 150) for video in Corpus.load(tmp_path).videos) < 8
