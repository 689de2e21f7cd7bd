"""`import`, `merge` and `export`, run as their user would."""

import json
from pathlib import Path

import pytest

from polypcount.corpus import Corpus

from ..conftest import Run
from ..importers.miniatures import ldpolypvideo, polypsset, real_colon, real_colon_xml, sun, write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, with a cache of its own."""
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_list_of_formats(polypcount: Run) -> None:
    done = polypcount("import", "--list")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    for name in (
        "real-colon",
        "ldpolypvideo",
        "sun",
        "polypsset",
        "polypsize",
        "cvc-clinicdb",
        "kvasir-seg",
        "e2e-coco",
    ):
        assert name in names
    for name in ("coco", "coco-results", "mot", "yolo", "voc", "cvat", "csv"):
        assert name in names


def test_import_says_what_it_did_and_writes_a_corpus(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2, "001-009": 1})
    done = polypcount("import", "real-colon", root, "--out", home / "c")
    assert done.returncode == 0
    assert done.stdout == f"{home / 'c'}: 2 videos, 3 polyps, 6 boxes\n"
    assert done.stderr == "note: all: 2 videos with 3 polyps, published are 60 with 132\n"
    described = json.loads((home / "c" / "corpus.json").read_text())["provenance"]
    assert described["sources"] == [str(root)]
    assert described["parameters"]["format"] == "real-colon"
    again = polypcount("import", "real-colon", root, "--out", home / "c")
    assert again.returncode == 2
    assert "holds a corpus already" in again.stderr
    assert polypcount("import", "real-colon", root, "--out", home / "c", "--force", "--split", "study").returncode == 0
    assert len(Corpus.load(home / "c").videos) == 1


def test_a_bad_file_writes_nothing_and_skip_bad_lists_it(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2})
    bad = write(root / "001-001_annotations" / "001-001_2.xml", real_colon_xml("001-001", 2)[:-20])
    stopped = polypcount("import", "real-colon", root, "--out", home / "c")
    assert stopped.returncode == 2
    assert stopped.stderr.count("\n") == 1
    assert str(bad) in stopped.stderr
    assert "--skip-bad" in stopped.stderr
    assert not (home / "c").exists()
    rest = polypcount("import", "real-colon", root, "--out", home / "c", "--skip-bad")
    assert rest.returncode == 0
    assert f"left out: {bad}" in rest.stderr
    parameters = Corpus.load(home / "c").provenance.parameters
    assert parameters["left_out_count"] == 1
    assert str(bad) in parameters["left_out"][0]


def test_many_left_out_are_summed_up(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2}, frames=50)
    for frame in range(10, 40):
        write(root / "001-001_annotations" / f"001-001_{frame}.xml", "")
    done = polypcount("import", "real-colon", root, "--out", home / "c", "--skip-bad")
    assert done.stderr.count("left out:") == 21
    assert f"left out: 10 more, listed in {home / 'c' / 'corpus.json'}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense", "."), "there is no format 'nonsense'; there are: real-colon"),
        (("coco", "nowhere"), "nowhere does not exist"),
        (("sun", ".", "--fps", "25"), "sun has no use for --fps; its own options are: none"),
        (("mot", ".", "--size", "wide"), "--size must be width x height"),
    ],
)
def test_bad_usage(polypcount: Run, home: Path, arguments: tuple[str, ...], message: str) -> None:
    done = polypcount("import", *arguments, "--out", home / "c")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_the_papers_training_set(polypcount: Run, home: Path) -> None:
    builders = {"ldpolypvideo": ldpolypvideo, "sun": sun, "polypsset": polypsset}
    for name, build in builders.items():
        assert polypcount("import", name, build(home / "data" / name), "--out", home / name).returncode == 0
    rc = real_colon(home / "data" / "real-colon", {"001-001": 2, "001-009": 1})
    polypcount("import", "real-colon", rc, "--split", "train", "--out", home / "real-colon")
    done = polypcount("merge", *(home / name for name in (*builders, "real-colon")), "--out", home / "all")
    assert done.returncode == 0
    assert "together: 7 polyps, the paper's training set has 384 (-377)" in done.stdout
    assert len(Corpus.load(home / "all").polyps) == 7
    assert polypcount("check", home / "all").returncode == 0
    twice = polypcount("merge", home / "sun", home / "sun", "--out", home / "twice")
    assert twice.returncode == 2
    assert "video ids must differ" in twice.stderr


@pytest.mark.parametrize("form", ["coco", "mot", "cvat", "yolo", "csv"])
def test_export_and_back(polypcount: Run, home: Path, form: str) -> None:
    root = real_colon(home / "data", {"001-001": 2, "001-009": 1})
    polypcount("import", "real-colon", root, "--out", home / "c")
    out = home / "exported"
    done = polypcount("export", home / "c", "--to", form, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 boxes" in done.stdout
    assert polypcount("export", home / "c", "--to", form, "--out", out).returncode == 2
    files = [path for path in out.rglob("*") if path.is_file()]
    target = files[0] if len(files) == 1 else out
    back = polypcount("import", form, target, "--out", home / "back")
    assert back.returncode == 0, back.stderr
    one, two = Corpus.load(home / "c"), Corpus.load(home / "back")
    assert [polyp.id for polyp in two.polyps] == [polyp.id for polyp in one.polyps]
    assert two.boxes.frame.tolist() == one.boxes.frame.tolist()
    assert two.boxes.polyp.tolist() == one.boxes.polyp.tolist()
    assert two.boxes.xyxy == pytest.approx(one.boxes.xyxy, abs=1e-3)


def test_export_to_what_cannot_be_written(polypcount: Run, home: Path) -> None:
    polypcount("simulate", "--timelines-only", home / "c", "--procedures", 1)
    done = polypcount("export", home / "c", "--to", "voc", "--out", home / "x")
    assert done.returncode == 2
    assert "voc cannot be written; these can: coco, mot, yolo, cvat, csv" in done.stderr
