"""When each frame of a video file is shown, found without decoding the file.

The rank of a frame among all presentation times is its index, whatever the order in which frames are stored
(B-frames) and however unevenly they follow each other. What the container says of the number of frames is not used.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from polypcount.video.video_container import VideoBytes, decoded

# These containers store presentation times. AVI and raw streams do not: there FFmpeg makes times up from the order of
# storage, which is another order where frames refer to later ones.
_WITH_TIMES = frozenset({"mov", "mp4", "matroska", "webm", "mpegts", "mpeg", "asf", "flv", "ogg", "mxf"})
_TRIED_FRAMES = 32


@dataclass(frozen=True)
class Times:
    """When frames are shown.

    shown: int64[frame_count], rising, in units of the stream's time base; None where the file has no times that can
        be trusted: then a frame's index is its rank in what the decoder gives, and decoding begins at the start.
    keys: int64[k], indices of the frames at which decoding can begin, rising; empty where `shown` is None.
    frame_count: how many frames the file holds.
    """

    shown: NDArray[np.int64] | None
    keys: NDArray[np.int64]
    frame_count: int


def read_times(video: VideoBytes) -> Times:
    """Read the packets of the video stream once, and decode a few frames to see that the times are right."""
    import av

    times: list[int] = []
    keys: list[int] = []
    packets = 0
    with video.opened() as (container, stream):
        stored = not _WITH_TIMES.isdisjoint(container.format.name.split(","))
        try:
            for packet in container.demux(stream):
                if packet.size == 0 or packet.is_discard:  # the end, or before the start of an edited recording
                    continue
                packets += 1
                if packet.pts is not None:
                    times.append(packet.pts)
                    if packet.is_keyframe:
                        keys.append(packet.pts)
        except av.FFmpegError:
            pass  # a broken tail: what came before it counts
    shown = np.unique(np.array(times, np.int64))
    untimed = Times(None, np.empty(0, np.int64), packets)
    # Where every frame stands for itself, order of storage and of showing are the same.
    if len(shown) < packets or not (stored or len(keys) == packets):
        return untimed
    first = _first_times(video)
    if not first or not np.isin(first, shown).all() or (np.diff(first) <= 0).any():
        return untimed
    # A recording cut out of a longer one may begin with frames that refer to others before the cut; nobody sees them.
    shown = shown[shown >= first[0]]
    begin = np.unique(np.array(keys, np.int64))
    return Times(shown, np.searchsorted(shown, begin[begin >= first[0]]), len(shown))


def _first_times(video: VideoBytes) -> list[int]:
    """Times of the first frames that the decoder gives; empty where one has none."""
    with video.opened() as (container, stream):
        found = [frame.pts for frame in islice(decoded(container.demux(stream)), _TRIED_FRAMES)]
    known = [time for time in found if time is not None]
    return known if len(known) == len(found) else []
