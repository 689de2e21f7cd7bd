"""What the methods make of the cases: each does what it is for."""

import numpy as np
import pytest

from polypcount.clustering import AffinityPropagation, GroupingInput, TemporalAffinityPropagation, Threshold, TimeOnly
from polypcount.corpus.together import overlapping
from tests.cases.catalogue import CASES, Case, late_return, nothing, one_tracklet, twin_polyps, two_at_once
from tests.clustering.inputs import partition


def input_of(case: Case, *, cannot_link: bool = False) -> GroupingInput:
    """The case as a method sees it."""
    video = np.zeros(len(case.polyp), np.int32)
    pairs = overlapping(video, case.start_frame, case.stop_frame) if cannot_link else None
    return GroupingInput.of(case.vectors, case.start_frame, pairs, duration=case.frame_count)


def test_no_tracklet_is_no_group_and_one_is_one() -> None:
    for method in (Threshold(), AffinityPropagation(), TemporalAffinityPropagation(), TimeOnly()):
        assert method.group(input_of(nothing())).count == 0
        assert method.group(input_of(one_tracklet())).count == 1


def test_twins_are_told_apart_by_time_and_not_by_looks() -> None:
    tracklets = input_of(twin_polyps())
    assert partition(Threshold(0.9).group(tracklets).labels) == {frozenset({0, 1, 3, 4}), frozenset({2})}
    fused = TemporalAffinityPropagation(0.5, alpha=0.5, gamma=5).group(tracklets)
    assert partition(fused.labels) == {frozenset({0, 1}), frozenset({2}), frozenset({3, 4})}


def test_a_late_return_is_found_by_looks_and_not_by_time() -> None:
    tracklets = input_of(late_return())
    assert TimeOnly(0.7, gamma=10).group(tracklets).labels[3] not in TimeOnly(0.7, gamma=10).group(tracklets).labels[:3]
    # (0.6, 0.8) and (0.8, 0.6) have the cosine 0.96, so the similarity 0.98; (0, 1) and (0.6, 0.8) have 0.8, so 0.9.
    assert partition(Threshold(0.95).group(tracklets).labels) == {frozenset({0}), frozenset({1, 3}), frozenset({2})}


@pytest.mark.parametrize("method", [Threshold(0), AffinityPropagation(-5), TemporalAffinityPropagation(-5)])
def test_two_at_once_are_never_one_where_that_is_known(method: Threshold) -> None:
    case = two_at_once()
    apart = method.group(input_of(case, cannot_link=True)).labels
    assert apart[0] != apart[1], "they share frames 260 to 419"
    assert method.group(input_of(case)).count == 1, "without the constraint all is one"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_threshold_of_nothing_merges_all_and_none_is_merged_above_one(case: Case) -> None:
    tracklets = input_of(case)
    assert Threshold(0).group(tracklets).count == min(1, len(tracklets))
    assert AffinityPropagation(1.5).group(tracklets).count == len(tracklets)
