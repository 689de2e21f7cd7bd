"""Embeddings: a vector for each tracklet, with all that a study needs to know of videos, polyps and time."""

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

from polypcount.corpus.columns import Float32Column, Int32Column, int_column
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.embeddings_rules import as_vectors, finite_vectors, refuse_bad_spans, refuse_wrong_polyps
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.corpus.together import checked_pairs, sorted_pairs, tracklets_together
from polypcount.corpus.tracklets import Tracklets
from polypcount.errors import DataError

_ROWS = ("video", "start_frame", "stop_frame", "box_count", "polyp")


@dataclass(frozen=True, init=False, eq=False)
class Embeddings:
    """One row per tracklet, put in the order (video, start_frame, stop_frame, vector) when built.

    So the order in which they are given does not matter, also to a method that decides ties by order.

    videos: those that the tracklets are of, also videos without a tracklet; ids are unique.
    polyps: all annotated polyps of the videos, also those without a tracklet; each names its video.
    video: int32[n], row in videos.
    start_frame, stop_frame: int32[n], it is seen from start_frame up to, not including, stop_frame.
    box_count: int32[n], how many boxes it has, at least 1.
    polyp: int32[n], row in polyps; -1 where it is not known.
    vectors: float32[n, d], finite; d is at least 1 where there are rows.
    together: int32[m, 2], pairs of tracklets (first < second, sorted, each once) with boxes in one frame.
    encoder: fingerprint of the encoder that made the vectors; empty where it is not known.
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
    ) -> None:
        known = Corpus(tuple(videos), polyps=tuple(polyps))  # the rules for ids are those of a corpus
        for name in (polyp.id for polyp in known.polyps if polyp.video is None):
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
        found = as_vectors(vectors)
        lengths = {name: len(column) for name, column in {**rows, "vectors": found}.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise DataError(f"embeddings: columns must be equally long, found rows: {told}")
        refuse_bad_spans(known.videos, rows)
        refuse_wrong_polyps(known, rows)
        pairs = checked_pairs(together, rows["video"], rows["start_frame"], rows["stop_frame"])
        values = finite_vectors(found, known.videos, rows)
        order = _in_time(rows, values)
        columns: dict[str, NDArray[Any]] = {name: column[order] for name, column in rows.items()}
        columns["vectors"] = values[order]
        columns["together"] = sorted_pairs(np.argsort(order)[pairs], len(order))
        for column in columns.values():
            column.flags.writeable = False
        whole = {"videos": known.videos, "polyps": known.polyps, **columns, "encoder": encoder}
        for name, value in {**whole, "provenance": provenance or Provenance.now("python")}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.video)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self)]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def gather(
        cls,
        corpus: Corpus,
        tracklets: Tracklets,
        vectors: ArrayLike,
        encoder: str = "",
        provenance: Provenance | None = None,
    ) -> "Embeddings":
        """Embeddings of a corpus's tracklets, all of its videos and polyps kept.

        tracklets: of `corpus.boxes`, in their order. vectors: [tracklets, d].
        A polyp that does not name its video gets that of its boxes; without boxes either, it is left out.
        """
        boxes = corpus.boxes
        heads = tracklets.order[tracklets.first]
        if len(tracklets.label) != len(boxes) or not (
            np.array_equal(boxes.frame[heads], tracklets.start_frame)
            and np.array_equal(boxes.video[heads], tracklets.video)
        ):
            raise DataError("the tracklets are not of this corpus; make them from its boxes, which it keeps by frame")
        polyps, row_now = _with_videos(corpus)
        return cls(
            videos=corpus.videos,
            polyps=polyps,
            video=tracklets.video,
            start_frame=tracklets.start_frame,
            stop_frame=tracklets.stop_frame,
            box_count=tracklets.box_count,
            polyp=row_now[tracklets.polyp],
            vectors=vectors,
            together=tracklets_together(boxes, tracklets),
            encoder=encoder,
            provenance=provenance
            or Provenance.now("gather", parameters={"corpus": corpus.content_hash}, parents=(corpus.provenance,)),
        )

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the embeddings say: videos without their place on disk, polyps, tracklets, encoder.

        Provenance and `Video.source` are left out, so the same vectors made twice, or moved, have the same hash.
        """
        digest = hashlib.sha256(b"polypcount embeddings content, 1\n")
        digest.update(json.dumps([Corpus(self.videos, polyps=self.polyps).content_hash, self.encoder]).encode())
        for name in (*_ROWS, "vectors", "together"):
            column: NDArray[Any] = getattr(self, name)
            digest.update(f"\n{name} {column.dtype.name} {column.shape}\n".encode())
            digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes())
        return f"sha256:{digest.hexdigest()}"

    def select(self, *, videos: str | Iterable[str]) -> "Embeddings":
        """Only these videos (ids), their polyps and their tracklets."""
        ids = [videos] if isinstance(videos, str) else list(videos)
        kept = Corpus(self.videos, polyps=self.polyps).select(videos=ids)
        video_now = _new_rows(self.videos, kept.videos)
        polyp_now = np.append(_new_rows(self.polyps, kept.polyps), -1)
        return self._only(
            video_now[self.video] >= 0,
            Provenance.now("select", parameters={"videos": ids}, parents=(self.provenance,)),
            videos=kept.videos,
            polyps=kept.polyps,
            video=video_now[self.video],
            polyp=polyp_now[self.polyp],
        )

    def long_enough(self, min_frames: int) -> "Embeddings":
        """Only tracklets of at least `min_frames` boxes; videos and polyps stay listed."""
        if not min_frames >= 0:
            raise DataError(f"min_frames must be at least 0, found {min_frames}")
        told = Provenance.now("long_enough", parameters={"min_frames": int(min_frames)}, parents=(self.provenance,))
        return self._only(self.box_count >= min_frames, told)

    def labelled(self) -> "Embeddings":
        """Only tracklets whose polyp is known; videos and polyps stay listed."""
        return self._only(self.polyp >= 0, Provenance.now("labelled", parents=(self.provenance,)))

    def of_video(self, video: int) -> slice:
        """Where the tracklets of a video (row in videos) are."""
        start, stop = np.searchsorted(self.video, np.array([video, video + 1], np.int32))
        return slice(int(start), int(stop))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to one file, `.parquet` or `.npz`; what was there is replaced whole. See `embeddings_file.py`."""
        from polypcount.corpus.embeddings_file import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Embeddings":
        """Read what `save` wrote, checked against its content hash, or a file made by hand (see `docs/`)."""
        from polypcount.corpus.embeddings_file import load

        return load(Path(path))

    def _only(self, keep: NDArray[np.bool_], provenance: Provenance, **changed: Any) -> "Embeddings":
        """The tracklets in the mask, after the changes (columns with a row for each tracklet that there was)."""
        columns = {name: changed.pop(name, getattr(self, name))[keep] for name in (*_ROWS, "vectors")}
        rows_now = np.cumsum(keep) - 1
        together = rows_now[self.together[keep[self.together].all(axis=1)]]
        return dataclasses.replace(self, **changed, **columns, together=together, provenance=provenance)


def _in_time(rows: dict[str, Int32Column], vectors: Float32Column) -> NDArray[np.int64]:
    """Rows by video, start and stop; those of one span by their vectors."""
    span = np.column_stack([rows["video"], rows["start_frame"], rows["stop_frame"]])
    _, which, sharing = np.unique(span, axis=0, return_inverse=True, return_counts=True)
    shared = sharing[which.ravel()] > 1
    rank = np.zeros(len(span), np.int64)
    if shared.any():
        rank[shared] = np.unique(vectors[shared], axis=0, return_inverse=True)[1].ravel()
    return np.lexsort((rank, *span.T[::-1]))


def _same(mine: object, theirs: object) -> bool:
    return np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs  # type: ignore[arg-type]


def _with_videos(corpus: Corpus) -> tuple[tuple[Polyp, ...], NDArray[np.int64]]:
    """The polyps whose video is known, each naming it, and the new row of each old one, with -1 at the end for -1."""
    seen: dict[int, list[int]] = {}
    owned = corpus.boxes.polyp >= 0
    pairs = np.unique(corpus.boxes.polyp[owned].astype(np.int64) << 32 | corpus.boxes.video[owned])
    for polyp, video in zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True):
        seen.setdefault(polyp, []).append(video)
    kept: list[Polyp] = []
    row_now = np.full(len(corpus.polyps) + 1, -1)
    for row, polyp in enumerate(corpus.polyps):
        videos = [corpus.videos[video].id for video in seen.get(row, [])]
        if polyp.video is None and len(videos) > 1:
            raise DataError(
                f"polyp {polyp.id} has boxes in videos {' and '.join(videos[:2])}; give each video a polyp of its own"
            )
        if polyp.video is not None or videos:
            row_now[row] = len(kept)
            kept.append(polyp if polyp.video is not None else dataclasses.replace(polyp, video=videos[0]))
    return tuple(kept), row_now


def _new_rows(before: Sequence[Video | Polyp], after: Sequence[Video | Polyp]) -> NDArray[np.int64]:
    """The row that each record has afterwards; -1 where it is gone."""
    row_of = {record.id: row for row, record in enumerate(after)}
    return np.array([row_of.get(record.id, -1) for record in before], np.int64)
