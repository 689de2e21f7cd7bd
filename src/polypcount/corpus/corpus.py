"""The corpus: videos, the boxes in them, the polyps they show, and where all of it came from."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.boxes import Boxes, FrameFiles
from polypcount.corpus.columns import Columns, Int32Column, refuse_rows, refuse_unknown
from polypcount.corpus.provenance import Provenance
from polypcount.corpus.records import Polyp, Video
from polypcount.errors import DataError

_Table = TypeVar("_Table", bound=Columns)


@dataclass(frozen=True)
class Corpus:
    """Videos with boxes. Boxes and frame files are put in the order (video, frame) when a corpus is built.

    Attributes:
        videos: The rows that `boxes.video` points to; ids are unique.
        boxes: One row per box.
        polyps: The rows that `boxes.polyp` points to; ids are unique.
        files: Image files of frames, only for videos that need them (see `FrameFiles`).
        provenance: How the corpus was made.
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
        video_ids = {video.id for video in self.videos}
        for polyp in self.polyps:
            if polyp.video is not None and polyp.video not in video_ids:
                raise DataError(f"polyp {polyp.id}: there is no video {polyp.video} in the corpus")
        refuse_unknown("boxes", "polyp", self.boxes.polyp, len(self.polyps))
        for table, rows in (("boxes", self.boxes), ("frame files", self.files)):
            refuse_unknown(table, "video", rows.video, len(self.videos))
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
        """SHA-256 of videos, boxes, polyps and frame files.

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
        """The part that meets every condition.

        Args:
            videos: Ids of videos.
            dataset: Dataset of the videos.
            polyps: Ids of polyps; only their boxes, and only the videos that show them, are kept.
            split: Split of the videos.
        """
        keep_video = np.ones(len(self.videos), bool)
        keep_polyp = np.ones(len(self.polyps), bool)
        keep_box = np.ones(len(self.boxes), bool)
        conditions: dict[str, str | list[str]] = {}
        if videos is not None:
            conditions["videos"] = ids = _as_ids(videos)
            keep_video &= _chosen("video", [video.id for video in self.videos], ids)
        for name, value in (("dataset", dataset), ("split", split)):
            if value is not None:
                conditions[name] = value
                keep_video &= _chosen(name, [getattr(video, name) for video in self.videos], [value])
        if polyps is not None:
            conditions["polyps"] = ids = _as_ids(polyps)
            keep_polyp &= _chosen("polyp", [polyp.id for polyp in self.polyps], ids)
            keep_box &= np.append(keep_polyp, False)[self.boxes.polyp]
            keep_video &= self._shows(keep_polyp, keep_box)
        keep_box &= keep_video[self.boxes.video]
        if not keep_video.all():
            keep_polyp &= self._shown_in(keep_video)
        kept_videos = tuple(compress(self.videos, keep_video))
        kept_ids = {video.id for video in kept_videos}
        return Corpus(
            videos=kept_videos,
            boxes=_renumbered(self.boxes.take(keep_box), video=keep_video, polyp=keep_polyp),
            polyps=tuple(
                polyp if polyp.video is None or polyp.video in kept_ids else dataclasses.replace(polyp, video=None)
                for polyp in compress(self.polyps, keep_polyp)
            ),
            files=_renumbered(self.files.take(keep_video[self.files.video]), video=keep_video),
            provenance=Provenance.now("select", parameters=conditions, parents=(self.provenance,)),
        )

    def _shows(self, polyp_mask: NDArray[np.bool_], box_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the videos that have one of these boxes, or that one of these polyps names."""
        shows = np.zeros(len(self.videos), bool)
        shows[self.boxes.video[box_mask]] = True
        named = {polyp.video for polyp in compress(self.polyps, polyp_mask)}
        return np.logical_or(shows, [video.id in named for video in self.videos])

    def _shown_in(self, video_mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mask of the polyps that have a box in one of these videos, or that name one of them."""
        kept_ids = {video.id for video in compress(self.videos, video_mask)}
        shown = np.array([polyp.video in kept_ids for polyp in self.polyps], bool)
        rows = self.boxes.polyp[video_mask[self.boxes.video]]
        shown[rows[rows >= 0]] = True
        return shown

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write to a folder, replacing a corpus that is there. See `folder.py`."""
        from polypcount.corpus.folder import save

        return save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Corpus":
        """Read what `save` wrote, and check it against its content hash."""
        from polypcount.corpus.folder import load

        return load(Path(folder))


def concatenate(corpora: Sequence[Corpus]) -> Corpus:
    """Put several corpora together. Ids of videos and of polyps must differ between them."""
    boxes, files = [Boxes.empty().columns()], [FrameFiles.empty().columns()]
    videos: list[Video] = []
    polyps: list[Polyp] = []
    for corpus in corpora:
        polyp = np.where(corpus.boxes.polyp >= 0, corpus.boxes.polyp + len(polyps), -1)
        boxes.append({**corpus.boxes.columns(), "video": corpus.boxes.video + len(videos), "polyp": polyp})
        files.append({**corpus.files.columns(), "video": corpus.files.video + len(videos)})
        videos += corpus.videos
        polyps += corpus.polyps
    return Corpus(
        videos=tuple(videos),
        boxes=Boxes(**{name: np.concatenate([columns[name] for columns in boxes]) for name in boxes[0]}),
        polyps=tuple(polyps),
        files=FrameFiles(**{name: np.concatenate([columns[name] for columns in files]) for name in files[0]}),
        provenance=Provenance.now("concatenate", parents=tuple(corpus.provenance for corpus in corpora)),
    )


def _add_part(digest: "hashlib._Hash", part: bytes) -> None:
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)


def _as_ids(ids: str | Iterable[str]) -> list[str]:
    names = [ids] if isinstance(ids, str) else list(ids)
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"ids must be texts, found {names[:5]}")
    return names


def _chosen(kind: str, present: list[str], chosen: list[str]) -> NDArray[np.bool_]:
    if missing := sorted(set(chosen) - set(present)):
        names = sorted(set(present)) or ["none"]
        some = f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        raise DataError(f"the corpus has no {kind} {', '.join(missing[:5])}; it has {some}")
    names_chosen = set(chosen)
    return np.array([name in names_chosen for name in present], bool)


def _renumbered(table: _Table, **kept: NDArray[np.bool_]) -> _Table:
    """The table with new row numbers in the named columns, without rows that are not kept."""
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
