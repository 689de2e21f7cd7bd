"""Frames of a video file, by exact index."""

import contextlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.errors import FileError
from polypcount.video.frames import Image, refuse_large, refuse_missing, refuse_no_file, wanted_frames
from polypcount.video.video_container import VideoBytes, decoded
from polypcount.video.video_times import read_times

if TYPE_CHECKING:
    from av import VideoFrame, VideoStream
    from av.container import InputContainer

_WORTH_FRAMES = 16  # fewer than this are decoded and passed over sooner than a decoder warms up again after a seek


class VideoFile:
    """Frames of a video file. A frame's index is its rank in the order of showing, see `video_times.py`.

    path: the file; for a stream inside another file, that file.
    expected_frames: where more than the file has, a wanted frame up to there is missing, not out of range.
    threads: for decoding; 0 leaves it to FFmpeg.
    stream: opens the bytes to read, where they are not the whole file at `path`.

    Pixels are given as stored: no rotation, no stretching of pixels that are not square. A frame that the decoder
    could only guess in part, after damage, counts as missing.
    """

    frame_count: int
    width: int
    height: int
    fps: float | None

    def __init__(
        self,
        path: Path,
        *,
        expected_frames: int = 0,
        threads: int = 0,
        stream: Callable[[], BinaryIO] | None = None,
    ) -> None:
        refuse_no_file(path)
        self.path = path
        self._expected = expected_frames
        self._threads = threads
        self._bytes = VideoBytes(path, stream)
        with self._bytes.opened() as (_, found):
            self.width, self.height = found.width, found.height
            refuse_large(path, self.width, self.height)
            rate = found.average_rate or found.guessed_rate
            self.fps = float(rate) if rate and rate > 0 else None
        self._times = read_times(self._bytes)
        self.frame_count = self._times.frame_count
        if self.frame_count == 0:
            raise FileError(f"{path} has no frame that can be read; it is empty or damaged, copy it again")

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order, as (index, RGB uint8[height, width, 3]); see `FrameSource`."""
        return self._frames(wanted_frames(wanted, max(self.frame_count, self._expected), self.path))

    def _frames(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, Image]]:
        given = 0
        missing: int | None = None
        for index, frame in self._readable(wanted[wanted < self.frame_count]):
            if missing is None and index != wanted[given]:
                missing = int(wanted[given])
            refuse_large(f"{self.path}, frame {index}", frame.width, frame.height)
            yield index, np.asarray(frame.to_ndarray(format="rgb24"), np.uint8)
            given += 1
        if given < len(wanted):
            first = int(wanted[given]) if missing is None else missing
            refuse_missing(self.path, wanted, first, given, f"the file holds {self.frame_count} frames")

    def _readable(self, wanted: NDArray[np.int64]) -> "Iterator[tuple[int, VideoFrame]]":
        """The wanted frames that can be decoded, with a seek wherever none is wanted for long enough."""
        asked = iter(wanted.tolist())
        target: int | None = next(asked, None)
        if target is None:
            return
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
                    # Not before the frame that this run is for was reached: it may have begun far ahead of it.
                    if target != begun and self._keys_up_to(target)[-1] - index > _WORTH_FRAMES:
                        break
                else:
                    return

    def _keys_up_to(self, index: int) -> NDArray[np.int64]:
        """Indices from which decoding can begin to reach this frame; the first is that of the first frame."""
        keys = self._times.keys
        return np.append(0, keys[: np.searchsorted(keys, index, side="right")])

    def _from(
        self, container: "InputContainer", stream: "VideoStream", target: int
    ) -> "Iterator[tuple[int, VideoFrame]]":
        """Frames from `target`, or one before it, to the end of the file."""
        import av

        keys = self._keys_up_to(target)
        shown = self._times.shown
        back = 1
        # A container may land on a later frame than it was asked for; then it is asked for an earlier one.
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
        """Each frame with its index; a frame whose time no packet had is left out."""
        shown = self._times.shown
        if shown is None:
            yield from enumerate(frames)
            return
        for frame in frames:
            if frame.pts is not None:
                index = int(np.searchsorted(shown, frame.pts))
                if index < len(shown) and shown[index] == frame.pts:
                    yield index, frame
