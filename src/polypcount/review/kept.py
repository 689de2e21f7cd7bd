"""What a count kept for its review, read and checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from polypcount.corpus import Boxes, refuse_crowded
from polypcount.counting.basis import CountBasis
from polypcount.counting.evidence import Evidence, rows_of_boxes
from polypcount.counting.known_pairs import KnownPairs
from polypcount.errors import DataError, FileError, first_line
from polypcount.report.review_file import (
    BOX_COLUMNS,
    BOXES,
    MOST_PIXELS,
    PICTURES,
    RECORDING,
    REVIEW,
    REVIEW_FOLDER,
    TIMES,
    VECTORS,
    VIEW,
    CountedSpan,
    KeptPicture,
    RecordingFile,
    ReviewFile,
    SetAsideSpan,
    Span,
)
from polypcount.storage import check, open_array, read_json, read_manifest
from polypcount.storage.parquet import BROKEN_PARQUET, read_columns
from polypcount.video import FrameMask

_MOST_SHORT = 5000


@dataclass(frozen=True, eq=False)
class ReviewData:
    """What was kept of a count.

    Attributes:
        digest: Equal for two counts of the same tracklets, vectors and groups.
        basis: What the tracklets are grouped by.
        tracklets: Those that were counted, in time order.
        set_aside: Those that are perhaps no polyp.
        short: Those that were too short to be counted, in time order, at most 5,000.
        boxes: All boxes.
        item_of_box: int32[boxes], -1 for none; otherwise the index of its item in `items`.
        items: Names of all items: "t0", "t1", ... counted, "a0", ... set aside, "s0", ... too short.
        together: Pairs of items with boxes in one frame.
        frame_count: Of the recording.
        size: Width and height of its frames; None where they are not known.
        times: float64[frame_count + 1]; None where the frame rate is constant or not known.
        mask: What frames must not show; None for nothing.
        pictures: Where the pictures are.
        folder: Where the files are.
    """

    digest: str
    basis: CountBasis
    tracklets: tuple[CountedSpan, ...]
    set_aside: tuple[SetAsideSpan, ...]
    short: tuple[Span, ...]
    boxes: Boxes
    item_of_box: NDArray[np.int32]
    items: tuple[str, ...]
    together: frozenset[tuple[str, str]]
    frame_count: int
    size: tuple[int, int] | None
    times: NDArray[np.float64] | None
    mask: FrameMask | None
    pictures: tuple[KeptPicture, ...]
    folder: Path

    def pictures_of(self, item: str) -> tuple[list[KeptPicture], KeptPicture | None]:
        """The pictures of an item over time, and its best frame as a whole."""
        own = self._pictures.get(item, [])
        return [one for one in own if not one.whole], next((one for one in own if one.whole), None)

    def frames_of(self, items: Sequence[str]) -> NDArray[np.int32]:
        """The frames in which one of the items has a box, rising. Those added by hand have none."""
        own = [self._frames[item] for item in items if item in self._frames]
        return np.unique(np.concatenate([*own, np.empty(0, np.int32)]))

    def visible_seconds(self, items: Sequence[str]) -> float | None:
        """For how long one of the items has a box; None where the frame rate is not known."""
        frames = self.frames_of(items)
        if self.times is not None:
            return float((self.times[frames + 1] - self.times[frames]).sum())
        return None if self.basis.fps is None else len(frames) / self.basis.fps

    @cached_property
    def _pictures(self) -> dict[str, list[KeptPicture]]:
        by_item: dict[str, list[KeptPicture]] = {}
        for picture in self.pictures:
            by_item.setdefault(f"{'a' if picture.set_aside else 't'}{picture.tracklet}", []).append(picture)
        return by_item

    @cached_property
    def _frames(self) -> dict[str, NDArray[np.int32]]:
        order = np.argsort(self.item_of_box, kind="stable")
        ends = np.searchsorted(self.item_of_box[order], np.arange(len(self.items) + 1))
        return {
            item: self.boxes.frame[order[start:stop]]
            for item, start, stop in zip(self.items, ends, ends[1:], strict=False)
        }

    def jpeg(self, picture: KeptPicture) -> bytes:
        """The bytes of a picture.

        Raises:
            FileError: The file is missing or too short.
        """
        path = self.folder / PICTURES
        try:
            with path.open("rb") as file:
                file.seek(picture.start)
                data = file.read(picture.size)
        except OSError as problem:
            raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
        if len(data) < picture.size or not data.startswith(b"\xff\xd8"):
            raise FileError(f"{path} is damaged: a picture is cut off, or is no JPEG")
        return data

    def seconds_of(self, frame: int) -> float | None:
        """When a frame is shown; see `CountReport.seconds_of`."""
        if self.times is not None:
            return float(self.times[min(frame, len(self.times) - 1)])
        return None if self.basis.fps is None else frame / self.basis.fps


def read_review_data(report_folder: Path) -> ReviewData:
    """Read what `write_review_data` wrote into the folder of a report, checked.

    Raises:
        FileError: Something is missing or damaged.
    """
    folder = report_folder / REVIEW_FOLDER
    if not (folder / REVIEW).is_file():
        raise FileError(f"{report_folder} holds no data for a review; count the recording again with this version")
    kept = read_manifest(folder / REVIEW, ReviewFile)
    count, (each, size) = len(kept.tracklets), kept.vectors
    vectors = open_array(folder / VECTORS, (count * each, size))
    if vectors is None or not np.isfinite(vectors).all():
        raise FileError(f"{folder / VECTORS} is missing or damaged; count the recording again")
    stacked = np.asarray(vectors).reshape(count, each, size) if count else np.empty((0, 1, 0), np.float32)
    evidence = [
        Evidence(span.number, 0, span.start_frame, span.stop_frame, span.box_count, own)
        for span, own in zip(kept.tracklets, stacked, strict=True)
    ]
    boxes, linked = _read_boxes(folder / BOXES, kept)
    times = None
    if kept.has_times:
        column = open_array(folder / TIMES, (kept.frame_count + 1, 1))
        if column is None or not np.isfinite(column).all():
            raise FileError(f"{folder / TIMES} is missing or damaged; count the recording again")
        times = np.asarray(column[:, 0], np.float64)
    known = KnownPairs(_pairs(kept.one_polyp), _pairs(kept.two_polyps))
    together = _pairs(kept.together)
    basis = CountBasis(
        kept.point, evidence, together, kept.duration, kept.fps, kept.tracked, kept.polyp_range, known, linked
    )
    items, item_of_box, short = _items(evidence, kept.set_aside, boxes, linked)
    seen = {(items[one], items[other]) for one, other in _together(boxes.frame, item_of_box)}
    seen |= {(f"t{one}", f"t{other}") for one, other in together.tolist()}
    view = _read_view(folder / VIEW) if kept.has_view else None
    mask = FrameMask(tuple(kept.rectangles), view) if kept.rectangles or view is not None else None
    return ReviewData(
        kept.digest,
        basis,
        tuple(kept.tracklets),
        tuple(kept.set_aside),
        short,
        boxes,
        item_of_box,
        items,
        frozenset(seen),
        kept.frame_count,
        (kept.width, kept.height) if kept.width and kept.height else None,
        times,
        mask,
        tuple(kept.pictures),
        folder,
    )


def read_recording_file(report_folder: Path) -> RecordingFile | None:
    """Where the recording lies; None where that was not kept."""
    path = report_folder / REVIEW_FOLDER / RECORDING
    if not path.is_file():
        return None
    return check(RecordingFile, read_json(path), str(path))


def _read_boxes(path: Path, kept: ReviewFile) -> tuple[Boxes, NDArray[np.int32]]:
    try:
        table = read_columns(path, BOX_COLUMNS, ())
        columns = {name: table.column(name).to_numpy() for name in BOX_COLUMNS}
        sides = np.column_stack([columns[name] for name in BOX_COLUMNS[1:5]]).astype(np.float32).reshape(-1, 4)
        video = np.zeros(table.num_rows, np.int32)
        boxes = Boxes(video, columns["frame"], sides, columns["score"], track=columns["tracklet"])
        refuse_crowded(boxes, [path.name])
    except (*BROKEN_PARQUET, KeyError, ValueError, DataError) as problem:
        raise FileError(f"{path} is missing or damaged: {first_line(problem)}; count the recording again") from None
    if not boxes.is_ordered or (len(boxes) and boxes.frame[-1] >= kept.frame_count):
        raise FileError(f"{path} is damaged: its frames are not in order, or not of the recording")
    return boxes, boxes.track


def _read_view(path: Path) -> NDArray[np.bool_]:
    try:
        with Pillow.open(path, formats=["PNG"]) as image:
            if image.width * image.height > MOST_PIXELS:
                raise FileError(f"{path} is too large")
            return np.asarray(image.convert("1"), bool)
    except (OSError, ValueError, Pillow.DecompressionBombError) as problem:
        raise FileError(f"{path} is missing or damaged: {first_line(problem)}; count the recording again") from None


def _pairs(rows: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, 2)


def _items(
    evidence: Sequence[Evidence], set_aside: Sequence[SetAsideSpan], boxes: Boxes, linked: NDArray[np.int32]
) -> tuple[tuple[str, ...], NDArray[np.int32], tuple[Span, ...]]:
    """Names of all items, the index in these of each box, and the spans of tracklets that were too short."""
    item = rows_of_boxes(evidence, linked, boxes.frame)
    names = [f"t{row}" for row in range(len(evidence))]
    for row, span in enumerate(set_aside):
        item[(linked == span.number) & (item < 0)] = len(names)
        names.append(f"a{row}")
    rest = np.flatnonzero((item < 0) & (linked >= 0))
    numbers, first, own = np.unique(linked[rest], return_index=True, return_inverse=True)
    counts = np.bincount(own, minlength=len(numbers))
    longest = np.sort(np.argsort(-counts, kind="stable")[:_MOST_SHORT])
    in_time = longest[np.argsort(boxes.frame[rest[first[longest]]], kind="stable")] if len(longest) else longest
    place = np.full(len(numbers), -1, np.int32)
    place[in_time] = np.arange(len(in_time))
    item[rest] = np.where(place[own] >= 0, place[own] + len(names), -1)
    short = []
    for row, group in enumerate(in_time.tolist()):
        frames = boxes.frame[rest[own == group]]
        start, stop = int(frames[0]), int(frames[-1]) + 1
        short.append(Span(number=int(numbers[group]), start_frame=start, stop_frame=stop, box_count=int(counts[group])))
        names.append(f"s{row}")
    return tuple(names), item, tuple(short)


def _together(frame: NDArray[np.int32], item: NDArray[np.int32]) -> set[tuple[int, int]]:
    """Pairs of items with boxes in one frame, the smaller index first."""
    rows = np.flatnonzero(item >= 0)
    frame, item = frame[rows], item[rows]
    pairs = set[tuple[int, int]]()
    for step in range(1, len(frame)):  # the rows of a frame follow each other
        same = frame[step:] == frame[:-step]
        if not same.any():
            break
        low, high = np.sort(np.stack([item[step:][same], item[:-step][same]]), axis=0)
        pairs |= {
            (one, other) for one, other in np.unique(np.column_stack([low, high]), axis=0).tolist() if one != other
        }
    return pairs
