"""`import`, `merge` and `export`, run as their user would."""

import json
from pathlib import Path

import pytest

from polypcount.corpus import Corpus
from polypcount.importers import FORMATS, read_corpus

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
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(FORMATS)


def test_import_says_what_it_did_and_writes_a_corpus(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2, "001-009": 1})
    done = polypcount("import", "real-colon", root, "--out", home / "c")
    assert done.returncode == 0
    assert done.stdout == f"{home / 'c'}: 2 videos, 3 polyps, 6 boxes\n"
    assert done.stderr == "note: all: 2 videos with 3 polyps, published are 60 with 132\n"
    described = json.loads((home / "c" / "corpus.json").read_text())["provenance"]
    assert described["sources"] == [str(root)]
    assert described["parameters"]["format"] == "real-colon"
    assert polypcount("import", "real-colon", root, "--out", home / "c", "--force", "--split", "study").returncode == 0
    assert len(Corpus.load(home / "c").videos) == 1


def test_a_bad_file_writes_nothing_and_skip_bad_lists_it(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2}, frames=50)
    bad = write(root / "001-001_annotations" / "001-001_2.xml", real_colon_xml("001-001", 2)[:-20])
    stopped = polypcount("import", "real-colon", root, "--out", home / "c")
    assert stopped.returncode == 2
    assert stopped.stderr.count("\n") == 1
    assert str(bad) in stopped.stderr
    assert "--skip-bad" in stopped.stderr
    assert not (home / "c").exists()
    for frame in range(10, 39):
        write(root / "001-001_annotations" / f"001-001_{frame}.xml", "")
    rest = polypcount("import", "real-colon", root, "--out", home / "c", "--skip-bad")
    assert rest.returncode == 0
    assert rest.stderr.count("left out:") == 21
    assert f"left out: 10 more, listed in {home / 'c' / 'corpus.json'}" in rest.stderr
    parameters = Corpus.load(home / "c").provenance.parameters
    assert parameters["left_out_count"] == 30
    assert any(str(bad) in line for line in parameters["left_out"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("sun", ".", "--frame-count", "25"),
            "sun has no use for frame_count; its own options are: none (--frame-count)",
        ),
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
        read_corpus(name, build(home / "data" / name), cache=False).save(home / name)
    done = polypcount("merge", *(home / name for name in builders), "--out", home / "all")
    assert done.returncode == 0
    assert "together: 5 polyps, the paper's training set has 384 (-379)" in done.stdout
    assert len(Corpus.load(home / "all").polyps) == 5


def test_export_and_back(polypcount: Run, home: Path) -> None:
    root = real_colon(home / "data", {"001-001": 2, "001-009": 1})
    corpus = read_corpus("real-colon", root, cache=False)
    corpus.save(home / "c")
    done = polypcount("export", home / "c", "--to", "coco", "--out", home / "exported")
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 boxes" in done.stdout
    again = polypcount("export", home / "c", "--to", "coco", "--out", home / "exported")
    assert again.returncode == 2
    assert "exists already" in again.stderr
    back = read_corpus("coco", home / "exported" / "boxes.json", cache=False)
    assert back.boxes == corpus.boxes
    assert back.polyps == corpus.polyps
