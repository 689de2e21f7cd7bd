"""Video containers through PyAV: opening them safely, and finding when each frame is shown without decoding the file.

The index of a frame is its rank among all presentation times, whatever the order in which frames are stored
(B-frames) and however uneven the times are. The number of frames in the container's header is not used.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import FileError, first_line
from polypcount.video.frames import LONGEST_SECONDS

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream
    from av.container import InputContainer

# Only these formats are tried, and only from the file itself: a playlist could name any other file or address.
_FORMATS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,asf,flv,ogg,mxf,h264,hevc,m4v,dv,ivf,nut,yuv4mpegpipe"
# These containers store presentation times. For AVI and raw streams, FFmpeg makes up times from the order of storage.
# That order is wrong if frames refer to later ones.
_WITH_TIMES = frozenset({"mov", "mp4", "matroska", "webm", "mpegts", "mpeg", "asf", "flv", "ogg", "mxf"})
_TRIED_FRAMES = 32


@dataclass(frozen=True)
class VideoBytes:
    """Where the bytes of a video are.

    Attributes:
        path: The file; for a stream inside another file, that file.
        stream: Opens the bytes, where they are not the whole file at `path`.
    """

    path: Path
    stream: Callable[[], BinaryIO] | None = None

    @contextlib.contextmanager
    def opened(self, threads: int = 1) -> "Iterator[tuple[InputContainer, VideoStream]]":
        """The container and its video stream, to be decoded with this many threads (0: FFmpeg decides)."""
        import av
        from av import VideoStream

        try:
            container = av.open(
                self.stream() if self.stream else str(self.path.absolute()),
                "r",
                options={"protocol_whitelist": "file", "format_whitelist": _FORMATS},
                metadata_errors="replace",
            )
        except (av.FFmpegError, OSError, ValueError) as problem:
            raise FileError(
                f"{self.path} cannot be read as a video ({first_line(problem)}); if it is one, it is cut off or "
                "damaged: copy it again"
            ) from None
        with container:
            stream = container.streams.best("video")
            if not isinstance(stream, VideoStream) or stream.codec_context is None:
                raise FileError(f"{self.path} has no video stream that can be decoded; convert it to H.264 in MP4")
            stream.thread_type, stream.thread_count = "AUTO", threads
            yield container, stream


def decoded(packets: "Iterable[Packet[VideoStream]]") -> "Iterator[VideoFrame]":
    """Frames in the order of showing; packets that cannot be decoded give no frame, and a broken end is ignored."""
    import av

    with contextlib.suppress(av.FFmpegError):  # a broken end
        for packet in packets:
            try:
                frames = packet.decode()
            except av.FFmpegError:
                continue
            yield from frames


@dataclass(frozen=True)
class FrameTimes:
    """When frames are shown.

    Attributes:
        shown: int64[frame_count], rising, in units of the stream's time base. None where the file has no times that
            can be trusted: then the index of a frame is its rank in the decoder's output, and decoding begins at the
            start.
        keys: int64[k], indices of the frames at which decoding can begin, rising; empty where `shown` is None.
        frame_count: How many frames the file holds.
        seconds: float64[frame_count + 1], the same as `shown` in seconds from the first frame, and the end of the last
            frame; None where `shown` is, or where they are too long for a recording.
    """

    shown: NDArray[np.int64] | None
    keys: NDArray[np.int64]
    frame_count: int
    seconds: NDArray[np.float64] | None = None


def read_times(video: VideoBytes) -> FrameTimes:
    """Read the packets of the video stream once, and decode a few frames to check the times."""
    import av

    times: list[int] = []
    keys: list[int] = []
    packets = 0
    last, last_duration = None, 0  # of the frame that is shown last
    with video.opened() as (container, stream):
        stored = not _WITH_TIMES.isdisjoint(container.format.name.split(","))
        with contextlib.suppress(av.FFmpegError):  # a broken end: the frames before it count
            for packet in container.demux(stream):
                if packet.size == 0 or packet.is_discard:  # the end, or before the start of an edited recording
                    continue
                packets += 1
                if packet.pts is not None:
                    times.append(packet.pts)
                    if last is None or packet.pts > last:
                        last, last_duration = packet.pts, packet.duration or 0
                    if packet.is_keyframe:
                        keys.append(packet.pts)
    with video.opened() as (container, stream):
        unit = float(stream.time_base or 0)
        tried = [frame.pts for frame in islice(decoded(container.demux(stream)), _TRIED_FRAMES)]
    first = [time for time in tried if time is not None]
    shown = np.unique(np.array(times, np.int64))
    # Where every frame is a key frame, the orders of storage and of showing are the same.
    trusted = len(shown) == packets and (stored or len(keys) == packets) and 0 < len(first) == len(tried)
    if not trusted or not np.isin(first, shown).all() or (np.diff(first) <= 0).any():
        return FrameTimes(None, np.empty(0, np.int64), packets)
    # A recording cut out of a longer one may begin with frames that refer to others before the cut; they are not shown.
    shown = shown[shown >= first[0]]
    begins = np.unique(np.array(keys, np.int64))
    keys_at = np.searchsorted(shown, begins[begins >= first[0]])
    # Where the file does not say how long the last frame is shown, it is as long as the others on average.
    end = shown[-1] + (last_duration or (shown[-1] - shown[0]) / max(len(shown) - 1, 1))
    seconds = (np.append(shown, end) - shown[0]) * unit
    return FrameTimes(shown, keys_at, len(shown), seconds if 0 < seconds[-1] < LONGEST_SECONDS else None)
