"""What is known about a video and about a polyp, apart from boxes."""

import math
import os
from dataclasses import dataclass

import numpy as np

from polypcount.errors import DataError

# Suffixes of the image files in a folder of frames.
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp"})


@dataclass(frozen=True)
class Video:
    """One recording.

    Attributes:
        id: Unique in a corpus.
        frame_count: Its frames are numbered 0 .. frame_count - 1.
        fps: Frames per second; None if it is unknown, as for stills.
        width: Width of its frames in pixels; None if it is unknown.
        height: Height of its frames in pixels; None if it is unknown.
        source: The video file or the folder of frames, as an absolute path; None for a video without pixels.
        dataset: Name of the dataset, or empty.
        centre: Name of the hospital, or empty.
        split: Such as "train" or "val"; empty if the corpus is not split.
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

    Attributes:
        id: Unique in a corpus.
        video: Id of the video in which it was seen.
        size_mm: Largest diameter; None if it is unknown.
        site: Part of the colon, or empty.
        histology: Class such as AD, HP, SSL, TSA, or empty.
    """

    id: str
    video: str | None = None
    size_mm: float | None = None
    site: str = ""
    histology: str = ""

    def __post_init__(self) -> None:
        _refuse_no_text(self, "id", "site", "histology")
        _as_plain(self, float, "size_mm")
        if self.size_mm is not None and not (math.isfinite(self.size_mm) and self.size_mm >= 0):
            raise DataError(f"polyp {self.id}: size_mm must be a number of at least 0 or None, found {self.size_mm}")


def _as_plain(record: Video | Polyp, kind: type[int] | type[float], *names: str) -> None:
    """Convert numpy numbers to plain Python ones, so that equal records are equal."""
    for name in names:
        value = getattr(record, name)
        if value is None and name != "frame_count":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise DataError(f"{_named(record)}: {name} must be a number, found {value!r}")
        if kind is int and not value % 1 == 0:
            raise DataError(f"{_named(record)}: {name} must be whole, found {value}")
        object.__setattr__(record, name, kind(value))


def _refuse_no_text(record: Video | Polyp, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(record, name), str):
            raise DataError(f"{_named(record)}: {name} must be a text, found {getattr(record, name)!r}")
    if not record.id:
        raise DataError(f"{_named(record)}: the id must not be empty")


def _named(record: Video | Polyp) -> str:
    return f"{type(record).__name__.lower()} {record.id}"
