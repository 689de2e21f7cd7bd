"""Where numbers go besides the CSV files: TensorBoard by default, Weights & Biases and MLflow by name.

Only numbers and the recipe are logged, never an image.
"""

import contextlib
import importlib.util
import io
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from polypcount.errors import DataError, PolypcountError, first_line

_log = logging.getLogger(__name__)
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
    """Several loggers as one; one that fails later is left out, and training goes on.

    about: what the run folder says of the run: its id and, if it is resumed, the loggers' own ids. step: the next step
    of a run that is resumed; None for a new one.
    """

    def __init__(
        self, names: Sequence[str], folder: Path, about: dict[str, Any], recipe: dict[str, Any], step: int | None
    ) -> None:
        self._loggers: dict[str, Any] = {}
        for name in names:
            try:
                with _quietly():
                    logger = self._loggers[name] = _new_logger(name, folder, about, step)
                    if step is None:
                        logger.log_hyperparams(recipe)
            except Exception as problem:  # of a program of others: no account, no network, a version it does not like
                raise PolypcountError(
                    f"logging to {name} does not work: {first_line(problem)}; leave it out of --log-to"
                ) from problem

    @property
    def ids(self) -> dict[str, str]:
        """By which a resumed run finds its place again."""
        return {name: str(logger.run_id) for name, logger in self._loggers.items() if name == "mlflow"}

    def log(self, values: dict[str, float | None], step: int) -> None:
        """Numbers of a step; those that are undefined are left out."""
        known = {name: value for name, value in values.items() if value is not None}
        self._each(lambda logger: logger.log_metrics(known, step))

    def close(self, whole: bool) -> None:
        """Write out what is pending."""
        self._each(lambda logger: logger.finalize("success" if whole else "aborted"))

    def _each(self, use: Callable[[Any], None]) -> None:
        for name, logger in list(self._loggers.items()):
            try:
                use(logger)
            except Exception as problem:
                del self._loggers[name]
                _log.warning("logging to %s has ended: %s", name, first_line(problem))


def _new_logger(name: str, folder: Path, about: dict[str, Any], step: int | None) -> Any:
    run = str(about.get("id", folder.name))
    if name == "tensorboard":
        from lightning.fabric.loggers.tensorboard import TensorBoardLogger

        return TensorBoardLogger(folder, name="tensorboard", version="", purge_step=step)
    if name == "wandb":
        from lightning.pytorch.loggers.wandb import WandbLogger

        return WandbLogger(name=folder.name, save_dir=folder, project="polypcount", id=run, resume="allow")
    from lightning.pytorch.loggers.mlflow import MLFlowLogger

    where = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(folder / 'mlflow.db').absolute()}"
    before = about.get("loggers", {}).get("mlflow") if step is not None else None
    return MLFlowLogger("polypcount", folder.name, tracking_uri=where, tags={"polypcount.run": run}, run_id=before)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield
