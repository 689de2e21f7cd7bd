"""`polypcount simulate` with pixels, run as its user would."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from polypcount.cli.main import app
from polypcount.corpus import Corpus, Video, check
from polypcount.simulate import Looks
from polypcount.simulate.scene_file import SceneSource
from polypcount.video import open_video
from tests.conftest import Run
from tests.simulate.drawn import difference, write_stills

PROGRAM = Path(sys.executable).with_name("polypcount")
TINY = ("--size", "96x64", "--minutes", "0.2", "--like", "study")


def drawn(video: Video, pixels: Path, frame: int) -> float:
    """How far frame k of a corpus's video is from what its scene draws."""
    ((_, found),) = open_video(video).frames([frame])
    ((_, expected),) = SceneSource(pixels / f"{video.id}.scene").frames([frame])
    return difference(found, expected)


def test_the_page_tells_every_option_and_every_look() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE))
    command = get_command(app).commands["simulate"]  # type: ignore[attr-defined]
    assert told == {name for option in command.params for name in option.opts if name.startswith("--")}
    looks = [field.name for field in fields(Looks)]
    assert re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE) == looks
    assert f"Looks({', '.join(looks)})" in page


def test_videos(polypcount: Run, tmp_path: Path) -> None:
    out = tmp_path / "sim"
    command = ("simulate", out, "--procedures", 1, "--seed", 4, *TINY)
    done = polypcount(*command)
    assert (done.returncode, done.stderr) == (0, "")
    corpus = Corpus.load(out)
    (video,) = corpus.videos
    frames = video.frame_count
    told = rf"{re.escape(str(out))}: 1 simulated, \d+ polyps, \d+ boxes, {frames:,} frames at \d+ frames per second\n"
    assert re.fullmatch(told, done.stdout)
    assert check(corpus).items == ()
    assert (video.width, video.height) == (96, 64)
    assert drawn(video, out / "pixels", 200) < 7
    again = polypcount(*command)
    assert again.returncode == 2
    assert (
        again.stderr == f"polypcount: {out} holds a corpus already; choose another folder, or replace it with --force\n"
    )
    forced = polypcount(*command, "--force")
    assert forced.stdout.endswith(f"{frames:,} frames, all there already\n")


def test_images_of_an_odd_size(polypcount: Run, tmp_path: Path) -> None:
    out = tmp_path / "sim"
    done = polypcount("simulate", out, "--procedures", 1, *TINY, "--size", "97x65", "--as", "jpg")
    assert (done.returncode, done.stderr) == (0, "")
    (video,) = Corpus.load(out).videos
    images = sorted(Path(str(video.source)).iterdir())
    assert [image.name for image in images] == [f"{frame:06d}.jpg" for frame in range(video.frame_count)]
    assert drawn(video, out / "pixels", 100) < 3


def test_scenes_and_difficulty(polypcount: Run, tmp_path: Path) -> None:
    pictures = []
    for difficulty in (0, 2):
        out = tmp_path / str(difficulty)
        done = polypcount("simulate", out, "--procedures", 1, *TINY, "--as", "scenes", "--difficulty", difficulty)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("boxes, pixels drawn when read\n")
        corpus = Corpus.load(out)
        assert [file.suffix for file in (out / "pixels").iterdir()] == [".scene"]
        ((_, picture),) = open_video(corpus.videos[0]).frames([int(corpus.boxes.frame[0])])
        pictures.append(picture)
    assert difference(*pictures) > 5


def test_polyps_from_stills(polypcount: Run, tmp_path: Path) -> None:
    stills = write_stills(tmp_path / "stills", 4)
    command = ("simulate", tmp_path / "sim", *TINY, "--as", "scenes", "--stills", stills)
    done = polypcount(*command, "--procedures", 1)
    assert (done.returncode, done.stderr) == (0, "")
    scene = next((tmp_path / "sim" / "pixels").iterdir()).read_text()
    assert str(stills / "images") in scene
    few = polypcount(*command, "--procedures", 19, "--force")
    assert few.returncode == 2
    assert few.stderr == (
        "polypcount: 19 procedures have 47 polyps, and there are 4 stills; simulate fewer procedures or add stills\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "97x64"), "a video needs an even width and height, found 97x64"),
        (("--size", "32x32"), "frames must be 64 to 16384 pixels wide and high, found 32 x 32"),
        (("--stills", "nowhere"), "nowhere cannot be "),
        (("--stills", "."), "has no stills with masks; images/ and masks/ with files of the same name are expected"),
        (("--minutes", "0.1"), "minutes must be between 0.2 and 1000, found 0.1"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = subprocess.run([PROGRAM, "simulate", "out", *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_things_is_not_written_to(polypcount: Run, tmp_path: Path) -> None:
    (tmp_path / "pixels").mkdir()
    (tmp_path / "pixels" / "holiday.jpg").write_bytes(b"")
    done = polypcount("simulate", tmp_path, *TINY)
    assert done.returncode == 2
    assert "is not empty and not a corpus; choose a new folder" in done.stderr
    (tmp_path / "pixels" / "a.scene").write_bytes(b"")
    (tmp_path / "letter.txt").write_bytes(b"")
    assert polypcount("simulate", tmp_path, *TINY).returncode == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["letter.txt", "pixels"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a group of processes")
def test_stopped_and_started_again_it_goes_on(tmp_path: Path) -> None:
    out, pixels = tmp_path / "sim", tmp_path / "sim" / "pixels"
    command = [str(PROGRAM), "simulate", str(out), "--procedures", "3", *TINY]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(pixels.glob("*.mp4")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=30)[1]
    assert process.returncode != 0
    assert time.monotonic() - begun < 15
    assert told == "polypcount: stopped; the same command goes on from here\n"
    assert not [file for file in pixels.iterdir() if file.name.startswith(".")], "nothing half written is left"
    assert not (out / "corpus.json").exists()
    kept = {file: file.stat().st_mtime_ns for file in pixels.iterdir()}
    videos = [file for file in kept if file.suffix == ".mp4"]
    assert 1 <= len(videos) < 3
    again = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    corpus = Corpus.load(out)
    assert len(corpus.videos) == 3
    assert max(drawn(video, pixels, 150) for video in corpus.videos) < 8
