"""From vectors to what is kept of a row, and back."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.errors import FileError
from polypcount.evaluation import leave_one_out, reidentification_scores
from polypcount.reproduce.results import StudySettings, load_run, position_vectors, study_row
from polypcount.reproduce.rows import ROWS
from polypcount.storage import write_json
from tests.evaluation.embedded import embedded

COARSE = StudySettings("coarse")


def test_what_is_kept_is_what_the_study_found(tmp_path: Path) -> None:
    vectors = embedded([[3, 2], [4], [2, 2, 3], [2, 4]])
    found = study_row(ROWS["ours"], vectors, COARSE, sweeps=tmp_path / "sweeps", threads=1)
    write_json(tmp_path / "row.json", found)
    run = load_run(tmp_path / "row.json", "real", 3)
    study = leave_one_out(vectors, "temporal-ap", grid="coarse")
    assert (run.row, run.benchmark, run.seed) == ("ours", "real", 3)
    each = [
        reidentification_scores(vectors.vectors[vectors.video == v], vectors.polyp[vectors.video == v]).auroc
        for v in (0, 2, 3)
    ]
    assert run.pair_auroc.mean == pytest.approx(np.mean(each))
    assert (run.pair_auroc.count, run.pair_auroc.total) == (3, 4)
    for rule in study.methods[0].rules:
        kept = run.rules[rule.rule]
        assert kept["selected_fpr"] == rule.selected_fpr
        for name, mean in rule.scores.items():
            assert kept[name] == mean or math.isnan(mean.mean)
    videos = found["rules"][0]["videos"]
    assert [video["fr"] for video in videos] == [fold.scores.fr for fold in study.methods[0].rules[0].folds]
    assert [video["fpr"] is None for video in videos] == [False, True, False, False]
    assert [value is None for value in found["pairs"]["videos"].values()] == [False, True, False, False]


def test_the_method_of_ours_plus_is_chosen_for_each_video(tmp_path: Path) -> None:
    found = study_row(ROWS["ours+"], embedded([[3, 2], [4], [2, 2], [2, 3]]), COARSE, sweeps=tmp_path, threads=1)
    assert {rule: len(names) for rule, names in found["chosen"].items()} == {"closest": 4, "budget": 4}
    json.dumps(found, allow_nan=False)


def test_no_clustering_compares_nothing(tmp_path: Path) -> None:
    found = study_row(ROWS["none"], embedded([[3, 2], [4]]), COARSE, sweeps=tmp_path, threads=1)
    write_json(tmp_path / "row.json", found)
    run = load_run(tmp_path / "row.json", "real", None)
    assert run.rules["fixed"]["fr"].mean == pytest.approx((2.5 + 4) / 2)
    assert math.isnan(run.pair_auroc.mean)


def timed_corpus() -> Corpus:
    """Two videos of different lengths with tracklets of 30 boxes at known frames."""
    starts = {0: [(0, 0), (110, 0), (601, 1), (317, 1), (823, 0)], 1: [(53, 2), (150, 3), (267, 2), (411, 3)]}
    rows = [(video, start + k, polyp) for video, known in starts.items() for start, polyp in known for k in range(30)]
    video, frame, polyp = np.array(rows).T
    boxes = Boxes(video, frame, np.tile([1.0, 1.0, 9.0, 9.0], (len(rows), 1)), polyp=polyp)
    videos = (Video("a", 1000), Video("b", 500))
    return Corpus(videos, boxes, tuple(Polyp(f"p{k}", "ab"[k // 2]) for k in range(4)))


def test_position_vectors_order_pairs_by_time() -> None:
    vectors = position_vectors(timed_corpus())
    found = reidentification_scores(vectors.vectors, vectors.polyp, vectors.video).auroc
    length = np.array([1000, 500])[vectors.video]
    place = vectors.start_frame / length
    near: dict[bool, list[float]] = {True: [], False: []}
    for i in range(len(vectors)):
        for j in range(i):
            if vectors.video[i] == vectors.video[j]:
                near[bool(vectors.polyp[i] == vectors.polyp[j])].append(-abs(place[i] - place[j]))
    wins = [(p > n) + (p == n) / 2 for p in near[True] for n in near[False]]
    assert len(set(near[True] + near[False])) == 16, "no ties, which float32 would break"
    assert found == pytest.approx(np.mean(wins))


def test_the_grid_of_absolute_similarities() -> None:
    assert StudySettings("paper").grid_for(ROWS["ours"]) == "paper"
    assert StudySettings("paper").grid_for(ROWS["frozen-ap"]) == "fine"
    assert StudySettings("coarse").grid_for(ROWS["frozen-ap"]) == "coarse"
    about = [json.dumps(StudySettings(grid, 0.05).about(row)) for grid in ("paper", "fine") for row in ROWS.values()]
    assert len(set(about)) < len(about), "ours+ has grids of its own"
    assert StudySettings("paper", 0.05).about(ROWS["ours"]) != StudySettings("paper", 0.1).about(ROWS["ours"])


def test_damaged_files_are_one_line(tmp_path: Path) -> None:
    for text in ("", "{}", '{"rules": [{"rule": "closest"}]}', '{"rules": 3}'):
        (tmp_path / "row.json").write_text(text)
        with pytest.raises(FileError, match=r"row\.json"):
            load_run(tmp_path / "row.json", "real", None)
