"""`polypcount train`: an encoder that recognises a polyp again, or a detector that finds polyps."""

import importlib.util
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polypcount.cli.texts import harmless, with_options
from polypcount.progress import Progress

if TYPE_CHECKING:
    from polypcount.training import Moment

VIEWS_AT_ONCE = "Encode so many views of a batch at a time: less memory, same gradient."
_NEEDED = ("torch", "lightning", "transformers", "safetensors", "onnx", "pydantic", "yaml")


class Precision(StrEnum):
    """Precision of numbers on the device."""

    FULL = "32"
    BF16 = "bf16"
    FP16 = "16"


def train(
    corpus: Annotated[
        Path | None, typer.Argument(metavar="CORPUS", help="Folder that polypcount has written.", show_default=False)
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="sfe, mve, tpc, supervised, temporal, published, small, detector, or a YAML file. --resume takes the "
            "run's.",
            show_default="temporal",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="RUN", help="Folder for everything of the run.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe, such as --set optimizer.lr=1e-4."),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the whole recipe and stop.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in RUN.")] = False,
    accelerator: Annotated[str, typer.Option(help="auto, cpu, cuda, mps, or another one of Lightning.")] = "auto",
    devices: Annotated[int, typer.Option(min=1, help="Devices on each node; each gets a process.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines that train together.")] = 1,
    precision: Annotated[Precision, typer.Option(help="32, or mixed with bf16 or 16.")] = Precision.FULL,
    views_at_once: Annotated[
        int | None,
        typer.Option(min=1, help=VIEWS_AT_ONCE, show_default="as many as fit into the memory"),
    ] = None,
    log_to: Annotated[
        str, typer.Option(help="tensorboard, wandb, mlflow, separated by commas, or none. CSV is always written.")
    ] = "tensorboard",
    download: Annotated[bool, typer.Option("--download", help="Download the backbone's weights if needed.")] = False,
) -> None:
    """Train an encoder on the polyps of a corpus or, with --recipe detector, a detector on its boxes.

    What was trained, the recipe, the seed, loss curves and checkpoints are written to RUN. After Ctrl-C, use --resume.
    """
    from polypcount.errors import DataError, PolypcountError

    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise PolypcountError(f"training needs {', '.join(missing)}: pip install 'polypcount[train]'")
    from polypcount.cli.progress import show_progress
    from polypcount.corpus import Corpus
    from polypcount.detection.detector_training import train_detector
    from polypcount.detection.recipe import load_detector_recipe
    from polypcount.storage import read_json
    from polypcount.training import Machine, Stopped, load_recipe, recipe_text
    from polypcount.training import train as train_encoder
    from polypcount.training.processes import is_first

    detecting = _is_of_detector(recipe, out if resume else None)
    if show:
        chosen = load_detector_recipe if detecting else load_recipe
        typer.echo(recipe_text(chosen(recipe or "temporal", changes or [])), nl=False)
        return
    if detecting and (download or views_at_once is not None):
        raise DataError("--download and --views-at-once are for encoders")
    if corpus is None or out is None:
        raise DataError("a corpus and a folder for the run are needed: polypcount train CORPUS --recipe NAME --out RUN")
    if is_first():
        show_log("polypcount")
    loggers = [name.strip() for name in log_to.split(",") if name.strip() not in ("", "none")]
    latest: Moment | None = None
    training: Progress | None = None
    with ExitStack() as bars:
        cutting = bars.enter_context(show_progress("cutting crops"))

        def note() -> str:
            if latest is None:
                return ""
            return f"epoch {latest.epoch + 1}, loss {latest.loss:.3f}, {latest.crops_per_second:,.0f} crops/s"

        def watch(moment: "Moment") -> None:
            nonlocal latest, training
            latest = moment
            if training is None:
                bars.close()  # a terminal shows one bar at a time
                training = bars.enter_context(show_progress("training", note))
            training(moment.done, max(moment.done, moment.total))

        try:
            run: Callable[..., object] = train_detector if detecting else partial(train_encoder, download=download)
            run(
                Corpus.load(corpus),
                recipe,
                out,
                changes=changes or [],
                resume=resume,
                machine=Machine(accelerator, devices, nodes, precision.value, views_at_once),
                log_to=loggers,
                progress=cutting,
                watch=watch,
            )
        except Stopped as stopped:
            if not is_first():
                raise typer.Exit(0) from None  # after another code, Lightning would kill the first process at once
            typer.echo(f"polypcount: {with_options(stopped)}", err=True)
            raise typer.Exit(128 + (stopped.signal or signal.SIGINT)) from None
        except RuntimeError:
            if is_first():
                raise
            raise typer.Exit(1) from None  # the first process has ended and reported the reason
    if is_first():
        metrics = read_json(out / "run.json")["best"]
        typer.echo(f"{out}: trained; best epoch {metrics['epoch']}, {_as_text(metrics['validation'])}")
        following = (
            f"count RECORDING --detector {out}" if detecting else f"embed CORPUS --encoder {out} --out vectors.parquet"
        )
        typer.echo(f"next: polypcount {following}")


def _is_of_detector(recipe: str | None, resumed: Path | None) -> bool:
    """Whether a recipe, or without one that of a run, is for a detector."""
    from polypcount.training.recipe_file import recipe_values, task_of

    if recipe is None and resumed is not None and (resumed / "recipe.yaml").is_file():
        recipe = str(resumed / "recipe.yaml")
    return recipe is not None and task_of(recipe_values(recipe)[0]) == "detector"


def show_log(name: str) -> None:
    """Show the messages of a logger as plain lines."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            sys.stderr.write(f"{harmless(record.getMessage())}\n")  # above the bar, if there is one

    log = logging.getLogger(name)
    log.addHandler(Lines())
    log.setLevel(logging.INFO)


def _as_text(metrics: dict[str, Any]) -> str:
    names = {
        **{"loss": "loss", "mean_average_precision": "mAP", "hit_rate_1": "HR@1", "auroc": "pair AUROC"},
        "ap50": "AP50",
    }
    defined = [f"{names[key]} {value:.3f}" for key, value in metrics.items() if value is not None]
    return ", ".join(defined) or "no validation"
