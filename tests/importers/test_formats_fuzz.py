"""Whatever is in a file, reading it ends in a corpus or in a named error."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.errors import PolypcountError
from polypcount.importers import Options
from polypcount.importers.boxes import box_csv, coco, coco_results, cvat, mot, voc, yolo
from polypcount.importers.reading import Problems, Work

EXAMPLES = settings(
    max_examples=int(os.environ.get("POLYPCOUNT_FUZZ", "25")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
Read = Callable[[Path, Options, Work], Corpus]

VOC = b"""<annotation><size><width>64</width><height>48</height></size><object><name>polyp</name>
<unique_id>v_1</unique_id><bndbox><xmin>1</xmin><xmax>9</xmax><ymin>2</ymin><ymax>8</ymax></bndbox></object></annotation>"""
RESULTS = b'[{"image_id": 3, "category_id": 1, "bbox": [1, 2, 3.5, 4], "score": 0.5, "track_id": 3}]'
SEQINFO = (
    b"[Sequence]\nname=v\nframeRate=25\nseqLength=9\nimWidth=64\nimHeight=48\n[Polyps]\n1=p\n[polypcount]\nids=track\n"
)
TOKENS = [
    b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"1.5", b"true", b"null", b"[]", b"{}", b'""', b'"x"', b'"\\ud800"',
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n\n", b",", b'"', b"<", b">", b"&#xD800;", b"&lt;", b"<!DOCTYPE a []>",
    b"<![CDATA[", b"<box", b"</track>", b"%(name)s", b"=", b"9" * 20, b"9" * 5000, b"2147483647", b"2147483648",
    b"[" * 5000, b"<a>" * 100, "\u2028\u0660\u00b2".encode(), b"_", b"1_0", b" ", b"outside=\"1\"",
]  # fmt: skip


def valid(format: str) -> bytes:
    """A small file of a format, as `write` gives it."""
    boxes = Boxes(
        [0] * 4, [0, 1, 4, 5], [[n, 2, n + 8, 9] for n in range(4)], [1, 0.5, 1, 1], [0, 0, 0, -1], [-1, 2, 3, -1]
    )
    corpus = Corpus((Video("v", 9, 25, 64, 48),), boxes, (Polyp("v_1", "v", 3, "rectum"),))
    module: Any = {"coco": coco, "cvat": cvat, "csv": box_csv, "mot": mot, "yolo": yolo}[format]
    names = {"coco": "boxes.json", "cvat": "v.xml", "csv": "boxes.csv", "mot": "v/gt/gt.txt", "yolo": "v/000002.txt"}
    with tempfile.TemporaryDirectory() as folder:
        module.write(corpus, Path(folder))
        return (Path(folder) / names[format]).read_bytes()


# Each format: how it is read, the name of the file that is spoilt, its content, and options.
CASES: dict[str, tuple[Read, str, bytes, Options]] = {
    "coco": (coco.read, "boxes.json", valid("coco"), Options()),
    "coco-results": (coco_results.read, "boxes.json", RESULTS, Options()),
    "cvat": (cvat.read, "v.xml", valid("cvat"), Options()),
    "csv": (box_csv.read, "boxes.csv", valid("csv"), Options()),
    "mot": (mot.read, "v.txt", valid("mot"), Options()),
    "mot-seqinfo": (mot.read, "v/seqinfo.ini", SEQINFO, Options()),
    "yolo": (yolo.read, "v/000002.txt", valid("yolo"), Options(width=64, height=48)),
    "voc": (voc.read, "v/1.xml", VOC, Options()),
}


@st.composite
def spoilt(draw: st.DrawFn, content: bytes) -> bytes:
    """The content with up to four changes: cut, taken out, put in, put instead."""
    data = content
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 12)))
        change = draw(st.integers(0, 5))
        if change == 0:
            data = data[:start]
        elif change == 1:
            data = data[:start] + data[stop:]
        elif change == 2:
            data = data[:start] + draw(st.binary(max_size=4)) + data[stop:]
        else:
            data = data[:start] + draw(st.sampled_from(TOKENS)) + data[start if change == 3 else stop :]
    return data


def read_or_refuse(case: str, data: bytes) -> None:
    read, name, _, options = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        target = path.parent if path.parent != Path(folder) else path
        for skip_bad in (False, True):
            try:
                corpus = read(target, options, Work(Problems(skip_bad), cache=False))
            except PolypcountError as error:
                message = str(error)
            else:
                message = ""
                "".join([*(video.id for video in corpus.videos), *(polyp.id for polyp in corpus.polyps)]).encode()
                assert corpus.content_hash
            assert "\n" not in message
            message.encode()


@pytest.fixture(autouse=True)
def few_interpolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvat, "_MOST_INTERPOLATED", 1000)


@pytest.mark.parametrize("case", CASES)
def test_the_unspoilt_file_is_read(case: str) -> None:
    read, name, content, options = CASES[case]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        target = path.parent if path.parent != Path(folder) else path
        assert len(read(target, options, Work(Problems(), cache=False)).boxes) or case == "mot-seqinfo"


@pytest.mark.parametrize("case", CASES)
@EXAMPLES
@given(data=st.data())
def test_spoilt_files(case: str, data: st.DataObject) -> None:
    read_or_refuse(case, data.draw(spoilt(CASES[case][2])))


@pytest.mark.parametrize("case", CASES)
@settings(EXAMPLES, max_examples=10)
@given(data=st.binary(max_size=200))
def test_random_bytes(case: str, data: bytes) -> None:
    read_or_refuse(case, data)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from([10**400, 2**31, "\ud800", 1]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every value in a JSON value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in below for place in places(inner, (*path, key)))]


@pytest.mark.parametrize("case", ["coco", "coco-results"])
@EXAMPLES
@given(data=st.data())
def test_values_of_other_types(case: str, data: st.DataObject) -> None:
    content = {"": json.loads(CASES[case][2])}
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(content)[1:]))
        target: Any = content
        for key in above:
            target = target[key]
        target[last] = data.draw(VALUES)
    read_or_refuse(case, json.dumps(content[""]).encode())
