"""Video containers through PyAV: opened with care, the stream that shows pictures, and packets made into frames."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from polypcount.errors import FileError, first_line

if TYPE_CHECKING:
    from av import Packet, VideoFrame, VideoStream
    from av.container import InputContainer

# Only these formats are tried, and only from the file itself: a playlist could name any other file or address.
_FORMATS = "mov,mp4,matroska,webm,avi,mpegts,mpeg,mpegvideo,asf,flv,ogg,mxf,h264,hevc,m4v,dv,ivf,nut,yuv4mpegpipe"


@dataclass(frozen=True)
class VideoBytes:
    """Where the bytes of a video are.

    path: the file; for a stream inside another file, that file.
    stream: opens the bytes, where they are not the whole file at `path`.
    """

    path: Path
    stream: Callable[[], BinaryIO] | None = None

    @contextlib.contextmanager
    def opened(self, threads: int = 1) -> "Iterator[tuple[InputContainer, VideoStream]]":
        """The container and its video stream, ready to be decoded with so many threads (0: as FFmpeg likes)."""
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
            reason = first_line(problem)
            raise FileError(
                f"{self.path} cannot be read as a video ({reason}); if it is one, it is cut off or damaged: "
                "copy it again"
            ) from None
        with container:
            stream = container.streams.best("video")
            if not isinstance(stream, VideoStream) or stream.codec_context is None:
                raise FileError(f"{self.path} has no video stream that can be decoded; convert it to H.264 in MP4")
            stream.thread_type = "AUTO"
            stream.thread_count = threads
            yield container, stream


def decoded(packets: "Iterable[Packet[VideoStream]]") -> "Iterator[VideoFrame]":
    """Frames in the order of showing; packets that cannot be decoded give none, and a broken tail ends it."""
    import av

    packets = iter(packets)
    while True:
        try:
            packet = next(packets)
        except (StopIteration, av.FFmpegError):
            return
        try:
            frames = packet.decode()
        except av.FFmpegError:
            continue
        yield from frames
