"""Boxes that belong to images by the number in a name, where the recording is a folder of such images.

The images may be numbered from 1, or be every tenth of a video: frames count them by their order, and boxes that name
image 10 are on the image of that name, whichever frame it is.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from polypcount.corpus import Boxes
from polypcount.errors import DataError
from polypcount.importers.coco_file import load_coco
from polypcount.importers.numbering import last_number
from polypcount.importers.problems import Problems
from polypcount.video import FrameSource
from polypcount.video.frame_folder import FrameFolder

_BY_NAME = ("coco", "voc", "yolo")  # formats that take a frame to be the number at the end of a file's name
_FRAME_KEYS = ("frame_id", "frame_index")


def frames_by_number(source: FrameSource, boxes_format: str, path: Path) -> dict[int, int] | None:
    """Frame of each image by the number that its name ends in; None where boxes of this format tell frames otherwise.

    path: of the boxes.
    """
    if boxes_format not in _BY_NAME or not isinstance(source, FrameFolder):
        return None
    files = {frame: source.file_of(frame) for frame in range(source.frame_count)}
    numbers = {frame: last_number(file.stem) for frame, file in files.items() if file is not None}
    found = {number: frame for frame, number in numbers.items() if number is not None}
    if len(found) < len(numbers) or (boxes_format == "coco" and _has_frame_ids(path)):
        return None
    return found


def _has_frame_ids(path: Path) -> bool:
    """Whether a COCO file says which frame an image is."""
    images = load_coco(path, Problems()).images
    return any(key in image.values for image in images for key in _FRAME_KEYS)


def on_images(boxes: Boxes, frames: Mapping[int, int], told: str, place: str) -> Boxes:
    """Boxes that have numbers of images for frames, in their frames, ordered. told, place: of boxes and images."""
    numbers, row = np.unique(boxes.frame, return_inverse=True)
    for number in numbers.tolist():
        if number not in frames:
            raise DataError(
                f"{told} has boxes for image number {number}, and no name in {place} ends in that; give the folder "
                "that the boxes were drawn on"
            )
    frame = np.array([frames[number] for number in numbers.tolist()], np.int32)[row]
    return Boxes(boxes.video, frame, boxes.xyxy, boxes.score, boxes.polyp, boxes.track).ordered()
