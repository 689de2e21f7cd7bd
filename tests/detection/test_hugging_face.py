"""Models of transformers, exported as they are, give the boxes that transformers makes of them."""

import json
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    DetrConfig,
    DetrForObjectDetection,
    ResNetConfig,
    RTDetrConfig,
    RTDetrForObjectDetection,
    RTDetrResNetConfig,
)
from transformers.models.detr.image_processing_pil_detr import DetrImageProcessorPil
from transformers.models.rt_detr.image_processing_pil_rt_detr import RTDetrImageProcessorPil

from polypcount.detection import DetectorSettings, load_detector
from polypcount.errors import DataError
from polypcount.offline import import_offline
from polypcount.video import resize

SIDE, QUERIES = 128, 20


class Exported(torch.nn.Module):
    """Gives what the exporters of Hugging Face keep."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.model(*given)
        return found.logits, found.pred_boxes


def rt_detr() -> tuple[Any, Any, tuple[torch.Tensor, ...]]:
    backbone: Any = {
        "embedding_size": 16,
        "hidden_sizes": [16, 24, 32, 48],
        "depths": [1, 1, 1, 1],
        "layer_type": "basic",
        "out_features": ["stage2", "stage3", "stage4"],
    }
    sizes: Any = {
        "encoder_hidden_dim": 32,
        "encoder_in_channels": [24, 32, 48],
        "encoder_ffn_dim": 32,
        "encoder_attention_heads": 2,
        "d_model": 32,
        "num_queries": QUERIES,
        "decoder_ffn_dim": 32,
        "decoder_attention_heads": 2,
        "decoder_layers": 1,
        "decoder_in_channels": [32, 32, 32],
        "num_labels": 3,
        "num_denoising": 0,
        "anchor_image_size": [SIDE, SIDE],
    }
    model = RTDetrForObjectDetection(RTDetrConfig(backbone_config=RTDetrResNetConfig(**backbone), **sizes))
    return model, RTDetrImageProcessorPil(size={"height": SIDE, "width": SIDE}), (torch.rand(1, 3, SIDE, SIDE),)


def detr() -> tuple[Any, Any, tuple[torch.Tensor, ...]]:
    backbone: Any = {
        "embedding_size": 16,
        "hidden_sizes": [16] * 4,
        "depths": [1] * 4,
        "layer_type": "basic",
        "out_features": ["stage4"],
    }
    sizes: Any = {
        "d_model": 32,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "num_queries": QUERIES,
        "num_labels": 3,  # with no object they are four, as many as the numbers of a box
    }
    model: Any = DetrForObjectDetection(DetrConfig(backbone_config=ResNetConfig(**backbone), **sizes))
    with torch.no_grad():
        for weights in model.parameters():  # as they begin, all queries give the same box
            weights.add_(torch.randn_like(weights) * 0.3)
    mask = torch.ones(1, SIDE, SIDE, dtype=torch.long)
    return model, DetrImageProcessorPil(), (torch.rand(1, 3, SIDE, SIDE), mask)


@pytest.mark.parametrize("make", [rt_detr, detr])
def test_boxes_are_those_of_transformers(make: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, processor, given = make()
    model.eval()
    with warnings.catch_warnings(action="ignore"):
        torch.onnx.export(
            Exported(model).eval(),
            given,
            str(tmp_path / "model.onnx"),
            input_names=["pixel_values", "pixel_mask"][: len(given)],
            output_names=["logits", "pred_boxes"],
            opset_version=17,
            dynamo=False,
        )
    (tmp_path / "config.json").write_text(json.dumps(model.config.to_dict(), default=str))
    processor.save_pretrained(tmp_path)
    settings = DetectorSettings(confidence=0, iou=1, classes=("LABEL_0", "LABEL_1", "LABEL_2"))
    detector = load_detector(tmp_path / "model.onnx", settings)
    softmax = make is detr
    assert detector.reading.activation == ("softmax" if softmax else "sigmoid")
    assert detector.images.mean == ((0.485, 0.456, 0.406) if softmax else (0, 0, 0))

    rng = np.random.default_rng(0)
    frame = resize(rng.integers(0, 256, (9, 16, 3), dtype=np.uint8), 320, 180)
    pixels = torch.from_numpy(resize(frame, SIDE, SIDE).transpose(2, 0, 1).astype(np.float32))[None] / 255
    if softmax:
        mean, std = (torch.tensor(values).reshape(1, 3, 1, 1) for values in (processor.image_mean, processor.image_std))
        pixels = (pixels - mean) / std
    # Run apart from ours, and read by transformers; they may give a box once for each class.
    session = import_offline("onnxruntime").InferenceSession(
        str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"]
    )
    feed = dict(
        zip(["pixel_values", "pixel_mask"], [pixels.numpy(), *(each.numpy() for each in given[1:])], strict=False)
    )
    logits, boxes = map(torch.from_numpy, session.run(["logits", "pred_boxes"], feed))
    found = SimpleNamespace(logits=logits, pred_boxes=boxes)
    theirs = processor.post_process_object_detection(found, threshold=0.0, target_sizes=[(180, 320)])[0]
    best: dict[tuple[float, ...], float] = {}
    for box, score in zip(theirs["boxes"].tolist(), theirs["scores"].tolist(), strict=True):
        key = tuple(np.clip(box, 0, [320, 180, 320, 180]).tolist())
        best[key] = max(score, best.get(key, 0.0))
    assert len(best) > 5
    xyxy, score = detector.detect(frame)
    for key, value in best.items():
        differs = np.abs(xyxy - np.array(key)).max(axis=1) + 100 * np.abs(score - value)
        assert differs.min() < 0.05

    below = tmp_path / "moved" / "onnx"
    below.mkdir(parents=True)
    shutil.copy(tmp_path / "model.onnx", below / "model.onnx")
    with pytest.raises(DataError, match="logits"):
        load_detector(below / "model.onnx")
    for name in ("config.json", "preprocessor_config.json"):
        shutil.copy(tmp_path / name, below.parent / name)
    assert load_detector(below / "model.onnx").reading.activation == detector.reading.activation
