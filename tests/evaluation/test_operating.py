"""The operating point for unlabelled recordings: chosen on all videos, by the same rules as in a study."""

import numpy as np
import pytest

from polypcount.clustering import AffinityPropagation, Grid, Threshold
from polypcount.errors import DataError
from polypcount.evaluation import RULES, choose, leave_one_out, operating_point

from .embedded import embedded

COUNTS = [[3, 4], [5], [2, 3, 4], [6, 2]]
GRID = Grid({"threshold": tuple(np.linspace(0, 1, 21).tolist())})


@pytest.mark.parametrize("rule", RULES)
def test_it_is_chosen_on_the_means_over_all_videos(rule: str) -> None:
    """Independently: each point is a study with fixed parameters, whose means are those over all videos."""
    vectors = embedded(COUNTS, seed=3)
    fr, fpr = [], []
    for point in range(len(GRID)):
        study = leave_one_out(vectors, Threshold(), parameters=GRID.point(point), cannot_link=True)
        scores = study["threshold"].rules[0].scores
        fr.append(scores["fr"].mean)
        fpr.append(scores["fpr"].mean)
    expected = choose(np.array(fr), np.array(fpr), 0.05, rule)  # type: ignore[arg-type]
    found = operating_point(vectors, Threshold(), grid=GRID, rule=rule)  # type: ignore[arg-type]
    assert found.parameters == GRID.point(expected)
    assert (found.fr, found.fpr) == pytest.approx((fr[expected], fpr[expected]))


def test_several_sets_count_as_one_set_of_videos() -> None:
    one, other = embedded(COUNTS, seed=3), embedded(COUNTS, seed=4)
    both = operating_point([one, other], AffinityPropagation(), grid="coarse")
    alone = operating_point(one, AffinityPropagation(), grid="coarse")
    assert both.videos == alone.videos + operating_point(other, AffinityPropagation(), grid="coarse").videos
    assert both.to_dict()["method"] == "ap"


def test_nothing_to_choose_on_is_said_in_one_line() -> None:
    with pytest.raises(DataError, match="there are none"):
        operating_point([], Threshold())
    with pytest.raises(DataError, match="target"):
        operating_point(embedded(COUNTS, seed=3), Threshold(), target_fpr=2)
