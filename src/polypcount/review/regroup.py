"""Grouping the tracklets of a review again, with everything that a person has decided."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.probability import PairProbability, ProbabilityLinkage
from polypcount.clustering.similarity import Matrix, visual_similarity
from polypcount.counting.basis import CountBasis
from polypcount.counting.decide import USUAL_FPS, group, seen_groups
from polypcount.counting.known_pairs import KnownPairs
from polypcount.review.decisions import Link
from polypcount.review.kept import ReviewData
from polypcount.review.state import State

Labels = NDArray[np.int32]
PURE = 0.8  # mean probability of one polyp, chosen by benchmarks/review_queue.py --choose


@dataclass(frozen=True, eq=False)
class Regrouping:
    """The tracklets that can be grouped: those that were counted and that nobody has marked as no polyp.

    Attributes:
        items: Their items.
        basis: What they are grouped by, with the constraints that follow from the decisions.
        fixed: Polyps that have none of these tracklets, such as those added by hand.
        polyp: int64[n], the polyp of each so far.
        confirmed: bool[n], which a decision names: somebody has looked at them and sees a polyp.
    """

    items: tuple[str, ...]
    basis: CountBasis
    fixed: int
    polyp: NDArray[np.int64]
    confirmed: NDArray[np.bool_]

    @classmethod
    def of(cls, data: ReviewData, state: State) -> "Regrouping":
        """The tracklets and constraints of a review."""
        kept = [row for row in range(len(data.tracklets)) if state.polyp_of[f"t{row}"]]
        items = tuple(f"t{row}" for row in kept)
        place = np.full(len(data.tracklets), -1, np.int64)
        place[kept] = np.arange(len(kept))
        together, one, two = (
            _placed(pairs, place)
            for pairs in (data.basis.together, data.basis.known.one_polyp, data.basis.known.two_polyps)
        )
        known = _consistent(len(kept), together, KnownPairs(one, two), state.links, items)
        polyp = np.array([state.polyp_of[item] for item in items], np.int64)
        named = {item for link in state.links for item in (*link.first, *link.second)}
        fixed = len(set(state.polyps) - set(polyp.tolist()))
        basis = replace(
            data.basis,
            evidence=[data.basis.evidence[row] for row in kept],
            together=together,
            known=known,
            polyp_range=_polyp_range(state.hint, data.basis.polyp_range, fixed),
        )
        return cls(items, basis, fixed, polyp, np.array([item in named for item in items], bool))

    @cached_property
    def tracklets(self) -> GroupingInput:
        """The tracklets as a grouping method takes them."""
        return self.basis.grouping_input()

    @property
    def seconds(self) -> NDArray[np.float64]:
        """How long each tracklet is seen, float64[n]."""
        return np.array([one.box_count for one in self.basis.evidence]) / (self.basis.fps or USUAL_FPS)

    @property
    def least_seconds(self) -> float:
        """How long a polyp must be seen so that it is surely one, and no false alarm."""
        band = self.basis.point.band(len(self.items), tracked=self.basis.tracked)
        return 0.0 if band is None else band.seconds

    def labels(self) -> Labels:
        """The group of each tracklet at the operating point, int32[n]."""
        if not self.items:
            return np.empty(0, np.int32)
        basis = self.basis
        return group(basis.evidence, basis.together, basis.duration, basis.point, basis.polyp_range, basis.known)

    def loose_and_strict(self, *, pure: bool = False) -> tuple[Labels, Labels]:
        """The groups at the two ends of the interval: int32[n] with fewer groups, and with more.

        Args:
            pure: Whether the latter are at least so pure that few of them hold two polyps.
        """
        fewer, more = sorted(self._swept[[0, 2 if pure else 1]], key=lambda labels: len(np.unique(labels)))
        return fewer, more

    @cached_property
    def _swept(self) -> Labels:
        """The groups at one end of the interval, at the other, and there or purer, int32[3, n]."""
        if not self.items:
            return np.empty((3, 0), np.int32)
        point = self.basis.point
        band = point.band(len(self.items), tracked=self.basis.tracked)
        low, high = (
            np.quantile(point.values, [(1 - point.level) / 2, (1 + point.level) / 2]).tolist()
            if band is None
            else (band.low, band.high)
        )
        pure = max(high, PURE) if point.method == ProbabilityLinkage.name else high
        return point.labels_at(self.tracklets, [low, high, pure])

    def ends(self, count: int) -> tuple[int, int]:
        """The interval around a count of polyps, given everything that was decided."""
        loose, strict = self.loose_and_strict()
        low = seen_groups(loose, np.where(self.confirmed, np.inf, self.seconds), self.least_seconds)
        low, high = low + self.fixed, len(np.unique(strict)) + self.fixed
        fewest, most = self.basis.polyp_range or (0, None)
        low = max(low, fewest + self.fixed)
        high = high if most is None else min(high, most + self.fixed)
        return min(low, count), max(high, count)

    def likeness(self) -> tuple[Matrix, bool]:
        """How alike any two tracklets are, float64[n, n], 0 to 1, and whether it is the probability of one polyp."""
        method, tracklets = self.basis.point.build(), self.tracklets
        if isinstance(method, ProbabilityLinkage):
            probability = PairProbability(method.intercept, method.looks, method.time, method.number)
            return probability.probabilities(tracklets), True
        return np.asarray(visual_similarity(tracklets.vectors, "cosine")), False

    def numbers(self, labels: Labels, state: State, among: Sequence[int] | None = None) -> dict[str, int]:
        """The polyp of each item by its group.

        Groups keep the numbers of the polyps that they share most boxes with; others get new numbers.

        Args:
            labels: int32[n], the groups.
            state: The polyps so far.
            among: Rows of the items that may change; all by default.
        """
        rows = np.arange(len(self.items)) if among is None else np.array(among, np.int64)
        if not len(rows):
            return {}
        groups, group_of = np.unique(labels[rows], return_inverse=True)
        old = np.array([state.polyp_of[self.items[row]] for row in rows])
        polyps, polyp_of = np.unique(old, return_inverse=True)
        boxes = np.array([self.basis.evidence[row].box_count for row in rows], np.float64)
        shared = np.zeros((len(groups), len(polyps)))
        np.add.at(shared, (group_of, polyp_of), boxes)
        chosen = {
            int(group): int(polyps[polyp])
            for group, polyp in zip(*linear_sum_assignment(-shared), strict=True)
            if shared[group, polyp] > 0
        }
        number = state.largest
        for group_row in range(len(groups)):  # in the order of the labels, so that the result is always the same
            if group_row not in chosen:
                number += 1
                chosen[group_row] = number
        return {self.items[row]: chosen[int(own)] for row, own in zip(rows, group_of, strict=True)}


def followed(polyp_of: Mapping[str, int], data: ReviewData, state: State) -> tuple[dict[str, int], list[str]]:
    """Where tracklets go that cannot be grouped, but which a person has put into a polyp, when that polyp changes.

    These are those that were set aside, too short, or added by hand. If their polyp loses all tracklets that can be
    grouped, they go where most boxes of these go. If they would then be one polyp with a tracklet that is seen in one
    frame with them, they become a polyp of their own.

    Args:
        polyp_of: The new polyp of tracklets that were grouped.
        data: What is reviewed.
        state: The polyps so far.

    Returns:
        The polyps of those that move, and which of them became a polyp of their own.
    """
    members = State({**state.polyp_of, **polyp_of}).members()
    grouped = {polyp: [item for item in items if item.startswith("t")] for polyp, items in members.items()}
    number = max([state.largest, *polyp_of.values()])
    moves, alone = dict[str, int](), list[str]()
    for polyp, items in state.members().items():
        before = [item for item in items if item.startswith("t")]
        target = polyp
        if before and not grouped.get(polyp):
            boxes = Counter[int]()
            for item in before:
                boxes[polyp_of.get(item, polyp)] += data.tracklets[int(item[1:])].box_count
            target = max(boxes, key=lambda one: (boxes[one], -one))
        for item in (one for one in items if not one.startswith("t")):
            own = target
            newcomers = [other for other in grouped.get(target, ()) if other not in items]
            if any((item, other) in data.together or (other, item) in data.together for other in newcomers):
                number += 1
                own = number
                alone.append(item)
            grouped.setdefault(own, []).append(item)
            if own != polyp:
                moves[item] = own
    return moves, alone


def _placed(pairs: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of rows among the kept tracklets; others are left out."""
    moved = place[np.asarray(pairs, np.int64).reshape(-1, 2)]
    return moved[(moved >= 0).all(axis=1)]


