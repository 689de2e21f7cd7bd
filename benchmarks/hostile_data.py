"""Cases of hostile.py: boxes, corpora, scenes, embeddings, tables."""

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.hostile_inputs import FOLDER, PIPE, SECRET, ZERO, Case, Cases, Content, Material, Mutated

import polypcount as pc
from polypcount.importers.boxes.any_format import read_boxes
from polypcount.report import read_count, read_histology
from polypcount.report.pseudonyms import Pseudonyms
from polypcount.video import open_source

_VOC = """<annotation><filename>f_NUMBER.jpg</filename><size><width>96</width><height>64</height></size><object>
<name>polyp</name><unique_id>a</unique_id><bndbox><xmin>20</xmin><ymin>10</ymin><xmax>70</xmax><ymax>50</ymax></bndbox>
</object></annotation>"""
_LAUGHS = "".join(f'<!ENTITY a{"a" * n} "' + f"&a{'a' * (n - 1)};" * 10 + '">' for n in range(1, 12))
_ROWS = "frame,x1,y1,x2,y2\n"
_BOXES = {
    "nested.json": "[" * 100_000,
    "nested-object.json": '{"frames":' * 50_000,
    "claims.json": '{"width": 96, "height": 64, "frames": 10000000}',
    "twice.json": '{"frames": [], "frames": [[{"bbox": [1, 1, 9, 9]}]], "width": 96, "height": 64}',
    "no-ids.json": '{"images": [{}], "annotations": [{"bbox": [1, 2, 3, 4]}], "categories": []}',
    "cyclic.json": '{"images": [{"id": 1, "file_name": "a", "video_id": 1}], "videos": [{"id": 1, "parent": 1}], '
    '"annotations": [{"id": 1, "image_id": 9, "bbox": [1, 2, 3, 4]}], "categories": []}',
    "outside.json": '{"images": [{"id": 1, "file_name": "../../../etc/passwd", "width": 96, "height": 64, '
    '"frame_id": 0}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}], '
    '"categories": [{"id": 1, "name": "p"}]}',
    "far.json": '[{"image_id": 99999999999, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]',
    "digits.json": '[{"image_id": 1, "bbox": [' + "9" * 5000 + ', 2, 3, 4], "score": 0.5}]',
    "nan.json": '{"width": 96, "height": 64, "frames": [[{"bbox": [NaN, 1, 2, Infinity]}]]}',
    "null.json": "null",
    "empty.json": "",
    "bomb.xml": f'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">{_LAUGHS}]><annotations>&{"a" * 12};</annotations>',
    "external.xml": '<!DOCTYPE a [<!ENTITY x SYSTEM "file://OUTSIDE/secret.txt">]><annotations>&x;</annotations>',
    "nested.xml": "<annotations>" + "<a>" * 100_000,
    "formula.csv": 'frame,x1,y1,x2,y2,score,polyp\n0,1,1,9,9,1,"=HYPERLINK(""http://x"")"\n',
    "semicolons.csv": "frame;x1;y1;x2;y2\n0;1,5;1,5;20,5;20,5\n",
    "quotes.csv": f'{_ROWS}0,"1,1,9,9\n' * 1000,
    "far.csv": f"{_ROWS}2000000000,1,1,9,9\n",
    "percent.csv": "frame,x1,y1,x2,y2,score\n0,1,1,9,9,93\n",
    "twice.csv": "frame,frame,x1,y1,x2,y2\n0,1,1,1,9,9\n",
    "long-line.csv": _ROWS + "1" * 5_000_000,
    "many.csv": _ROWS + "0,1,1,9,9\n" * 200_000,
    "escapes.csv": f"{_ROWS}\x1b[31m\x07,1,1,9,9\n",
    "spaces.txt": "1 -1 10 10 20 20 0.9 -1 -1 -1\n2  -1  10\t10 20 20 .9 -1 -1 -1\n",
    "short.txt": "1,2,3\n",
    "nul.txt": "1,-1,10,10,20,20,0.9,-1,-1,-1\n\0\0\0",
}


