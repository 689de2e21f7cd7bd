"""View samplers: what goes into each batch of an epoch.

A sampler is made from boxes and their tracklets, and gives the batches of an epoch by its number. The same seed and
epoch give the same batches, in every process and after every restart; another epoch gives other batches.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import numpy as np

from polypcount.corpus import Boxes, Tracklets
from polypcount.errors import DataError
from polypcount.tracking import Fragments, box_positions, fragments
from polypcount.training.batches import Batch, RowNumbers, batch_of
from polypcount.training.other_views import OtherViews, other_views
from polypcount.training.recipe import NeighbourSettings, PolypViewSettings, Recipe, SegmentSettings


class Sampler(Protocol):
    """What training asks of a sampler."""

    @property
    def use(self) -> str:
        """One line: how many polyps, tracklets and fragments it can use, and why the rest is left out."""

    @property
    def rows(self) -> RowNumbers:
        """All box rows that views may be made of, in rising order: the crops that training needs."""

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of one epoch."""


class NeighbouringFrames:
    """Two frames of the same polyp, the second near the first in the list of the polyp's boxes by time.

    First frames come in random order, none again before all others. The index of the second frame is that of the first
    plus a normal random number, limited to the list. It is drawn again while both are the same.
    A polyp with one frame is not used. If a polyp has two boxes in a frame, the first counts.

    Args:
        boxes: The boxes.
        settings: Its settings.
        seed: Of all random numbers.
        batches: Batches of an epoch; None to show as many frames as there are usable boxes.
    """

    def __init__(
        self, boxes: Boxes, settings: NeighbourSettings | None = None, seed: int = 0, batches: int | None = None
    ) -> None:
        self.settings, self.seed = settings or NeighbourSettings(), seed
        labelled = np.flatnonzero(boxes.polyp >= 0)
        keys = np.column_stack([boxes.video, boxes.polyp, boxes.frame])[labelled]
        order = labelled[np.unique(keys, axis=0, return_index=True)[1]]
        polyps, first, counts = np.unique(
            np.column_stack([boxes.video, boxes.polyp])[order], axis=0, return_index=True, return_counts=True
        )
        self._order, self._usable = order, np.flatnonzero(np.repeat(counts > 1, counts))
        self._first, self._count = np.repeat(first, counts), np.repeat(counts, counts)
        self._polyp, self._positions = boxes.polyp, box_positions(boxes)
        self.rows = np.sort(order[self._usable])
        self.use = (
            f"{np.count_nonzero(counts > 1)} of {len(polyps)} polyps, {len(self._usable)} of {len(boxes)} boxes; "
            "the rest have no polyp, are the only box of it, or a second box in its frame"
        )
        if not len(self._usable):
            raise DataError(f"no pair of frames to learn from: {self.use}")
        self.per_epoch = batches or max(1, len(self._usable) // (2 * self.settings.samples))

    def batches(self, epoch: int) -> Iterator[Batch]:
        """All batches are full."""
        rng = np.random.default_rng([self.seed, epoch])
        for start, firsts in _full_batches(self._usable, self.settings.samples, self.per_epoch, rng):
            rows = self._order[np.stack([firsts, self._near(firsts, rng)], axis=1).ravel()]
            samples = np.repeat(np.arange(start, start + len(firsts)), 2)
            yield batch_of(np.split(rows, len(rows)), self._polyp[rows].tolist(), samples.tolist(), self._positions)

    def _near(self, places: RowNumbers, rng: np.random.Generator) -> RowNumbers:
        first, count = self._first[places], self._count[places]
        others = places.copy()
        while (again := others == places).any():
            moved = np.rint(rng.normal(places[again], self.settings.spread)).astype(np.int64)
            others[again] = np.clip(moved, first[again], first[again] + count[again] - 1)
        return others


class TrackletSegments:
    """Two disjoint segments of one tracklet, or of two tracklets of one polyp.

    A segment has `length` boxes, `stride` apart. The stride is drawn from those with which two segments fit one after
    the other. Its chance is in proportion to its size. A polyp with a single long tracklet gives both segments from it.

    Args:
        boxes: The boxes.
        tracklets: Their tracklets.
        settings: Its settings.
        seed: Of all random numbers.
        batches: Batches of an epoch; None to show as many frames as the long tracklets have at the largest stride.
        epochs: Epochs over which the curriculum is spread, as a share of the training is the same for any length.
        steps: Steps of the whole training in place of `epochs`.
    """

    def __init__(
        self,
        boxes: Boxes,
        tracklets: Tracklets,
        settings: SegmentSettings | None = None,
        seed: int = 0,
        batches: int | None = None,
        *,
        epochs: int = 1,
        steps: int | None = None,
    ) -> None:
        self.settings, self.seed = settings or SegmentSettings(), seed
        needed = max(self.settings.min_frames, 2 * self.settings.length * min(self.settings.strides))
        usable = np.flatnonzero((tracklets.box_count >= needed) & (tracklets.polyp >= 0))
        self._tracklets, self._positions = tracklets, box_positions(boxes)
        owner = tracklets.polyp[usable]
        self._of_polyp = {int(polyp): usable[owner == polyp] for polyp in np.unique(owner)}
        self.rows = np.flatnonzero(np.isin(tracklets.label, usable))
        several = sum(len(rows) > 1 for rows in self._of_polyp.values())
        self.use = (
            f"{len(self._of_polyp)} of {_polyp_count(boxes)} polyps, {several} of them with two tracklets or more; "
            f"{len(usable)} of {len(tracklets)} tracklets; the rest have no polyp or fewer than {needed} boxes"
        )
        if not self._of_polyp:
            raise DataError(f"no tracklet to cut into two segments: {self.use}")
        frames = int(tracklets.box_count[usable].sum()) // max(self.settings.strides)
        self.per_epoch = batches or max(1, frames // (2 * self.settings.samples * self.settings.length))
        self._total = steps or epochs * self.per_epoch

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Polyps in random order, each once before any again. All batches are full."""
        rng = np.random.default_rng([self.seed, epoch])
        settings, polyps, before = self.settings, np.array(list(self._of_polyp)), epoch * self.per_epoch
        for number, (start, chosen) in enumerate(_full_batches(polyps, settings.samples, self.per_epoch, rng)):
            chance = settings.chance((before + number + 1) / self._total)
            views = [view for polyp in chosen.tolist() for view in self._pair(polyp, chance, rng)]
            samples = np.repeat(np.arange(start, start + len(chosen)), 2)
            yield batch_of(views, np.repeat(chosen, 2).tolist(), samples.tolist(), self._positions)

    def _pair(self, polyp: int, chance: float, rng: np.random.Generator) -> list[RowNumbers]:
        tracklets = self._of_polyp[polyp]
        weight = np.sqrt(self._tracklets.box_count[tracklets])
        count = 2 if rng.random() >= chance and len(tracklets) > 1 else 1
        drawn = rng.choice(tracklets, count, replace=False, p=weight / weight.sum()).tolist()
        return [segment for tracklet in drawn for segment in self._segments(tracklet, 2 // count, rng)]

    def _segments(self, tracklet: int, count: int, rng: np.random.Generator) -> list[RowNumbers]:
        """Segments one after the other, at random places; `count` of them fit."""
        rows, length = self._tracklets.rows(tracklet), self.settings.length
        fitting = np.array([stride for stride in self.settings.strides if 2 * length * stride <= len(rows)])
        stride = int(rng.choice(fitting, p=fitting / fitting.sum()))
        spare = len(rows) - count * length * stride
        starts = np.sort(rng.integers(0, spare + 1, count)) + np.arange(count) * length * stride
        return [rows[start : start + length * stride : stride] for start in starts.tolist()]


class PolypViews:
    """Several fragments of each of several polyps.

    Polyps are drawn while enough of them have unused fragments, with a chance in proportion to their unused fragments.
    Views are taken from these. If a polyp has too few, the rest come from its other fragments. If these are too few as
    well, views begin at other boxes of its tracklets, see `other_views`. So two views of a batch show the same frames
    only if the polyp has no others. With `strict`, a polyp with too few fragments is not drawn.

    Args:
        boxes: The boxes.
        tracklets: Their tracklets.
        settings: Its settings.
        seed: Of all random numbers.
        batches: Most batches of an epoch; None for as many as the fragments fill.
    """

    def __init__(
        self,
        boxes: Boxes,
        tracklets: Tracklets,
        settings: PolypViewSettings | None = None,
        seed: int = 0,
        batches: int | None = None,
    ) -> None:
        self.settings, self.seed = settings or PolypViewSettings(), seed
        views, strict = self.settings.views, self.settings.strict
        self._pieces, self._of_polyp = polyp_fragments(tracklets, self.settings)
        self._positions, self._most = box_positions(boxes), batches
        few = [] if strict else [polyp for polyp, rows in self._of_polyp.items() if len(rows) < views]
        self._others: dict[int, OtherViews] = {polyp: other_views(tracklets, polyp, self.settings) for polyp in few}
        pieces = np.concatenate([np.empty(0, np.int64), *self._of_polyp.values()])
        shown = [*map(self._pieces.rows_of, pieces), *(others.rows.ravel() for others in self._others.values())]
        self.rows = np.unique(np.concatenate([np.empty(0, np.int64), *shown]))
        self.use = (
            f"{len(self._of_polyp)} of {_polyp_count(boxes)} polyps, {len(few)} of them with fewer than {views} "
            f"fragments; "
            f"{len(pieces)} of {len(self._pieces)} fragments of {self.settings.length} frames; the rest have no polyp, "
            f"no tracklet of {self.settings.min_frames} boxes" + (" or too few fragments (strict)" if strict else "")
        )
        if len(self._of_polyp) < self.settings.polyps:
            raise DataError(f"a batch takes {self.settings.polyps} polyps (sampler.polyps), and there are {self.use}")

    def batches(self, epoch: int) -> Iterator[Batch]:
        """All batches are full; the fragments left over at the end change from epoch to epoch."""
        return islice(self._batches(epoch), self._most)

    def _batches(self, epoch: int) -> Iterator[Batch]:
        rng = np.random.default_rng([self.seed, epoch])
        polyps, count = self.settings.polyps, self.settings.views
        unused = {polyp: rng.permutation(pieces) for polyp, pieces in self._of_polyp.items()}
        fewest = _fewest_fragments(self.settings)
        while len(ready := np.array([polyp for polyp, left in unused.items() if len(left) >= fewest])) >= polyps:
            weight = np.array([len(unused[polyp]) for polyp in ready.tolist()], np.float64)
            chosen = rng.choice(ready, polyps, replace=False, p=weight / weight.sum())
            views: list[RowNumbers] = []
            for polyp in chosen.tolist():
                taken, unused[polyp] = np.split(unused[polyp], [count])
                others = rng.permutation(np.setdiff1d(self._of_polyp[polyp], taken))
                taken = np.concatenate([taken, others])[:count]
                views += map(self._pieces.rows_of, taken)
                if len(taken) < count:
                    views += self._more(polyp, count - len(taken), rng)
            yield batch_of(views, np.repeat(chosen, count).tolist(), range(len(views)), self._positions)

    def _more(self, polyp: int, count: int, rng: np.random.Generator) -> list[RowNumbers]:
        """Views of a polyp whose fragments are all in the batch; some twice only if there are no others."""
        others = list(self._others[polyp].drawn(count, rng))
        everything = [*map(self._pieces.rows_of, self._of_polyp[polyp]), *others]
        return others + [everything[k] for k in rng.integers(0, len(everything), count - len(others)).tolist()]


def polyp_fragments(tracklets: Tracklets, settings: PolypViewSettings) -> tuple[Fragments, dict[int, RowNumbers]]:
    """All fragments, and for each polyp with enough fragments, which ones belong to it."""
    pieces = fragments(tracklets, settings.length, settings.stride, settings.min_frames)
    owner = tracklets.polyp[pieces.tracklet]
    of_polyp = {int(polyp): np.flatnonzero(owner == polyp) for polyp in np.unique(owner[owner >= 0])}
    return pieces, {polyp: rows for polyp, rows in of_polyp.items() if len(rows) >= _fewest_fragments(settings)}


def new_sampler(recipe: Recipe, boxes: Boxes, tracklets: Tracklets) -> Sampler:
    """The sampler of a recipe."""
    settings, seed, batches = recipe.sampler, recipe.seed, recipe.batches_per_epoch
    if isinstance(settings, NeighbourSettings):
        return NeighbouringFrames(boxes, settings, seed, batches)
    if isinstance(settings, SegmentSettings):
        return TrackletSegments(boxes, tracklets, settings, seed, batches, epochs=recipe.epochs, steps=recipe.steps)
    return PolypViews(boxes, tracklets, settings, seed, batches)


def _full_batches(
    items: RowNumbers, size: int, count: int, rng: np.random.Generator
) -> Iterator[tuple[int, RowNumbers]]:
    """`count` batches of `size` items, each with the number of its first item.

    Items are in random order, each once before any again. A batch of more items than there are holds some of them
    several times.
    """
    rounds = -(-count * size // len(items))
    order = np.concatenate([rng.permutation(items) for _ in range(rounds)])
    for start in range(0, count * size, size):
        yield start, order[start : start + size]


def _fewest_fragments(settings: PolypViewSettings) -> int:
    return settings.views if settings.strict else 1


def _polyp_count(boxes: Boxes) -> int:
    return len(np.unique(boxes.polyp[boxes.polyp >= 0]))
