"""The boxes of one video while its files are read, and the corpus they become."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Video
from polypcount.importers.reading.options import BoxConvention
from polypcount.importers.reading.problems import Problems
from polypcount.natural import natural_key

BoxNumbers = tuple[float, float, float, float]
_LAST_FRAME = 2**31 - 2
_LAST_TRACK = 2**31 - 1
_LARGEST_SCORE = float(np.finfo(np.float32).max)
_USUAL = 2.0**20


def to_xyxy(numbers: BoxNumbers, convention: BoxConvention | None) -> BoxNumbers:
    """Left, top, right, bottom of a box; without a convention, the numbers are returned unchanged."""
    a, b, c, d = numbers
    if convention == "xywh":
        return (a, b, a + c, b + d)
    if convention == "cxcywh":
        return (a - c / 2, b - d / 2, a + c / 2, b + d / 2)
    if convention == "xyxy-inclusive":
        return (a, b, c + 1, d + 1)
    return numbers


@dataclass
class BoxRows:
    """Boxes of one video, in the order in which they were read.

    Attributes:
        problems: Where bad boxes are reported.
        clamp: Width and height at which boxes that reach over the edge of the image are cut; None leaves them.
        clamped: How many boxes were cut.
        frame: Frame of each box, from 0.
        xyxy: Left, top, right, bottom of each box in pixels.
        score: Confidence of each box.
        polyp: Id of the polyp of each box; None where it is not known.
        track: Number that a tracker gave each box; -1 where there is none.
    """

    problems: Problems
    clamp: tuple[int, int] | None = None
    clamped: int = 0
    frame: list[int] = field(default_factory=list)
    xyxy: list[BoxNumbers] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    polyp: list[str | None] = field(default_factory=list)
    track: list[int] = field(default_factory=list)

    def add(
        self, where: object, frame: int, xyxy: BoxNumbers, score: float = 1.0, polyp: str | None = None, track: int = -1
    ) -> None:
        """Add a box, or report to `problems` why it is not valid."""
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

    def to_corpus(self, video: Video, polyps: Iterable[Polyp] = (), files: Mapping[int, str] | None = None) -> Corpus:
        """The video with these boxes.

        Args:
            video: The video.
            polyps: Polyps with their facts. Others that boxes name are added; all are sorted in natural order.
            files: Name of the image file of each frame, for a video that needs them listed.
        """
        if self.clamped:
            boxes = "1 box" if self.clamped == 1 else f"{self.clamped:,} boxes"
            self.problems.remark(f"video {video.id}: {boxes} cut at the edge of the image")
        by_id = {name: Polyp(name, video.id) for name in self.polyp if name is not None}
        by_id |= {polyp.id: polyp for polyp in polyps}
        names = sorted(by_id, key=natural_key)
        row_of: dict[str | None, int] = {None: -1, **{name: row for row, name in enumerate(names)}}
        table = Boxes(
            np.zeros(len(self.frame), np.int32),
            np.array(self.frame, np.int64),
            np.array(self.xyxy, np.float64).reshape(-1, 4),
            np.array(self.score, np.float64),
            [row_of[name] for name in self.polyp],
            self.track,
        )
        listed = files or {}
        frame_files = FrameFiles(np.zeros(len(listed), np.int32), list(listed), list(listed.values()))
        return Corpus((video,), table, tuple(by_id[name] for name in names), frame_files)


def _complaint(frame: int, xyxy: BoxNumbers, score: float, track: int) -> str | None:
    if not 0 <= frame <= _LAST_FRAME:
        return f"the frame must be a number from 0, found {frame}"
    if not -1 <= track <= _LAST_TRACK:
        return f"the track must be a number from 0, found {track}"
    if not abs(score) <= _LARGEST_SCORE:
        return f"the score must be a finite number, found {score}"
    x1, y1, x2, y2 = xyxy
    if -_USUAL < x1 < x2 - 1 and x2 < _USUAL and -_USUAL < y1 < y2 - 1 and y2 < _USUAL:
        return None  # float32 keeps such numbers distinct
    with np.errstate(over="ignore"):
        x1, y1, x2, y2 = np.array(xyxy, np.float32).tolist()
    if not np.isfinite([x1, y1, x2, y2]).all():
        return f"the box must be four finite numbers, found {xyxy}"
    if x2 <= x1 or y2 <= y1:
        return f"the box must have x1 < x2 and y1 < y2, found x {x1:g} to {x2:g}, y {y1:g} to {y2:g}"
    return None
