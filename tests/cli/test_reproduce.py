"""`polypcount reproduce`, as its user runs it, on all four datasets in miniature."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from polypcount import reproduce as room
from polypcount.cli.main import app
from polypcount.corpus import Embeddings
from polypcount.errors import PolypcountError
from polypcount.reproduce.rows import TABLES, choose_rows
from polypcount.training import Stopped
from tests.reproduce.conftest import TINY
from tests.reproduce.miniature import many_polyps, miniature
from tests.reproduce.reading import encoders, made, scores, tables

DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the datasets, the cache, and the log as before afterwards."""
    folder, log = tmp_path_factory.mktemp("reproduce"), logging.getLogger("polypcount.reproduce")
    miniature(folder / "data")
    handlers, level = list(log.handlers), log.level
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYPCOUNT_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "160")
        yield folder
    log.handlers, log.level = handlers, level


def arguments(place: Path, out: Path, *options: str) -> list[str]:
    datasets = [f"--{name}={place / 'data' / name}" for name in DATASETS]
    given = [*datasets, f"--out={out}", "--grid=coarse", "--threads=1", *options]
    return ["reproduce", *given, *(f"--set={change}" for change in TINY)]


def rules_of(row: str) -> tuple[str, ...]:
    return ("fixed",) if row == "none" else ("closest", "budget")


@pytest.fixture(scope="module")
def whole(place: Path) -> Path:
    """Everything, once."""
    done = CliRunner().invoke(app, arguments(place, place / "whole", "--steps=2"))
    assert done.exit_code == 0, done.stderr
    for title in ("Table 1", "Table 2", "Table 3", "Table 4"):
        assert title in done.stdout
    assert "real-colon: 6 polyps, the paper's training set has 85 (-79)" in done.stderr
    return place / "whole"


def test_all_tables_have_all_rows(whole: Path) -> None:
    for name, table in TABLES.items():
        if not table.by_default:
            continue
        found = scores(whole, name)
        for line in table.lines:
            for rule in rules_of(line.row):
                assert float(found[line.row, rule, "fr"]) > 0
                assert float(found[line.row, rule, "fpr"]) >= 0
                assert line.row == "none" or 0 <= float(found[line.row, rule, "pair_auroc"]) <= 1
        text = (whole / f"{name}.md").read_text()
        assert all(line.label in text for line in table.lines)
        assert (whole / "figures" / f"{name}.png").stat().st_size > 5_000
    assert scores(whole, "table-1")["none", "fixed", "fr"] == "3.0", "three tracklets of each polyp"
    assert "20.74 ± 20.78" in (whole / "table-1.md").read_text()
    manifest = json.loads((whole / "reproduce.json").read_text())
    assert len(manifest["results"]) == len(choose_rows([]))
    assert manifest["failures"] == []
    reports = [json.loads(path.read_text()) for path in (whole / "encoders" / "real").glob("*.json")]
    assert sorted(report["steps"] for report in reports) == [0, *[2] * 9]
    assert len(set(encoders(whole).values())) == 10


def test_again_nothing_is_computed(whole: Path, place: Path) -> None:
    before, shown = made(whole), tables(whole)
    done = CliRunner().invoke(app, arguments(place, whole, "--steps=2"))
    assert made(whole) == before
    assert tables(whole) == shown
    assert ": study" not in done.stderr


