import copy
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch

from polypcount.encoder import EncoderSpec, Preprocessing, TrackletEncoder, new_encoder
from polypcount.errors import DataError
from polypcount.video import CropRule

SMALL: dict[str, Any] = {"d": 16, "heads": 2, "ff": 32, "layers": 2}


def test_forward_is_frames_then_sequence() -> None:
    encoder = new_encoder("tiny", **SMALL).eval()
    clips, mask = torch.randn(2, 3, 3, 40, 40), torch.tensor([[True, True, False], [True] * 3])
    with torch.no_grad():
        features = encoder.encode_frames(clips.flatten(0, 1)).reshape(2, 3, -1)
        expected = encoder.encode_sequences(features, mask)
        torch.testing.assert_close(encoder(clips, mask), expected)
    assert expected.shape == (2, 16)


def test_padding_changes_neither_vectors_nor_batch_statistics() -> None:
    clips, mask = torch.randn(2, 3, 3, 24, 24), torch.tensor([[True, True, False], [True] * 3])
    spoilt = clips.clone()
    spoilt[0, 2] = torch.nan
    states = []
    for batch in (clips, spoilt):
        torch.manual_seed(0)
        encoder = new_encoder("tiny", dropout=0.0, **SMALL).train()
        states.append((encoder(batch, mask), encoder.state_dict()))
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)


def test_every_weight_takes_part_in_training() -> None:
    for settings in ({}, {"pooling": "mean"}, {"positions": True}):
        encoder = new_encoder("tiny", **SMALL, **settings).train()
        encoder.head(encoder(torch.randn(2, 3, 3, 24, 24), torch.ones(2, 3, dtype=torch.bool))).sum().backward()
        assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_new_encoder_takes_normalisation_from_the_backbone_unless_told() -> None:
    assert new_encoder("lite0", weights=False).spec.preprocessing.mean == (127 / 255,) * 3
    plain = Preprocessing(crop=CropRule(size=64), mean=(0, 0, 0), std=(1, 1, 1))
    assert new_encoder("tiny", preprocessing=plain).spec.preprocessing == plain


def test_spec_survives_json() -> None:
    spec = EncoderSpec(
        backbone="x",
        feature_size=7,
        backbone_config={"model_type": "resnet", "depths": [1, 2]},
        positions=True,
        preprocessing=Preprocessing(crop=CropRule(scale=2, shape="pad", size=64), mean=(0.1, 0.2, 0.3)),
    )
    assert EncoderSpec(**json.loads(json.dumps(spec.model_dump(mode="json")))) == spec
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec


@pytest.mark.parametrize(
    "change",
    [
        {"d": 0},
        {"d": True},
        {"layers": 10**30},
        {"dropout": 1.0},
        {"dropout": float("nan")},
        {"pooling": ["cls"]},
        {"positions": 1},
        {"backbone": ""},
        {"backbone_config": [1]},
        {"preprocessing": None},
        {"preprocessing": {"crop": {"size": 1e9}}},
        {"preprocessing": {"crop": {"shape": "wrap"}}},
        {"colour": "red"},
        {"heads": 3},
        {"d": 15, "heads": 3, "positions": True},
        {"positions": True, "pooling": "mean"},
    ],
)
def test_bad_spec_names_the_key(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"spec: .*{next(iter(change))}") as caught:
        EncoderSpec(**{"backbone": "tiny", "feature_size": 32, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"crop": 5}, {"crop": CropRule(size=4)}, {"mean": [0.5, 0.5]}, {"mean": "abc"}, {"std": [1, 1, 0]}]
)
def test_bad_preprocessing_names_the_key(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"preprocessing: {next(iter(change))}"):
        Preprocessing(**change)


def test_mismatches_are_refused() -> None:
    with pytest.raises(DataError, match="feature_size must be 32 for backbone tiny, found 31"):
        TrackletEncoder(EncoderSpec(backbone="tiny", feature_size=31))
    encoder = new_encoder("tiny", **SMALL)
    with pytest.raises(DataError, match="clips must be float"):
        encoder(torch.zeros(2, 3, 24, 24), torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(DataError, match="has no frame"):
        encoder(torch.zeros(1, 2, 3, 24, 24), torch.zeros(1, 2, dtype=torch.bool))


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = (
        "import polypcount.encoder, sys;"
        "assert not {'torch', 'transformers', 'onnxruntime', 'onnx', 'safetensors'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
