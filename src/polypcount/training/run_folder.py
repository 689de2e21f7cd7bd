"""Everything of a training run in one folder.

recipe.yaml      the whole recipe             steps.csv, epochs.csv    loss, learning rate, speed; validation
run.json         corpus, seed, machine        loss.svg                 the same as a picture
checkpoints/     last and best state          tensorboard/             for TensorBoard
encoder.json, model-.../                      the best encoder, once training is done
"""

import contextlib
import csv
import importlib.util
import json
import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.errors import FileError
from polypcount.machine import available_cores
from polypcount.training.recipe import Recipe
from polypcount.training.recipe_file import load_recipe, recipe_text
from polypcount.version import __version__
from polypcount.whole import whole_file

STEP_COLUMNS = ("epoch", "step", "loss", "learning_rate", "crops_per_second")
EPOCH_COLUMNS = ("epoch", "steps", "loss", "validation_loss", "mean_average_precision", "hit_rate_1", "auroc")
_LOCK = ".lock"
# What is there before the first step; a run that came no further may be started again.
_PREPARED = {"recipe.yaml", "run.json", _LOCK}
_PACKAGES = ("torch", "lightning", "transformers", "numpy", "safetensors", "onnx", "onnxruntime", "simplejpeg")


class RunFolder:
    """The folder of one run; only the first process writes to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last = folder / "checkpoints" / "last.safetensors"
        self.best = folder / "checkpoints" / "best.safetensors"

    @property
    def started(self) -> bool:
        """Whether a training has begun here."""
        return (self.folder / "run.json").exists()

    def refuse_used(self) -> None:
        """Raise `FileError` where a new run cannot be kept: on a file, or where anything is already."""
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(f"{self.folder} is a file; a run is kept in a folder")
        there = {entry.name for entry in self.folder.iterdir()} if self.folder.is_dir() else set()
        if self.started and there - _PREPARED:
            raise FileError(f"{self.folder} holds a run already; go on with it by --resume, or choose another folder")
        if there - _PREPARED:
            raise FileError(f"{self.folder} has other files in it; choose a new folder")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training here at the same time; a kill ends that, too."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as problem:
            raise FileError(f"{self.folder}: a run cannot be kept there: {problem.strerror or problem}") from None
        try:
            if importlib.util.find_spec("fcntl") is not None:  # not on Windows
                _lock(handle, self.folder)
            yield
        finally:
            os.close(handle)

    def tidy(self) -> None:
        """Remove what killed processes left of checkpoints that they were writing."""
        for leftover in (self.folder / "checkpoints").glob(".*.safetensors.*"):
            leftover.unlink(missing_ok=True)

    def begin(self, recipe: Recipe, about: dict[str, Any]) -> None:
        """Set up a new run."""
        self.refuse_used()
        try:
            self.write("recipe.yaml", recipe_text(recipe))
            self.write("run.json", json.dumps({**about, "environment": environment()}, indent=2) + "\n")
        except OSError as problem:
            raise FileError(f"{self.folder}: a run cannot be kept there: {problem.strerror or problem}") from None

    def refuse_another(self, recipe: Recipe, corpus_hash: str) -> None:
        """Raise `FileError` unless the run in the folder is of this corpus and recipe; it may have more epochs."""
        if not self.started:
            raise FileError(f"{self.folder} holds no run to go on with; start it without --resume")
        mine, theirs = (_flat(one.model_dump(mode="json")) for one in (recipe, self.recipe()))
        for key in sorted(mine.keys() | theirs.keys()):
            if mine.get(key) != theirs.get(key) and key not in ("epochs", "validation.patience", "name"):
                raise FileError(
                    f"{self.folder}: the run has {key} {theirs.get(key)}, not {mine.get(key)}; resume with its recipe"
                )
        if self.about().get("corpus_hash") != corpus_hash:
            raise FileError(f"{self.folder}: the run was begun with another corpus; resume with that one")

    def recipe(self) -> Recipe:
        """The recipe of the run."""
        return load_recipe(self.folder / "recipe.yaml")

    def about(self) -> dict[str, Any]:
        """What `run.json` says."""
        try:
            found = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
            if not isinstance(found, dict):
                raise ValueError("it is no JSON object")
        except (OSError, ValueError, RecursionError) as problem:
            raise FileError(f"{self.folder / 'run.json'} cannot be read ({problem}); start the run again") from None
        return found

    def add(self, **values: Any) -> None:
        """Put more into `run.json`."""
        self.write("run.json", json.dumps({**self.about(), **values}, indent=2, allow_nan=False) + "\n")

    def write(self, name: str, text: str) -> None:
        """A text file, whole."""
        with whole_file(self.folder / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")

    def log(self, name: str, columns: tuple[str, ...], row: dict[str, Any]) -> None:
        """Add a row to a CSV file."""
        path = self.folder / name
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if not file.tell():
                writer.writerow(columns)
            writer.writerow([_cell(row.get(column)) for column in columns])

    def forget_after(self, epoch: int, step: int) -> None:
        """Remove what the CSV files say of steps after a checkpoint: they are going to be done again."""
        for name, columns in (("steps.csv", STEP_COLUMNS), ("epochs.csv", EPOCH_COLUMNS)):
            if not (self.folder / name).exists():
                continue
            # Epochs and steps count from 1; epochs.csv has no steps, and its rows are of whole epochs.
            try:
                kept = [
                    row
                    for row in self.rows(name)
                    if int(row["epoch"]) <= epoch
                    or (int(row["epoch"]) == epoch + 1 and int(row.get("step", step + 1)) <= step)
                ]
            except (KeyError, ValueError):
                raise FileError(f"{self.folder / name} is damaged; remove it to go on without what it says") from None
            lines = [columns, *(row.values() for row in kept)]
            self.write(name, "".join(",".join(line) + "\n" for line in lines))

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a CSV file; what a kill or a power cut left of others, no whole rows of numbers, is left out."""
        path = self.folder / name
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            text = file.read()
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [row for row in csv.DictReader(lines) if None not in row and all(map(_is_number_or_empty, row.values()))]

    def draw(self) -> None:
        """The picture of the loss and of retrieval over the epochs."""
        from polypcount.evaluation.figures import save_figure
        from polypcount.training.pictures import draw_run

        steps, epochs = self.rows("steps.csv"), self.rows("epochs.csv")
        if steps:
            save_figure(draw_run(_columns(steps), _columns(epochs)), self.folder / "loss.svg")


def _lock(handle: int, folder: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(f"{folder}: another process is training there; wait for it, or stop it") from None
    except OSError:  # a disk that has no locks, as some that are shared
        return


def environment() -> dict[str, Any]:
    """What the run depends on besides recipe and corpus."""
    import torch

    versions: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    gpus = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    return {
        "polypcount": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": available_cores(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "packages": versions,
        "slurm_job": os.environ.get("SLURM_JOB_ID"),
    }


def _columns(rows: list[dict[str, str]]) -> dict[str, Any]:
    names = rows[0] if rows else {}
    return {name: np.array([float(row[name]) if row[name] else np.nan for row in rows]) for name in names}


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


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