@pytest.mark.parametrize(("problem", "code"), [(Stopped("stopped", 15), 143), (KeyboardInterrupt(), 130)])
def test_a_stop_says_how_to_continue(
    problem: BaseException, code: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(room, "real_benchmark", stopped)
    done = CliRunner().invoke(app, arguments(place, tmp_path / "out"))
    assert done.exit_code == code
    assert "the same command continues" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows=our",), "there is no row 'our'"),
        (("--seeds=1,x",), "--seeds must be whole numbers from 0, separated by commas, found '1,x'"),
        (("--renders=,",), "--renders must be whole numbers from 0"),
        (("--renders=",), "--renders is given without a value"),
        (("--small", "--as-published"), "--small and --as-published are two different settings"),
        (("--as-published", "--views-at-once=2"), "does not go with --views-at-once"),
        (("--steps=1", "--budget=1"), "give one of them"),
        (("--devices=2", "--budget=1"), "a budget is measured on one device"),
        (("--simulated",), "give one of --real-colon"),
        (("--stills=.",), "--stills are for --simulated"),
        (("--engine=gpu",), "engine must be one of auto, onnx, openvino, torch, found 'gpu'"),
        (("--set=optimizer.lrr=1",), "optimizer.lrr is unknown; did you mean lr?"),
    ],
)
def test_what_cannot_be_is_known_before_any_work(
    options: tuple[str, ...], message: str, place: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, arguments(place, tmp_path / "out", *options))
    assert isinstance(done.exception, PolypcountError)
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_options_of_the_machine_reach_training(place: Path, tmp_path: Path) -> None:
    options = ("--rows=ours", "--steps=1", "--accelerator=cpu", "--engine=torch", "--views-at-once=20")
    done = CliRunner().invoke(app, arguments(place, tmp_path / "out", *options))
    assert done.exit_code == 0, done.stderr
    (run,) = (tmp_path / "out" / "encoders" / "real").glob("*/run.json")
    about = json.loads(run.read_text())
    assert (about["machine"]["accelerator"], about["views_at_once"]) == ("cpu", 20)
    (vectors,) = (tmp_path / "out" / "vectors" / "real").glob("*.parquet")
    provenance = Embeddings.load(vectors).provenance
    assert provenance is not None
    assert provenance.parameters["engine"] == "torch"


def alone(place: Path, out: Path, *options: str) -> Result:
    """Run with REAL-Colon's miniature alone."""
    data = place / "alone"
    given = [f"--real-colon={data if data.exists() else many_polyps(data)}", f"--out={out}", "--grid=coarse"]
    more = ["--threads=1", "--steps=2", *options, *(f"--set={change}" for change in TINY)]
    return CliRunner().invoke(app, ["reproduce", *given, *more])


def test_real_colon_alone_gives_all_tables_with_equal_steps(place: Path, tmp_path: Path) -> None:
    done = alone(place, tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    for name in ("table-1", "table-2", "table-3", "table-4"):
        text = (tmp_path / "out" / f"{name}.md").read_text()
        assert "Data: learnt from REAL-Colon alone (2 videos, 28 polyps)" in text
        found = scores(tmp_path / "out", name)
        assert all(float(found[line.row, rule, "fr"]) > 0 for line in TABLES[name].lines for rule in rules_of(line.row))
    reports = [json.loads(path.read_text()) for path in (tmp_path / "out" / "encoders" / "real").glob("*.json")]
    assert sorted(report["steps"] for report in reports) == [0, *[2] * 9]


def test_as_published_gives_tables_that_say_so(whole: Path, place: Path, tmp_path: Path) -> None:
    # The strict sampler takes only polyps with a fragment for each view, which is two in this row.
    done = alone(place, tmp_path / "out", "--rows=sfe,tpc,views-2", "--as-published", "--set=model.weights=false")
    assert done.exit_code == 0, done.stderr
    assert "Settings: as in the published code" in (tmp_path / "out" / "table-2.md").read_text()
    assert "Settings:" not in (whole / "table-1.md").read_text()


def test_several_devices_share_a_training(place: Path, tmp_path: Path) -> None:
    options = ("--rows=ours", "--steps=2", "--accelerator=cpu")
    two, one = (arguments(place, tmp_path / name, *options) for name in ("two", "one"))
    done = CliRunner().invoke(app, [*two, "--devices=2", "--set=model.dropout=0"])
    assert done.exit_code == 0, done.stderr
    assert CliRunner().invoke(app, [*one, "--set=model.dropout=0"]).exit_code == 0
    (run,) = (tmp_path / "two" / "encoders" / "real").glob("*/run.json")
    assert json.loads(run.read_text())["machine"]["devices"] == 2
    first, second = (
        Embeddings.load(next((tmp_path / name / "vectors" / "real").glob("*.parquet"))).vectors
        for name in ("one", "two")
    )
    assert np.allclose(first, second, atol=1e-4), "the same encoder, apart from rounding"


def test_data_must_be_named(place: Path, tmp_path: Path) -> None:
    nothing = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert "give one of --real-colon" in str(nothing.exception)
    one = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path), "--sun", str(place)])
    assert "give --real-colon, too" in str(one.exception)
