"""Which point of a grid to work at: the trade between fragmenting polyps and merging them."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError

Floats = NDArray[np.float64]
Rule = Literal["closest", "budget"]
RULES: tuple[Rule, ...] = get_args(Rule)
TIE = 1e-12  # below this, two means differ by the order in which they were summed up


def check_target(target_fpr: float) -> None:
    """Raise where it is no rate to aim at."""
    if not 0 < target_fpr <= 1:
        raise DataError(f"the target FPR must be above 0 and at most 1, found {target_fpr}")


def choose(fr: Floats, fpr: Floats, target_fpr: float, rule: Rule) -> int:
    """The point of a grid to work at, given the mean FR and FPR [points] of the videos it may be chosen on.

    closest: the smallest abs(FPR - target); points with FPR 0 are not eligible, unless there are no others. Ties go to
        the lowest FR, then to the median of the points that are left, the lower of two.
    budget: the lowest FR among the points with FPR <= target, or with the lowest FPR there is if none keeps to it. Ties
        go to the lowest FPR, then to the median as before.

    Points without an FPR, since no video has two polyps, cannot be chosen between: an error.
    """
    if rule not in RULES:
        raise DataError(f"the selection rule must be one of {', '.join(RULES)}, found {rule!r}")
    check_target(target_fpr)
    if not len(fr) or np.isnan(fpr).any() or np.isnan(fr).any():
        raise DataError(
            "no operating point can be chosen where FR or FPR is undefined: "
            "it takes a video with tracklets of two polyps"
        )
    points = np.arange(len(fr))
    if rule == "closest":
        merging = points[fpr > TIE]
        points = lowest_of(merging if len(merging) else points, np.abs(fpr - target_fpr))
        points = lowest_of(points, fr)
    else:
        within = points[fpr <= target_fpr + TIE]
        points = lowest_of(within if len(within) else lowest_of(points, fpr), fr)
        points = lowest_of(points, fpr)
    return int(points[(len(points) - 1) // 2])


def front(fr: Floats, fpr: Floats) -> NDArray[np.int64]:
    """The points that no other beats in both FR and FPR, by rising FPR; of equal points the first."""
    order = np.lexsort((np.arange(len(fr)), fr, fpr))
    order = order[~(np.isnan(fr) | np.isnan(fpr))[order]]
    lowest = np.minimum.accumulate(fr[order])
    better = np.ones(len(order), bool)
    better[1:] = fr[order][1:] < lowest[:-1] - TIE
    return np.asarray(order[better])


def lowest_of(points: NDArray[np.int64], values: Floats) -> NDArray[np.int64]:
    """Those of the points at which the values are lowest."""
    return np.asarray(points[values[points] <= values[points].min() + TIE])
