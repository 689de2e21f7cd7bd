"""One thread for each test, and a saved encoder."""

import shutil
from pathlib import Path

import pytest
import torch

from polypcount.encoder import save_encoder
from tests.encoder.encoders import make


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("encoder") / "original"
    recipe = {"name": "temporal", "epochs": 3}
    return save_encoder(make(), folder, recipe=recipe, data_hash="ab" * 32, metrics={"loss": 0.5, "auc": None})


@pytest.fixture
def saved(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "encoder"))
