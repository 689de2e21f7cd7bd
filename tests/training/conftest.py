"""One thread for each test, and a small corpus with pixels."""

import pytest
import torch

from polypcount.corpus import Corpus
from tests.training.corpora import drawn_corpus


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """4 videos of 2 polyps, each seen in 2 tracklets of 34 frames."""
    return drawn_corpus(tmp_path_factory.mktemp("drawn"))
