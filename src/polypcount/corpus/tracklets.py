"""Tracklets: runs of boxes that follow one polyp without a break."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.columns import Int32Column, int_column
from polypcount.errors import DataError


@dataclass(frozen=True, eq=False)
class Tracklets:
    """One row per tracklet, and which tracklet each box belongs to. Built by `gather`, or by a linker.

    Attributes:
        video: int32[n], row in the corpus's videos.
        start_frame: int32[n], frame of its first box.
        stop_frame: int32[n], the frame after its last box.
        box_count: int32[n], how many boxes it has.
        polyp: int32[n], row in the corpus's polyps; -1 if its boxes name no polyp, or several.
        first: int64[n], where the tracklet begins in `order`.
        order: int64[labelled boxes], box rows: tracklet k owns `order[first[k]:first[k] + box_count[k]]`, by frame.
        label: int32[boxes], tracklet of each box; -1 if it belongs to none.
    """

    video: Int32Column
    start_frame: Int32Column
    stop_frame: Int32Column
    box_count: Int32Column
    polyp: Int32Column
    first: NDArray[np.int64]
    order: NDArray[np.int64]
    label: Int32Column

    def __post_init__(self) -> None:
        per_tracklet = (self.video, self.start_frame, self.stop_frame, self.box_count, self.polyp, self.first)
        if len({len(column) for column in per_tracklet}) > 1 or len(self.order) != self.box_count.sum():
            raise DataError("tracklets: columns must be equally long, and their boxes as many as `order` lists")
        for field in fields(self):
            getattr(self, field.name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.video)

    @classmethod
    def gather(cls, boxes: Boxes, label: ArrayLike) -> "Tracklets":
        """Put the boxes that share a label into a tracklet.

        Args:
            boxes: In any order.
            label: [boxes], all of the numbers 0 .. n - 1, or -1 for a box of no tracklet.
        """
        labels = int_column("tracklets", "label", label, minimum=-1)
        if len(labels) != len(boxes):
            raise DataError(f"tracklets: label must have a row per box, found {len(labels)} for {len(boxes)} boxes")
        order = np.lexsort((boxes.frame, labels))[np.count_nonzero(labels < 0) :]
        counts = np.bincount(labels[order])
        if not counts.all():
            raise DataError(f"tracklets: no box has the label {int(np.argmin(counts))}; labels must have no hole")
        first = np.cumsum(counts) - counts
        heads, tails = order[first], order[first + counts - 1]
        elsewhere = boxes.video[order] != np.repeat(boxes.video[heads], counts)
        if elsewhere.any():
            row = int(order[np.argmax(elsewhere)])
            raise DataError(f"tracklets: box row {row} carries the label of a tracklet in another video")
        polyp = boxes.polyp[heads]
        mixed = boxes.polyp[order] != np.repeat(polyp, counts)
        polyp[labels[order[mixed]]] = -1
        return cls(
            video=boxes.video[heads],
            start_frame=boxes.frame[heads],
            stop_frame=boxes.frame[tails] + np.int32(1),
            box_count=counts.astype(np.int32),
            polyp=polyp,
            first=first,
            order=order,
            label=labels,
        )

    def rows(self, tracklet: int) -> NDArray[np.int64]:
        """Box rows of one tracklet, by frame."""
        start = self.first[tracklet]
        return self.order[start : start + self.box_count[tracklet]]
