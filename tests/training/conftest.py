"""One thread for each test, a small corpus with pixels, and a training on it."""

from pathlib import Path

import pytest
import torch

from polypcount.corpus import Corpus
from polypcount.training import train
from tests.training.corpora import WHOLE, drawn_corpus, tiny


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """4 videos of 2 polyps, each seen in 2 tracklets of 34 frames."""
    return drawn_corpus(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="session")
def crops_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crops that all trainings share."""
    return tmp_path_factory.mktemp("crops")


@pytest.fixture(scope="session")
def whole(drawn: Corpus, crops_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed training: 2 epochs of 2 steps."""
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("whole") / "run"
    train(drawn, "temporal", out, changes=[*tiny("temporal"), *WHOLE], cache=crops_cache)
    return out
