"""A detector on the frames of a recording."""

import contextlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes
from polypcount.detection.detector import Detector
from polypcount.errors import FileError
from polypcount.progress import Progress, no_progress
from polypcount.video import FrameSource, FrameView, views
from polypcount.video.ahead import ahead

_Floats = NDArray[np.float32]


def detect_boxes(
    source: FrameSource, detector: Detector, frames: range | None = None, *, progress: Progress = no_progress
) -> tuple[Boxes, int]:
    """Find the boxes in frames of a recording.

    Frames that cannot be read are left out.

    Args:
        source: Gives the frames.
        detector: Finds the boxes.
        frames: The frames that are looked at; all by default.
        progress: Counts frames.

    Returns:
        The boxes with their scores, of video row 0, and the number of frames that were read.

    Raises:
        FileError: No frame can be read.
    """
    numbers, boxes, scores = [], [], []
    try:
        for frame, _, xyxy, score in detections(source, detector, frames, progress=progress):
            numbers.append(np.full(len(xyxy), frame))
            boxes.append(xyxy)
            scores.append(score)
    except FileError:  # raised after all frames that can be read
        if not numbers:
            raise
    if not numbers:
        return Boxes.empty(), 0
    rows = np.concatenate(numbers)
    return Boxes(np.zeros_like(rows), rows, np.concatenate(boxes), np.concatenate(scores)), len(numbers)


def detections(
    source: FrameSource, detector: Detector, frames: range | None = None, *, progress: Progress = no_progress
) -> Iterator[tuple[int, FrameView, _Floats, _Floats]]:
    """Run a detector on frames of a recording, by default on all of them.

    A thread decodes the next frames meanwhile; up to six frames are in memory. An error in decoding is raised after the
    frames before it. Closing the iterator ends the thread.

    Yields:
        The index of a frame, a view of it, its boxes and their scores, as `Detector.detect` gives them.
    """
    wanted = range(source.frame_count) if frames is None else frames
    found = views(source, np.array(wanted, np.int64), detector.view_size)
    with contextlib.closing(ahead(found)) as decoded:
        for done, (index, view) in enumerate(decoded, 1):
            yield index, view, *detector.detect(view)
            progress(done, len(wanted))
