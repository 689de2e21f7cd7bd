"""Embeddings: a vector for each tracklet, with all that a study needs to know about videos, polyps and time."""

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.columns import (
    Float32Column,
    Int32Column,
    int_column,
    refuse_rows,
    refuse_unequal,
    refuse_unknown,
    slice_of,
    vector_column,
)
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.embeddings.frames import FrameVectors
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.corpus.together import checked_pairs, sorted_pairs, tracklets_together
from polypcount.corpus.tracklets import Tracklets
from polypcount.errors import DataError

_ROWS = ("video", "start_frame", "stop_frame", "box_count", "polyp")


@dataclass(frozen=True, init=False, eq=False)
class Embeddings:
    """One row per tracklet, put in the order (video, start_frame, stop_frame, vector) when built.

    So the order in which rows are given does not matter, even to a method that decides ties by order.

    Attributes:
        videos: Videos of the tracklets, and others without a tracklet; ids are unique.
        polyps: All annotated polyps of the videos, also those without a tracklet; each names its video.
        video: int32[n], row in videos.
        start_frame: int32[n], first frame of the tracklet.
        stop_frame: int32[n], the frame after its last one.
        box_count: int32[n], how many boxes it has, at least 1.
        polyp: int32[n], row in polyps; -1 if it is unknown.
        vectors: float32[n, d], finite; d is at least 1 where there are rows.
        together: int32[m, 2], pairs of tracklets (first < second, sorted, each once) with boxes in one frame.
        encoder: Fingerprint of the encoder that made the vectors; empty if it is unknown.
        provenance: How the embeddings were made.
        frames: Vectors of frames of the tracklets; None if they were not kept.
    """

    videos: tuple[Video, ...]
    polyps: tuple[Polyp, ...]
    video: Int32Column
    start_frame: Int32Column
    stop_frame: Int32Column
    box_count: Int32Column
    polyp: Int32Column
    vectors: Float32Column
    together: Int32Column
    encoder: str
    provenance: Provenance
    frames: FrameVectors | None

    def __init__(
        self,
        videos: Iterable[Video],
        polyps: Iterable[Polyp],
        video: ArrayLike,
        start_frame: ArrayLike,
        stop_frame: ArrayLike,
        box_count: ArrayLike,
        polyp: ArrayLike,
        vectors: ArrayLike,
        together: ArrayLike = (),
        encoder: str = "",
        provenance: Provenance | None = None,
        frames: FrameVectors | None = None,
    ) -> None:
        records = Corpus(tuple(videos), polyps=tuple(polyps))  # ids follow the rules of a corpus
        for name in (polyp.id for polyp in records.polyps if polyp.video is None):
            raise DataError(f"polyp {name}: in embeddings each polyp must name its video, found None")
        if not isinstance(encoder, str):
            raise DataError(f"the encoder's fingerprint must be a text, found {encoder!r}")
        rows = {
            "video": int_column("embeddings", "video", video),
            "start_frame": int_column("embeddings", "start_frame", start_frame),
            "stop_frame": int_column("embeddings", "stop_frame", stop_frame),
            "box_count": int_column("embeddings", "box_count", box_count, minimum=1),
            "polyp": int_column("embeddings", "polyp", polyp, minimum=-1),
        }
        columns: dict[str, NDArray[Any]] = {**rows, "vectors": vector_column("embeddings", vectors)}
        refuse_unequal("embeddings", columns)
        _refuse_bad_spans(records, rows)
        _refuse_wrong_polyps(records, rows)
        pairs = checked_pairs(together, rows["video"], rows["start_frame"], rows["stop_frame"])
        if frames is not None:
            frames.refuse_outside(rows["start_frame"], rows["stop_frame"])
        order = _in_time(rows, columns["vectors"])
        row_now = np.argsort(order)
        columns = {name: column[order] for name, column in columns.items()}
        columns["together"] = sorted_pairs(row_now[pairs], len(order))
        for column in columns.values():
            column.flags.writeable = False
        values = {
            "videos": records.videos,
            "polyps": records.polyps,
            **columns,
            "encoder": encoder,
            "provenance": provenance or Provenance.now("python"),
            "frames": None if frames is None else frames.renumbered(row_now),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.video)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self)]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def gather(
        cls,
        corpus: Corpus,
        tracklets: Tracklets,
        vectors: ArrayLike,
        encoder: str = "",
        provenance: Provenance | None = None,
        frames: FrameVectors | None = None,
    ) -> "Embeddings":
        """Embeddings of a corpus's tracklets, with all of its videos and polyps.

        A polyp that does not name its video gets the video of its boxes; without boxes, it is left out.

        Args:
            corpus: Its boxes are those of the tracklets.
            tracklets: Tracklets of `corpus.boxes`, in their order.
            vectors: [tracklets, d].
            encoder: Fingerprint of the encoder.
            provenance: How they were made; the corpus is named by default.
            frames: Vectors of frames, by row in `tracklets`.
        """
        boxes = corpus.boxes
        heads = tracklets.order[tracklets.first]
        if len(tracklets.label) != len(boxes) or not (
            np.array_equal(boxes.frame[heads], tracklets.start_frame)
            and np.array_equal(boxes.video[heads], tracklets.video)
        ):
            raise DataError("the tracklets are not of this corpus; make them from its boxes, which it keeps by frame")
        polyps, polyp_now = _with_videos(corpus)
        return cls(
            videos=corpus.videos,
            polyps=polyps,
            video=tracklets.video,
            start_frame=tracklets.start_frame,
            stop_frame=tracklets.stop_frame,
            box_count=tracklets.box_count,
            polyp=polyp_now[tracklets.polyp],
            vectors=vectors,
            together=tracklets_together(boxes, tracklets, names=[f"video {video.id}" for video in corpus.videos]),
            encoder=encoder,
            provenance=provenance
            or Provenance.now("gather", parameters={"corpus": corpus.content_hash}, parents=(corpus.provenance,)),
            frames=frames,
        )

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of videos, polyps, tracklets with their vectors, and the encoder.

        Provenance and `Video.source` are left out, so the same vectors made twice, or moved, have the same hash.
        """
        digest = hashlib.sha256(b"polypcount embeddings content, 1\n")
        digest.update(json.dumps([Corpus(self.videos, polyps=self.polyps).content_hash, self.encoder]).encode())
        columns: dict[str, NDArray[Any]] = {name: getattr(self, name) for name in (*_ROWS, "vectors", "together")}
        for name, column in self.frames.columns().items() if self.frames is not None else ():
            columns[f"frames {name}"] = column
        for name, column in columns.items():
            digest.update(f"\n{name} {column.dtype.name} {column.shape}\n".encode())
            digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes())
        return f"sha256:{digest.hexdigest()}"

    def select(self, *, videos: str | Iterable[str]) -> "Embeddings":
        """Only these videos (ids), their polyps and their tracklets."""
        ids = [videos] if isinstance(videos, str) else list(videos)
        records = Corpus(self.videos, polyps=self.polyps).select(videos=ids)
        video_now = _new_rows(self.videos, records.videos)
        polyp_now = np.append(_new_rows(self.polyps, records.polyps), -1)
        return self._only(
            video_now[self.video] >= 0,
            Provenance.now("select", parameters={"videos": ids}, parents=(self.provenance,)),
            videos=records.videos,
            polyps=records.polyps,
            video=video_now[self.video],
            polyp=polyp_now[self.polyp],
        )

    def long_enough(self, min_frames: int) -> "Embeddings":
        """Only tracklets of at least `min_frames` boxes; videos and polyps stay listed."""
        if not min_frames >= 0:
            raise DataError(f"min_frames must be at least 0, found {min_frames}")
        parameters = {"min_frames": int(min_frames)}
        made = Provenance.now("long_enough", parameters=parameters, parents=(self.provenance,))
        return self._only(self.box_count >= min_frames, made)

    def labelled(self) -> "Embeddings":
        """Only tracklets whose polyp is known; videos and polyps stay listed."""
        return self._only(self.polyp >= 0, Provenance.now("labelled", parents=(self.provenance,)))

    def of_video(self, video: int) -> slice:
        """Where the tracklets of a video (row in videos) are."""
        return slice_of(self.video, video)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to one file, `.parquet` or `.npz`, replacing what is there. See `file.py`."""
        from polypcount.corpus.embeddings.file import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Embeddings":
        """Read what `save` wrote, checked against its content hash, or a file made by hand (see `docs/`)."""
        from polypcount.corpus.embeddings.file import load

        return load(Path(path))

    def _only(self, keep: NDArray[np.bool_], provenance: Provenance, **changed: Any) -> "Embeddings":
        """Replace columns (with a row for each tracklet), then keep only the tracklets in the mask."""
        columns = {name: changed.pop(name, getattr(self, name))[keep] for name in (*_ROWS, "vectors")}
        row_now = np.where(keep, np.cumsum(keep) - 1, -1)
        together = row_now[self.together[keep[self.together].all(axis=1)]]
        frames = None if self.frames is None else self.frames.renumbered(row_now)
        return dataclasses.replace(self, **changed, **columns, together=together, provenance=provenance, frames=frames)


