"""The corpus: videos, the boxes in them, the polyps they show, and where all of it came from."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.boxes import Boxes, FrameFiles
from polypcount.corpus.columns import Columns, Int32Column, refuse_rows
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.errors import DataError

Table = TypeVar("Table", bound=Columns)


@dataclass(frozen=True)
class Corpus:
    """Videos with boxes. Boxes and frame files are put in the order (video, frame) when a corpus is built.

    videos, polyps: the rows that the columns of `boxes` point to; ids are unique.
    files: image files of frames, only for videos that need it (see `FrameFiles`).
    """

    videos: tuple[Video, ...]
    boxes: Boxes = field(default_factory=Boxes.empty)
    polyps: tuple[Polyp, ...] = ()
    files: FrameFiles = field(default_factory=FrameFiles.empty)
    provenance: Provenance = field(default_factory=lambda: Provenance.now("python"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "videos", tuple(self.videos))
        object.__setattr__(self, "polyps", tuple(self.polyps))
        _refuse_repeated("video", [video.id for video in self.videos])
        _refuse_repeated("polyp", [polyp.id for polyp in self.polyps])
        known = {video.id for video in self.videos}
        for polyp in self.polyps:
            if polyp.video is not None and polyp.video not in known:
                raise DataError(f"polyp {polyp.id}: there is no video {polyp.video} in the corpus")
        _refuse_unknown("boxes", "polyp", self.boxes.polyp, len(self.polyps))
        for table, rows in (("boxes", self.boxes), ("frame files", self.files)):
            _refuse_unknown(table, "video", rows.video, len(self.videos))
            self._refuse_frames_outside(table, rows.video, rows.frame)
        object.__setattr__(self, "boxes", self.boxes.ordered())
        object.__setattr__(self, "files", self.files.ordered())

    def _refuse_frames_outside(self, table: str, video: Int32Column, frame: Int32Column) -> None:
        frame_counts = np.array([v.frame_count for v in self.videos], dtype=np.int64)
        refuse_rows(
            table,
            frame >= frame_counts[video],
            lambda row: (
                f"frame {frame[row]} is outside video {self.videos[video[row]].id}, "
                f"whose frames are 0 to {frame_counts[video[row]] - 1}"
            ),
        )

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the corpus says: videos without their place on disk, boxes, polyps, frame files.

        Provenance and `Video.source` are left out, so the same data made twice, or moved, has the same hash.
        """
        digest = hashlib.sha256(b"polypcount corpus content, 1")
        videos = [{**asdict(video), "source": None} for video in self.videos]
        for records in (videos, [asdict(polyp) for polyp in self.polyps], self.files.name.tolist()):
            _add_part(digest, json.dumps(records, sort_keys=True).encode())
        for table in (self.boxes, self.files):
            for name, column in table.columns().items():
                if column.dtype != object:
                    _add_part(digest, name.encode())
                    _add_part(digest, column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes())
        return f"sha256:{digest.hexdigest()}"

    def select(
        self,
        *,
        videos: str | Iterable[str] | None = None,
        dataset: str | None = None,
        polyps: str | Iterable[str] | None = None,
        split: str | None = None,
    ) -> "Corpus":
        """The part that meets every condition given.

        videos: ids of videos. dataset, split: of the videos.
        polyps: ids of polyps; only their boxes, and only the videos that show them, are kept.
        """
        keep_video = np.ones(len(self.videos), bool)
        keep_polyp = np.ones(len(self.polyps), bool)
        keep_box = np.ones(len(self.boxes), bool)
        asked: dict[str, str | list[str]] = {}
        if videos is not None:
            asked["videos"] = ids = _as_ids(videos)
            keep_video &= _chosen("video", [video.id for video in self.videos], ids)
        for name, value in (("dataset", dataset), ("split", split)):
            if value is not None:
                asked[name] = value
                present = [getattr(video, name) for video in self.videos]
                keep_video &= _chosen(name, present, [value])
        if polyps is not None:
            asked["polyps"] = ids = _as_ids(polyps)
            keep_polyp &= _chosen("polyp", [polyp.id for polyp in self.polyps], ids)
            keep_box &= np.append(keep_polyp, False)[self.boxes.polyp]
            keep_video &= self._shows(keep_polyp, keep_box)
        keep_box &= keep_video[self.boxes.video]
        if not keep_video.all():
            keep_polyp &= self._shown_in(keep_video)
        kept_ids = {video.id for video, kept in zip(self.videos, keep_video, strict=True) if kept}
        return Corpus(
            videos=tuple(v for v, kept in zip(self.videos, keep_video, strict=True) if kept),
            boxes=_renumbered(self.boxes.take(keep_box), video=keep_video, polyp=keep_polyp),
            polyps=tuple(
                polyp if polyp.video is None or polyp.video in kept_ids else dataclasses.replace(polyp, video=None)
                for polyp, kept in zip(self.polyps, keep_polyp, strict=True)
                if kept
            ),
            files=_renumbered(self.files.take(keep_video[self.files.video]), video=keep_video),
            provenance=Provenance.now("select", parameters=asked, parents=(self.provenance,)),
        )

    def _shows(self, polyp_mask: NDArray[np.bool_], box_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the videos that have one of these boxes, or that one of these polyps names."""
        shows = np.zeros(len(self.videos), bool)
        shows[self.boxes.video[box_mask]] = True
        named = {polyp.video for polyp, kept in zip(self.polyps, polyp_mask, strict=True) if kept}
        return np.logical_or(shows, [video.id in named for video in self.videos])

    def _shown_in(self, video_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the polyps that have a box in one of these videos, or that name one of them."""
        kept_ids = {video.id for video, kept in zip(self.videos, video_mask, strict=True) if kept}
        shown = np.array([polyp.video in kept_ids for polyp in self.polyps], bool)
        rows = self.boxes.polyp[video_mask[self.boxes.video]]
        shown[rows[rows >= 0]] = True
        return shown

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write to a folder; a corpus that was there is replaced as a whole, or not at all. See `folder.py`."""
        from polypcount.corpus.folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Corpus":
        """Read what `save` wrote, and check it against its content hash."""
        from polypcount.corpus.folder import load

        return load(Path(folder))


def concatenate(corpora: Sequence[Corpus]) -> Corpus:
    """One corpus of several. Ids of videos and of polyps must differ between them."""
    video_start = polyp_start = 0
    boxes, files = [], []
    for corpus in corpora:
        columns = corpus.boxes.columns()
        known = columns["polyp"] >= 0
        columns["video"] = columns["video"] + video_start
        columns["polyp"] = np.where(known, columns["polyp"] + polyp_start, -1)
        boxes.append(columns)
        files.append({**corpus.files.columns(), "video": corpus.files.video + video_start})
        video_start += len(corpus.videos)
        polyp_start += len(corpus.polyps)
    stacked = {name: np.concatenate([part[name] for part in boxes]) for name in boxes[0]} if boxes else None
    stacked_files = {name: np.concatenate([part[name] for part in files]) for name in files[0]} if files else None
    return Corpus(
        videos=tuple(video for corpus in corpora for video in corpus.videos),
        boxes=Boxes(**stacked) if stacked else Boxes.empty(),
        polyps=tuple(polyp for corpus in corpora for polyp in corpus.polyps),
        files=FrameFiles(**stacked_files) if stacked_files else FrameFiles.empty(),
        provenance=Provenance.now("concatenate", parents=tuple(corpus.provenance for corpus in corpora)),
    )


def _add_part(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


def _as_ids(ids: str | Iterable[str]) -> list[str]:
    found = [ids] if isinstance(ids, str) else list(ids)
    if not all(isinstance(name, str) for name in found):
        raise DataError(f"ids must be texts, found {found[:5]}")
    return found


def _chosen(kind: str, present: list[str], wanted: list[str]) -> NDArray[np.bool_]:
    if missing := sorted(set(wanted) - set(present)):
        known = sorted(set(present))
        some = f"{', '.join(known[:5])}{', ...' if len(known) > 5 else ''}" if known else "none"
        raise DataError(f"the corpus has no {kind} {', '.join(missing[:5])}; it has {some}")
    chosen = set(wanted)
    return np.array([name in chosen for name in present], bool)


def _renumbered(table: Table, **kept: NDArray[np.bool_]) -> Table:
    """The table with the row numbers in the named columns as they are after only the kept rows are left."""
    columns = table.columns()
    for name, mask in kept.items():
        new_row = np.append(np.where(mask, np.cumsum(mask) - 1, -1), -1)
        columns[name] = new_row[columns[name]]
    return type(table)(**columns)


def _refuse_repeated(kind: str, ids: list[str]) -> None:
    if len(set(ids)) < len(ids):
        repeated = sorted(name for name, times in Counter(ids).items() if times > 1)
        more = f" and {len(repeated) - 5} others" if len(repeated) > 5 else ""
        raise DataError(f"{kind} ids must differ; more than once there is {', '.join(repeated[:5])}{more}")


def _refuse_unknown(table: str, name: str, column: Int32Column, rows: int) -> None:
    refuse_rows(
        table, column >= rows, lambda row: f"{name} {column[row]} is unknown, the corpus has {rows} (numbered from 0)"
    )
