"""One thread for each test, a cache of their own, and the datasets in miniature."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from polypcount.reproduce import Benchmark, real_benchmark
from tests.reproduce.miniature import miniature

# Changes that make any recipe small enough for a test.
TINY = (
    "model.backbone=tiny",
    "model.d=16",
    "model.layers=1",
    "model.heads=2",
    "model.ff=32",
    "crop.size=32",
    "optimizer.lr=1e-3",
)


@pytest.fixture(scope="package", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYPCOUNT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="package")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return miniature(tmp_path_factory.mktemp("datasets"))


@pytest.fixture(scope="package")
def benchmark_of_datasets(datasets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    return real_benchmark(datasets, tmp_path_factory.mktemp("benchmark"))
