"""Choose a point of a grid: the trade-off between fragmenting polyps and merging them."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from polypcount.errors import DataError
from polypcount.evaluation.pairs import Rates

Rule = Literal["closest", "budget"]
FprAverage = Literal["defined", "zero-filled", "pooled"]
RULES: tuple[Rule, ...] = get_args(Rule)
TIE = 1e-12  # smaller differences of two means come from the order of summing


def check_target(target_fpr: float, fpr_average: str) -> None:
    """Raise `DataError` where the target is not a rate above 0, or the name of the average is unknown."""
    if fpr_average not in get_args(FprAverage):
        raise DataError(f"fpr_average must be one of {', '.join(get_args(FprAverage))}, found {fpr_average!r}")
    if not 0 < target_fpr <= 1:
        raise DataError(f"the target FPR must be above 0 and at most 1, found {target_fpr}")


def choose(fr: Rates, fpr: Rates, target_fpr: float, rule: Rule) -> int:
    """Choose a point of a grid by the mean FR and FPR over the videos that it may be chosen on.

    - closest: the smallest abs(FPR - target). Points with FPR 0 are not eligible, unless there are no others. Ties go
      to the lowest FR, then to the median of the remaining points, the lower of two.
    - budget: the lowest FR among the points with FPR <= target, or with the lowest FPR if there are none. Ties go to
      the lowest FPR, then to the median as before.

    Args:
        fr: float64[points].
        fpr: float64[points].
        target_fpr: Above 0, at most 1.
        rule: Which of the two.

    Raises:
        DataError: A rate is undefined, since no video has two polyps.
    """
    if rule not in RULES:
        raise DataError(f"the selection rule must be one of {', '.join(RULES)}, found {rule!r}")
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


def front(fr: Rates, fpr: Rates) -> NDArray[np.int64]:
    """Points that no other point beats in both FR and FPR, by rising FPR; of equal points the first."""
    order = np.lexsort((np.arange(len(fr)), fr, fpr))
    order = order[~(np.isnan(fr) | np.isnan(fpr))[order]]
    lowest = np.minimum.accumulate(fr[order])
    better = np.ones(len(order), bool)
    better[1:] = fr[order][1:] < lowest[:-1] - TIE
    return np.asarray(order[better])


def lowest_of(points: NDArray[np.int64], values: Rates) -> NDArray[np.int64]:
    """The points with the lowest value."""
    return np.asarray(points[values[points] <= values[points].min() + TIE])
