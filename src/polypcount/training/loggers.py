"""Where numbers go besides the CSV files: TensorBoard by default, Weights & Biases and MLflow by name.

Only numbers and the recipe are logged, never an image.
"""

import contextlib
import importlib.util
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polypcount.errors import DataError, PolypcountError

_PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}
LOGGERS = tuple(_PACKAGES)


def refuse_missing(names: Sequence[str]) -> None:
    """Raise, before any work, for a logger that is unknown or not installed."""
    for name in names:
        if name not in _PACKAGES:
            raise DataError(f"there is no logger {name!r}: known are {', '.join(LOGGERS)}")
        if importlib.util.find_spec(_PACKAGES[name]) is None:
            raise PolypcountError(f"logging to {name} needs its package: pip install {_PACKAGES[name]}")


class Loggers:
    """Several loggers as one. run: unique name of the run. step: the next step, for a run that goes on."""

    def __init__(self, names: Sequence[str], folder: Path, run: str, recipe: dict[str, Any], step: int) -> None:
        self._loggers = [_new_logger(name, folder, run, step) for name in names]
        if step == 0:
            with _quietly():
                for logger in self._loggers:
                    logger.log_hyperparams(recipe)

    def log(self, values: dict[str, float | None], step: int) -> None:
        """Numbers of a step; those that are undefined are left out."""
        known = {name: value for name, value in values.items() if value is not None}
        for logger in self._loggers:
            logger.log_metrics(known, step)

    def close(self, whole: bool) -> None:
        """Write out what is pending."""
        for logger in self._loggers:
            logger.finalize("success" if whole else "aborted")


def _new_logger(name: str, folder: Path, run: str, step: int) -> Any:
    if name == "tensorboard":
        from lightning.fabric.loggers.tensorboard import TensorBoardLogger

        return TensorBoardLogger(folder, name="tensorboard", version="", purge_step=step or None)
    if name == "wandb":
        from lightning.pytorch.loggers.wandb import WandbLogger

        return WandbLogger(name=folder.name, save_dir=folder, project="polypcount", id=run, resume="allow")
    from lightning.pytorch.loggers.mlflow import MLFlowLogger

    return MLFlowLogger(experiment_name="polypcount", run_name=folder.name, tags={"polypcount.run": run})


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