def _refuse_bad_spans(records: Corpus, rows: dict[str, Int32Column]) -> None:
    """Check that each tracklet is of a known video, begins before it ends, and ends within the video."""
    video, start, stop = rows["video"], rows["start_frame"], rows["stop_frame"]
    refuse_unknown("embeddings", "video", video, len(records.videos))
    refuse_rows(
        "embeddings", stop <= start, lambda row: f"stop_frame must be after start_frame {start[row]}, found {stop[row]}"
    )
    lengths = np.array([video.frame_count for video in records.videos], np.int64)[video]
    refuse_rows(
        "embeddings",
        stop > lengths,
        lambda row: f"stop_frame {stop[row]} is beyond video {records.videos[video[row]].id} of {lengths[row]} frames",
    )


def _refuse_wrong_polyps(records: Corpus, rows: dict[str, Int32Column]) -> None:
    """Check that the polyp of each tracklet is known, and belongs to the tracklet's video."""
    polyp = rows["polyp"]
    refuse_unknown("embeddings", "polyp", polyp, len(records.polyps))
    video_row = {video.id: row for row, video in enumerate(records.videos)}
    home = np.array([*(video_row[polyp.video or ""] for polyp in records.polyps), -1])[polyp]
    refuse_rows(
        "embeddings",
        (polyp >= 0) & (home != rows["video"]),
        lambda row: f"polyp {records.polyps[polyp[row]].id} is of video {records.polyps[polyp[row]].video}",
    )


