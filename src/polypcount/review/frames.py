"""Single frames of the recording as JPEG files, by exact index."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import simplejpeg  # type: ignore[import-untyped]

from polypcount.corpus import Corpus, is_corpus
from polypcount.errors import DataError, FileError
from polypcount.review.kept import ReviewData
from polypcount.video import FrameSource, open_source, open_video, resize
from polypcount.video.frames import Image

MOST_WIDTH = 1920
_KEPT_BYTES = 64 << 20
_AHEAD = 12  # frames up to which decoding goes on rather than seeking
_QUALITY = 80


class Frames:
    """The frames of a recording, masked, as JPEG files. Some are kept; it can be used from several threads.

    Args:
        source: Path of the recording.
        video: Id of its video, where it is a corpus.
        data: What is reviewed.

    Raises:
        FileError: The recording cannot be read.
        DataError: It is not the recording that was counted.
    """

    def __init__(self, source: Path, video: str | None, data: ReviewData) -> None:
        self._source = _open(source, video)
        if self._source.frame_count != data.frame_count:
            raise DataError(
                f"{source.name} has {self._source.frame_count:,} frames, and the recording that was counted "
                f"{data.frame_count:,}: it is another one"
            )
        if data.size is not None and (self._source.width, self._source.height) != data.size:
            # Boxes would lie elsewhere, and so would what must not be shown.
            raise DataError(
                f"{source.name} has frames of {self._source.width} x {self._source.height} pixels, and the recording "
                f"that was counted {data.size[0]} x {data.size[1]}: it is another one"
            )
        self._mask = data.mask
        self._lock = threading.Lock()
        self._going_on: Iterator[tuple[int, Image]] = iter(())
        self._next = self._source.frame_count  # the next frame that `_going_on` gives
        self._kept: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._size = 0

    def jpeg(self, index: int, width: int) -> bytes:
        """One frame, at most so wide.

        Raises:
            DataError: There is no such frame.
            FileError: It cannot be read.
        """
        if not 0 <= index < self._source.frame_count:
            raise DataError(f"there is no frame {index}; the last one is {self._source.frame_count - 1}")
        width = min(width, self._source.width, MOST_WIDTH)
        with self._lock:
            if (index, width) not in self._kept:
                self._keep(index, width, self._read(index))
            self._kept.move_to_end((index, width))
            return self._kept[index, width]

    def _read(self, index: int) -> Image:
        """A frame. The frames after the last one that was read need no search in the file."""
        if not self._next <= index <= self._next + _AHEAD:
            self._going_on = iter(self._source.frames(np.arange(index, self._source.frame_count)))
        self._next = self._source.frame_count  # if it fails, the next frame is searched
        for found, image in self._going_on:
            if found >= index:
                self._next = found + 1
                if found == index:
                    return image
                break
        raise FileError(f"frame {index} cannot be read")

    def _keep(self, index: int, width: int, image: Image) -> None:
        masked = image if self._mask is None else self._mask.apply(image)
        height = max(1, round(masked.shape[0] * width / masked.shape[1]))
        small = masked if masked.shape[1] == width else resize(masked, width, height)
        data = bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(small), quality=_QUALITY))
        self._kept[index, width] = data
        self._size += len(data)
        while self._size > _KEPT_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest)


def _open(source: Path, video: str | None) -> FrameSource:
    if not is_corpus(source):
        return open_source(source)
    corpus, row = video_in(source, video)
    return open_video(corpus.videos[row], corpus.files, row)


def video_in(source: Path, video: str | None) -> tuple[Corpus, int]:
    """A corpus, and the row of the video with this id; of the only one for None.

    Raises:
        DataError: It has no such video.
        FileError: It cannot be read.
    """
    corpus = Corpus.load(source)
    rows = [row for row, one in enumerate(corpus.videos) if video in (None, one.id)]
    if len(rows) != 1:
        raise DataError(f"{source} has no single video {video or ''}")
    return corpus, rows[0]
