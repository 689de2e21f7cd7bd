"""The boxes of one video while its files are read, and the corpus they become."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Video
from polypcount.importers.options import BoxConvention
from polypcount.importers.problems import Problems
from polypcount.natural import natural_key

Box = tuple[float, float, float, float]
_LAST_FRAME = 2**31 - 2
_LAST_TRACK = 2**31 - 1
_LARGEST_SCORE = float(np.finfo(np.float32).max)
_USUAL = 2.0**20


def to_xyxy(values: Box, convention: BoxConvention) -> Box:
    """Left, top, right, bottom from the four numbers of another convention."""
    a, b, c, d = values
    if convention == "xywh":
        return (a, b, a + c, b + d)
    if convention == "cxcywh":
        return (a - c / 2, b - d / 2, a + c / 2, b + d / 2)
    if convention == "xyxy-inclusive":
        return (a, b, c + 1, d + 1)
    return values


@dataclass
class Rows:
    """Boxes of one video, in the order in which they were read.

    clamp: width and height to which boxes that reach over the edge of the image are cut; None leaves them as they are.
    clamped: how many were cut.
    """

    problems: Problems
    clamp: tuple[int, int] | None = None
    clamped: int = 0
    frame: list[int] = field(default_factory=list)
    xyxy: list[Box] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    polyp: list[str | None] = field(default_factory=list)
    track: list[int] = field(default_factory=list)

    def add(
        self, where: object, frame: int, xyxy: Box, score: float = 1.0, polyp: str | None = None, track: int = -1
    ) -> None:
        """Keep a box, or report to `problems` why it cannot be one."""
        if self.clamp:
            width, height = self.clamp
            x1, y1, x2, y2 = xyxy
            if x1 < 0 or y1 < 0 or x2 > width or y2 > height:
                xyxy = (max(x1, 0), max(y1, 0), min(x2, width), min(y2, height))
                self.clamped += 1
        if complaint := _complaint(frame, xyxy, score, track):
            self.problems.bad(where, complaint)
            return
        self.frame.append(frame)
        self.xyxy.append(xyxy)
        self.score.append(score)
        self.polyp.append(polyp)
        self.track.append(track)

    def last_frame(self) -> int:
        """The highest frame with a box, -1 without any."""
        return max(self.frame, default=-1)

    def to_corpus(
        self,
        video: Video,
        polyps: Iterable[Polyp] = (),
        files: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Corpus:
        """The video with these boxes.

        polyps: what is known of polyps; others that boxes name are added, all in natural order.
        files: frame and name of each image file, for videos that need them listed.
        """
        if self.clamped:
            boxes = "1 box" if self.clamped == 1 else f"{self.clamped:,} boxes"
            self.problems.remark(f"video {video.id}: {boxes} cut at the edge of the image")
        known = {polyp.id: polyp for polyp in polyps}
        for name in self.polyp:
            if name is not None and name not in known:
                known[name] = Polyp(name, video.id)
        ordered = sorted(known.values(), key=lambda polyp: natural_key(polyp.id))
        row_of: dict[str | None, int] = {polyp.id: row for row, polyp in enumerate(ordered)}
        row_of[None] = -1
        boxes_found = Boxes(
            np.zeros(len(self.frame), np.int32),
            np.array(self.frame, np.int64),
            np.array(self.xyxy, np.float64).reshape(-1, 4),
            np.array(self.score, np.float64),
            [row_of[name] for name in self.polyp],
            self.track,
        )
        listed = FrameFiles.empty()
        if files is not None:
            listed = FrameFiles(np.zeros(len(np.asarray(files[0])), np.int32), *files)
        return Corpus((video,), boxes_found, tuple(ordered), listed)


def _complaint(frame: int, xyxy: Box, score: float, track: int) -> str | None:
    if not 0 <= frame <= _LAST_FRAME:
        return f"the frame must be a number from 0, found {frame}"
    if not -1 <= track <= _LAST_TRACK:
        return f"the track must be a number from 0, found {track}"
    if not abs(score) <= _LARGEST_SCORE:
        return f"the score must be a finite number, found {score}"
    x1, y1, x2, y2 = xyxy
    if -_USUAL < x1 < x2 - 1 and x2 < _USUAL and -_USUAL < y1 < y2 - 1 and y2 < _USUAL:
        return None  # float32 keeps such numbers apart
    with np.errstate(over="ignore"):
        x1, y1, x2, y2 = np.array(xyxy, np.float32).tolist()
    if not all(map(math.isfinite, (x1, y1, x2, y2))):
        return f"the box must be four finite numbers, found {xyxy}"
    if x2 <= x1 or y2 <= y1:
        return f"the box must have x1 < x2 and y1 < y2, found x {x1:g} to {x2:g}, y {y1:g} to {y2:g}"
    return None
