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
    """How images are compared."""

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
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Separated by commas: threshold, agglomerative, temporal-agglomerative, ap, temporal-ap, time-only. "
            "The references none and oracle are always added, and time-only beside a temporal method."
        ),
    ] = "threshold,ap,temporal-ap",
    target_fpr: Annotated[float, typer.Option(help="False positive rate to work at.")] = 0.05,
    grid: Annotated[
        GridPreset, typer.Option(help="Points to search; temporal-ap has 29,274 in paper.")
    ] = GridPreset.PAPER,
    similarity: Annotated[Similarity, typer.Option(help="How images are compared.")] = Similarity.MINMAX_EUCLIDEAN,
    fix: Annotated[
        str,
        typer.Option(metavar="NAME=VALUE,...", help="Fix parameters, such as alpha=0.5,gamma=5, and do not search."),
    ] = "",
    min_frames: Annotated[int, typer.Option(min=0, help="Leave shorter tracklets out.")] = 30,
    cannot_link: Annotated[
        bool, typer.Option("--cannot-link", help="Keep tracklets with boxes in one frame apart.")
    ] = False,
    fpr_average: Annotated[
        Average,
        typer.Option(help="FPR to choose by: over videos with two polyps, with 0 for the others, or over all pairs."),
    ] = Average.DEFINED,
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave out tracklets without a known polyp.")
    ] = False,
    draw: Annotated[
        list[str] | None, typer.Option(metavar="VIDEO", help="Draw only this video; can be repeated. Default: all.")
    ] = None,
    no_draw: Annotated[bool, typer.Option("--no-draw", help="Draw no figures of single videos.")] = False,
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

    An interrupted study continues where it stopped when the same command runs again.
    """
    from polypcount.cli.progress import show_progress
    from polypcount.cli.start import continuable
    from polypcount.corpus import Embeddings
    from polypcount.errors import DataError
    from polypcount.evaluation import leave_one_out
    from polypcount.evaluation.study_folder import SWEEPS, refuse_unsuitable_study, save_study
    from polypcount.storage import only_writer

    names, parameters = _methods(methods), _parameters(fix)
    refuse_unsuitable_study(out, force)
    vectors = Embeddings.load(embeddings)
    if for_counting is not None:
        _refuse_other_vectors(for_counting, vectors)
    to_draw = [] if no_draw else draw or None
    with_polyps = sorted({str(polyp.video) for polyp in vectors.polyps})
    for name in set(to_draw or ()) - set(with_polyps):
        raise DataError(f"--draw: there is no video {name} with a polyp; there are: {', '.join(with_polyps[:20])}")
    with only_writer(out, "writing a study"), continuable():
        with show_progress("grid points") as progress:
            result = leave_one_out(
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
            save_study(result, out, vectors, videos=to_draw, progress=progress)
    _print(result)
    if for_counting is not None:
        _keep_point(for_counting, vectors, embeddings.name)
    typer.echo(f"{out}: study.json, tables (summary, videos, vectors), figures")


def _refuse_other_vectors(folder: Path, vectors: "Embeddings") -> None:
    from polypcount.counting.calibration import refuse_other_boxes
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError

    refuse_other_boxes(vectors.provenance)
    if load_encoder(folder, threads=1).fingerprint != vectors.encoder:
        raise DataError(f"--for-counting: the vectors are not of the encoder {folder}; embed the videos with it")


def _keep_point(folder: Path, vectors: "Embeddings", name: str) -> None:
    from polypcount.counting import calibrate, write_operating_points
    from polypcount.counting.calibration import DEFAULT_METHOD

    points = calibrate([vectors], f"{len(vectors.videos)} videos of {name}")
    measured = points[DEFAULT_METHOD].measured
    typer.echo(
        f"{write_operating_points(folder, points, DEFAULT_METHOD)}: counts {measured['selection_exact']:.0%} of these "
        f"videos right, mean absolute error {measured['selection_mean_absolute_error']:.2f}, "
        f"FPR {measured['selection_fpr']:.3f}"
    )


def _methods(text: str) -> list[str]:
    """The requested methods, the references none and oracle, and time-only to compare temporal methods with."""
    from polypcount.clustering import METHODS
    from polypcount.errors import DataError

    names = {name.strip() for name in text.split(",") if name.strip()}
    if not names or (unknown := sorted(names - set(METHODS))):
        problem = f"there is no method {unknown[0]!r}" if names else "no method is named"
        raise DataError(f"--methods: {problem}; there are: {', '.join(METHODS)}")
    names |= {"none", "oracle", *(["time-only"] if any(METHODS[name].needs_positions for name in names) else [])}
    return [name for name in METHODS if name in names]


def _parameters(text: str) -> dict[str, float] | None:
    from polypcount.errors import DataError

    parameters: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name in parameters:
            raise DataError(f"--fix names {name} twice")
        try:
            parameters[name] = float(value)
        except ValueError:
            raise DataError(f"--fix takes NAME=VALUE,... such as alpha=0.5,gamma=5, found {part!r}") from None
    return parameters or None


def _print(study: "Study") -> None:
    from rich.console import Console
    from rich.table import Table as RichTable

    from polypcount.cli.texts import harmless
    from polypcount.evaluation.tables import summary_table

    table = summary_table(study)
    lines = RichTable(box=None)
    for column, title in {0: "method", 1: "rule", 2: "FR", 4: "FPR", 6: "selected at"}.items():
        lines.add_column(title, justify="left" if column < 2 else "right", overflow="fold")
    for row in table.rows:
        lines.add_row(*(harmless(row[column]) for column in (0, 1, 2, 4, 6)))
    console = Console()
    console.print(lines)
    for note in table.notes:
        console.print(note, markup=False, highlight=False)
