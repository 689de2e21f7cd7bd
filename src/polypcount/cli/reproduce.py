"""`polypcount reproduce`: the paper's tables, from data to numbers beside the published ones."""

import dataclasses
import signal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polypcount.cli.reproduce_data import GivenData
from polypcount.cli.reproduce_plan import show_data, show_forecast
from polypcount.cli.study import GridPreset
from polypcount.cli.texts import harmless
from polypcount.cli.train import VIEWS_AT_ONCE, Precision, show_log

if TYPE_CHECKING:
    from polypcount.evaluation.tables import Table
    from polypcount.reproduce import Benchmark

# For two cores and no GPU: the backbone is not trained, so its features are computed once.
_SMALL = (
    "model.backbone=lite0",
    "model.layers=2",
    "model.ff=512",
    "crop.size=128",
    "crop.scale=2",
    "optimizer.backbone_factor=0",
    "optimizer.lr=5e-4",
    "optimizer.schedule=cosine",
    "optimizer.warmup=0.1",
    "data.validation=[]",
    "data.validation_share=0",
    "validation.monitor=last",
)


class Equal(StrEnum):
    """What all encoders of a comparison have as many of."""

    STEPS = "steps"
    IMAGES = "images"


_DATASET = "Folder of this dataset."
_STOPPED = "polypcount: stopped; the same command continues from here"