def _in_time(rows: dict[str, Int32Column], vectors: Float32Column) -> NDArray[np.int64]:
    """Rows by video, start and stop; those of one span by their vectors."""
    span = np.column_stack([rows["video"], rows["start_frame"], rows["stop_frame"]])
    _, which, sharing = np.unique(span, axis=0, return_inverse=True, return_counts=True)
    shared = sharing[which.ravel()] > 1
    rank = np.zeros(len(span), np.int64)
    if shared.any():
        rank[shared] = np.unique(vectors[shared], axis=0, return_inverse=True)[1].ravel()
    return np.lexsort((rank, *span.T[::-1]))


def _equal(value: object, other: object) -> bool:
    return np.array_equal(value, other) if isinstance(value, np.ndarray) else value == other  # type: ignore[arg-type]


def _with_videos(corpus: Corpus) -> tuple[tuple[Polyp, ...], NDArray[np.int64]]:
    """The polyps whose video is known, each with that video, and the new row of each old one, with a last -1 for -1."""
    rows: list[list[int]] = [[] for _ in corpus.polyps]
    for polyp, video in np.unique(np.column_stack([corpus.boxes.polyp, corpus.boxes.video]), axis=0).tolist():
        if polyp >= 0:
            rows[polyp].append(video)
    named: list[Polyp] = []
    row_now = np.full(len(corpus.polyps) + 1, -1)
    for row, polyp in enumerate(corpus.polyps):
        videos = [corpus.videos[video].id for video in rows[row]] if polyp.video is None else [polyp.video]
        if len(videos) > 1:
            raise DataError(
                f"polyp {polyp.id} has boxes in videos {' and '.join(videos[:2])}; give each video a polyp of its own"
            )
        if videos:
            row_now[row] = len(named)
            named.append(dataclasses.replace(polyp, video=videos[0]))
    return tuple(named), row_now


def _new_rows(before: Sequence[Video | Polyp], after: Sequence[Video | Polyp]) -> NDArray[np.int64]:
    """The new row of each record; -1 if it is gone."""
    row_of = {record.id: row for row, record in enumerate(after)}
    return np.array([row_of.get(record.id, -1) for record in before], np.int64)
