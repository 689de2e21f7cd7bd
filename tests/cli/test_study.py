"""`polypcount study`, run as its user would."""

import csv
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from polypcount.corpus import Embeddings, Provenance
from polypcount.counting import read_operating_points
from polypcount.encoder import bundled_folder, load_encoder
from polypcount.storage import only_writer
from tests.conftest import Run
from tests.evaluation.embedded import embedded


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four videos with one to three polyps."""
    return embedded([[5, 4], [6], [3, 2, 4], [2, 2]], seed=1).save(tmp_path_factory.mktemp("vectors") / "a.parquet")


def test_a_study_has_tables_figures_and_everything_as_json(polypcount: Run, vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    options = ("--grid", "coarse", "--target-fpr", 0.1, "--out", out)
    done = polypcount("study", vectors, "--methods", "threshold,ap,temporal-ap", *options)
    assert done.returncode == 0, done.stderr
    assert "temporal-ap" in done.stdout
    assert {path.name for path in out.iterdir()} == {
        "study.json", "summary.md", "summary.csv", "summary.tex", "videos.md", "videos.csv", "videos.tex", "vectors.md",
        "figures", "sweeps",
    }  # fmt: skip
    study = json.loads((out / "study.json").read_text())
    assert study["embeddings"]["content_hash"] == Embeddings.load(vectors).content_hash
    assert study["settings"]["target_fpr"] == 0.1
    assert [one["method"] for one in study["methods"]] == [
        "none", "threshold", "ap", "temporal-ap", "time-only", "oracle",
    ]  # fmt: skip
    folds = {
        (one["method"], rule["rule"], fold["video"]): fold
        for one in study["methods"]
        for rule in one["rules"]
        for fold in rule["folds"]
    }
    assert folds["oracle", "fixed", "v2"]["scores"]["fr"] == 1
    assert folds["none", "fixed", "v1"]["scores"]["fpr"] is None, "undefined is null"
    assert folds["temporal-ap", "closest", "v0"]["parameters"].keys() == {"gamma", "alpha", "preference"}
    with (out / "videos.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(folds) == 4 * (2 + 4 * 2)
    for row in rows:
        fold = folds[row["method"], row["rule"], row["video"]]
        assert float(row["fr"]) == fold["scores"]["fr"]
        assert row["fpr"] == ("" if fold["scores"]["fpr"] is None else str(fold["scores"]["fpr"]))
    with (out / "summary.csv").open() as file:
        means = {(row["method"], row["rule"], row["score"]): row for row in csv.DictReader(file)}
    frs = [fold["scores"]["fr"] for key, fold in folds.items() if key[:2] == ("ap", "closest")]
    assert float(means["ap", "closest", "fr"]["mean"]) == pytest.approx(np.mean(frs))
    assert means["ap", "closest", "fpr"]["count"] == "3"
    assert "3 of 4 videos" in (out / "summary.md").read_text()
    figures = {path.name for path in (out / "figures").iterdir()}
    assert {"fr-against-fpr.png", "fr-per-video.png", "000-v0-timeline.png", "003-v3-similarities.png"} <= figures
    assert len(figures) == 2 + 2 * 4
    for path in (out / "figures").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


def test_fixed_parameters_other_options_and_replacing(polypcount: Run, vectors: Path, tmp_path: Path) -> None:
    out = tmp_path / "study"
    fixed = ("--fix", "alpha=0.4, gamma=3,preference=0.3", "--similarity", "cosine", "--cannot-link", "--draw", "v1")
    done = polypcount("study", vectors, "--methods", "temporal-ap", "--out", out, *fixed)
    assert done.returncode == 0, done.stderr
    study = json.loads((out / "study.json").read_text())
    chosen = {one["method"]: one["rules"][0]["folds"][0]["parameters"] for one in study["methods"]}
    assert chosen["temporal-ap"] == {"gamma": 3, "alpha": 0.4, "preference": 0.3}
    assert chosen["time-only"] == {"gamma": 3, "preference": 0.3}
    assert (out / "figures" / "001-v1-timeline.png").exists()
    assert "fixed parameters" in (out / "summary.md").read_text()
    assert "chosen on" not in (out / "summary.md").read_text() + (out / "videos.md").read_text()
    assert not (out / "figures" / "000-v0-timeline.png").exists()
    again = polypcount("study", vectors, "--methods", "ap", "--grid", "coarse", "--out", out)
    assert again.returncode == 2
    assert "(--force)" in again.stderr
    forced = polypcount("study", vectors, "--methods", "ap", "--grid", "coarse", "--out", out, "--force", "--no-draw")
    assert forced.returncode == 0, forced.stderr
    assert json.loads((out / "study.json").read_text())["settings"]["grid"] == "coarse"
    figures = {path.name for path in (out / "figures").iterdir()}
    assert figures == {"fr-against-fpr.png", "fr-per-video.png"}, "none of the study that was replaced"


def test_it_goes_on_after_an_interruption(
    polypcount: Run, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from polypcount.evaluation import sweeps

    out, save = tmp_path / "study", sweeps._save
    command = ("study", vectors, "--methods", "threshold", "--grid", "coarse", "--out", out, "--no-draw")

    def interrupted(file: Path | None, swept: sweeps.VideoSweep) -> None:
        if len(list((out / "sweeps").glob("threshold-*.npz"))) == 2:
            raise KeyboardInterrupt
        save(file, swept)

    with monkeypatch.context() as patch:
        patch.setattr(sweeps, "_save", interrupted)
        stopped = polypcount(*command)
    assert stopped.returncode != 0
    assert "the same command continues from here" in stopped.stderr
    assert not (out / "study.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (out / "sweeps").iterdir()}
    done = polypcount(*command)
    assert done.returncode == 0, done.stderr
    assert (out / "study.json").exists()
    assert all(path.stat().st_mtime_ns == when for path, when in before.items()), "what was there was used"


def test_stopped_while_drawing_it_leaves_no_tables(
    polypcount: Run, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its own, which would look finished, nor those of the study that it replaces."""
    from polypcount.evaluation import study_folder

    out = tmp_path / "study"
    command = ("study", vectors, "--methods", "threshold", "--grid", "coarse", "--no-draw", "--out", out)
    assert polypcount(*command).returncode == 0
    whole = {path.name for path in out.iterdir()}

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(study_folder, "_draw_summary", interrupted)
        assert polypcount(*command, "--force").returncode == 130
    assert {path.name for path in out.iterdir()} <= {"sweeps", "figures"}
    assert polypcount(*command).returncode == 0
    assert {path.name for path in out.iterdir()} == whole


