"""Where numbers go besides the CSV files: TensorBoard by default, Weights & Biases and MLflow by name.

Only numbers and the recipe are logged, never an image.
"""

import contextlib
import importlib.util
import io
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from polypcount.errors import DataError, PolypcountError, first_line

_log = logging.getLogger(__name__)
LOGGERS = ("tensorboard", "wandb", "mlflow")


def refuse_missing(names: Sequence[str]) -> None:
    """Raise, before any work, for a logger that is unknown or not installed."""
    for name in names:
        if name not in LOGGERS:
            raise DataError(f"there is no logger {name!r}: known are {', '.join(LOGGERS)}", mend="log_to")
        if importlib.util.find_spec(name) is None:
            raise PolypcountError(f"logging to {name} needs its package: pip install {name}")


class Loggers:
    """Several loggers as one, in a `with` block. A logger that fails later is left out, and training goes on.

    Args:
        names: Names from `LOGGERS`.
        folder: The run folder.
        about: The content of `run.json`: the id of the run and, if it is resumed, the loggers' own ids.
        recipe: Values to log.
        step: The next step of a resumed run; None for a new one.
    """

    def __init__(
        self, names: Sequence[str], folder: Path, about: dict[str, Any], recipe: dict[str, Any], step: int | None
    ) -> None:
        self._loggers: dict[str, Any] = {}
        for name in names:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    logger = self._loggers[name] = _new_logger(name, folder, about, step)
                    if step is None:
                        logger.log_hyperparams(recipe)
            except Exception as problem:  # of the logger's library: no account, no network, a wrong version
                raise PolypcountError(
                    f"logging to {name} does not work: {first_line(problem)}; leave it out", mend="log_to"
                ) from problem

    @property
    def ids(self) -> dict[str, str]:
        """Ids that a resumed run needs to continue its logs."""
        return {name: str(logger.run_id) for name, logger in self._loggers.items() if name == "mlflow"}

    def log(self, values: dict[str, float | None], step: int) -> None:
        """Log the numbers of a step; undefined ones are left out."""
        defined = {name: value for name, value in values.items() if value is not None}
        self._each(lambda logger: logger.log_metrics(defined, step))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, problem: object, *_: object) -> None:
        self._each(lambda logger: logger.finalize("success" if problem is None else "aborted"))

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

    address = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(folder / 'mlflow.db').absolute()}"
    run_id = about.get("loggers", {}).get("mlflow") if step is not None else None
    return MLFlowLogger("polypcount", folder.name, tracking_uri=address, tags={"polypcount.run": run}, run_id=run_id)
