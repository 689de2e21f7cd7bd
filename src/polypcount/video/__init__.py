"""Pixels: frames of a recording by exact index, the crop around a box, the store of crops, and writing mp4 files."""

from polypcount.video.crop import CropRule, resize
from polypcount.video.frames import FrameSource
from polypcount.video.opening import open_source, open_video
from polypcount.video.store import CropStore
from polypcount.video.store_build import build_store
from polypcount.video.write import write_video

__all__ = ["CropRule", "CropStore", "FrameSource", "build_store", "open_source", "open_video", "resize", "write_video"]
