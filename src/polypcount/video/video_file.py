"""Frames of a video file, by exact index."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import FileError, first_line
from polypcount.video.frames import Image, missing_frame, refuse_large, refuse_no_file, uneven, wanted_frames
from polypcount.video.video_container import VideoBytes, decoded, read_times
from polypcount.video.views import FrameView

if TYPE_CHECKING:
    from av import VideoFrame, VideoStream
    from av.container import InputContainer

# Flags of FFmpeg's converter. Bilinear as in Pillow: the filter widens with the reduction, so nothing aliases. Without
# the other two (SWS_FULL_CHR_H_INT and SWS_FULL_CHR_H_INP), colours are taken from some of the pixels only.
_BILINEAR, _ALL_COLOURS = 0x2, 0x2000 | 0x4000
_WORTH_FRAMES = 16  # decoding fewer frames than this is faster than a seek, which starts the decoder again


class VideoFile:
    """Frames of a video file. The index of a frame is its rank in the order of showing, see `video_container.py`.

    Pixels are given as stored: no rotation, no stretching of pixels that are not square. A frame that the decoder had
    to guess in part, after damage, counts as missing.

    Args:
        path: The file; for a stream inside another file, that file.
        expected_frames: Where the file has fewer frames, those up to here are missing, not out of range.
        threads: For decoding; 0 lets FFmpeg decide.
        stream: Opens the bytes to read, where they are not the whole file at `path`.
    """

    frame_count: int
    width: int
    height: int
    fps: float | None
    times: NDArray[np.float64] | None

    def __init__(
        self,
        path: Path,
        *,
        expected_frames: int = 0,
        threads: int = 0,
        stream: Callable[[], BinaryIO] | None = None,
    ) -> None:
        refuse_no_file(path)
        self.path, self._expected, self._threads = path, expected_frames, threads
        self._bytes = VideoBytes(path, stream)
        with self._bytes.opened() as (_, pictures):
            self.width, self.height = pictures.width, pictures.height
            refuse_large(path, self.width, self.height)
            rate = pictures.average_rate or pictures.guessed_rate
            self.fps = float(rate) if rate and rate > 0 else None
        self._times = read_times(self._bytes)
        self.frame_count = self._times.frame_count
        if self.frame_count == 0:
            raise FileError(f"{path} has no frame that can be read; it is empty or damaged, copy it again")
        if self.fps is None and self._times.seconds is not None:
            self.fps = self.frame_count / float(self._times.seconds[-1])
        self.times = uneven(self._times.seconds, self.fps)

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order, as (index, RGB uint8[height, width, 3]); see `FrameSource`."""
        return ((index, view.pixels.image()) for index, view in self.views(wanted))

    def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
        """The same frames, converted to RGB only when they are asked for; see `views`."""
        return self._views(wanted_frames(wanted, max(self.frame_count, self._expected), self.path))

    def _views(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, FrameView]]:
        read, converter = [], _Converter()
        for index, frame in self._readable(wanted[wanted < self.frame_count]):
            name = f"{self.path}, frame {index}"
            refuse_large(name, frame.width, frame.height)
            yield index, FrameView(frame.width, frame.height, _DecodedFrame(frame, converter, name))
            read.append(index)
        if len(read) < len(wanted):
            first = int(np.setdiff1d(wanted, read)[0])
            raise missing_frame(self.path, wanted, first, len(read), f"the file holds {self.frame_count} frames")

    def _readable(self, wanted: NDArray[np.int64]) -> "Iterator[tuple[int, VideoFrame]]":
        """The wanted frames that can be decoded, with a seek over each long gap between them."""
        asked = iter(wanted.tolist())
        target: int | None = next(asked, None)
        with self._bytes.opened(self._threads) as (container, stream):
            while target is not None:
                begun = target
                for index, frame in self._from(container, stream, target):
                    while target is not None and target <= index:
                        if target == index and not frame.is_corrupt:
                            yield index, frame
                        target = next(asked, None)
                    if target is None:
                        return
                    # Only after the first target was reached: decoding may have begun long before it.
                    if target != begun and self._keys_up_to(target)[-1] - index > _WORTH_FRAMES:
                        break
                else:
                    return

    def _keys_up_to(self, index: int) -> NDArray[np.int64]:
        """Indices from which decoding can begin to reach this frame, starting with 0."""
        keys = self._times.keys
        return np.append(0, keys[: np.searchsorted(keys, index, side="right")])

    def _from(
        self, container: "InputContainer", stream: "VideoStream", target: int
    ) -> "Iterator[tuple[int, VideoFrame]]":
        """Frames from `target`, or one before it, to the end of the file."""
        import av

        keys, shown, back = self._keys_up_to(target), self._times.shown, 1
        # A seek may land on a later frame than asked for; then an earlier one is tried.
        while shown is not None and back < len(keys) and keys[-back] > _WORTH_FRAMES:
            with contextlib.suppress(av.FFmpegError):
                container.seek(int(shown[keys[-back]]), stream=stream)
                packets = container.demux(stream)
                head = next(packets)
                if head.is_keyframe and head.pts is not None and head.pts <= shown[target]:
                    yield from self._numbered(decoded(chain([head], packets)))
                    return
            back *= 2
        with self._bytes.opened(self._threads) as (fresh, start):
            yield from self._numbered(decoded(fresh.demux(start)))

    def _numbered(self, frames: "Iterator[VideoFrame]") -> "Iterator[tuple[int, VideoFrame]]":
        """Each frame with its index; a frame with a time that no packet has is left out."""
        shown = self._times.shown
        if shown is None:
            yield from enumerate(frames)
            return
        for frame in frames:
            index = len(shown) if frame.pts is None else int(np.searchsorted(shown, frame.pts))
            if index < len(shown) and shown[index] == frame.pts:
                yield index, frame


class _Converter:
    """Converts decoded frames to RGB, one at a time: FFmpeg's converter may not be used by two threads at once.

    Each size has its own converter, since a change of size sets it up anew, which takes longer than converting.
    """

    def __init__(self) -> None:
        from av.video.reformatter import VideoReformatter

        self._one_at_a_time = threading.Lock()
        self._whole, self._small = VideoReformatter(), VideoReformatter()

    def convert(self, frame: "VideoFrame", size: tuple[int, int] | None = None) -> Image:
        """The frame as RGB uint8[height, width, 3], at its own size or at this width and height."""
        with self._one_at_a_time:
            if size is None:
                converted = self._whole.reformat(frame, format="rgb24")
            else:
                converted = self._small.reformat(frame, *size, "rgb24", interpolation=_BILINEAR | _ALL_COLOURS)
        return np.asarray(converted.to_ndarray(), np.uint8)


class _DecodedFrame:
    """A frame in the format of its decoder; see `views.Pixels`."""

    def __init__(self, frame: "VideoFrame", converter: _Converter, name: str) -> None:
        self._frame, self._converter, self._name = frame, converter, name

    def image(self) -> Image:
        return self._convert(None)

    def scaled(self, width: int, height: int) -> Image:
        return self._convert((width, height))

    def _convert(self, size: tuple[int, int] | None) -> Image:
        import av

        try:
            return self._converter.convert(self._frame, size)
        except (av.FFmpegError, ValueError) as problem:
            raise FileError(
                f"{self._name}: its pixels cannot be converted to RGB ({first_line(problem)}); convert the recording to"
                " H.264 in MP4"
            ) from None
