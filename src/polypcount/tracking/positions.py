"""Where in time a tracklet lies in its video, and a fragment in the life of its polyp."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Tracklets, Video
from polypcount.errors import DataError
from polypcount.tracking.fragment import Fragments

Anchor = Literal["start", "centre", "stop"]
Unit = Literal["frames", "seconds", "share"]


def tracklet_positions(
    tracklets: Tracklets, videos: Sequence[Video], anchor: Anchor = "start", unit: Unit = "share"
) -> NDArray[np.float64]:
    """Position of each tracklet in its video, float64[n].

    anchor: start_frame, stop_frame (the first frame after it), or the middle between the two.
    unit: frames; seconds, which is frames / fps, NaN where fps is not known; share, which is frames / frame_count.
    """
    if anchor not in get_args(Anchor) or unit not in get_args(Unit):
        raise DataError(
            f"anchor must be one of {get_args(Anchor)} and unit one of {get_args(Unit)}, found {anchor!r}, {unit!r}"
        )
    if len(tracklets) and tracklets.video.max() >= len(videos):
        raise DataError(f"tracklets are of {tracklets.video.max() + 1} videos, given are {len(videos)}")
    start, stop = tracklets.start_frame.astype(np.float64), tracklets.stop_frame.astype(np.float64)
    frames = {"start": start, "centre": (start + stop) / 2, "stop": stop}[anchor]
    if unit == "frames":
        return frames
    per_video = [video.frame_count if unit == "share" else video.fps or np.nan for video in videos]
    return np.asarray(frames / np.array(per_video, np.float64)[tracklets.video])


def box_positions(boxes: Boxes) -> NDArray[np.float64]:
    """Position of each box in the life of its polyp, float64[n], as the temporally-aware loss takes it.

    (frame - first frame of the polyp) / (last - first frame of the polyp), where the polyp's frames are those of all
    its boxes in the video, and a span of 0 counts as 1. NaN without a polyp.
    """
    owner = (boxes.video.astype(np.int64) << 32) | (boxes.polyp.astype(np.int64) + 1)
    names, which = np.unique(owner, return_inverse=True)
    first = np.full(len(names), np.inf)
    last = np.full(len(names), -np.inf)
    np.minimum.at(first, which, boxes.frame)
    np.maximum.at(last, which, boxes.frame)
    position = (boxes.frame - first[which]) / np.maximum(last - first, 1)[which]
    return np.where(boxes.polyp >= 0, position, np.nan)


def fragment_positions(pieces: Fragments, tracklets: Tracklets, boxes: Boxes) -> NDArray[np.float64]:
    """Position of each fragment in the life of its polyp, float64[n]: that of its first box. NaN without a polyp."""
    if len(tracklets.label) != len(boxes):
        raise DataError(f"tracklets are of {len(tracklets.label)} boxes, given are {len(boxes)}")
    position = box_positions(boxes)[pieces.rows[pieces.offsets[:-1]]]
    return np.where(tracklets.polyp[pieces.tracklet] >= 0, position, np.nan)
