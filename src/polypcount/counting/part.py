"""The part of a recording that is counted, given by times or frame numbers."""

import math
import re

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Video
from polypcount.errors import DataError

Moment = int | str
_TIME = re.compile(r"(?:(?:(\d{1,4}):)?(\d{1,4}):)?(\d{1,6}(?:\.\d{1,6})?)(s?)")


def part_of(video: Video, start: Moment | None, stop: Moment | None, times: NDArray[np.float64] | None = None) -> range:
    """The frames from `start` up to, not including, `stop`.

    Args:
        video: The recording.
        start: A frame number, or a time as min:s, h:min:s or "90s"; None for the first frame.
        stop: Likewise; None for the end. A moment after the end stands for the end.
        times: float64[frame_count + 1], when each frame is shown, in seconds; None for a constant frame rate.

    Raises:
        DataError: A moment is neither, or the part holds no frame.
    """
    first = 0 if start is None else _frame_at(video, start, "start", times)
    last = video.frame_count if stop is None else min(_frame_at(video, stop, "stop", times), video.frame_count)
    if first >= last and (start, stop) != (None, None):
        raise DataError(
            f"{video.id}: the part from frame {first} to frame {last} holds no frame; the recording has "
            f"{video.frame_count}",
            mend=[name for name, moment in (("start", start), ("stop", stop)) if moment is not None],
        )
    return range(first, last)


def _frame_at(video: Video, moment: Moment, name: str, times: NDArray[np.float64] | None) -> int:
    """The frame of a number, or the first frame that is not before a time."""
    text = str(moment).strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    match = _TIME.fullmatch(text)
    if match is None or not (match[2] or match[4]):
        raise DataError(
            f"{name} must be a frame number, or a time such as 1:30, 0:01:30 or 90s, found {moment!r}", mend=name
        )
    if video.fps is None:
        raise DataError(
            f"{video.id}: the frame rate is not known, so {name} must be a frame number, found {moment!r}",
            mend=(name, "fps"),
        )
    hours, minutes, seconds = (float(part or 0) for part in match.groups()[:3])
    time = 3600 * hours + 60 * minutes + seconds - 1e-6  # a time that falls on a frame gives that frame
    return math.ceil(time * video.fps) if times is None else int(np.searchsorted(times[:-1], time))