def boxes(at: Material, copies: int) -> Cases:
    """Files of boxes of each format."""
    (at.good / "voc").mkdir()
    for number in range(40):
        (at.good / "voc" / f"f_{number}.xml").write_text(_VOC.replace("NUMBER", str(number)))
    frames = [[{"bbox": [20, 10, 70, 50], "score": 0.9, "track": 1}] for _ in range(40)]
    (at.good / "frames.json").write_text(json.dumps({"width": 96, "height": 64, "fps": 25, "frames": frames}))
    rows = [{"image_id": n, "category_id": 1, "bbox": [20, 10, 50, 40], "score": 0.9} for n in range(40)]
    (at.good / "results.json").write_text(json.dumps(rows))
    for name in ("coco", "mot", "cvat", "yolo", "csv", "voc", "frames.json", "results.json"):
        yield Mutated(f"damaged {name}", at.good / name, lambda path: read_boxes(path, width=96, height=64), copies)
    good = (at.good / "case.csv").read_text()
    contents: dict[str, Content] = {name: text.replace("OUTSIDE", str(at.outside)) for name, text in _BOXES.items()}
    contents |= {f"{name}.csv": good.encode(name) for name in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037")}
    contents |= {
        "link": at.outside / "secret.txt",
        "loop": Path("loop"),
        "zero.csv": ZERO,
        "pipe": PIPE,
        "f.json": FOLDER,
    }
    for name, content in contents.items():
        yield at.count(name, "case.mp4", "--boxes", name, files={name: content})
    for path in (
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
        "../../../../etc/passwd",
        "/etc",
        ".",
        "-",
        "\n",
        "x" * 5000,
    ):
        yield at.count(f"boxes {path[:20]!r}", "case.mp4", "--boxes", path)
    folder = at.fresh({"case.json": FOLDER, "labels": FOLDER, "labels/f_1.txt": PIPE})
    yield at.count("labels with a pipe", "case.mp4", "--boxes", "labels", "--format", "yolo", folder=folder)
    folder = at.fresh({"case.csv": FOLDER, "case.json": FOLDER})
    yield at.count("folders case.csv and case.json beside it", "case.mp4", folder=folder)


def scenes_and_corpora(at: Material, copies: int) -> Cases:
    """Scene files and corpus folders."""
    scene, shown = next(at.scenes.rglob("*.scene")), at.corpus.boxes.frame[:1]

    def draw(path: Path) -> None:
        for _ in open_source(path).frames(shown):
            pass

    yield Mutated("damaged scene", scene, draw, copies)
    yield Mutated("damaged corpus", at.scenes, pc.Corpus.load, copies)
    yield Mutated("damaged corpus.json", at.scenes, pc.Corpus.load, copies, "corpus.json")
    values = json.loads(scene.read_text())
    os.mkfifo(at.outside / "pipe.png")
    for name in ("secret.txt", "pipe.png", "/dev/zero", "none.png"):
        still = dict.fromkeys(("image", "mask"), str(at.outside / name))
        path = at.good / f"stills-{Path(name).stem}.scene"
        path.write_text(json.dumps({**values, "stills": [still] * len(values["stills"])}))
        yield Mutated(f"stills are {name}", path, draw, 1)
    for name, change in (
        ("size", {"settings": {**values["settings"], "width": 100_000, "height": 100_000}}),
        ("size 0", {"settings": {**values["settings"], "width": 0, "height": 0}}),
        ("length", {"settings": {**values["settings"], "minutes": 1e9}}),
        ("seed", {"seed": 10**400}),
        ("index", {"index": 10**12}),
        ("many stills", {"stills": [None] * 10**5}),
        ("version", {"format_version": 10**9}),
        ("looks", {"looks": dict.fromkeys(values["looks"], 1e300)}),
    ):
        files = {"a.scene": json.dumps({**values, **change})}
        yield at.count(f"scene: {name}", "a.scene", "--boxes", "case.csv", "--from", "0", "--to", "40", files=files)
    tables = next(at.scenes.glob("tables-*")).name
    for name in ("swapped", "bomb", "text", "source", "zero", "pipe", "outside"):
        folder = at.fresh()
        shutil.copytree(at.scenes, folder / "corpus")
        boxes_file, videos_file = (folder / "corpus" / tables / f"{table}.parquet" for table in ("boxes", "videos"))
        if name == "swapped":
            shutil.copy(videos_file, boxes_file)
        elif name == "bomb":
            schema = pq.read_schema(boxes_file)
            zeros = [pa.array(np.zeros(60_000_000, column.type.to_pandas_dtype())) for column in schema]
            pq.write_table(pa.table(zeros, schema=schema), boxes_file, compression="zstd")
        elif name == "source":
            table = pq.read_table(videos_file)
            secret = pa.array([str(at.outside / "secret.txt")], pa.string())
            pq.write_table(table.set_column(table.column_names.index("source"), "source", secret), videos_file)
        elif name == "outside":
            manifest = folder / "corpus" / "corpus.json"
            manifest.write_text(manifest.read_text().replace(tables, "../../../outside"))
        else:
            boxes_file.unlink()
            if name == "text":
                boxes_file.write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
            else:
                os.mkfifo(boxes_file) if name == "pipe" else boxes_file.symlink_to(ZERO)
        verb = ["check"] if name == "swapped" else ["count", "-o", "out"]
        yield Case(f"{verb[0]}: corpus {name}", folder, [*verb, "corpus"])


def tables(at: Material, copies: int) -> Cases:
    """Embeddings, histology, pseudonyms and reports."""
    (at.good / "histology.csv").write_text("video,histology\ncase-1,AD\ncase-1,HP\ncase-2,\n")
    (at.good / "key.csv").write_text("pseudonym,recording\nprocedure_00000000,/a/b.mp4\n")
    readers: dict[str, Callable[[Path], object]] = {
        **dict.fromkeys(("vectors.parquet", "by-hand.parquet", "vectors.npz"), pc.Embeddings.load),
        **{"histology.csv": read_histology, "key.csv": Pseudonyms.load},
    }
    for name, read in readers.items():
        yield Mutated(f"damaged {name}", at.good / name, read, copies)
    yield Mutated("damaged count.json", at.good / "report", read_count, copies, "count.json")
    study = ["study", "--out", "out", "--grid", "coarse", "--no-draw", "--methods", "threshold", "--min-frames", "0"]
    good = dict(np.load(at.good / "vectors.npz"))
    for name, array, shape, kind, pieces in (
        ("npz bomb", "vectors", (12, 10**8), "<f4", 1200),
        ("npz claim", "vectors", (2**31, 2**31), "<f4", 1),
        ("npz objects", "vectors", (12,), "|O", 1),
        ("npz texts", "video", (12,), "<U100000000", 1200),
        ("npz path", "../../outside/x", (12, 2), "<f4", 1),
    ):
        folder = at.fresh()
        np.savez(folder / "v.npz", **{key: value for key, value in good.items() if key not in (array, "polypcount")})
        with (
            zipfile.ZipFile(folder / "v.npz", "a", zipfile.ZIP_DEFLATED) as archive,
            archive.open(f"{array}.npy", "w", force_zip64=True) as file,
        ):
            header = {"descr": kind, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for _ in range(pieces):
                file.write(bytes(4 * 10**6))
        yield Case(name, folder, [*study, "v.npz"])
    for path in ("/dev/zero", "/", "pipe", "case.mp4", "", "no"):
        yield Case(f"embeddings {path!r}", at.fresh({"pipe": PIPE}), [*study, path])
    for name, text in {
        "binary": "\0\1\2",
        "no columns": "a,b\n1,2\n",
        "formula": "video,histology\n=1+1,AD\n",
        "class": "video,histology\na,\x1b[31mXX\n",
        "long": "video,histology\n" + "a" * 10**6 + ",AD\n",
        "quotes": 'video,histology\n"a,AD\n',
    }.items():
        files = {"two.mp4": at.good / "case.mp4", "two.csv": at.good / "case.csv", "h.csv": text}
        yield at.count(f"histology {name}", "case.mp4", "two.mp4", "--histology", "h.csv", files=files, keeps=True)
    for row in (
        "../../x,RECORDING",
        "=x,RECORDING",
        "same,RECORDING\nsame,/other.mp4",
        "import,RECORDING",
        "a,b,c",
        '"',
    ):
        folder = at.fresh()
        (folder / "key.csv").write_text(f"pseudonym,recording\n{row}\n".replace("RECORDING", str(folder / "case.mp4")))
        yield at.count(f"pseudonyms {row}", "case.mp4", "--pseudonyms", "key.csv", folder=folder)
