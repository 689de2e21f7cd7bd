"""Data as people have them: boxes without images, and corpora that were imported before."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from polypcount.reproduce import Benchmark, choose_rows, corpus_benchmark, e2e_benchmark, possible_rows
from tests.conftest import DATA, Run
from tests.importers.miniatures import write
from tests.importers.test_e2e_coco import joined, newer
from tests.reproduce.miniature import LEARNT, STUDIED

REAL = DATA / "real-boxes"


def fr_of(out: Path) -> dict[str, float]:
    (path,) = (out / "results").rglob("none-*.json")
    (rule,) = json.loads(path.read_text())["rules"]
    return {video["video"]: video["fr"] for video in rule["videos"]}


def test_a_corpus_is_parted_by_its_splits(benchmark_of_datasets: Benchmark, tmp_path: Path) -> None:
    benchmark_of_datasets.learn.save(tmp_path / "train")
    benchmark_of_datasets.study.save(tmp_path / "study")
    both = corpus_benchmark([tmp_path / "train", tmp_path / "study"], tmp_path / "out")
    assert [video.id for video in both.study.videos] == list(STUDIED)
    assert len(both.learn.polyps) == LEARNT
    alone = corpus_benchmark([tmp_path / "train"], tmp_path / "out")
    assert not alone.learn.videos, "no video is of the split study, so all are studied"
    assert len(alone.study.polyps) == LEARNT
    rows = choose_rows(["none", "ours", "time-only"])
    assert possible_rows(both, rows, tmp_path) == (rows, "")
    possible, line = possible_rows(alone, rows, tmp_path)
    assert [row.name for row in possible] == ["none", "time-only"]
    assert line == f"not possible: ours: {tmp_path} has no videos to learn from, only videos to study"


def test_combined_files_are_parted_by_the_rule_of_real_colon(tmp_path: Path) -> None:
    """Whatever file a video is in, REAL-Colon's 009 to 015 are studied; `dataset0` may be any dataset of the paper."""
    train = joined(newer("dataset3_001-001", "dataset3", "a"), newer("dataset0_012", "dataset0", "b"))
    write(tmp_path / "annotations" / "instances_train.json", train)
    write(tmp_path / "annotations" / "instances_val.json", joined(newer("dataset3_002-009", "dataset3", "c")))
    benchmark = e2e_benchmark(tmp_path, tmp_path / "out")
    assert [video.id for video in benchmark.study.videos] == ["dataset3_002-009"]
    assert [video.id for video in benchmark.learn.videos] == ["dataset0_012", "dataset3_001-001"]
    assert benchmark.note.startswith(
        "learnt from REAL-Colon and dataset0 (2 videos, 2 polyps); the paper learns from 384 polyps; studied on 1 video"
    )


def test_without_images_the_rows_that_need_none_run(datasets: dict[str, Path], tmp_path: Path, polypcount: Run) -> None:
    root = tmp_path / "real-colon"
    shutil.copytree(datasets["real-colon"], root, ignore=shutil.ignore_patterns("*_frames"))
    common = ("reproduce", "--real-colon", root, "--out", tmp_path / "out", "--grid", "coarse", "--threads", 1)
    done = polypcount(*common)
    assert done.returncode == 0, done.stderr
    assert f"there are no images of 6 of 6 videos in {root}, such as those of 001-001" in done.stderr
    assert done.stderr.count("not possible") == 1
    assert fr_of(tmp_path / "out") == dict.fromkeys(STUDIED, 3.0)
    for name in ("table-1.md", "table-4.tex", "differences.md"):
        assert "learnt from REAL-Colon alone (2 videos, 6 polyps)" in (tmp_path / "out" / name).read_text()
    assert polypcount(*common, "--rows", "none,ours").returncode == 2, "ours was asked for by its name"
    refused = polypcount(*common, "--rows", "ours")
    assert refused.returncode == 2
    assert "not possible: ours: there are no images" in refused.stderr


def test_real_boxes_have_their_known_fragmentation(tmp_path: Path, polypcount: Run) -> None:
    """FR without grouping of three whole procedures; 001-003 has two polyps, apart at frame 18,000."""
    if not REAL.is_dir():
        pytest.skip(f"real boxes are not at {REAL}")
    lines = ["video,frame,x1,y1,x2,y2,polyp"]
    for name in ("001-003", "003-001", "004-008"):
        with (REAL / f"real-colon-{name}.csv").open() as file:
            for row in csv.DictReader(file):
                x, y, w, h = (1000 * float(row[key]) for key in ("cx", "cy", "w", "h"))
                box = [min(max(value, 0), 1000) for value in (x - w / 2, y - h / 2, x + w / 2, y + h / 2)]
                polyp = f"{name}_{1 + (name == '001-003' and int(row['frame']) >= 18_000)}"
                lines.append(",".join(map(str, (name, row["frame"], *box, polyp))))
    (tmp_path / "boxes.csv").write_text("\n".join(lines))
    imported = polypcount("import", "csv", tmp_path / "boxes.csv", "--out", tmp_path / "corpus")
    assert imported.returncode == 0, imported.stderr
    done = polypcount("reproduce", "--corpus", tmp_path / "corpus", "--out", tmp_path / "out", "--rows", "none")
    assert done.returncode == 0, done.stderr
    assert fr_of(tmp_path / "out") == {"003-001": 36.0, "004-008": 6.0, "001-003": 16.5}
