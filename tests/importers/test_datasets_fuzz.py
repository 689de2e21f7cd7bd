"""Damaged dataset files end in a corpus or a named error, never in anything else.

`POLYPCOUNT_FUZZ=20000 .venv/bin/pytest -n0 tests/importers/test_datasets_fuzz.py` tries harder.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Corpus
from polypcount.errors import FileError, PolypcountError
from polypcount.importers import read_corpus
from polypcount.importers.datasets.real_colon_frames import FrameReader
from polypcount.importers.reading import Problems, parse

from .miniatures import (
    LESION_INFO,
    archived,
    image,
    ldpolypvideo,
    polypsset,
    real_colon,
    real_colon_xml,
    sun,
    voc,
    write,
)

EXAMPLES = int(os.environ.get("POLYPCOUNT_FUZZ", "12"))
QUICK = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))

PIECES = ["", "\0", "NaN", "-1", "1e999", "99999999999999999999", "<", "&a;", "]]>", "<!DOCTYPE a>", "{", "[" * 500]
PIECES += ['"', ",", "\n", " ", "../", "\u0663", "null", "true", "1_0"]
SNIPPETS = st.sampled_from([*(piece.encode() for piece in PIECES), b"\xff\xfe", b"\xed\xa0\x80"])
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 12), SNIPPETS | st.binary(max_size=6))


def damaged(data: bytes, edits: list[tuple[float, int, bytes]], keep: float) -> bytes:
    """Some pieces replaced, and the end cut off."""
    for where, length, snippet in edits:
        start = int(where * len(data))
        data = data[:start] + snippet + data[start + length :]
    return data[: int(len(data) * keep) + 1] if keep < 0.9 else data


def e2e(root: Path) -> Path:
    images = [
        {"id": k, "file_name": f"v_{k}.jpg", "width": 64, "height": 48, "frame_id": k, "sequence_id": "v"}
        for k in range(3)
    ]
    boxes = [{"id": k, "image_id": k, "bbox": [1, 2, 30, 40], "category_id": 1, "identity_id": "v_1"} for k in range(3)]
    text = json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "polyp"}]})
    write(root / "annotations" / "instances_train.json", text)
    return root


def clip(root: Path) -> Path:
    box = {"bbox": [1, 2, 30, 40], "score": 0.5, "track": 3, "polyp": "p"}
    text = json.dumps({"width": 64, "height": 48, "frames": [[box], []]})
    return write(root / "clip.json", text).parent


def cvc(root: Path) -> Path:
    for number in (1, 26):
        image(root / "Original" / f"{number}.png")
        image(root / "Ground Truth" / f"{number}.png", parts=((10, 10, 30, 30),))
    write(root / "sequences.csv", "frame,sequence\n1,1\n26,2\n")
    return root


def stills(root: Path) -> Path:
    image(root / "images" / "a.png")
    write(root / "labels" / "a.txt", "0 0.5 0.5 0.25 0.5\n")
    return root


def polypsize(root: Path) -> Path:
    image(root / "Video07_frame0005.png")
    write(root / "Video07_frame0005.xml", voc(64, 48, ("1", "2", "30", "40")))
    return root


def packed(root: Path) -> Path:
    archived(real_colon(root, {"001-001": 1}, frames=4) / "001-001_annotations")
    return root


DATASETS: dict[str, tuple[str, Callable[[Path], Path], str]] = {
    "real-colon": ("real-colon", lambda root: real_colon(root, {"001-001": 1}, frames=4), "*.xml"),
    "real-colon tables": ("real-colon", lambda root: real_colon(root, {"001-001": 1}, frames=4), "*.csv"),
    "real-colon archive": ("real-colon", packed, "*.gz"),
    "ldpolypvideo": ("ldpolypvideo", ldpolypvideo, "*.txt"),
    "sun": ("sun", sun, "*.txt"),
    "polypsset": ("polypsset", polypsset, "*.xml"),
    "polypsize": ("polypsize", polypsize, "*.xml"),
    "cvc-clinicdb": ("cvc-clinicdb", cvc, "*.csv"),
    "cvc-clinicdb images": ("cvc-clinicdb", cvc, "*.png"),
    "stills": ("stills", stills, "*.txt"),
    "e2e-coco": ("e2e-coco", e2e, "*.json"),
    "frames-json": ("frames-json", clip, "*.json"),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: build(tmp_path_factory.mktemp("original")) for name, (_, build, _) in DATASETS.items()}


@pytest.mark.parametrize("name", DATASETS)
@QUICK
@given(
    edits=st.lists(EDIT, min_size=1, max_size=3),
    keep=st.floats(0, 3),
    which=st.floats(0, 0.999),
    skip_bad=st.booleans(),
)
def test_damaged_files(
    name: str,
    originals: dict[str, Path],
    edits: list[tuple[float, int, bytes]],
    keep: float,
    which: float,
    skip_bad: bool,
) -> None:
    dataset, _, pattern = DATASETS[name]
    with TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        shutil.copytree(originals[name], root)
        files = sorted(root.rglob(pattern))
        file = files[int(which * len(files))]
        file.write_bytes(damaged(file.read_bytes(), edits, keep))
        target = root / "clip.json" if dataset == "frames-json" else root
        try:
            corpus = read_corpus(dataset, target, cache=False, processes=1, skip_bad=skip_bad)
        except PolypcountError as error:
            message = str(error)
        else:
            message = ""
            assert Corpus.load(corpus.save(Path(folder) / "corpus")).content_hash == corpus.content_hash
    assert "\n" not in message


@QUICK
@given(data=st.binary(max_size=300) | st.text(max_size=200).map(lambda text: f"<a>{text}</a>".encode(errors="replace")))
def test_any_bytes_as_xml(data: bytes) -> None:
    message = "x.xml"
    try:
        parse(data, "x.xml")
    except FileError as error:
        message = str(error)
    assert "x.xml" in message


@settings(max_examples=5 * EXAMPLES)
@example(edits=[(1.0, 0, b"\x0b")])
@given(edits=st.lists(EDIT, min_size=1, max_size=2))
def test_the_quick_reader_accepts_only_what_the_parser_accepts(edits: list[tuple[float, int, bytes]]) -> None:
    """Damage to a file that looks like one seen before is noticed just as the parser would."""
    usual = real_colon_xml("001-001", 1, ("001-001_1", (1, 2, 30, 40))).encode()
    empty = real_colon_xml("001-001", 1).encode()
    shortened = usual[: usual.index(b"<object>")]  # cut off where objects would begin
    for data in (damaged(usual, edits, 1), damaged(empty, edits, 1), shortened):
        outcomes = []
        for warm_up in (True, False):
            problems = Problems(skip_bad=True)
            reader = FrameReader("001-001", Path("x"), problems)
            reader.add("001-001_5.xml", real_colon_xml("001-001", 5).encode())
            if warm_up:
                reader.add("001-001_6.xml", real_colon_xml("001-001", 6, ("001-001_1", (1, 2, 30, 40))).encode())
                reader.add("001-001_7.xml", real_colon_xml("001-001", 7).encode())
            else:
                reader._known.clear()
            reader.add("001-001_1.xml", data)
            rows = [
                row for row in zip(reader.rows.frame, reader.rows.xyxy, reader.rows.polyp, strict=True) if row[0] == 1
            ]
            outcomes.append((1 in reader.numbers, rows, problems.left_out))
        assert outcomes[0] == outcomes[1]


def test_the_table_header_with_a_byte_order_mark(tmp_path: Path) -> None:
    root = real_colon(tmp_path, {"001-001": 1})
    (root / "lesion_info.csv").write_bytes(
        b"\xef\xbb\xbf" + (LESION_INFO + '"001-001_1","001-001",7,"s","a","AD"\n').encode()
    )
    assert read_corpus("real-colon", root, cache=False).polyps[0].size_mm == 7
