"""Where encoders run."""

import pytest

from polypcount.errors import DataError
from polypcount.reproduce import ReproduceSettings, choose_rows
from polypcount.reproduce.encoders import engine_for
from polypcount.training import Machine


@pytest.mark.parametrize(
    ("engine", "accelerator", "cuda", "expected"),
    [
        ("auto", "auto", True, "torch"),
        ("auto", "cuda", True, "torch"),
        ("auto", "gpu", True, "torch"),
        ("auto", "cpu", True, "auto"),
        ("auto", "auto", False, "auto"),
        ("auto", "mps", False, "auto"),
        ("onnx", "cuda", True, "onnx"),
    ],
)
def test_vectors_are_computed_on_the_gpu_where_training_is(
    engine: str, accelerator: str, cuda: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POLYPCOUNT_ENGINE")
    assert engine_for(engine, Machine(accelerator), cuda=cuda) == expected
    monkeypatch.setenv("POLYPCOUNT_ENGINE", "openvino")
    assert engine_for(engine, Machine(accelerator), cuda=cuda) == engine, "the environment comes first"


def test_without_a_machine_torch_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYPCOUNT_ENGINE")
    for cuda in (True, False):
        monkeypatch.setattr("torch.cuda.is_available", lambda cuda=cuda: cuda)
        assert engine_for("auto", None) == ("torch" if cuda else "auto")


def test_an_engine_that_is_not_there_is_known_before_the_work() -> None:
    with pytest.raises(DataError, match="engine must be one of auto, onnx, openvino, torch, found 'gpu'"):
        ReproduceSettings(choose_rows(["none"]), engine="gpu")
