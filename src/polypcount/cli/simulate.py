"""`polypcount simulate`: procedures with known polyps."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from polypcount.corpus import Corpus
    from polypcount.simulate import TimelineSettings

_PIXELS = "pixels"  # folder below OUT for scenes and what is drawn from them


class Like(StrEnum):
    """The parts of REAL-Colon that procedures can be modelled on; "none" is its procedures without a polyp."""

    ALL = "all"
    TRAIN = "train"
    STUDY = "study"
    NONE = "none"


class BoxesLike(StrEnum):
    """Whose boxes are written."""

    TRUTH = "truth"
    DETECTOR = "detector"


class PixelFiles(StrEnum):
    """What pixels are written as."""

    MP4 = "mp4"
    JPG = "jpg"
    SCENES = "scenes"


def simulate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the corpus to.")],
    procedures: Annotated[int, typer.Option(min=1, help="How many.")] = 19,
    stills: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Take polyps from these stills with masks, such as Kvasir-SEG; can be given again. If not given, "
            "draw them.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same procedures.")] = 0,
    like: Annotated[
        Like, typer.Option(help="Model them on these procedures of REAL-Colon; none: those without a polyp.")
    ] = Like.ALL,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the frames in pixels.")] = "640x512",
    minutes: Annotated[
        float, typer.Option(min=0, help="Longest procedure; 0 for the lengths of REAL-Colon, some 25 minutes.")
    ] = 2.0,
    difficulty: Annotated[
        float, typer.Option(min=0, max=2, help="Of telling polyps apart: 1 as in the study preset, 0 clean and plain.")
    ] = 1.0,
    form: Annotated[
        PixelFiles,
        typer.Option("--as", help="A video or images for each; or scenes, whose pixels are drawn when read."),
    ] = PixelFiles.MP4,
    boxes_like: Annotated[
        BoxesLike,
        typer.Option(
            "--boxes-like", help="The true boxes, or those of a detector: misses, jitter, false alarms, scores."
        ),
    ] = BoxesLike.TRUTH,
    timelines_only: Annotated[
        bool, typer.Option("--timelines-only", help="Which polyp is visible when and where, without any pixels.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a corpus that is already in OUT.")] = False,
) -> None:
    """Simulate procedures with known polyps and write them as a corpus.

    Frame rates and numbers of polyps are those of REAL-Colon. What is drawn is synthetic; with --stills, polyps are
    real ones that a simulated camera moves over. If it is stopped, the same command continues.
    """
    from polypcount.cli.output import refuse_existing
    from polypcount.cli.progress import show_progress
    from polypcount.cli.texts import parse_size
    from polypcount.errors import DataError
    from polypcount.simulate import TimelineSettings, as_detected, simulate_timelines

    width, height = parse_size(size)
    if not _is_unfinished(out):
        refuse_existing(out, force)
    settings = TimelineSettings(width=width, height=height, minutes=minutes or None)
    if timelines_only and stills:
        raise DataError("--stills are for pixels, and --timelines-only has none; leave one of them out")
    if timelines_only:
        with show_progress("simulating procedures") as progress:
            corpus = simulate_timelines(procedures, seed, like.value, settings, progress)
        pixels = "no pixels"
    else:
        corpus, pixels = _draw(out, procedures, stills or [], seed, like, settings, difficulty, form)
    if boxes_like is BoxesLike.DETECTOR:
        corpus = as_detected(corpus, seed)
    corpus.save(out)
    typer.echo(
        f"{out}: {len(corpus.videos):,} simulated, {len(corpus.polyps):,} polyps, {len(corpus.boxes):,} boxes, {pixels}"
    )


def _is_unfinished(out: Path) -> bool:
    """Whether the folder holds only what a stopped simulation leaves: pixels, and tables that were being saved."""
    from polypcount.storage import remove_leftovers

    pixels = out / _PIXELS
    if not pixels.is_dir():
        return False
    remove_leftovers(pixels)
    if any(pixels.iterdir()) and not any(pixels.glob("*.scene")):
        return False
    return all(entry.name == _PIXELS or entry.name.lstrip(".").startswith("tables-") for entry in out.iterdir())


def _draw(
    out: Path,
    procedures: int,
    stills: list[Path],
    seed: int,
    like: Like,
    settings: "TimelineSettings",
    difficulty: float,
    form: PixelFiles,
) -> "tuple[Corpus, str]":
    """The corpus, and a description of its pixels."""
    from polypcount.cli.progress import show_progress
    from polypcount.cli.start import continuable
    from polypcount.errors import DataError
    from polypcount.simulate import Difficulty, list_stills, render, simulate_scenes

    if form is PixelFiles.MP4 and (settings.width % 2 or settings.height % 2):
        raise DataError(f"a video needs an even width and height, found {settings.width}x{settings.height}")
    with continuable():
        chosen = None
        if stills:
            with show_progress("looking at stills") as progress:
                chosen = [still for folder in stills for still in list_stills(folder, progress)]
        with show_progress("laying out procedures") as progress:
            corpus = simulate_scenes(
                out / _PIXELS,
                procedures,
                seed,
                like.value,
                stills=chosen,
                difficulty=Difficulty(*[difficulty] * 6),
                settings=settings,
                progress=progress,
            )
        if form is PixelFiles.SCENES:
            return corpus, "pixels drawn when read"
        counts, started = [], time.monotonic()
        with show_progress("drawing frames") as progress:

            def count(done: int, total: int) -> None:
                counts.append(done)
                progress(done, total)

            corpus = render(corpus, "mp4" if form is PixelFiles.MP4 else "jpg", progress=count)
    speed = (counts[-1] - counts[0]) / max(time.monotonic() - started, 1e-3)  # without those that were there already
    return corpus, f"{counts[-1]:,} frames" + (f", {speed:.0f} drawn in a second" if speed else ", all there already")
