"""View samplers: what goes into each batch of an epoch.

Every sampler is made from boxes and their tracklets, and gives the batches of an epoch by its number: the same seed and
epoch give the same batches, in every process and after every restart, and another epoch gives others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from polypcount.corpus import Boxes, Tracklets
from polypcount.errors import DataError
from polypcount.tracking import box_positions, fragments
from polypcount.training.batches import Batch, Rows, batch_of


class Sampler(Protocol):
    """What training asks of a sampler."""

    @property
    def use(self) -> str:
        """One line: how many polyps, tracklets and fragments it can use, and why the rest is left out."""

    @property
    def rows(self) -> Rows:
        """All box rows that views may be made of, rising: the crops that training needs."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch."""


@dataclass(frozen=True)
class NeighbourSettings:
    """SFE: two frames of one polyp. spread: standard deviation of the second's place in the polyp's list of boxes."""

    samples: int = 128
    spread: float = 30.0
    samples_per_epoch: int | None = None
    kind: Literal["neighbouring-frames"] = "neighbouring-frames"

    def __post_init__(self) -> None:
        _at_least(1, samples=self.samples, samples_per_epoch=self.samples_per_epoch)
        if not 0.5 <= self.spread <= 1e9:  # below, hardly any draw would be another frame
            raise DataError(f"spread must be from 0.5 to 1e9, found {self.spread}")


