"""What to ask a person, so that few answers settle the count."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering.similarity import Matrix
from polypcount.review.regroup import Labels, Regrouping

MOST_QUESTIONS = 200  # that the page gets at a time
# Of the polyps of a detector that are seen for a moment only, so many show none: benchmarks/review_queue.py --choose.
_ALARMS = 0.45


@dataclass(frozen=True)
class Question:
    """Are two groups of tracklets one polyp? Or, without a second group, does the first show a polyp?

    Attributes:
        first: Items of one group.
        second: Items of the other group; none where the question is whether the first shows a polyp.
        likeness: Mean over the pairs of both: the probability that they are one polyp, where the method gives one. None
            without a second group.
        doubt: About how likely it is that the answer is not what the count says now, 0 to 1.
    """

    first: tuple[str, ...]
    second: tuple[str, ...]
    likeness: float | None
    doubt: float


def questions(regrouping: Regrouping) -> list[Question]:
    """What an answer could still change, the likeliest to change the count first.

    The groups asked about are parts of polyps: at least as pure as the groups at the strict end of the interval. Two of
    them are asked about if they are one group at the loose end. A polyp is asked about if the loose end leaves it out,
    since it is seen for so short that it may be a false alarm. So, when none is left, both ends agree, and no further
    answer changes the count.
    """
    if not regrouping.items:
        return []
    loose, strict = regrouping.loose_and_strict(pure=True)
    parts = np.unique(np.column_stack([strict, regrouping.polyp]), axis=0, return_inverse=True)[1].astype(np.int32)
    likeness, _ = regrouping.likeness()
    pairs = [
        Question(
            _items(regrouping, np.flatnonzero(parts == first)),
            _items(regrouping, np.flatnonzero(parts == second)),
            value,
            doubt=1 - value if _polyp_of(regrouping, parts, first) == _polyp_of(regrouping, parts, second) else value,
        )
        for first, second, value in candidates(loose, parts, likeness, _forbidden(regrouping))
    ]
    return sorted([*pairs, *_perhaps_alarms(regrouping)], key=lambda question: -question.doubt)


def candidates(
    loose: Labels, strict: Labels, likeness: Matrix, forbidden: NDArray[np.bool_]
) -> list[tuple[int, int, float]]:
    """Pairs of strict groups that a loose group holds and that nothing forbids, most alike first.

    Args:
        loose: int32[n], the groups at the loose end.
        strict: int32[n], the groups at the strict end.
        likeness: float64[n, n].
        forbidden: bool[n, n], tracklets that cannot be one polyp.

    Returns:
        The numbers of both groups as in `strict`, and the mean likeness of their pairs.
    """
    groups, own = np.unique(strict, return_inverse=True)
    member = np.zeros((len(groups), len(own)))
    member[own, np.arange(len(own))] = 1
    sizes = member.sum(axis=1)
    mean = member @ likeness @ member.T / np.outer(sizes, sizes)
    barred = member @ forbidden.astype(np.float64) @ member.T > 0  # numbers: of truth values, the product is slow
    of_loose = np.zeros((len(groups), int(loose.max(initial=0)) + 1))
    np.add.at(of_loose, (own, loose), 1.0)
    shared = of_loose @ of_loose.T > 0
    rows, columns = np.nonzero(np.triu(shared & ~barred, 1))
    order = np.lexsort((columns, rows, -mean[rows, columns]))
    return [
        (int(groups[row]), int(groups[column]), float(mean[row, column]))
        for row, column in zip(rows[order], columns[order], strict=True)
    ]


def _perhaps_alarms(regrouping: Regrouping) -> list[Question]:
    """Whether polyps that are seen for a short time, and that nobody has looked at, show one."""
    least, asked = regrouping.least_seconds, []
    for number in np.unique(regrouping.polyp):
        rows = np.flatnonzero(regrouping.polyp == number)
        seen = float(regrouping.seconds[rows].sum())
        if seen < least and not regrouping.confirmed[rows].any():
            asked.append(Question(_items(regrouping, rows), (), None, doubt=_ALARMS * (1 - seen / least / 2)))
    return asked


def _polyp_of(regrouping: Regrouping, parts: Labels, part: int) -> int:
    return int(regrouping.polyp[int(np.argmax(parts == part))])


def _forbidden(regrouping: Regrouping) -> NDArray[np.bool_]:
    """Which tracklets cannot be one polyp, by what was seen and answered, bool[n, n]."""
    constraints = regrouping.tracklets.constraints
    forbidden = constraints.forbidden[np.ix_(constraints.unit, constraints.unit)]
    one, other = regrouping.basis.together.T  # nobody can say yes, also where the method is free to join them
    forbidden[one, other] = forbidden[other, one] = True
    return np.asarray(forbidden)


def _items(regrouping: Regrouping, rows: NDArray[np.intp]) -> tuple[str, ...]:
    return tuple(regrouping.items[row] for row in rows.tolist())
