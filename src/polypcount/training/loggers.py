"""Where numbers go besides the CSV files: TensorBoard by default, Weights & Biases and MLflow by name.

Only numbers and the recipe are logged, never an image.
"""

import contextlib
import importlib.util
import io
import os
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
        self._loggers = []
        for name in names:
            try:
                with _quietly():
                    logger = _new_logger(name, folder, run, step)
                    if step == 0:
                        logger.log_hyperparams(recipe)
            except Exception as problem:  # of a program of others: no account, no network, a version it does not like
                what = (str(problem).strip() or type(problem).__name__).splitlines()[0]
                raise PolypcountError(f"logging to {name} does not work: {what}; leave it out of --log-to") from problem
            self._loggers.append(logger)

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

    where = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(folder / 'mlflow.db').absolute()}"
    return MLFlowLogger("polypcount", folder.name, tracking_uri=where, tags={"polypcount.run": run})


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
