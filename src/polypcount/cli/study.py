"""`polypcount study`: how well methods group the tracklets of videos with known polyps."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from polypcount.corpus import Embeddings
    from polypcount.evaluation import Study


class GridPreset(StrEnum):
    """Search grids."""

    PAPER = "paper"
    COARSE = "coarse"
    FINE = "fine"


class Similarity(StrEnum):
    """How looks are compared."""

    MINMAX_EUCLIDEAN = "minmax-euclidean"
    COSINE = "cosine"


class Average(StrEnum):
    """How the FPR of several videos becomes one."""

    DEFINED = "defined"
    ZERO_FILLED = "zero-filled"
    POOLED = "pooled"


def study(
    embeddings: Annotated[
        Path, typer.Argument(metavar="EMBEDDINGS", help="File of tracklet vectors, .parquet or .npz.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Separated by commas: threshold, agglomerative, temporal-agglomerative, ap, temporal-ap, time-only. "
            "None and oracle, the two ends, are always added; and time-only beside a temporal method."
        ),
    ] = "threshold,ap,temporal-ap",
    target_fpr: Annotated[float, typer.Option(help="False positive rate to work at.")] = 0.05,
    grid: Annotated[
        GridPreset, typer.Option(help="Points to search; temporal-ap has 29,274 in paper.")
    ] = GridPreset.PAPER,
    similarity: Annotated[Similarity, typer.Option(help="How looks are compared.")] = Similarity.MINMAX_EUCLIDEAN,
    fix: Annotated[
        str, typer.Option(metavar="NAME=VALUE,...", help="Do not search: these parameters, such as alpha=0.5,gamma=5.")
    ] = "",
    min_frames: Annotated[int, typer.Option(min=0, help="Leave shorter tracklets out.")] = 30,
    cannot_link: Annotated[
        bool, typer.Option("--cannot-link", help="Keep tracklets with boxes in one frame apart.")
    ] = False,
    fpr_average: Annotated[
        Average, typer.Option(help="FPR to choose by: over videos with two polyps, with 0 for the rest, or all pairs.")
    ] = Average.DEFINED,
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave out tracklets whose polyp is not known.")
    ] = False,
    draw: Annotated[
        list[str] | None, typer.Option(metavar="VIDEO", help="Draw only this video; may be given again. Default: all.")
    ] = None,
    no_draw: Annotated[bool, typer.Option("--no-draw", help="Draw no single video.")] = False,
    for_counting: Annotated[
        Path | None,
        typer.Option(
            metavar="ENCODER",
            help="Keep the point that counts these videos best beside this encoder, for polypcount count.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a study that is already in OUT.")] = False,
) -> None:
    """Leave-one-out study: choose parameters on all videos but one, judge them on that one.

    Stopped and started again, it goes on where it was.
    """
    from polypcount.cli.progress import show_progress
    from polypcount.corpus import Embeddings
    from polypcount.errors import DataError
    from polypcount.evaluation import leave_one_out
    from polypcount.evaluation.study_folder import SWEEPS, refuse_unsuitable_study, save_study

    names, parameters = _methods(methods), _parameters(fix)
    refuse_unsuitable_study(out, force)
    vectors = Embeddings.load(embeddings)
    if for_counting is not None:
        _refuse_other_encoder(for_counting, vectors)
    drawn = [] if no_draw else draw or None
    with_polyps = sorted({str(polyp.video) for polyp in vectors.polyps})
    for name in set(drawn or ()) - set(with_polyps):
        raise DataError(f"--draw: there is no video {name} with a polyp; there are: {', '.join(with_polyps[:20])}")
    try:
        with show_progress("grid points") as progress:
            found = leave_one_out(
                vectors,
                names,
                target_fpr=target_fpr,
                grid=grid.value,
                similarity=similarity.value,
                parameters=parameters,
                min_frames=min_frames,
                drop_unlabelled=drop_unlabelled,
                cannot_link=cannot_link,
                fpr_average=fpr_average.value,
                folder=out / SWEEPS,
                progress=progress,
            )
        with show_progress("drawing videos") as progress:
            save_study(found, out, vectors, videos=drawn, progress=progress)
    except KeyboardInterrupt:
        typer.echo("polypcount: stopped; the same command goes on from here", err=True)
        raise
    _print(found)
    if for_counting is not None:
        _keep_point(for_counting, vectors, embeddings.name, min_frames)
    typer.echo(f"{out}: study.json, tables (summary, videos, vectors), figures")


def _refuse_other_encoder(folder: Path, vectors: "Embeddings") -> None:
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError

    if load_encoder(folder, threads=1).fingerprint != vectors.encoder:
        raise DataError(f"--for-counting: the vectors are not of the encoder {folder}; embed the videos with it")


def _keep_point(folder: Path, vectors: "Embeddings", name: str, min_frames: int) -> None:
    from polypcount.encoder import keep_counting_point
    from polypcount.evaluation import counting_point

    point = counting_point([vectors], f"{len(vectors.videos)} videos of {name}", min_frames=min_frames)
    told = point["measured"]
    typer.echo(
        f"{keep_counting_point(folder, point)}: counts {told['selection_exact']:.0%} of these videos right, "
        f"mean absolute error {told['selection_mean_absolute_error']:.2f}, FPR {told['selection_fpr']:.3f}"
    )


def _methods(given: str) -> list[str]:
    """The methods asked for, between the two ends, with the baseline that tells what images add to time."""
    from polypcount.clustering import METHODS
    from polypcount.errors import DataError

    asked = [name.strip() for name in given.split(",") if name.strip()]
    for name in asked:
        if name not in METHODS:
            raise DataError(f"--methods: there is no method {name!r}; there are: {', '.join(METHODS)}")
    if not asked:
        raise DataError(f"--methods names none; there are: {', '.join(METHODS)}")
    wanted = {"none", "oracle", *asked}
    if any(METHODS[name].needs_positions for name in asked):
        wanted.add("time-only")
    return [name for name in METHODS if name in wanted]


def _parameters(given: str) -> dict[str, float] | None:
    from polypcount.errors import DataError

    if not given:
        return None
    parameters = {}
    for part in given.split(","):
        name, _, value = (text.strip() for text in part.partition("="))
        if name in parameters:
            raise DataError(f"--fix names {name} twice")
        try:
            parameters[name] = float(value)
        except ValueError:
            raise DataError(f"--fix takes NAME=VALUE,... such as alpha=0.5,gamma=5, found {part!r}") from None
    return parameters


def _print(found: "Study") -> None:
    from rich.console import Console
    from rich.table import Table as Shown

    from polypcount.cli.texts import harmless
    from polypcount.evaluation.tables import summary_table

    table = summary_table(found)
    shown = Shown(box=None)
    for place, title in {0: "method", 1: "rule", 2: "FR", 4: "FPR", 6: "selected at"}.items():
        shown.add_column(title, justify="left" if place < 2 else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*(harmless(row[place]) for place in (0, 1, 2, 4, 6)))
    console = Console()
    console.print(shown)
    for note in table.notes:
        console.print(note, markup=False, highlight=False)
