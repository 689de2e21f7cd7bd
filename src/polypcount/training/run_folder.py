"""Everything of a training run in one folder.

recipe.yaml      the whole recipe             steps.csv, epochs.csv    loss, learning rate, speed; validation
run.json         corpus, seed, machine        loss.svg                 the same as a figure
checkpoints/     last and best state          tensorboard/             for TensorBoard
encoder.json, model-.../                      the best encoder, when training is finished
"""

import contextlib
import csv
import json
import os
import platform
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError, first_line
from polypcount.machine import available_cores
from polypcount.storage import Schema, csv_text, only_writer, read_json, remove_leftovers, write_text
from polypcount.training.recipe_file import load_recipe, recipe_text
from polypcount.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP_COLUMNS = ("epoch", "step", "loss", "learning_rate", "crops_per_second")
EPOCH_COLUMNS = ("epoch", "steps", "loss", "validation_loss")  # and the scores of what is learnt
ENCODER_SCORES = {"mean_average_precision": "mAP", "hit_rate_1": "HR@1", "auroc": "pair AUROC"}
_LOCK = ".lock"
# The files that exist before the first step. A run with no other files may be started again.
_PREPARED = {"recipe.yaml", "run.json", _LOCK}
_MAY_CHANGE = ("epochs", "validation.patience", "name")
_PACKAGES = ("torch", "lightning", "transformers", "numpy", "safetensors", "onnx", "onnxruntime", "simplejpeg")


class RunFolder:
    """The folder of one run; only the first process writes to it.

    Args:
        folder: The folder.
        scores: Scores of validation, and how figures call them; those of an encoder by default.
        read_recipe: Reads a recipe file.
    """

    def __init__(
        self,
        folder: Path,
        scores: Mapping[str, str] = ENCODER_SCORES,
        read_recipe: Callable[[Path], Schema] = load_recipe,
    ) -> None:
        self.folder, self._scores, self._read_recipe = folder, scores, read_recipe
        self.epoch_columns = (*EPOCH_COLUMNS, *scores)
        self.last = folder / "checkpoints" / "last.safetensors"
        self.best = folder / "checkpoints" / "best.safetensors"

    @property
    def started(self) -> bool:
        """Whether a training has begun here."""
        return (self.folder / "run.json").exists()

    def refuse_used(self) -> None:
        """Raise `FileError` if a new run cannot be written here: there is a file, or the folder is in use."""
        remove_leftovers(self.folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"{self.folder} is a file; a run needs a folder")
        if self.folder.is_dir() and {entry.name for entry in self.folder.iterdir()} - _PREPARED:
            if self.started:
                raise FileError(f"{self.folder} holds a run already; resume it or choose another folder", mend="resume")
            raise FileError(f"{self.folder} has other files in it; choose a new folder")

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from training here at the same time."""
        return only_writer(self.folder, "training", _LOCK)

    def tidy(self) -> None:
        """Remove what killed processes have left."""
        for folder in (self.folder, self.folder / "checkpoints"):
            remove_leftovers(folder)

    def begin(self, recipe: Schema, about: dict[str, Any]) -> None:
        """Set up a new run."""
        self.refuse_used()
        self.write("recipe.yaml", recipe_text(recipe))
        self._write_about({**about, "environment": environment()})

    def refuse_another(self, recipe: Schema, corpus_hash: str) -> None:
        """Raise `FileError` unless the run in the folder has this corpus and recipe; it may have more epochs."""
        if not self.started:
            raise FileError(f"{self.folder} holds no run to resume; start a new one", mend="resume")
        new, old = (_flat(each.model_dump(mode="json")) for each in (recipe, self.recipe()))
        for key in sorted(new.keys() | old.keys()):
            if new.get(key) != old.get(key) and key not in _MAY_CHANGE:
                raise FileError(
                    f"{self.folder}: the run has {key} {old.get(key)}, not {new.get(key)}; resume with its recipe"
                )
        if self.about().get("corpus_hash") != corpus_hash:
            raise FileError(f"{self.folder}: the run was begun with another corpus; resume with that one")

    def recipe(self) -> Any:
        """The recipe of the run."""
        return self._read_recipe(self.folder / "recipe.yaml")

    def about(self) -> dict[str, Any]:
        """The content of `run.json`."""
        values = read_json(self.folder / "run.json")
        if not isinstance(values, dict):
            raise FileError(f"{self.folder / 'run.json'} is damaged: it must be a JSON object; start the run again")
        return values

    def add(self, **values: Any) -> None:
        """Add values to `run.json`."""
        self._write_about({**self.about(), **values})

    def write(self, name: str, text: str) -> None:
        """Write a text file, whole."""
        try:
            write_text(self.folder / name, text)
        except OSError as problem:
            raise FileError(f"{self.folder / name} cannot be written: {first_line(problem)}") from None

    def log(self, name: str, columns: tuple[str, ...], row: dict[str, Any]) -> None:
        """Add a row to a CSV file."""
        with (self.folder / name).open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(columns)
            cells = (row.get(column) for column in columns)
            writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])

    def forget_after(self, epoch: int, step: int) -> None:
        """Remove the rows of steps after a checkpoint from the CSV files: these steps will be repeated."""

        def is_before(row: dict[str, str]) -> bool:
            # Epochs and steps count from 1. Rows of epochs.csv have no step and stand for whole epochs.
            return (int(row["epoch"]), int(row.get("step", step + 1))) <= (epoch + 1, step)

        for name, columns in (("steps.csv", STEP_COLUMNS), ("epochs.csv", self.epoch_columns)):
            try:
                rows = [list(row.values()) for row in self.rows(name) if is_before(row)]
            except (KeyError, ValueError):
                raise FileError(f"{self.folder / name} is damaged; remove it to resume without its content") from None
            if (self.folder / name).exists():
                self.write(name, csv_text(columns, rows))

    def rows(self, name: str) -> list[dict[str, str]]:
        """The complete rows of a CSV file; what a kill or a power cut has damaged is left out."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        rows = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
        return [row for row in rows if None not in row and all(map(_is_number_or_empty, row.values()))]

    def draw(self) -> None:
        """Draw the loss, and retrieval over the epochs."""
        from polypcount.evaluation.figures import save_figure

        steps, epochs = (_columns(self.rows(name)) for name in ("steps.csv", "epochs.csv"))
        if steps:
            save_figure(_draw(steps, epochs, self._scores), self.folder / "loss.svg")

    def _write_about(self, values: dict[str, Any]) -> None:
        self.write("run.json", json.dumps(values, indent=2, allow_nan=False) + "\n")