class NeighbouringFrames:
    """Two frames of the same polyp, the second near the first in the list of the polyp's boxes by time.

    Every frame is the first of a sample once in an epoch, or as many as `samples_per_epoch`; its place in the list plus
    a normal number, kept within the list, is the second, drawn again while it is the first itself. A polyp with one
    frame has no second; of two boxes of a polyp in one frame the first counts.
    """

    def __init__(self, boxes: Boxes, settings: NeighbourSettings | None = None, seed: int = 0) -> None:
        self.settings, self.seed = settings or NeighbourSettings(), seed
        owned = np.flatnonzero(boxes.polyp >= 0)
        seen = np.column_stack([boxes.video, boxes.polyp, boxes.frame])[owned]
        order = owned[np.unique(seen, axis=0, return_index=True)[1]]
        polyps, first, counts = np.unique(
            np.column_stack([boxes.video, boxes.polyp])[order], axis=0, return_index=True, return_counts=True
        )
        keep = np.repeat(counts > 1, counts)
        self._order, self._usable = order, np.flatnonzero(keep)
        self._first, self._count = np.repeat(first, counts), np.repeat(counts, counts)
        self._polyp, self._positions = boxes.polyp, box_positions(boxes)
        self.rows = np.sort(order[self._usable])
        self.use = (
            f"{np.count_nonzero(counts > 1)} of {len(polyps)} polyps, {len(self._usable)} of {len(boxes)} boxes; "
            "the rest have no polyp, are its only one, or a second in its frame"
        )
        if not len(self._usable):
            raise DataError(f"no pair of frames to learn from: {self.use}")

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Samples in random order; all batches are whole, and what is left over changes from epoch to epoch."""
        rng = _generator(self.seed, epoch)
        for start, chosen in _whole_batches(self._usable, self.settings.samples, self.settings.samples_per_epoch, rng):
            others = self._near(chosen, rng)
            rows = self._order[np.stack([chosen, others], axis=1).ravel()]
            yield batch_of(
                [rows[k : k + 1] for k in range(len(rows))],
                self._polyp[rows].tolist(),
                np.repeat(np.arange(start, start + len(chosen)), 2).tolist(),
                self._positions,
            )

    def _near(self, places: Rows, rng: np.random.Generator) -> Rows:
        first, count = self._first[places], self._count[places]
        others = places.copy()
        while (again := others == places).any():
            moved = np.rint(rng.normal(places[again], self.settings.spread)).astype(np.int64)
            others[again] = np.clip(moved, first[again], first[again] + count[again] - 1)
        return others


@dataclass(frozen=True)
class SegmentSettings:
    """MVE and TPC: two segments of a polyp.

    samples: polyps in a batch. length: frames of a segment. strides: steps between them that may be drawn.
    one_tracklet, one_tracklet_end, over_epochs: the chance that both segments are of one tracklet falls from the first
        value to the second over so many epochs: the curriculum of TPC. With 1 and 1 it is MVE.
    """

    samples: int = 28
    length: int = 8
    strides: tuple[int, ...] = (1, 2, 3, 4)
    min_frames: int = 30
    one_tracklet: float = 1.0
    one_tracklet_end: float = 1.0
    over_epochs: int = 1
    samples_per_epoch: int | None = None
    kind: Literal["tracklet-segments"] = "tracklet-segments"

    def __post_init__(self) -> None:
        _at_least(1, samples=self.samples, length=self.length, over_epochs=self.over_epochs)
        _at_least(1, samples_per_epoch=self.samples_per_epoch)
        _at_least(0, min_frames=self.min_frames)
        if not self.strides or min(self.strides) < 1:
            raise DataError(f"strides must be whole numbers from 1, found {self.strides}")
        for name in ("one_tracklet", "one_tracklet_end"):
            if not 0 <= getattr(self, name) <= 1:
                raise DataError(f"{name} must be a chance from 0 to 1, found {getattr(self, name)}")

    def chance(self, epoch: int) -> float:
        """That both segments are of one tracklet: end + (begin - end) * (1 - min((epoch + 1) / over_epochs, 1))."""
        left = 1 - min((epoch + 1) / self.over_epochs, 1)
        return self.one_tracklet_end + (self.one_tracklet - self.one_tracklet_end) * left


class TrackletSegments:
    """Two disjoint segments of one tracklet, or of two tracklets of one polyp.

    A segment has `length` boxes, every stride-th. The stride is drawn with a weight of itself among those with which
    two segments fit one after the other. A polyp with a single long tracklet always gives both segments from it.
    """

    def __init__(
        self, boxes: Boxes, tracklets: Tracklets, settings: SegmentSettings | None = None, seed: int = 0
    ) -> None:
        self.settings, self.seed = settings or SegmentSettings(), seed
        needed = max(self.settings.min_frames, 2 * self.settings.length * min(self.settings.strides))
        long_enough = np.flatnonzero((tracklets.box_count >= needed) & (tracklets.polyp >= 0))
        self._tracklets, self._positions = tracklets, box_positions(boxes)
        polyps = np.unique(boxes.polyp[boxes.polyp >= 0])
        owner = tracklets.polyp[long_enough]
        self._of = {int(polyp): long_enough[owner == polyp] for polyp in np.unique(owner)}
        self.rows = np.flatnonzero(np.isin(tracklets.label, long_enough))
        several = sum(len(found) > 1 for found in self._of.values())
        self.use = (
            f"{len(self._of)} of {len(polyps)} polyps, {several} of them with two tracklets or more; "
            f"{len(long_enough)} of {len(tracklets)} tracklets; the rest have no polyp or fewer than {needed} boxes"
        )
        if not self._of:
            raise DataError(f"no tracklet to cut into two segments: {self.use}")

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Polyps in random order, each once before any again; all batches are whole."""
        rng = _generator(self.seed, epoch)
        polyps = np.array(list(self._of))
        for start, chosen in _whole_batches(polyps, self.settings.samples, self.settings.samples_per_epoch, rng):
            views, owners, samples = [], [], []
            for number, polyp in enumerate(chosen.tolist(), start):
                views += self._pair(polyp, self.settings.chance(epoch), rng)
                owners += [polyp, polyp]
                samples += [number, number]
            yield batch_of(views, owners, samples, self._positions)

    def _pair(self, polyp: int, chance: float, rng: np.random.Generator) -> list[Rows]:
        mine = self._of[polyp]
        weight = np.sqrt(self._tracklets.box_count[mine])
        both = 2 if rng.random() >= chance and len(mine) > 1 else 1
        drawn = rng.choice(mine, both, replace=False, p=weight / weight.sum())
        if both == 2:
            return [self._segments(int(tracklet), 1, rng)[0] for tracklet in drawn]
        return self._segments(int(drawn[0]), 2, rng)

    def _segments(self, tracklet: int, count: int, rng: np.random.Generator) -> list[Rows]:
        """Segments one after the other, at random places; `count` of them fit."""
        rows, length = self._tracklets.rows(tracklet), self.settings.length
        fitting = np.array([stride for stride in self.settings.strides if 2 * length * stride <= len(rows)])
        stride = int(rng.choice(fitting, p=fitting / fitting.sum()))
        spare = len(rows) - count * length * stride
        starts = np.sort(rng.integers(0, spare + 1, count)) + np.arange(count) * length * stride
        return [rows[start : start + length * stride : stride] for start in starts.tolist()]


@dataclass(frozen=True)
class PolypViewSettings:
    """Supervised and temporally-aware: `polyps` times `views` fragments in every batch.

    strict: leave out polyps with fewer fragments than views, as the published sampler does.
    """

    polyps: int = 4
    views: int = 14
    length: int = 8
    stride: int = 4
    min_frames: int = 30
    strict: bool = False
    kind: Literal["polyp-views"] = "polyp-views"

    def __post_init__(self) -> None:
        _at_least(2, views=self.views)
        _at_least(1, polyps=self.polyps, length=self.length, stride=self.stride)
        _at_least(0, min_frames=self.min_frames)