def reproduce(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Folder for everything.")],
    real_colon: Annotated[Path | None, typer.Option(metavar="DIR", help=_DATASET)] = None,
    ldpolypvideo: Annotated[Path | None, typer.Option(metavar="DIR", help=_DATASET)] = None,
    sun: Annotated[Path | None, typer.Option(metavar="DIR", help=_DATASET)] = None,
    polypsset: Annotated[Path | None, typer.Option(metavar="DIR", help=_DATASET)] = None,
    e2e: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The combined COCO files of the paper's authors.")
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="An imported corpus; its split `study` is studied. Repeat for several."),
    ] = None,
    simulated: Annotated[bool, typer.Option("--simulated", help="On rendered procedures instead.")] = False,
    stills: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --simulated: images with masks to animate.")
    ] = None,
    identities: Annotated[int, typer.Option(min=1, help="With --simulated: how many polyps to learn from.")] = 170,
    looks: Annotated[
        str, typer.Option(metavar="NAME=X,...", help="With --simulated: strength of difficulties, such as light=2.")
    ] = "",
    renders: Annotated[str, typer.Option(help="With --simulated: numbers of renders, such as 0,1,2.")] = "0",
    rows: Annotated[
        str, typer.Option(help="Only these rows or tables, such as ours,tpc or table-1; all, if not given.")
    ] = "",
    seeds: Annotated[
        str, typer.Option(help="Train each encoder with each, such as 0,1,2.", show_default="42, simulated 0")
    ] = "",
    small: Annotated[
        bool | None,
        typer.Option(
            "--small/--full",
            help="Lite0 frozen, 128 pixels, only the rest is trained; or the recipes of the paper.",
            show_default="small with --simulated",
        ),
    ] = None,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="Every setting as in the published code, see the recipe published.")
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change all recipes, such as --set optimizer.lr=1e-4."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="For all trainings together, in equal shares.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Steps of the temporally-aware encoder, and of all others.", show_default="those of its epochs"
        ),
    ] = None,
    equal: Annotated[Equal, typer.Option(help="What all encoders have as many of.")] = Equal.STEPS,
    grid: Annotated[
        GridPreset | None,
        typer.Option(help="Points to search in studies.", show_default="paper, simulated coarse"),
    ] = None,
    target_fpr: Annotated[float, typer.Option(help="False positive rate to work at.")] = 0.05,
    threads: Annotated[int | None, typer.Option(min=1, help="Cores to use; all, if not given.")] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="auto|onnx|openvino|torch",
            help="What computes vectors, see embed. auto takes torch where training is on CUDA.",
        ),
    ] = "auto",
    accelerator: Annotated[
        str, typer.Option(help="Of training: auto, cpu, cuda, mps, or another one of Lightning.")
    ] = "auto",
    devices: Annotated[int, typer.Option(min=1, help="Devices for each training; each gets a process.")] = 1,
    precision: Annotated[Precision, typer.Option(help="Of training: 32, or mixed with bf16 or 16.")] = Precision.FULL,
    views_at_once: Annotated[
        int | None,
        typer.Option(min=1, help=VIEWS_AT_ONCE, show_default="as many as fit into the memory"),
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Download the backbone's weights if needed.")] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Print the data, steps, hours, disk and memory, from a short trial, and stop."),
    ] = False,
) -> None:
    """Train, embed and study everything that the paper compares, and write its tables beside the published numbers.

    When it is stopped and started again, it continues, and computes nothing twice. Rows can be run one at a time into
    the same folder.
    """
    from polypcount.cli.progress import show_progress
    from polypcount.cli.start import continuable
    from polypcount.errors import DataError, PolypcountError

    try:
        from polypcount import reproduce as room
        from polypcount.training import Machine, Stopped
    except ModuleNotFoundError as problem:
        raise PolypcountError(f"training needs {problem.name}: pip install 'polypcount[train]'") from None
    pairs = zip(room.DATASETS, (real_colon, ldpolypvideo, sun, polypsset), strict=True)
    given = GivenData({name: folder for name, folder in pairs if folder is not None}, e2e, tuple(corpus or ()))
    given.refuse_unsuitable(simulated)
    if stills is not None and not simulated:
        raise DataError("--stills are for --simulated")
    if as_published and small:
        raise DataError("--small and --as-published are two different settings; give one of them")
    if as_published and views_at_once is not None:
        raise DataError("--as-published takes statistics over whole batches, so it does not go with --views-at-once")
    chosen = _SMALL if small or (small is None and simulated and not as_published) else ()
    settings = room.ReproduceSettings(
        rows=room.choose_rows(rows.split(",")),
        seeds=_numbers("--seeds", seeds or ("0" if simulated else "42")),
        as_published=as_published,
        changes=(*chosen, *(changes or ())),
        study=room.StudySettings((grid or (GridPreset.COARSE if simulated else GridPreset.PAPER)).value, target_fpr),
        length=room.TrainingLength(budget, steps, equal.value),
        stride=None if chosen else 4,  # None looks at fewer boxes than the paper: three times as fast
        sparse=simulated,
        threads=threads,
        machine=Machine(accelerator, devices, 1, precision.value, views_at_once, threads),
        engine=engine,
        download=download,
    )
    numbers = _numbers("--renders", renders)
    strengths = _strengths(looks)
    room.refuse_unsuitable(out)
    show_log("polypcount.reproduce")
    if threads is not None:
        import torch

        torch.set_num_threads(threads)

    def benchmarks() -> "list[Benchmark]":
        if given:
            return [given.benchmark(out / "corpora", show_progress, tables_suffice=plan)]
        return [
            room.simulated_benchmark(
                number,
                out / "corpora" / f"render-{number}",
                stills=stills,
                identities=identities,
                looks=strengths,
                stage=show_progress,
            )
            for number in numbers
        ]

    try:
        with continuable():
            data, impossible = benchmarks(), ""
            if plan:
                show_data(data)
            if given:
                possible, impossible = room.possible_rows(data[0], settings.rows, given.folder)
                if not len(data[0].study.boxes):
                    possible, impossible = [], f"not possible: any row: {given.folder} has no boxes of study videos"
                if not possible and not plan:
                    raise DataError(impossible)
                settings = dataclasses.replace(settings, rows=possible)
            for line in filter(None, (impossible, *(each.note for each in data))):
                typer.echo(f"polypcount: {harmless(line)}", err=True)
            if plan:
                if settings.rows:
                    show_forecast(room.forecast(data, out, settings, show_progress), settings)
                return
            outcome = room.reproduce(data, out, settings, show_progress)
    except Stopped as stopped:
        typer.echo(_STOPPED, err=True)
        raise typer.Exit(128 + (stopped.signal or signal.SIGINT)) from None
    for table in outcome.tables.values():
        _print(table)
    typer.echo(f"{out}: {', '.join(outcome.tables)} as .md, .csv and .tex, figures, {room.MANIFEST}")
    for line in outcome.failures:
        typer.echo(f"polypcount: failed: {harmless(line)}", err=True)
    if outcome.failures or (impossible and rows):
        raise typer.Exit(2)


def _numbers(option: str, text: str) -> tuple[int, ...]:
    from polypcount.errors import DataError

    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) < 2**32 for part in parts):
        raise DataError(f"{option} must be whole numbers from 0, separated by commas, found {text!r}")
    return tuple(dict.fromkeys(map(int, parts)))


def _print(table: "Table") -> None:
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable(box=None, title=table.title, title_justify="left")
    titles = ("row", "rule", "FR", "FPR", "pair AUC", "runs", "published FR")
    for title in titles:
        shown.add_column(title, justify="left" if title in ("row", "rule") else "right", overflow="fold")
    for row in table.rows:
        cells = {title: row[table.header.index(title)] for title in titles}
        for title in ("FPR", "published FR"):  # the files have the rest
            cells[title] = cells[title].partition(" ")[0]
        shown.add_row(*cells.values())
    Console().print(shown)


def _strengths(text: str) -> dict[str, float]:
    """Numbers by name, from a text such as `light=2,view=0.5`."""
    from polypcount.errors import DataError

    strengths = {}
    for part in filter(None, text.replace(" ", "").split(",")):
        name, _, value = part.partition("=")
        try:
            strengths[name] = float(value)
        except ValueError:
            raise DataError(f"--looks takes numbers by name, such as light=2,view=0.5, found {part!r}") from None
    return strengths