def test_two_studies_do_not_write_one_folder_at_once(polypcount: Run, vectors: Path, tmp_path: Path) -> None:
    with only_writer(tmp_path / "study", "writing a study"):
        done = polypcount("study", vectors, "--out", tmp_path / "study")
    assert done.returncode == 2
    assert done.stderr.startswith(f"polypcount: {tmp_path}/study: another process is writing a study there; wait")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "kmeans"), "there is no method 'kmeans'; there are: none, threshold"),
        (("--methods", ","), "--methods: no method is named"),
        (("--fix", "alpha=1,alpha=0"), "--fix names alpha twice"),
        (("--fix", "alpha=1"), "(--fix)"),
        (("--fix", "alpha"), "--fix takes NAME=VALUE"),
        (("--fix", "alhpa=1"), "no parameter alhpa of"),
        (("--target-fpr", "0"), "target FPR must be above 0 and at most 1"),
        (
            ("--draw", "nobody", "--grid", "coarse", "--methods", "threshold"),
            "--draw: there is no video nobody with a polyp; there are: v0",
        ),
        (("--min-frames", "1000"), "(--min-frames)"),
    ],
)
def test_bad_options_give_one_line(
    polypcount: Run, vectors: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = polypcount("study", vectors, "--out", tmp_path / "study", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "study").exists(), "before any work"


def test_bad_places_give_one_line(polypcount: Run, vectors: Path, tmp_path: Path) -> None:
    for out, message in ((vectors, "is a file; a study is written to a folder"), (vectors.parent, "not empty and not")):
        done = polypcount("study", vectors, "--out", out)
        assert done.returncode == 2
        assert message in done.stderr
    done = polypcount("study", tmp_path / "nothing.npz", "--out", tmp_path / "study")
    assert done.returncode == 2
    assert "nothing.npz does not exist" in done.stderr
    assert not (tmp_path / "study").exists()


def test_a_point_for_counting_is_kept_beside_the_encoder(polypcount: Run, tmp_path: Path) -> None:
    encoder = tmp_path / "encoder"
    shutil.copytree(bundled_folder(), encoder)
    counts = [[3, 4], [5], [2, 3, 4], [6, 2], [4, 4], [2, 2, 2], [7], [3, 3], [1, 5], [4, 2]]
    own = dataclasses.replace(embedded(counts, seed=1), encoder=load_encoder(threads=1).fingerprint)
    saved = own.save(tmp_path / "own.parquet")
    asked = ("--methods", "threshold", "--grid", "coarse", "--no-draw", "--for-counting", encoder)
    done = polypcount("study", saved, "--out", tmp_path / "study", *asked)
    assert done.returncode == 0, done.stderr
    kept = read_operating_points(encoder)
    point = kept.points[kept.default]
    assert point.selected_on == "10 videos of own.parquet"
    assert len(point.values) == 10
    assert "temporal-ap" in kept.points
    strided = dataclasses.replace(own, provenance=Provenance.now("embed", parameters={"looked_at": 4}))
    late = polypcount("study", strided.save(tmp_path / "4.parquet"), "--out", tmp_path / "late", *asked)
    assert (late.returncode, (tmp_path / "late").exists()) == (2, False)
    others = embedded(counts, seed=1).save(tmp_path / "others.parquet")
    refused = polypcount("study", others, "--out", tmp_path / "other", *asked)
    assert refused.returncode == 2
    assert "not of the encoder" in refused.stderr
    assert not (tmp_path / "other").exists()
