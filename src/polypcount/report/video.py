"""The annotated video: the recording with its polyps marked."""

import logging
import os
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polypcount.counting.result import CountReport
from polypcount.errors import DataError, FileError
from polypcount.progress import Progress, no_progress
from polypcount.report.colours import NOT_COUNTED, mark_of, rgb
from polypcount.report.count_file import COUNT_FILE, list_file
from polypcount.video import FrameMask, FrameSource, write_video
from polypcount.video.frames import Image

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

ANNOTATED = "annotated.mp4"  # its name in the folder of a report
_FPS = 25.0  # if it is not known
_LOG = logging.getLogger(__name__)


def write_annotated(
    report: CountReport,
    source: FrameSource,
    path: str | os.PathLike[str],
    *,
    mask: FrameMask | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write what was counted of the recording as an mp4 file, with a box, colour and number for each polyp.

    Boxes that were not counted are grey; of a detector that ran here, only those in a track are drawn. A frame that
    cannot be read is replaced by the frame before it. Frames are read, drawn and written one at a time. Video needs an
    even width and height, so a last odd column or row is repeated. Each frame is shown at its own time, so the times
    of the report are those of the video, unless only a part was counted.
    If the file lies in the folder of a report, its count.json lists it.

    Args:
        report: The count, with its boxes.
        source: The frames that were counted, or more.
        path: The file to write.
        mask: Blackens what must not be shown.
        progress: Counts frames.

    Returns:
        The file.
    """
    polyp = report.polyp_of_boxes()
    if source.frame_count < report.video.frame_count:
        raise DataError(
            f"{report.video.id} was counted over {report.video.frame_count} frames, but this recording has "
            f"{source.frame_count}; give the recording that was counted"
        )
    fps = report.video.fps or source.fps
    if fps is None:
        _LOG.warning("the frame rate of %s is not known: the video is written with %g", report.video.id, _FPS)
    part = report.part or range(report.video.frame_count)
    times = None if report.times is None else report.times[part.start : part.stop + 1] - report.times[part.start]
    write_video(path, _drawn(report, part, polyp, source, mask, progress), fps or _FPS, times=times)
    path = Path(path)
    if (path.parent / COUNT_FILE).exists():
        list_file(path.parent, path.name)
    return path


def _drawn(
    report: CountReport,
    part: range,
    polyp: NDArray[np.int32],
    source: FrameSource,
    mask: FrameMask | None,
    progress: Progress,
) -> Iterator[Image]:
    assert report.boxes is not None
    # A detector that ran here looked at some frames only, so its boxes that are in no track would flicker.
    shown_rows = np.flatnonzero((report.boxes.track >= 0) | (report.detected is None))
    order = shown_rows[np.argsort(report.boxes.frame[shown_rows], kind="stable")]
    frames = report.boxes.frame[order]
    for index, image in zip(part, _every_frame(source, part), strict=True):
        shown = image if mask is None else mask.apply(image)
        start, stop = np.searchsorted(frames, [index, index + 1])
        if stop > start:
            rows = order[start:stop]
            shown = draw_boxes(shown, report.boxes.xyxy[rows], polyp[rows] + 1)
        height, width = shown.shape[:2]
        if height % 2 or width % 2:
            shown = np.pad(shown, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        yield shown
        progress(index - part.start + 1, len(part))


def _every_frame(source: FrameSource, part: range) -> Iterator[Image]:
    """All frames of a part; one that cannot be read is replaced by the one before it, or by black."""
    last: Image = np.zeros((source.height, source.width, 3), np.uint8)
    following = part.start
    try:
        for index, image in source.frames(np.array(part)):
            yield from repeat(last, index - following)
            yield image
            last, following = image, index + 1
    except FileError:  # raised after all frames that can be read
        if following == part.start:
            raise
    yield from repeat(last, part.stop - following)


def draw_boxes(image: Image, xyxy: NDArray[np.float32], numbers: NDArray[np.int32]) -> Image:
    """A copy of an image with boxes drawn on it.

    Args:
        image: RGB uint8[height, width, 3].
        xyxy: float32[n, 4], pixels.
        numbers: int32[n], numbers of the polyps; 0 for a box that was not counted.
    """
    from PIL import Image as Pillow
    from PIL import ImageDraw, ImageFont

    drawn = Pillow.fromarray(image)
    draw = ImageDraw.Draw(drawn)
    stroke = max(2, image.shape[0] // 240)
    font = ImageFont.load_default(max(12, image.shape[0] // 24))
    beyond = np.array([*image.shape[1::-1]] * 2) + 10 * stroke  # a side far outside is as invisible as one just outside
    near = np.clip(xyxy, -10 * stroke, beyond)
    for box, number in sorted(zip(near.tolist(), numbers.tolist(), strict=True), key=lambda item: item[1]):
        colour = rgb(mark_of(number).colour if number else NOT_COUNTED)
        # The line is around the box, so that it hides nothing of the polyp; the white line shows it on any background.
        left, top, right, bottom = (round(side) for side in box)
        for grown, width, ink in ((stroke + 2, stroke + 2, (255, 255, 255)), (stroke + 1, stroke, colour)):
            draw.rectangle((left - grown, top - grown, right + grown - 1, bottom + grown - 1), outline=ink, width=width)
        if number:
            _label(draw, number, (left - stroke - 2, top - stroke - 2, bottom + stroke + 2), image.shape, font)
    return np.asarray(drawn)


def _label(
    draw: "ImageDraw",
    number: int,
    sides: tuple[int, int, int],
    shape: tuple[int, ...],
    font: "FreeTypeFont | ImageFont",
) -> None:
    """Draw the number on its colour: above the box, below it, or inside it, where the image has room.

    Args:
        draw: Draws on the image.
        number: Number of the polyp.
        sides: Left, top and bottom of the box.
        shape: Shape of the image.
        font: Font of the number.
    """
    mark, text = mark_of(number), str(number)
    x1, y1, x2, y2 = draw.textbbox((0, 0), text, font=font)
    margin = max(2, int(y2 - y1) // 4)
    across, down = int(x2 - x1) + 2 * margin, int(y2 - y1) + 2 * margin
    left, top, bottom = sides
    x = max(0, min(left, shape[1] - across - 1))
    y = top - down if top >= down else bottom if bottom + down < shape[0] else max(0, top)
    draw.rectangle((x, y, x + across, y + down), fill=rgb(mark.colour))
    draw.text((x + margin - x1, y + margin - y1), text, fill=rgb(mark.ink), font=font)
