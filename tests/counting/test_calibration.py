"""Operating points for counting, against a plain search; and the file that keeps them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polypcount.clustering import Grid, ProbabilityLinkage, TemporalAgglomerative, fit_pair_probability
from polypcount.corpus import Embeddings, Provenance
from polypcount.counting import calibrate, read_operating_points, write_operating_points
from polypcount.counting.calibration import GRIDS
from polypcount.errors import DataError, FileError
from polypcount.evaluation.videos import StudyVideo, study_videos
from tests.evaluation.embedded import embedded

COUNTS = [[3, 4], [5], [2, 3, 4], [6, 2], [4, 4], [2, 2, 2], [7], [3, 3], [1, 5], [4, 2], [2, 6]]
METHOD = "temporal-agglomerative"
AXES = {"gamma": (5.0,), "alpha": (0.6, 1.0), "threshold": tuple(np.linspace(0.3, 0.95, 14).round(3).tolist())}
GRID = Grid(AXES)


def videos_of(vectors: Embeddings) -> list[StudyVideo]:
    return list(study_videos(vectors, cannot_link=True))


def joined(groups: np.ndarray, truth: np.ndarray) -> float:
    """Share of pairs of two polyps that are in one group; NaN where there is no such pair."""
    pairs = [(i, j) for i in range(len(truth)) for j in range(i) if truth[i] != truth[j]]
    return float(np.mean([groups[i] == groups[j] for i, j in pairs])) if pairs else float("nan")


@pytest.mark.parametrize("most_fpr", [0.05, 1.0])
def test_it_is_the_best_of_all_points_within_the_limit(most_fpr: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GRIDS, METHOD, AXES)
    vectors = embedded(COUNTS, seed=5)
    tried: list[tuple[float, float, dict[str, float], list[int]]] = []
    for index in range(len(GRID)):
        parameters: dict[str, Any] = {"similarity": "cosine", **GRID.point(index)}
        method = TemporalAgglomerative(**parameters)
        errors, fpr = [], []
        for video in videos_of(vectors):
            labels = method.group(video.tracklets).labels
            errors.append(abs(len(np.unique(labels)) - video.polyps))
            fpr.append(joined(labels, video.truth))
        tried.append((float(np.mean(errors)), float(np.nanmean(fpr)), GRID.point(index), errors))
    allowed = [point for point in tried if point[1] <= most_fpr]
    best = min(allowed, key=lambda point: (round(point[0], 9), point[1]))
    chosen = calibrate([vectors], "a test", methods=[METHOD], most_fpr=most_fpr)[METHOD]
    assert {name: chosen.parameters[name] for name in GRID.axes} == best[2]
    assert chosen.measured["selection_mean_absolute_error"] == pytest.approx(best[0])
    assert chosen.measured["selection_fpr"] == pytest.approx(best[1])
    assert chosen.measured["selection_exact"] == pytest.approx(np.mean(np.array(best[3]) == 0))
    # The right value for each video: the smallest error at the same alpha, nearest to the chosen threshold.
    expected = []
    same_alpha = [point for point in tried if point[2]["alpha"] == best[2]["alpha"]]
    for row in range(len(COUNTS)):
        least = min(point[3][row] for point in same_alpha)
        values = [point[2]["threshold"] for point in same_alpha if point[3][row] == least]
        expected.append(min(values, key=lambda value: abs(value - best[2]["threshold"])))
    assert list(chosen.values) == sorted(expected)
    assert chosen.varied == "threshold"


def test_probabilities_are_fitted_on_the_same_videos() -> None:
    vectors = embedded(COUNTS, seed=5)
    chosen = calibrate([vectors], "a test", methods=[ProbabilityLinkage.name])[ProbabilityLinkage.name]
    inputs = [video.tracklets for video in videos_of(vectors)]
    expected = fit_pair_probability(inputs, [video.truth for video in videos_of(vectors)], number=True)
    assert chosen.parameters["number"] == pytest.approx(expected.number)
    assert chosen.parameters["looks"] == pytest.approx(expected.looks)
    assert chosen.parameters["time"] == pytest.approx(expected.time)


def test_what_cannot_be_chosen_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = embedded(COUNTS, seed=5)
    with pytest.raises(DataError, match="at least 10 recordings, found 4"):
        calibrate([embedded(COUNTS[:4], seed=5)], "a test")
    with pytest.raises(DataError, match="different encoders"):
        calibrate([vectors, dataclasses.replace(vectors, encoder="other")], "a test")
    with pytest.raises(DataError, match="two polyps"):
        calibrate([embedded([[3]] * 12, seed=5)], "a test", methods=["threshold"])
    monkeypatch.setitem(GRIDS, "threshold", {"threshold": (0.0,)})
    with pytest.raises(DataError, match="no point of the grid"):
        calibrate([vectors], "a test", methods=["threshold"], most_fpr=0.001)


def test_vectors_of_other_boxes_are_refused() -> None:
    made = Provenance.now("embed", parameters={"looked_at": 4})
    vectors = dataclasses.replace(embedded(COUNTS, seed=5), provenance=made)
    for other in (vectors, vectors.long_enough(1)):
        with pytest.raises(DataError, match="other boxes"):
            calibrate([other], "a test")


def test_operating_points_are_kept_and_checked(tmp_path: Path) -> None:
    points = calibrate([embedded(COUNTS, seed=5)], "a test", methods=["threshold", "agglomerative"])
    path = write_operating_points(tmp_path, points, "threshold")
    kept = read_operating_points(tmp_path)
    assert (kept.default, dict(kept.points)) == ("threshold", points)
    values = json.loads(path.read_text())
    for bad, field in (
        ({**values, "default": "ap"}, "default"),
        ({**values, "points": {"ap": values["points"]["threshold"]}}, "points"),
        ({**values, "format_version": 3}, "version 3"),
        ({**values, "points": {"threshold": {**values["points"]["threshold"], "level": 2}}}, "level"),
        ({**values, "points": {"threshold": {**values["points"]["threshold"], "values": [2, 1]}}}, "rising"),
    ):
        path.write_text(json.dumps(bad))
        with pytest.raises(FileError, match=f"operating-points.json.*{field}"):
            read_operating_points(tmp_path)


def test_version_1_is_read(tmp_path: Path) -> None:
    point = calibrate([embedded(COUNTS, seed=5)], "a test", methods=["threshold"])["threshold"]
    old = {
        "format": "polypcount-operating-points",
        "format_version": 1,
        "selected_on": "a test",
        "points": [],
        "counting": point.model_dump(mode="json"),
    }
    (tmp_path / "operating-points.json").write_text(json.dumps(old))
    assert read_operating_points(tmp_path).points["threshold"] == point