def _polyp_range(
    hint: tuple[int | None, int | None], given: tuple[int, int | None] | None, fixed: int
) -> tuple[int, int | None] | None:
    """The range for the groups, without the polyps that are fixed."""
    fewest, most = hint if hint != (None, None) else given or (None, None)
    if fewest is None and most is None:
        return None
    return max(0, (fewest or 0) - fixed), None if most is None else max(0, most - fixed)


def _consistent(
    count: int, together: NDArray[np.int64], known: KnownPairs, links: Sequence[Link], items: Sequence[str]
) -> KnownPairs:
    """The constraints of all links, the last one first; what contradicts a later one is left out."""
    row = {item: number for number, item in enumerate(items)}
    unit, apart = np.arange(count), np.zeros((count, count), bool)
    one, two = list[tuple[int, int]](), list[tuple[int, int]]()

    def separate(first: int, second: int) -> None:
        a, b = unit[first], unit[second]
        if a != b:
            apart[a, b] = apart[b, a] = True

    def join(first: int, second: int) -> None:
        a, b = sorted((int(unit[first]), int(unit[second])))
        if a != b and not apart[a, b]:
            unit[unit == b] = a
            apart[a] |= apart[b]
            apart[:, a] |= apart[:, b]
            one.append((first, second))

    for first, second in together.tolist():
        separate(first, second)
    for link in reversed(links):
        left, right = ([row[item] for item in side if item in row] for side in (link.first, link.second))
        if not link.second:
            for member in left[1:]:
                join(left[0], member)
        for first in left:
            for second in right:
                if unit[first] != unit[second] and not apart[unit[first], unit[second]]:
                    separate(first, second)
                    two.append((first, second))
    for first, second in known.one_polyp.tolist():
        join(first, second)
    for first, second in known.two_polyps.tolist():
        if unit[first] != unit[second]:
            separate(first, second)
            two.append((first, second))
    return KnownPairs(np.array(one, np.int64).reshape(-1, 2), np.array(two, np.int64).reshape(-1, 2))
