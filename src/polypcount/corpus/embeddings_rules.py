"""What must hold for the rows of embeddings; each error names the row as given, and the tracklet."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.columns import Float32Column, Int32Column, refuse_rows
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.records import Video
from polypcount.errors import DataError

_TABLE = "embeddings"


def as_vectors(values: ArrayLike) -> NDArray[Any]:
    """Numbers of any width as an array [n, d]."""
    try:
        given = np.asarray(values)
    except ValueError:
        raise DataError("embeddings: the rows of vectors must be equally long") from None
    if given.ndim < 2 and given.size == 0:
        given = np.empty((0, 0), np.float32)
    if given.ndim != 2 or (len(given) and not given.shape[1]):
        raise DataError(f"embeddings: vectors must have the shape [n, d] with d at least 1, found {list(given.shape)}")
    if given.dtype.kind not in "iuf":
        raise DataError(f"embeddings: vectors must hold numbers, found {given.dtype}")
    return given


def finite_vectors(given: NDArray[Any], videos: Sequence[Video], rows: dict[str, Int32Column]) -> Float32Column:
    """The vectors as float32[n, d], every number of them finite."""
    with np.errstate(over="ignore"):
        vectors: Float32Column = given.astype(np.float32, copy=False)
    finite = np.isfinite(vectors)

    def describe(row: int) -> str:
        place = int(np.argmin(finite[row]))
        value = given[row, place]
        return f"vectors must be finite, found {value} at position {place} of the {_tracklet(videos, rows, row)}"

    refuse_rows(_TABLE, np.asarray(~finite.all(axis=1)), describe)
    return vectors


def _tracklet(videos: Sequence[Video], rows: dict[str, Int32Column], row: int) -> str:
    """How messages name a tracklet, whose row number may differ between a file and what was made from it."""
    return f"tracklet of video {videos[rows['video'][row]].id} from frame {rows['start_frame'][row]}"


def refuse_bad_spans(videos: tuple[Video, ...], rows: dict[str, Int32Column]) -> None:
    """See that each tracklet is of a known video, begins before it ends, and ends within the video."""
    video, start, stop = rows["video"], rows["start_frame"], rows["stop_frame"]
    refuse_rows(
        _TABLE, video >= len(videos), lambda row: f"video {video[row]} is unknown, there are {len(videos)} (from 0)"
    )
    refuse_rows(
        _TABLE,
        stop <= start,
        lambda row: f"stop_frame must be after start_frame, found {stop[row]} for the {_tracklet(videos, rows, row)}",
    )
    frame_counts = np.array([video.frame_count for video in videos], np.int64)
    refuse_rows(
        _TABLE,
        stop > frame_counts[video],
        lambda row: (
            f"the {_tracklet(videos, rows, row)} has stop_frame {stop[row]}, "
            f"but its video has {frame_counts[video[row]]} frames; mend one of the two"
        ),
    )


def refuse_wrong_polyps(known: Corpus, rows: dict[str, Int32Column]) -> None:
    """See that the polyp of each tracklet is known, and of the tracklet's video."""
    video, polyp, count = rows["video"], rows["polyp"], len(known.polyps)
    refuse_rows(_TABLE, polyp >= count, lambda row: f"polyp {polyp[row]} is unknown, there are {count} (from 0)")
    row_of = {one.id: row for row, one in enumerate(known.videos)}
    home = np.array([*(row_of[one.video or ""] for one in known.polyps), -1])[polyp]
    refuse_rows(
        _TABLE,
        (polyp >= 0) & (home != video),
        lambda row: (
            f"the {_tracklet(known.videos, rows, row)} shows polyp {known.polyps[polyp[row]].id}, "
            f"which is of video {known.polyps[polyp[row]].video}"
        ),
    )
