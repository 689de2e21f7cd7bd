"""The columns of an embeddings file, and the embeddings they make when nothing but the columns is there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.columns import Int32Column, int_column, refuse_rows
from polypcount.corpus.embeddings import Embeddings
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.corpus.together import overlapping
from polypcount.errors import DataError

REQUIRED = ("video", "start_frame", "stop_frame", "frame_count")
OPTIONAL = ("polyp", "box_count", "fps")
MOST_ROWS = 1 << 24
LARGEST_BYTES = 1 << 32
LARGEST_DESCRIPTION = 1 << 25
_TABLE = "embeddings"
_MISSING_AS_TEXT = frozenset({"None", "nan", "NaN", "<NA>"})


@dataclass(frozen=True)
class Texts:
    """A column of texts: row k has `names[codes[k]]`; the code is -1 where the row has none.

    codes: int64[n]. names: each once, in the order in which the rows first have them.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def encoded(cls, names: list[str], codes: NDArray[np.int64]) -> "Texts":
        """From names in any order, of which some may be used by no row; an empty name counts as none."""
        present = np.array([*(bool(name) for name in names), False])[codes]
        used, first, which = np.unique(codes[present], return_index=True, return_inverse=True)
        order = np.argsort(first)
        ordered = np.full(len(codes), -1, np.int64)
        ordered[present] = np.argsort(order)[which]
        return cls(ordered, tuple(names[code] for code in used[order]))

    def refuse_missing(self, column: str) -> None:
        """Refuse names that are no names: what None and NaN become when a program turns a column into text."""
        odd = np.array([*(name in _MISSING_AS_TEXT for name in self.names), False])[self.codes]
        mend = 'write "" where the polyp is not known' if column == "polyp" else "name the video"
        refuse_rows(_TABLE, odd, lambda row: f"{column} {self.names[self.codes[row]]!r} is a missing value; {mend}")


@dataclass(frozen=True)
class FileColumns:
    """What stands in a file, one row per tracklet, before it is known whether it makes sense.

    video, polyp: names. start_frame, stop_frame, frame_count (of the video), box_count: numbers[n].
    fps: of the video, float[n], NaN where it is not known. vectors: numbers[n, d].
    together: numbers[m, 2]. description: JSON that polypcount wrote. None stands for what the file does not have.
    """

    video: Texts
    polyp: Texts | None
    start_frame: NDArray[Any]
    stop_frame: NDArray[Any]
    frame_count: NDArray[Any]
    box_count: NDArray[Any] | None
    fps: NDArray[Any] | None
    vectors: NDArray[Any]
    together: NDArray[Any] | None
    description: str | None

    def __post_init__(self) -> None:
        refuse_rows(_TABLE, self.video.codes < 0, lambda _: "video must be a non-empty text, found none")

    def videos(self) -> tuple[Video, ...]:
        """The videos that the rows name, after seeing that all rows of one say the same of it."""
        frame_count = int_column(_TABLE, "frame_count", self.frame_count)
        frame_counts = self._of_video("frame_count", frame_count)
        rates: list[float | None] = [None] * len(self.video.names)
        if self.fps is not None:
            rates = [None if np.isnan(fps) else float(fps) for fps in self._of_video("fps", self.fps)]
        return tuple(
            Video(name, int(frames), fps)
            for name, frames, fps in zip(self.video.names, frame_counts, rates, strict=True)
        )

    def polyps(self) -> tuple[Polyp, ...]:
        """The polyps that the rows name, after seeing that each is of one video."""
        if self.polyp is None:
            return ()
        home = np.full(len(self.polyp.names), -1)
        known = np.flatnonzero(self.polyp.codes >= 0)
        # Written from the last row to the first, so that the first row of a polyp decides.
        home[self.polyp.codes[known[::-1]]] = self.video.codes[known[::-1]]
        elsewhere = known[home[self.polyp.codes[known]] != self.video.codes[known]]
        if len(elsewhere):
            row = int(elsewhere[0])
            polyp = self.polyp.names[self.polyp.codes[row]]
            first, second = (self.video.names[code] for code in (home[self.polyp.codes[row]], self.video.codes[row]))
            raise DataError(
                f"row {row}: polyp {polyp!r} is in videos {first} and {second}; "
                f"give each polyp its own name, such as {first}_{polyp}"
            )
        return tuple(
            Polyp(name, self.video.names[code]) for name, code in zip(self.polyp.names, home.tolist(), strict=True)
        )

    def spans(self) -> tuple[Int32Column, Int32Column]:
        """start_frame and stop_frame as int32[n]."""
        start = int_column(_TABLE, "start_frame", self.start_frame)
        return start, int_column(_TABLE, "stop_frame", self.stop_frame)

    def _of_video(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """The value of each video, which must be the same in all of its rows."""
        _, first = np.unique(self.video.codes, return_index=True)
        expected = values[first][self.video.codes]
        refuse_rows(
            _TABLE,
            ~((values == expected) | (np.isnan(values) & np.isnan(expected))),
            lambda row: (
                f"{name} must be the same in all rows of video {self.video.names[self.video.codes[row]]}, "
                f"found {expected[row]} and {values[row]}"
            ),
        )
        return values[first]


def from_columns(columns: FileColumns, provenance: Provenance) -> Embeddings:
    """Embeddings from the columns alone; tracklets whose spans overlap count as together where nothing else is said."""
    if not len(columns.video.codes):
        raise DataError("the file has no rows; there must be one for each tracklet")
    columns.video.refuse_missing("video")
    if columns.polyp is not None:
        columns.polyp.refuse_missing("polyp")
    start, stop = columns.spans()
    video = columns.video.codes.astype(np.int32)
    count = columns.box_count if columns.box_count is not None else np.maximum(stop - start, 1)
    return Embeddings(
        videos=columns.videos(),
        polyps=columns.polyps(),
        video=video,
        start_frame=start,
        stop_frame=stop,
        box_count=count,
        polyp=columns.polyp.codes if columns.polyp is not None else np.full(len(video), -1),
        vectors=columns.vectors,
        together=columns.together if columns.together is not None else overlapping(video, start, stop),
        provenance=provenance,
    )
