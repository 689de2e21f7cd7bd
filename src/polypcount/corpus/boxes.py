"""Boxes around polyps, one row each, and the image files of frames."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.columns import (
    Columns,
    Float32Column,
    Int32Column,
    TextColumn,
    box_column,
    float_column,
    int_column,
    refuse_rows,
    slice_of,
    text_column,
)

LAST_FRAME = 2**31 - 2  # so that the frame after it is a number too


class FrameRows(Columns):
    """A table whose rows belong to a frame of a video."""

    video: Int32Column
    frame: Int32Column

    @classmethod
    def empty(cls) -> Self:
        """A table without rows."""
        return cls([], [], [])  # type: ignore[call-arg]

    @cached_property
    def is_ordered(self) -> bool:
        """Whether the rows are ordered by (video, frame)."""
        step: NDArray[np.int32] = np.diff(self.video)
        return bool(np.all((step > 0) | ((step == 0) & (np.diff(self.frame) >= 0))))

    def ordered(self) -> Self:
        """The same rows by (video, frame); rows of one frame keep their order."""
        return self if self.is_ordered else self.take(np.lexsort((self.frame, self.video)))

    def of_video(self, video: int) -> slice:
        """Where the rows of a video are in an ordered table."""
        return slice_of(self.video, video)


@dataclass(frozen=True, init=False, eq=False)
class Boxes(FrameRows):
    """One row per box. Rows may come in any order; inside a `Corpus` they are ordered by (video, frame).

    Attributes:
        video: int32[n], row in the corpus's videos.
        frame: int32[n], from 0.
        xyxy: float32[n, 4], left, top, right, bottom in pixels.
        score: float32[n], the detector's confidence; 1 for an annotation.
        polyp: int32[n], row in the corpus's polyps; -1 if it is unknown.
        track: int32[n], number from a tracker, unique in its video; -1 if there is none.
    """

    video: Int32Column
    frame: Int32Column
    xyxy: Float32Column
    score: Float32Column
    polyp: Int32Column
    track: Int32Column

    def __init__(
        self,
        video: ArrayLike,
        frame: ArrayLike,
        xyxy: ArrayLike,
        score: ArrayLike | None = None,
        polyp: ArrayLike | None = None,
        track: ArrayLike | None = None,
    ) -> None:
        videos = int_column("boxes", "video", video)
        count = len(videos)
        self._set(
            video=videos,
            frame=int_column("boxes", "frame", frame, maximum=LAST_FRAME),
            xyxy=box_column("boxes", xyxy),
            score=float_column("boxes", "score", np.ones(count) if score is None else score),
            polyp=int_column("boxes", "polyp", np.full(count, -1) if polyp is None else polyp, minimum=-1),
            track=int_column("boxes", "track", np.full(count, -1) if track is None else track, minimum=-1),
        )


@dataclass(frozen=True, init=False, eq=False)
class FrameFiles(FrameRows):
    """The image file of each frame, for videos whose frames are not simply all images of a folder in natural order.

    Attributes:
        video: int32[n], row in the corpus's videos.
        frame: int32[n], from 0; at most one file per frame.
        name: object[n], path of the file below the video's source folder, with forward slashes.
    """

    video: Int32Column
    frame: Int32Column
    name: TextColumn

    def __init__(self, video: ArrayLike, frame: ArrayLike, name: ArrayLike) -> None:
        self._set(
            video=int_column("frame files", "video", video),
            frame=int_column("frame files", "frame", frame, maximum=LAST_FRAME),
            name=text_column("frame files", "name", name),
        )
        order = np.lexsort((self.frame, self.video))
        twice = np.zeros(len(self), bool)
        twice[order[1:]] = (np.diff(self.video[order]) == 0) & (np.diff(self.frame[order]) == 0)
        refuse_rows("frame files", twice, lambda row: f"frame {self.frame[row]} of its video has a file already")
        paths = map(PurePosixPath, self.name)
        outside = np.fromiter((path.is_absolute() or ".." in path.parts for path in paths), bool, len(self))
        refuse_rows("frame files", outside, lambda row: f"{self.name[row]} lies outside the video's source folder")
