"""The network that turns a tracklet's crops into one vector, and the folder in which it is kept.

The names that need torch are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from polypcount.encoder.bundle import bundled_folder, make_bundle
from polypcount.encoder.embed import embed
from polypcount.encoder.folder import load_encoder, load_torch, save_encoder
from polypcount.encoder.runtime import Encoder
from polypcount.encoder.spec import EncoderSpec, Preprocessing

if TYPE_CHECKING:
    from polypcount.encoder.backbones import FrameBackbone, load_backbone
    from polypcount.encoder.model import TrackletEncoder, new_encoder
    from polypcount.encoder.sequence import ProjectionHead, SequenceEncoder
    from polypcount.encoder.standardised import standardised_encoder

_HOME_OF = {
    "FrameBackbone": "polypcount.encoder.backbones",
    "load_backbone": "polypcount.encoder.backbones",
    "TrackletEncoder": "polypcount.encoder.model",
    "new_encoder": "polypcount.encoder.model",
    "ProjectionHead": "polypcount.encoder.sequence",
    "SequenceEncoder": "polypcount.encoder.sequence",
    "standardised_encoder": "polypcount.encoder.standardised",
}

__all__ = [
    "Encoder",
    "EncoderSpec",
    "FrameBackbone",
    "Preprocessing",
    "ProjectionHead",
    "SequenceEncoder",
    "TrackletEncoder",
    "bundled_folder",
    "embed",
    "load_backbone",
    "load_encoder",
    "load_torch",
    "make_bundle",
    "new_encoder",
    "save_encoder",
    "standardised_encoder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'polypcount.encoder' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
