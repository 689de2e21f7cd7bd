"""The formats that can be read and written, and the calls that do it."""

import dataclasses
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from polypcount.corpus import Corpus, Provenance, is_corpus
from polypcount.errors import DataError, FileError
from polypcount.importers.options import Options, flag_of
from polypcount.importers.problems import Problems
from polypcount.importers.work import Work
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress

_MOST_LINES_KEPT = 10_000


@dataclass(frozen=True)
class Format:
    """A dataset or box format.

    module: where its `read(path, options, work)`, and `write(corpus, folder)` if it has one, are.
    takes: the names of the options that it has a use for.
    reader: the name of its reading function, where several formats share a module.
    """

    name: str
    summary: str
    module: str
    takes: frozenset[str] = frozenset()
    writes: bool = False
    reader: str = "read"

    def function(self, name: str) -> Callable[..., Corpus]:
        """A function of the format's module, which is loaded only now."""
        found: Callable[..., Corpus] = getattr(import_module(f"polypcount.importers.{self.module}"), name)
        return found


_VIDEO = frozenset({"source", "fps", "frame_count"})
_SIZE = frozenset({"width", "height"})
FORMATS = {
    item.name: item
    for item in (
        Format(
            "real-colon",
            "REAL-Colon: SSS-VVV_annotations folders or .tar.gz, frames, CSV tables",
            "real_colon",
            frozenset({"split"}),
        ),
        Format(
            "ldpolypvideo", "LDPolypVideo: TrainValid and Test folders", "ldpolypvideo", frozenset({"split_tracks"})
        ),
        Format("sun", "SUN database: case folders with annotation_txt, and negatives", "sun"),
        Format(
            "polypsset",
            "KUMC PolypsSet: val2019 and test2019",
            "polypsset",
            frozenset({"train2019", "split_tracks"}),
        ),
        Format("polypsize", "PolypSize: VideoNN_frameNNNN images with labels", "polypsize"),
        Format(
            "cvc-clinicdb", "CVC-ClinicDB: stills of 29 sequences with masks", "cvc_clinicdb", frozenset({"sequences"})
        ),
        Format("kvasir-seg", "Kvasir-SEG: stills with masks, one polyp each", "stills", reader="read_kvasir_seg"),
        Format("stills", "any folder of stills with masks or YOLO labels, one polyp each", "stills"),
        Format(
            "e2e-coco", "combined COCO of the paper's authors, and its fold folders", "e2e_coco", frozenset({"images"})
        ),
        Format(
            "coco",
            "COCO annotations, with videos and identities where given",
            "coco",
            _VIDEO | {"video", "first_frame", "box", "ids"},
            writes=True,
        ),
        Format(
            "coco-results",
            "COCO list of detections",
            "coco_results",
            _VIDEO | _SIZE | {"video", "first_frame", "box", "images"},
        ),
        Format(
            "mot",
            "MOTChallenge text: detections, tracks or ground truth",
            "mot",
            _VIDEO | _SIZE | {"video", "first_frame", "box", "ids"},
            writes=True,
        ),
        Format(
            "yolo",
            "YOLO text, one file a frame",
            "yolo",
            _VIDEO | _SIZE | {"video", "first_frame", "images", "ids"},
            writes=True,
        ),
        Format(
            "frames-json",
            "JSON with a list of boxes for each frame: {width, height, frames: [[{bbox: [x1, y1, x2, y2]}]]}",
            "frames_json",
            _VIDEO | {"video", "box"},
        ),
        Format("voc", "Pascal VOC XML, one file a frame", "voc", _VIDEO | {"video", "first_frame", "box", "ids"}),
        Format(
            "cvat",
            "CVAT XML 1.1, for video or for images",
            "cvat",
            _VIDEO | {"video", "first_frame", "ids"},
            writes=True,
        ),
        Format(
            "csv",
            "CSV: video,frame,x1,y1,x2,y2,score,polyp,track",
            "box_csv",
            _VIDEO | _SIZE | {"video", "first_frame", "box"},
            writes=True,
        ),
    )
}


def read_corpus(
    format: str,
    path: str | os.PathLike[str],
    options: Options | None = None,
    *,
    skip_bad: bool = False,
    processes: int | None = None,
    cache: bool = True,
    progress: Progress = no_progress,
    **settings: object,
) -> Corpus:
    """Read files of a dataset or box format into a corpus.

    format: one of `FORMATS`, or "corpus" for a folder that polypcount has written.
    settings: fields of `Options`, instead of `options`.
    skip_bad: leave out what cannot be read and list it in the provenance, instead of raising `FileError`.
    processes: how many to read with; as many as there are cores where not given.
    cache: keep what was read of each video, so that an interrupted or repeated import is quick.
    """
    root = Path(os.path.abspath(path))
    if format == "corpus":
        return Corpus.load(root)
    chosen = _format(format)
    if unknown := set(settings) - {item.name for item in dataclasses.fields(Options)}:
        raise DataError(f"there is no option {', '.join(sorted(unknown))}")
    options = options or Options(**settings)  # type: ignore[arg-type]
    options.refuse_others(format, chosen.takes)
    if not root.exists():
        raise FileError(f"{root} does not exist")
    for name in ("sequences", "images", "source"):
        if (place := getattr(options, name)) is not None and not place.exists():
            raise FileError(f"{place} does not exist; it was given as {flag_of(name)}")
    if is_corpus(root):
        raise FileError(f"{root} is a corpus already; it needs no import")
    problems = Problems(skip_bad)
    work = Work(problems, processes or available_cores(), cache, progress)
    corpus = chosen.function(chosen.reader)(root, options, work)
    if not corpus.videos:
        why = next(iter([*problems.left_out, *reversed(problems.remarks)]), "it holds no videos")
        raise FileError(f"nothing of {root} can be imported: {why}")
    parameters = {
        "format": format,
        **options.given(),
        "remarks": problems.remarks[:_MOST_LINES_KEPT],
        "left_out": problems.left_out[:_MOST_LINES_KEPT],
        "left_out_count": len(problems.left_out),
    }
    provenance = Provenance.now("import", (os.path.abspath(root),), parameters)
    return dataclasses.replace(corpus, provenance=provenance)


def write_boxes(corpus: Corpus, format: str, out: str | os.PathLike[str]) -> Path:
    """Write the boxes of a corpus in another program's format, to a new folder; returns the folder."""
    chosen = _format(format)
    if not chosen.writes:
        able = ", ".join(item.name for item in FORMATS.values() if item.writes)
        raise DataError(f"{format} cannot be written; these can: {able}")
    folder = Path(out)
    if folder.exists():
        raise FileError(f"{folder} exists already; choose a new folder")
    unfinished = folder.with_name(f".{folder.name}.unfinished-{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        chosen.function("write")(corpus, unfinished)
        unfinished.rename(folder)
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {problem.strerror}") from problem
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise DataError(f"there is no format {name!r}; there are: {', '.join(FORMATS)}")
    return FORMATS[name]