def environment() -> dict[str, Any]:
    """What the run depends on besides recipe and corpus."""
    import torch

    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "polypcount": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())],
        "packages": versions,
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }


def _draw(
    steps: dict[str, NDArray[np.float64]], epochs: dict[str, NDArray[np.float64]], scores: Mapping[str, str]
) -> "Figure":
    """The loss of every step, and the validation of every epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    lengths = {epoch: steps["step"][steps["epoch"] == epoch].max() for epoch in np.unique(steps["epoch"])}
    when = steps["epoch"] - 1 + steps["step"] / np.array([lengths[epoch] for epoch in steps["epoch"]])
    left.plot(when, steps["loss"], color="0.75", linewidth=0.8, label="a step")
    if len(epochs):
        left.plot(epochs["epoch"], epochs["loss"], color="C0", marker=".", label="an epoch, mean")
        left.plot(epochs["epoch"], epochs["validation_loss"], color="C1", marker=".", label="validation")
        for name, label in scores.items():
            right.plot(epochs["epoch"], epochs[name], marker=".", label=label)
        right.legend(fontsize=8)
    left.set(xlabel="epoch", ylabel="loss")
    left.legend(fontsize=8)
    right.set(xlabel="epoch", ylabel="validation", ylim=(-0.02, 1.02))
    return figure


def _columns(rows: list[dict[str, str]]) -> dict[str, NDArray[np.float64]]:
    names = rows[0] if rows else {}
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}


def _flat(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flat


def _is_number_or_empty(cell: str | None) -> bool:
    try:
        return cell is not None and (not cell or float(cell) is not None)
    except ValueError:
        return False
