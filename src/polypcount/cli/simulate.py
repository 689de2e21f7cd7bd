"""`polypcount simulate`: procedures with known polyps."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Like(StrEnum):
    """The parts of REAL-Colon that procedures can take after."""

    ALL = "all"
    TRAIN = "train"
    STUDY = "study"


def simulate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the corpus to.")],
    timelines_only: Annotated[
        bool, typer.Option("--timelines-only", help="Who is visible when and where, without any pixels.")
    ] = False,
    procedures: Annotated[int, typer.Option(min=1, help="How many.")] = 19,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same procedures.")] = 0,
    like: Annotated[Like, typer.Option(help="Take after these procedures of REAL-Colon.")] = Like.ALL,
    size: Annotated[str, typer.Option(metavar="WxH", help="Size of the frames in pixels.")] = "1240x1080",
    force: Annotated[bool, typer.Option("--force", help="Replace a corpus that is already in OUT.")] = False,
) -> None:
    """Simulate procedures with known polyps and write them as a corpus.

    Lengths, frame rates and numbers of polyps are those of REAL-Colon.
    """
    from polypcount.cli.output import refuse_existing
    from polypcount.cli.progress import show_progress
    from polypcount.cli.texts import parse_size
    from polypcount.errors import DataError
    from polypcount.simulate import TimelineSettings, simulate_timelines

    if not timelines_only:
        raise DataError("this version simulates timelines without pixels only; add --timelines-only")
    width, height = parse_size(size)
    refuse_existing(out, force)
    settings = TimelineSettings(width=width, height=height)
    with show_progress("simulating procedures") as progress:
        corpus = simulate_timelines(procedures, seed, like.value, settings, progress)
    corpus.save(out)
    typer.echo(
        f"{out}: {len(corpus.videos):,} simulated, {len(corpus.polyps):,} polyps, "
        f"{len(corpus.boxes):,} boxes, no pixels"
    )
