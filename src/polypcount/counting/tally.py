"""The tracklets of one procedure that have ended, and the report of them."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Provenance, Video
from polypcount.counting.decide import decide, duration_of, groups_of
from polypcount.counting.gather import Gathered
from polypcount.counting.point import REPETITIONS, CountingPoint
from polypcount.counting.result import CountedPolyp, CountedTracklet, CountInterval, CountReport

_LONGEST_MINIMUM, _SHARE = 30, 30


def least_boxes(frame_count: int) -> int:
    """How many boxes a tracklet must have to be counted, where nobody said: 30, as in the paper, a second of video.

    In a recording of less than 900 frames a 30th of its frames: there a polyp that is seen for long is not there.
    """
    return max(1, min(_LONGEST_MINIMUM, -(-frame_count // _SHARE)))


class Tally:
    """Ended tracklets, in time order, and which of them were seen together.

    fps: frames per second of the recording; None where nobody knows.
    most: how many are kept; beyond that, the two of one polyp that look most alike become one, so that memory stays
        bounded however long a stream is. None for no limit.
    retired: polyps of which nothing is kept any more, since every tracklet kept is of another polyp; only counted.
    condensed: how many tracklets were put together with another.
    """

    def __init__(self, point: CountingPoint, fps: float | None = None, most: int | None = None) -> None:
        self.point = point
        self.fps = fps
        self.most = most
        self.retired = 0
        self.condensed = 0
        self.ended: list[Gathered] = []
        self._together: set[tuple[int, int]] = set()

    def add(self, gathered: Sequence[Gathered], frame_count: int) -> None:
        """One more has ended, in one or several parts. frame_count: how long the recording is by now."""
        self.ended.extend(gathered)
        self.ended.sort(key=_by_time)
        if self.most is not None and len(self.ended) > self.most:
            self._condense(frame_count, max(1, self.most - self.most // 10))

    def seen_together(self, numbers: Sequence[int]) -> None:
        """These tracklets have boxes in one frame."""
        rising = sorted(set(numbers))
        self._together.update((one, other) for k, one in enumerate(rising) for other in rising[k + 1 :])

    def forget(self, numbers: set[int]) -> None:
        """Drop ended tracklets, or what is known of those that never will be kept."""
        self.ended = [one for one in self.ended if one.number not in numbers]
        self._together = {pair for pair in self._together if not numbers.intersection(pair)}

    def forget_short(self, minimum: int) -> int:
        """Drop ended tracklets, or parts of them, of fewer boxes; how many tracklets nothing is left of."""
        kept = [one for one in self.ended if one.box_count >= minimum]
        gone = {one.number for one in self.ended} - {one.number for one in kept}
        if len(kept) < len(self.ended):
            self.forget(gone)
            self.ended = kept
        return len(gone)

    def pairs(self, rows: Sequence[Gathered]) -> NDArray[np.int64]:
        """int64[m, 2], which of these tracklets were seen in one frame, as places in the list."""
        places: dict[int, list[int]] = {}
        for place, one in enumerate(rows):
            places.setdefault(one.number, []).append(place)
        known = {
            (min(one, other), max(one, other))
            for first, second in self._together
            for one in places.get(first, ())
            for other in places.get(second, ())
            # Of a tracklet that was split, only some parts may have been seen with the other.
            if rows[one].start_frame < rows[other].stop_frame and rows[other].start_frame < rows[one].stop_frame
        }
        return np.array(sorted(known), np.int64).reshape(-1, 2)

    def rows_of(self, number: NDArray[np.integer], frame: NDArray[np.integer]) -> NDArray[np.int32]:
        """int32[boxes], row in `ended` of each box's tracklet; -1 for a box that was not counted.

        number: int[boxes], of their tracklets, -1 for none. frame: int[boxes].
        """
        rows = np.full(len(number), -1, np.int32)
        order = np.argsort(number, kind="stable")
        ranked = number[order]
        for row, one in enumerate(self.ended):
            mine = order[np.searchsorted(ranked, one.number) : np.searchsorted(ranked, one.number, side="right")]
            rows[mine[(frame[mine] >= one.start_frame) & (frame[mine] < one.stop_frame)]] = row
        return rows

    def count(self, frame_count: int, going_on: Sequence[Gathered] = ()) -> int:
        """How many polyps there are by now. going_on: tracklets that have not ended."""
        rows = sorted([*self.ended, *going_on], key=_by_time)
        return self.retired + len(np.unique(self._labels(rows, frame_count)))

    def _labels(self, rows: Sequence[Gathered], frame_count: int) -> NDArray[np.int32]:
        if not rows:
            return np.empty(0, np.int32)
        vectors = np.stack([one.vectors[0] for one in rows])
        start = np.array([one.start_frame for one in rows], np.int64)
        return groups_of(vectors, start, duration_of(frame_count, self.fps), self.pairs(rows), self.point)

    def _condense(self, frame_count: int, wanted: int) -> None:
        while len(self.ended) > wanted:
            labels = self._labels(self.ended, frame_count)
            vectors = np.stack([one.vectors[0] for one in self.ended]).astype(np.float64)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            alike = np.where(labels[:, None] == labels, vectors @ vectors.T, -np.inf)
            alike[np.tril_indices(len(labels))] = -np.inf
            merged: set[int] = set()
            for place in np.argsort(-alike, axis=None)[: len(self.ended)].tolist():
                first, second = divmod(place, len(labels))
                done = len(self.ended) - len(merged) // 2 <= wanted
                if done or alike[first, second] == -np.inf:
                    break
                if first not in merged and second not in merged:
                    merged |= {first, second}
                    self._unite(first, second)
            if not merged:  # every tracklet is another polyp
                gone = self.ended[0].number
                self.retired += 1
                self.forget({gone})
            self.ended = [one for one in self.ended if one.box_count]

    def _unite(self, first: int, second: int) -> None:
        """Put the later of two into the earlier, and leave it empty."""
        one, other = self.ended[first], self.ended[second]
        share = one.box_count / (one.box_count + other.box_count)
        views = sorted([*one.views, *other.views], key=lambda view: -view.quality)[: max(len(one.views), 1)]
        wholes = [whole for whole in (one.whole, other.whole) if whole is not None]
        self.ended[first] = Gathered(
            number=one.number,
            start_frame=one.start_frame,
            stop_frame=max(one.stop_frame, other.stop_frame),
            box_count=one.box_count + other.box_count,
            vectors=(share * one.vectors + (1 - share) * other.vectors).astype(np.float32),
            views=tuple(sorted(views, key=lambda view: view.frame)),
            whole=max(wholes, key=lambda whole: whole.quality, default=None),
            part=one.part,
        )
        self.ended[second] = Gathered(other.number, other.start_frame, other.stop_frame, 0, other.vectors)
        self.condensed += 1
        moved = {
            (one.number if a == other.number else a, one.number if b == other.number else b) for a, b in self._together
        }
        self._together = {(min(pair), max(pair)) for pair in moved if pair[0] != pair[1]}

    def report(
        self,
        video: Video,
        provenance: Provenance,
        *,
        left_out: int = 0,
        seconds: Mapping[str, float] | None = None,
        remarks: Sequence[str] = (),
    ) -> CountReport:
        """The polyps of all that has ended. video: its frame_count is how long the recording is."""
        rows = self.ended
        vectors = np.stack([one.vectors for one in rows]) if rows else np.empty((0, 2, 1), np.float32)
        start = np.array([one.start_frame for one in rows], np.int64)
        duration = duration_of(video.frame_count, self.fps)
        found = decide(vectors, start, duration, self.pairs(rows), self.point)
        tracklets = tuple(
            CountedTracklet(one.start_frame, one.stop_frame, one.box_count, int(label) + 1, one.views, one.whole)
            for one, label in zip(rows, found.labels, strict=True)
        )
        polyps = tuple(
            CountedPolyp(group + 1, tuple(np.flatnonzero(found.labels == group).tolist()), float(sure))
            for group, sure in enumerate(found.certainty)
        )
        return CountReport(
            video=video,
            interval=CountInterval(
                found.low + self.retired, found.high + self.retired, self.point.level, interval_meaning(self.point)
            ),
            polyps=polyps,
            tracklets=tracklets,
            together=found.together,
            pairs=found.pairs,
            repeated=found.repeated,
            provenance=provenance,
            left_out=left_out,
            retired=self.retired,
            seconds=dict(seconds or {}),
            remarks=tuple(remarks),
        )


def _by_time(one: Gathered) -> tuple[int, int, int]:
    return one.start_frame, one.number, one.part


def interval_meaning(point: CountingPoint) -> str:
    """What the interval says, in words."""
    words = (
        f"Meant to hold the true number in {100 * point.level:.0f} % of comparable procedures: the grouping was "
        f"repeated {REPETITIONS} times, with settings that were right for other procedures ({point.selected_on}) and "
        "with frames drawn anew."
    )
    if {"coverage", "procedures"} <= set(point.measured):
        words += (
            f" On {point.measured['procedures']:.0f} simulated procedures that nothing was chosen on, it did in "
            f"{100 * point.measured['coverage']:.0f} %. A box that the detector missed, or drew around something "
            "else, is not accounted for."
        )
    return words
