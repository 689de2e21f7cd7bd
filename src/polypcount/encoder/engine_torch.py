"""The engine `torch`: the modules that were trained, on CUDA where torch has that, otherwise on the processor."""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.encoder.engines import FrameModel, SequenceModel, normalised
from polypcount.encoder.model import TrackletEncoder


def open_torch(model: TrackletEncoder, threads: int | None) -> tuple[FrameModel, SequenceModel]:
    """Both models of an encoder, on the processor with so many threads; None for as many as torch is set to."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device).eval()

    def frames(crops: NDArray[np.uint8]) -> NDArray[np.float32]:
        with torch.inference_mode(), _threads(threads):
            images = torch.from_numpy(normalised(crops, model.spec.preprocessing)).to(device)
            return np.asarray(model.encode_frames(images).cpu())

    def sequences(features: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        with torch.inference_mode(), _threads(threads):
            inputs = torch.from_numpy(features).to(device), torch.from_numpy(mask).to(device)
            return np.asarray(model.encode_sequences(*inputs).cpu())

    return frames, sequences


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Set torch's number of threads for the block. It holds for the whole process, so it is set back afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
