"""Pixels: frames of a recording by exact number, crops around boxes and their store, masks, and writing mp4 files."""

from polypcount.video.crop import CropRule, resize
from polypcount.video.frames import FrameSource
from polypcount.video.opening import open_source, open_video
from polypcount.video.store import CropStore
from polypcount.video.store_build import build_store
from polypcount.video.view_mask import FrameMask, find_view, parse_rectangle
from polypcount.video.views import FrameView, views
from polypcount.video.write import write_video

__all__ = [
    "CropRule",
    "CropStore",
    "FrameMask",
    "FrameSource",
    "FrameView",
    "build_store",
    "find_view",
    "open_source",
    "open_video",
    "parse_rectangle",
    "resize",
    "views",
    "write_video",
]
