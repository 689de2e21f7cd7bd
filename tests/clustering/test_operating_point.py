"""Operating points: what is refused, the groups at many values, and groupings into a wished number of groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.clustering import METHODS, Band, GroupingInput, OperatingPoint, group_into
from polypcount.errors import DataErrors
from polypcount.storage import check

from .inputs import partition, polyps_in_time
from .test_constraints import constrained

FITTED = {"intercept": -4.0, "looks": 6.0, "time": -0.3}
POINT = {
    "method": "probability-linkage",
    "parameters": {"threshold": 0.5, **FITTED},
    "cannot_link": True,
    "varied": "threshold",
    "values": [0.3, 0.5, 0.8],
    "level": 0.9,
    "selected_on": "12 recordings",
}
KINDS = {"agglomerative": {}, "threshold": {}, "temporal-agglomerative": {}, "probability-linkage": FITTED}


def point_of(method: str, **parameters: float | str) -> OperatingPoint:
    return check(OperatingPoint, {**POINT, "method": method, "parameters": parameters}, "point")


def counts_at(point: OperatingPoint, tracklets: GroupingInput, values: object) -> list[int]:
    return [len(set(row.tolist())) for row in point.labels_at(tracklets, values)]  # type: ignore[arg-type]


def test_a_point_comes_back_from_json_and_builds_its_method() -> None:
    point = check(OperatingPoint, POINT, "point")
    assert check(OperatingPoint, point.model_dump(mode="json"), "point") == point
    assert point.build().get_params() == {"threshold": 0.5, **FITTED, "number": 0.0}
    propagation = {"preference": 0.1, "max_iter": 300}
    assert check(
        OperatingPoint, {**POINT, "method": "ap", "varied": "preference", "parameters": propagation}, ""
    ).build()


def test_the_band_of_a_recording() -> None:
    def band(tracked: bool, tracklets: int) -> Band:
        return Band(tracked=tracked, tracklets=tracklets, low=0.2, high=0.9, procedures=40)

    point = check(OperatingPoint, POINT, "point")
    assert point.band(3, tracked=False) is None
    few, many, detected = band(False, 4), band(False, 100), band(True, 50)
    point = point.model_copy(update={"bands": (few, many, detected)})
    for tracklets, expected in ((1, few), (4, few), (5, many), (101, many)):
        assert point.band(tracklets, tracked=False) == expected
    assert point.band(51, tracked=True) == detected
    assert point.model_copy(update={"bands": (few,)}).band(2, tracked=True) == few, "there is no other"


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("method", "magic", "magic"),
        ("parameters", {"preference": 0.5}, "preference"),
        ("varied", "linkage", "varied"),
        ("values", [0.5, 0.3], "values"),
        ("values", [], "values"),
        ("level", 1, "level"),
        ("bands", [{"tracked": False, "tracklets": 0, "low": 0, "high": 1, "procedures": 9}], "tracklets"),
        ("bands", [{"tracked": False, "tracklets": 3, "low": 0, "high": 2, "procedures": 9}], "threshold"),
        ("selected_on", "", "selected_on"),
    ],
)
def test_a_bad_point_is_refused_by_key(key: str, value: object, named: str) -> None:
    with pytest.raises(DataErrors, match=named):
        check(OperatingPoint, {**POINT, key: value}, "point")


def test_labels_at_values_are_those_of_the_method_with_each_value() -> None:
    tracklets, point = polyps_in_time(12, 4), check(OperatingPoint, POINT, "point")
    values = [0.7, 0.2, 0.7, 0.5]
    for row, value in zip(point.labels_at(tracklets, values), values, strict=True):
        assert partition(row) == partition(point.build().set_params(threshold=value).group(tracklets).labels)


def test_repeated_values_are_quantiles_at_even_distances() -> None:
    point = check(OperatingPoint, POINT, "point")
    assert point.repeated_values(2).tolist() == pytest.approx([0.4, 0.65])  # quantiles 1/4 and 3/4
    assert point.repeated_values(60).shape == (60,)


@pytest.mark.parametrize("kind", KINDS)
def test_without_constraints_every_number_of_groups_is_reached(kind: str) -> None:
    tracklets = polyps_in_time(11, 3)
    for wished in range(1, 12):
        labels, value = group_into(point_of(kind, **KINDS[kind]), tracklets, wished, wished)
        assert labels.max() + 1 == wished
        assert partition(labels) == partition(point_of(kind, **KINDS[kind]).labels_at(tracklets, [value])[0])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(tracklets=constrained())
def test_cut_values_show_every_number_of_groups_and_keep_the_constraints(kind: str, tracklets: GroupingInput) -> None:
    """Against a brute force over many thresholds."""
    point = point_of(kind, **KINDS[kind])
    values = point.build().cut_values(tracklets, "threshold")
    assert (np.diff(values) > 0).all()
    assert values[[0, -1]].tolist() == [0, 1]
    assert set(counts_at(point, tracklets, values)) >= set(counts_at(point, tracklets, np.linspace(0, 1, 101)))
    labels, _ = group_into(point, tracklets, 1, 1)
    assert all(labels[i] != labels[j] for i, j in tracklets.constraints.cannot_link)
    assert all(labels[i] == labels[j] for i, j in tracklets.constraints.must_link)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15)
@given(pairs=st.sets(st.sampled_from(list(itertools.combinations(range(5), 2)))))
def test_cannot_links_are_the_only_limit_of_the_fewest_groups(kind: str, pairs: set[tuple[int, int]]) -> None:
    """The fewest groups that keep all pairs apart, found by trying all groupings, are a bound that is often reached."""
    tracklets = polyps_in_time(5, 1)
    linked = GroupingInput.of(tracklets.vectors, tracklets.positions, np.array(sorted(pairs)).reshape(-1, 2))
    fewest = min(
        len(set(labels))
        for labels in itertools.product(range(5), repeat=5)
        if all(labels[i] != labels[j] for i, j in pairs)
    )
    labels, _ = group_into(point_of(kind, **KINDS[kind]), linked, 1, 1)
    assert len(set(labels.tolist())) >= fewest
    if len(pairs) <= 1 or fewest == 5:
        assert len(set(labels.tolist())) == fewest


def test_the_points_own_grouping_is_kept_in_the_range_and_the_nearest_taken_outside() -> None:
    tracklets, point = polyps_in_time(10, 6), point_of("agglomerative", threshold=0.7)
    (count,) = counts_at(point, tracklets, [0.7])
    assert 2 < count < 9
    labels, value = group_into(point, tracklets, 1, None)
    assert value == 0.7
    assert labels.max() + 1 == count
    assert group_into(point, tracklets, 1, count - 1)[0].max() + 1 == count - 1
    assert group_into(point, tracklets, count + 1, None)[0].max() + 1 == count + 1
    assert group_into(point, tracklets, 20, 30)[0].max() + 1 == 10, "as near to the range as there are tracklets"
    values = point.build().cut_values(tracklets, "threshold")
    _, value = group_into(point, tracklets, 2, 2)
    same = values[np.array(counts_at(point, tracklets, values)) == 2]
    assert value == same[np.argmin(np.abs(same - 0.7))]


def test_other_methods_try_their_fine_grid() -> None:
    tracklets = polyps_in_time(8, 2)
    point = check(OperatingPoint, {**POINT, "method": "ap", "parameters": {}, "varied": "preference"}, "point")
    fine = METHODS["ap"].presets["fine"]["preference"]
    assert point.build().cut_values(tracklets, "preference").tolist() == list(fine)
    temporal = point_of("temporal-agglomerative").build()
    assert temporal.cut_values(tracklets, "gamma").tolist() == list(temporal.presets["fine"]["gamma"])
    reached = counts_at(point, tracklets, fine)
    for wished in range(1, 9):
        labels, _ = group_into(point, tracklets, wished, wished)
        assert abs(labels.max() + 1 - wished) == min(abs(count - wished) for count in reached)


@pytest.mark.parametrize("kind", KINDS)
def test_none_and_one_tracklet(kind: str) -> None:
    point = point_of(kind, **KINDS[kind])
    assert group_into(point, GroupingInput.of(np.zeros((0, 3)), []), 1, 1)[0].shape == (0,)
    assert group_into(point, GroupingInput.of(np.ones((1, 3)), [0.5]), 2, 2)[0].tolist() == [0]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"parameters": {"threshold": 0.5}}, "probability-linkage needs a number intercept"),
        ({"parameters": {**FITTED, "looks": "many"}}, "probability-linkage needs a number looks"),
        ({"parameters": {**FITTED, "threshold": -1}}, "threshold must be a number from 0 to 1, found -1"),
        ({"parameters": {**FITTED, "time": 10**400}}, "whole numbers may be up to 1000000000"),
        ({"values": [-3, 0.5]}, "threshold must be a number from 0 to 1, found -3"),
    ],
)
def test_a_point_that_no_method_can_run_is_refused_when_it_is_read(change: dict[str, object], line: str) -> None:
    with pytest.raises(DataErrors, match=line):
        check(OperatingPoint, {**POINT, **change}, "point")
