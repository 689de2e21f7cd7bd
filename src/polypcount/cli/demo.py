"""`polypcount demo`: draw a procedure, count it and write a report, with nothing but what is installed."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from polypcount.corpus import Corpus

_FOLDER = Path("polypcount-demo")
_PARTS = {"recording", "boxes", "report"}  # what a demo writes
_SEED = 1  # the first whose procedure has several polyps, whatever is counted in it


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="New folder.", show_default="polypcount-demo")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another procedure.")] = _SEED,
    minutes: Annotated[float, typer.Option(min=0.2, max=30, help="Length of the procedure.")] = 1.0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier demo in the folder.")] = False,
) -> None:
    """Draw a short procedure, count its polyps, and write a report. Needs no data, no network and no GPU.

    The procedure is synthetic. The boxes are those of the simulation, without their polyps, as a detector would give
    them. The true number of polyps is printed beside the count.
    """
    from polypcount.cli.count_words import counted, review_command
    from polypcount.cli.progress import show_progress
    from polypcount.cli.texts import harmless
    from polypcount.counting import count
    from polypcount.importers import write_boxes

    folder = out or (_FOLDER if force else _new_folder())
    if folder.exists():
        _remove_earlier(folder, force=force)
    corpus = _drawn(folder, seed, minutes)
    video, boxes = corpus.videos[0], _without_polyps(corpus)
    write_boxes(boxes, "csv", folder / "boxes")
    recording = Path(str(video.source))
    with show_progress("counting: frames") as progress:
        report = count(recording, boxes, progress=progress)
    report.save(folder / "report")
    truth = len(corpus.polyps)
    tracklets = "1 tracklet" if len(report.tracklets) == 1 else f"{len(report.tracklets)} tracklets"
    typer.echo(f"Counted {counted(report)} in {tracklets}; there {'is' if truth == 1 else 'are'} {truth}.")
    typer.echo(f"recording: {harmless(str(recording))}")
    typer.echo(f"boxes:     {harmless(str(folder / 'boxes'))}")
    typer.echo(f"report:    {harmless(str(folder / 'report' / 'report.html'))}")
    typer.echo(f"review:    {review_command(folder / 'report')}")
    typer.echo("The same for a recording of yours: polypcount count case.mp4 --boxes case.json")


def _new_folder() -> Path:
    """The folder polypcount-demo here or, if it exists, the same name with the first free number."""
    folder, number = _FOLDER, 1
    while folder.exists():
        number += 1
        folder = Path(f"{_FOLDER}-{number}")
    return folder


def _remove_earlier(folder: Path, *, force: bool) -> None:
    """Remove an earlier demo, and nothing else."""
    from polypcount.errors import FileError

    if not force:
        raise FileError(f"{folder} exists already; choose a new folder, or replace the demo in it", mend="force")
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() and not folder.is_symlink() else {""}
    if not names <= _PARTS:
        raise FileError(f"{folder} holds more than a demo, so it is not replaced; choose a new folder")
    shutil.rmtree(folder)


def _drawn(folder: Path, seed: int, minutes: float) -> "Corpus":
    from polypcount.cli.progress import show_progress
    from polypcount.simulate import TimelineSettings, render, simulate_scenes

    # Short, and with polyps that are lost and found again within it.
    settings = TimelineSettings(
        width=640,
        height=512,
        minutes=minutes,
        run_seconds=2.0,
        run_spread=0.25,
        lost_seconds=1.0,
        lost_spread=0.5,
        more_episodes=0.9,
        late_return=0.5,
    )
    corpus = simulate_scenes(folder / "recording", 1, seed, "study", settings=settings)
    polyps = "1 synthetic polyp" if len(corpus.polyps) == 1 else f"{len(corpus.polyps)} synthetic polyps"
    typer.echo(f"Drawing a procedure of {minutes * 60:.0f} seconds with {polyps}.")
    with show_progress("drawing: frames") as progress:
        return render(corpus, "mp4", progress=progress)


def _without_polyps(corpus: "Corpus") -> "Corpus":
    """The boxes as a detector gives them, without polyps."""
    from polypcount.corpus import Boxes, Corpus

    boxes = corpus.boxes
    return Corpus(corpus.videos, Boxes(boxes.video, boxes.frame, boxes.xyxy, boxes.score))