class PolypViews:
    """Several fragments of each of several polyps.

    While enough polyps have unused fragments, that many are drawn with a chance in proportion to how many they have,
    and each gives its views from them. Where fewer are left than views, the rest are drawn from the polyp's other
    fragments, and twice only where all are in; with `strict`, such a polyp has no further turn.
    """

    def __init__(
        self, boxes: Boxes, tracklets: Tracklets, settings: PolypViewSettings | None = None, seed: int = 0
    ) -> None:
        self.settings, self.seed = settings or PolypViewSettings(), seed
        pieces = fragments(tracklets, self.settings.length, self.settings.stride, self.settings.min_frames)
        owner = tracklets.polyp[pieces.tracklet]
        self._pieces, self._positions = pieces, box_positions(boxes)
        least = self.settings.views if self.settings.strict else 1
        every = {int(polyp): np.flatnonzero(owner == polyp) for polyp in np.unique(owner[owner >= 0])}
        self._of = {polyp: mine for polyp, mine in every.items() if len(mine) >= least}
        polyps = len(np.unique(boxes.polyp[boxes.polyp >= 0]))
        chosen = np.sort(np.concatenate([np.empty(0, np.int64), *self._of.values()]))
        self.rows = np.unique(np.concatenate([np.empty(0, np.int64), *map(pieces.rows_of, chosen)]))
        used = len(chosen)
        few = sum(len(mine) < self.settings.views for mine in self._of.values())
        self.use = (
            f"{len(self._of)} of {polyps} polyps, {few} of them with fewer than {self.settings.views} fragments; "
            f"{used} of {len(pieces)} fragments of {self.settings.length} frames; the rest have no polyp, "
            f"no tracklet of {self.settings.min_frames} boxes"
            + (" or too few fragments (strict)" if self.settings.strict else "")
        )
        if len(self._of) < self.settings.polyps:
            raise DataError(f"a batch takes {self.settings.polyps} polyps (sampler.polyps), and there are {self.use}")

    def batches(self, epoch: int) -> Iterator[Batch]:
        """All batches are whole; which fragments are left over at the end changes from epoch to epoch."""
        rng = _generator(self.seed, epoch)
        left = {polyp: rng.permutation(mine) for polyp, mine in self._of.items()}
        least = self.settings.views if self.settings.strict else 1
        while True:
            ready = np.array([polyp for polyp, mine in left.items() if len(mine) >= least])
            if len(ready) < self.settings.polyps:
                return
            weight = np.array([len(left[polyp]) for polyp in ready.tolist()], np.float64)
            views: list[Rows] = []
            owners: list[int] = []
            for polyp in rng.choice(ready, self.settings.polyps, replace=False, p=weight / weight.sum()).tolist():
                taken, left[polyp] = np.split(left[polyp], [self.settings.views])
                others = rng.permutation(np.setdiff1d(self._of[polyp], taken))
                taken = np.concatenate([taken, others])[: self.settings.views]
                taken = np.concatenate([taken, rng.choice(self._of[polyp], self.settings.views - len(taken))])
                views += [self._pieces.rows_of(int(piece)) for piece in taken]
                owners += [polyp] * self.settings.views
            yield batch_of(views, owners, list(range(len(views))), self._positions)


Settings = NeighbourSettings | SegmentSettings | PolypViewSettings


def new_sampler(settings: Settings, boxes: Boxes, tracklets: Tracklets, seed: int) -> Sampler:
    """The sampler of these settings."""
    match settings:
        case NeighbourSettings():
            return NeighbouringFrames(boxes, settings, seed)
        case SegmentSettings():
            return TrackletSegments(boxes, tracklets, settings, seed)
        case PolypViewSettings():
            return PolypViews(boxes, tracklets, settings, seed)


def _whole_batches(things: Rows, size: int, wanted: int | None, rng: np.random.Generator) -> Iterator[tuple[int, Rows]]:
    """Number of the first, and `size` of the things, in random order, each once before any again.

    As many batches as `wanted` things fill, or all of them; one at least, for which things are taken again.
    """
    count = max(1, (wanted or len(things)) // size)
    rounds = -(-count * size // len(things))
    order = np.concatenate([rng.permutation(things) for _ in range(rounds)])
    for start in range(0, count * size, size):
        yield start, order[start : start + size]


def _generator(seed: int, epoch: int) -> np.random.Generator:
    if seed < 0 or epoch < 0:
        raise DataError(f"seed and epoch must be at least 0, found {seed} and {epoch}")
    return np.random.default_rng([seed, epoch])


def _at_least(least: int, **values: int | None) -> None:
    for name, value in values.items():
        if value is not None and value < least:
            raise DataError(f"{name} must be at least {least}, found {value}")
