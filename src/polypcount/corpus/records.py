"""A video and a polyp: what is known of each, apart from boxes."""

import math
import os
from dataclasses import dataclass

import numpy as np

from polypcount.errors import DataError


@dataclass(frozen=True)
class Video:
    """One recording.

    id: unique in a corpus.
    frame_count: its frames are numbered 0 .. frame_count - 1.
    fps: frames per second; None where nobody knows, as for stills.
    width, height: of its frames in pixels; None where nobody knows.
    source: the video file or the folder of frames, as an absolute path; None for a video without pixels.
    dataset, centre: where it comes from; empty where that has no name.
    split: such as "train" or "val"; empty where the corpus is not split.
    """

    id: str
    frame_count: int
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    source: str | None = None
    dataset: str = ""
    centre: str = ""
    split: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            raise DataError("video: the id must not be empty")
        _refuse_no_text(self, "id", "dataset", "centre", "split")
        _as_plain(self, int, "frame_count", "width", "height")
        _as_plain(self, float, "fps")
        if not 0 <= self.frame_count < 2**31:
            raise DataError(f"video {self.id}: frame_count must be from 0 to 2^31 - 1, found {self.frame_count}")
        if self.fps is not None and not (math.isfinite(self.fps) and self.fps > 0):
            raise DataError(f"video {self.id}: fps must be a positive number or None, found {self.fps}")
        for name, pixels in (("width", self.width), ("height", self.height)):
            if pixels is not None and not 0 < pixels < 2**31:
                raise DataError(f"video {self.id}: {name} must be positive or None, found {pixels}")
        if self.source is not None:
            if not self.source:
                raise DataError(f"video {self.id}: the source must not be empty; None is for a video without pixels")
            object.__setattr__(self, "source", os.path.abspath(self.source))


@dataclass(frozen=True)
class Polyp:
    """One polyp of the patient.

    id: unique in a corpus.
    video: id of the video in which it was seen.
    size_mm: largest diameter; None where nobody measured it.
    site: part of the colon; empty where nobody wrote it down.
    histology: class such as AD, HP, SSL, TSA; empty where there is none.
    """

    id: str
    video: str | None = None
    size_mm: float | None = None
    site: str = ""
    histology: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            raise DataError("polyp: the id must not be empty")
        _refuse_no_text(self, "id", "site", "histology")
        _as_plain(self, float, "size_mm")
        if self.size_mm is not None and not (math.isfinite(self.size_mm) and self.size_mm >= 0):
            raise DataError(f"polyp {self.id}: size_mm must be a number of at least 0 or None, found {self.size_mm}")


def _as_plain(record: Video | Polyp, kind: type[int] | type[float], *names: str) -> None:
    """Make numbers plain Python ones, whatever numpy or integer type they came as, so that equal records are equal."""
    for name in names:
        value = getattr(record, name)
        if value is None and name != "frame_count":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise DataError(f"{_named(record)}: {name} must be a number, found {value!r}")
        if kind is int and (not math.isfinite(value) or value != int(value)):
            raise DataError(f"{_named(record)}: {name} must be whole, found {value}")
        object.__setattr__(record, name, kind(value))


def _refuse_no_text(record: Video | Polyp, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(record, name), str):
            raise DataError(f"{_named(record)}: {name} must be a text, found {getattr(record, name)!r}")


def _named(record: Video | Polyp) -> str:
    return f"{type(record).__name__.lower()} {record.id}"
