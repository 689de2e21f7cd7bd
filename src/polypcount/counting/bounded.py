"""The evidence of a stream: bounded in memory, however long the stream is."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import unit_vectors
from polypcount.counting.evidence import Evidence
from polypcount.errors import DataError
from polypcount.tracking import looked_at

_MOST_PAIRS = 1 << 21  # about 300 MB


class BoundedEvidence:
    """Tracklets that have ended, in time order, and which of them were seen together.

    Args:
        most: Most tracklets to keep. Beyond it, the two most similar tracklets of one polyp become one.
        group: The groups of tracklets, int32[n].

    Attributes:
        evidence: Evidence of the tracklets, in time order.
        together: Pairs of numbers of tracklets with boxes in one frame.
        retired: Number of polyps whose evidence was dropped, because every tracklet was of a different polyp.
        condensed: How many tracklets were joined with another.
    """

    def __init__(self, most: int, group: Callable[[Sequence[Evidence]], NDArray[np.int32]]) -> None:
        self.evidence: list[Evidence] = []
        self.together: set[tuple[int, int]] = set()
        self.retired = 0
        self.condensed = 0
        self._most = most
        self._group = group
        self._last_seen: list[int] = []  # in the frame before, often the same tracklets

    def add(self, parts: Sequence[Evidence]) -> None:
        """Add a tracklet that has ended, in one or several parts."""
        self.evidence = sorted([*self.evidence, *parts], key=lambda one: one.order)
        if len(self.evidence) > self._most:
            self._condense(max(1, self._most - self._most // 10))

    def seen_together(self, numbers: Sequence[int]) -> None:
        """Note that these tracklets have boxes in one frame."""
        rising = sorted(set(numbers))
        if len(rising) < 2 or rising == self._last_seen:
            return
        self._last_seen = rising
        self.together.update((one, other) for k, one in enumerate(rising) for other in rising[k + 1 :])
        if len(self.together) > _MOST_PAIRS:
            raise DataError(
                f"more than {_MOST_PAIRS:,} pairs of tracklets were seen together; give the detector a higher "
                "confidence"
            )

    def forget(self, numbers: set[int]) -> None:
        """Drop everything about these tracklets."""
        self.evidence = [one for one in self.evidence if one.number not in numbers]
        self.together = {pair for pair in self.together if not numbers.intersection(pair)}

    def drop_short(self, minimum: int) -> int:
        """Drop tracklets, or parts of them, that have fewer boxes; returns how many tracklets were dropped."""
        long_enough = [one for one in self.evidence if one.box_count >= minimum]
        gone = {one.number for one in self.evidence} - {one.number for one in long_enough}
        if len(long_enough) < len(self.evidence):
            self.forget(gone)
            self.evidence = long_enough
        return len(gone)

    def _condense(self, target: int) -> None:
        """Join tracklets of one polyp, the most similar first, until `target` are left."""
        while len(self.evidence) > target:
            labels = self._group(self.evidence)
            unit = unit_vectors(np.stack([one.vectors[0] for one in self.evidence]).astype(np.float64))
            alike = np.where(labels[:, None] == labels, unit @ unit.T, -np.inf)
            alike[np.tril_indices(len(labels))] = -np.inf
            joined: set[int] = set()
            for pair in np.argsort(-alike, axis=None)[: len(labels)].tolist():
                first, second = divmod(pair, len(labels))
                if alike[first, second] == -np.inf or len(labels) - len(joined) // 2 <= target:
                    break
                if not joined & {first, second}:
                    joined |= {first, second}
                    self._join(first, second)
            if not joined:  # every tracklet is a different polyp: drop the oldest and only count it
                self.retired += 1
                self.forget({self.evidence[0].number})
            self.evidence = [one for one in self.evidence if one.box_count]

    def _join(self, first: int, second: int) -> None:
        """Add the later tracklet to the earlier one, and leave the later one empty."""
        one, other = self.evidence[first], self.evidence[second]
        share = one.box_count / (one.box_count + other.box_count)
        views = sorted([*one.views, *other.views], key=lambda view: -view.quality)[: max(len(one.views), 1)]
        wholes = [whole for whole in (one.whole, other.whole) if whole is not None]
        frames, rows = np.unique(np.concatenate([one.frames, other.frames]), return_index=True)
        chosen = looked_at(np.arange(len(frames)))
        self.evidence[first] = replace(
            one,
            stop_frame=max(one.stop_frame, other.stop_frame),
            box_count=one.box_count + other.box_count,
            vectors=(share * one.vectors + (1 - share) * other.vectors).astype(np.float32),
            frames=frames[chosen],
            frame_vectors=np.concatenate([one.frame_vectors, other.frame_vectors])[rows[chosen]],
            views=tuple(sorted(views, key=lambda view: view.frame)),
            whole=max(wholes, key=lambda whole: whole.quality, default=None),
        )
        self.evidence[second] = replace(other, box_count=0)
        self.condensed += 1
        renamed = [tuple(one.number if number == other.number else number for number in pair) for pair in self.together]
        self.together = {(min(pair), max(pair)) for pair in renamed if pair[0] != pair[1]}
