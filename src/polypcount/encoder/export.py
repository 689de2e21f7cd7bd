"""The two halves of an encoder as ONNX, which run without torch, and the check that they compute the same."""

import copy
import importlib.util
import io
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from polypcount.encoder.engine_onnx import open_session
from polypcount.encoder.engines import ModelShapes, frame_shapes, sequence_shapes
from polypcount.encoder.model import TrackletEncoder
from polypcount.encoder.sequence import SequenceEncoder, mean_of_present
from polypcount.errors import PolypcountError, first_line

_TOLERANCE = 1e-4
_OPSET = 17


def export_encoder(encoder: TrackletEncoder) -> tuple[bytes, bytes]:
    """Both halves of an encoder as ONNX. n, b and t are free; the image size is that of the spec.

    Returns:
        frame.onnx, images float[n, 3, size, size] -> features, and sequence.onnx, features and mask -> vectors.

    Raises:
        PolypcountError: ONNX Runtime and torch differ by more than 1e-4 of the largest value (at least of 1).
    """
    if importlib.util.find_spec("onnx") is None:
        raise PolypcountError("saving an encoder needs the package onnx, which is missing: pip install onnx")
    # A copy: the caller's encoder may be on a GPU, of half precision, or in the middle of training.
    encoder = copy.deepcopy(encoder).cpu().float().eval()
    size = encoder.spec.preprocessing.crop.size
    images = torch.randn(2, 3, size, size)
    features, mask = torch.randn(3, 4, encoder.spec.feature_size), torch.ones(3, 4, dtype=torch.bool)
    frame = _export(encoder.backbone, (images,), frame_shapes(encoder.spec))
    sequence = _export(_TraceableSequence(encoder.sequence), (features, mask), sequence_shapes(encoder.spec))
    difference = _largest_difference(encoder, frame, sequence)
    if not difference <= _TOLERANCE:
        raise PolypcountError(
            f"backbone {encoder.spec.backbone}: ONNX Runtime and torch differ by {difference:.1e},"
            f" expected at most {_TOLERANCE:.0e}; use another backbone or another version of torch"
        )
    return frame, sequence


@torch.no_grad()
def _largest_difference(encoder: TrackletEncoder, frame: bytes, sequence: bytes) -> float:
    """Difference of torch and ONNX Runtime on random input of several sizes, relative to the largest value or to 1."""
    size, f = encoder.spec.preprocessing.crop.size, encoder.spec.feature_size
    randomly = torch.Generator().manual_seed(0)
    differences = []
    session = open_session(frame, "frame.onnx", frame_shapes(encoder.spec))
    for n in (1, 3):
        images = torch.randn(n, 3, size, size, generator=randomly)
        differences.append(_relative(encoder.encode_frames(images), session.run(None, {"images": images.numpy()})[0]))
    session = open_session(sequence, "sequence.onnx", sequence_shapes(encoder.spec))
    for b, t in ((1, 1), (4, 9), (2, 70)):
        features = torch.randn(b, t, f, generator=randomly)
        mask = torch.rand(b, t, generator=randomly) < 0.6
        mask[torch.arange(b), torch.randint(t, (b,), generator=randomly)] = True
        vectors = session.run(None, {"features": features.numpy(), "mask": mask.numpy()})[0]
        differences.append(_relative(encoder.encode_sequences(features, mask), vectors))
    return max(differences)


class _TraceableSequence(nn.Module):
    """`SequenceEncoder` in evaluation, in operations that can be traced for any b and t.

    The attention of torch fixes b and t when traced. The last layer is computed for the learned token alone.
    """

    def __init__(self, sequence: SequenceEncoder) -> None:
        super().__init__()
        self.sequence = sequence

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        tokens = self.sequence.project_frames(features, mask)
        if self.sequence.transformer is None:
            return mean_of_present(tokens, mask)
        tokens, absent = self.sequence.with_cls(tokens, mask)
        layers: list[Any] = list(self.sequence.transformer.layers)
        for layer in layers:
            queries = tokens[:, :1] if layer is layers[-1] else tokens
            attended = layer.norm1(queries + _attend(layer.self_attn, queries, tokens, absent))
            tokens = layer.norm2(attended + layer.linear2(functional.relu(layer.linear1(attended))))
        return tokens[:, 0]


def _attend(attention: nn.MultiheadAttention, queries: Tensor, tokens: Tensor, absent: Tensor) -> Tensor:
    """float[b, q, d], float[b, k, d], bool[b, k] -> float[b, q, d]: softmax(q k' / sqrt(d / heads)) v, per head."""
    shape = (attention.num_heads, attention.head_dim)
    weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
    q, k, v = (
        functional.linear(source, weight, bias).reshape(*source.shape[:2], *shape).transpose(1, 2)
        for source, weight, bias in zip((queries, tokens, tokens), weights, biases, strict=True)
    )
    scores = q @ k.transpose(2, 3) * attention.head_dim**-0.5
    shares = scores.masked_fill(absent[:, None, None, :], float("-inf")).softmax(dim=-1)
    joined: Tensor = attention.out_proj((shares @ v).transpose(1, 2).flatten(2))
    return joined


def _export(module: nn.Module, inputs: tuple[Tensor, ...], shapes: ModelShapes) -> bytes:
    free_axes = {
        name: {axis: length for axis, length in enumerate(shape) if isinstance(length, str)}
        for name, shape in [*shapes[0].items(), *shapes[1].items()]
    }
    stream: Any = io.BytesIO()  # the tracing exporter takes it, though the shared signature does not say so
    try:
        with warnings.catch_warnings():
            # The tracing exporter warns that it is old, and about every shape that it takes as fixed. The check against
            # torch shows whether that was right. The newer exporter takes ten times as long and logs to the screen.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(),
                inputs,
                stream,
                input_names=list(shapes[0]),
                output_names=list(shapes[1]),
                dynamic_axes=free_axes,
                opset_version=_OPSET,
                dynamo=False,
            )
    except Exception as problem:  # torch raises errors of many kinds for an operation that ONNX does not have
        raise PolypcountError(
            f"the encoder cannot be exported to ONNX: {first_line(problem)}; use another backbone"
        ) from problem
    return bytes(stream.getvalue())


def _relative(expected: Tensor, actual: Any) -> float:
    values = expected.numpy()
    if values.shape != np.shape(actual):
        return float("inf")
    return float(np.abs(values - actual).max() / max(1.0, np.abs(values).max()))
