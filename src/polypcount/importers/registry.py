"""The formats that can be read and written, and the calls that do it."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from polypcount.corpus import Corpus, Provenance, is_corpus
from polypcount.errors import DataError, FileError, first_line
from polypcount.importers.reading import Options, Problems, Work
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.storage import check, whole_folder

_MOST_LINES_KEPT = 10_000


@dataclass(frozen=True)
class Format:
    """A dataset or box format.

    Attributes:
        name: Its name for users.
        summary: What its files are.
        module: Where its `read(path, options, work)`, and `write(corpus, folder)` if it has one, are.
        takes: Names of the options that it uses.
        writes: Whether boxes can be written in it.
        reader: Name of its reading function, where several formats share a module.
    """

    name: str
    summary: str
    module: str
    takes: frozenset[str] = frozenset()
    writes: bool = False
    reader: str = "read"

    def function(self, name: str) -> Callable[..., Corpus]:
        """A function of the format's module, which is loaded only when it is needed."""
        return cast(Callable[..., Corpus], getattr(import_module(f"polypcount.importers.{self.module}"), name))


_VIDEO = frozenset({"source", "fps", "frame_count"})
_SIZE = frozenset({"width", "height"})
FORMATS = {
    item.name: item
    for item in (
        Format(
            "real-colon",
            "REAL-Colon: SSS-VVV_annotations folders or .tar.gz, frames, CSV tables",
            "datasets.real_colon",
            frozenset({"split"}),
        ),
        Format(
            "ldpolypvideo",
            "LDPolypVideo: TrainValid and Test folders",
            "datasets.ldpolypvideo",
            frozenset({"split_tracks"}),
        ),
        Format("sun", "SUN database: case folders with annotation_txt, and negatives", "datasets.sun"),
        Format(
            "polypsset",
            "KUMC PolypsSet: val2019 and test2019",
            "datasets.polypsset",
            frozenset({"train2019", "split_tracks"}),
        ),
        Format("polypsize", "PolypSize: VideoNN_frameNNNN images with labels", "datasets.polypsize"),
        Format(
            "cvc-clinicdb",
            "CVC-ClinicDB: stills of 29 sequences with masks",
            "datasets.cvc_clinicdb",
            frozenset({"sequences"}),
        ),
        Format(
            "kvasir-seg", "Kvasir-SEG: stills with masks, one polyp each", "datasets.stills", reader="read_kvasir_seg"
        ),
        Format("stills", "any folder of stills with masks or YOLO labels, one polyp each", "datasets.stills"),
        Format(
            "e2e-coco",
            "combined COCO of the paper's authors, and its fold folders",
            "datasets.e2e_coco",
            frozenset({"images"}),
        ),
        Format(
            "coco",
            "COCO annotations, with videos and identities where given",
            "boxes.coco",
            _VIDEO | {"video", "first_frame", "box", "ids"},
            writes=True,
        ),
        Format(
            "coco-results",
            "COCO list of detections",
            "boxes.coco_results",
            _VIDEO | _SIZE | {"video", "first_frame", "box", "images"},
        ),
        Format(
            "mot",
            "MOTChallenge text: detections, tracks or ground truth",
            "boxes.mot",
            _VIDEO | _SIZE | {"video", "first_frame", "box", "ids"},
            writes=True,
        ),
        Format(
            "yolo",
            "YOLO text, one file for each frame",
            "boxes.yolo",
            _VIDEO | _SIZE | {"video", "first_frame", "images", "ids"},
            writes=True,
        ),
        Format(
            "frames-json",
            "JSON with a list of boxes for each frame: {width, height, frames: [[{bbox: [x1, y1, x2, y2]}]]}",
            "boxes.frames_json",
            _VIDEO | {"video", "box"},
        ),
        Format(
            "voc",
            "Pascal VOC XML, one file for each frame",
            "boxes.voc",
            _VIDEO | {"video", "first_frame", "box", "ids"},
        ),
        Format(
            "cvat",
            "CVAT XML 1.1, for video or for images",
            "boxes.cvat",
            _VIDEO | {"video", "first_frame", "ids"},
            writes=True,
        ),
        Format(
            "csv",
            "CSV: video,frame,x1,y1,x2,y2,score,polyp,track",
            "boxes.box_csv",
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

    Args:
        format: One of `FORMATS`, or "corpus" for a folder that polypcount has written.
        path: The file or folder.
        options: What the user has set for the format.
        skip_bad: Leave out what cannot be read and list it in the provenance, instead of raising `FileError`.
        processes: How many to read with; by default one for each core.
        cache: Keep what was read of each video, so that an interrupted or repeated import is quick.
        progress: Called with the work done and the whole work.
        settings: Fields of `Options`, instead of `options`.

    Raises:
        FileError: A file is missing or bad.
        DataError: There is no such format, or it does not use an option that is set.
    """
    if format == "corpus":
        return Corpus.load(path)
    plain = {name: str(value) if isinstance(value, os.PathLike) else value for name, value in settings.items()}
    options = options or check(Options, plain, format)
    work = Work(Problems(skip_bad), processes or available_cores(), cache, progress)
    return read_format(format, Path(os.path.abspath(path)), options, work)


def read_format(name: str, path: Path, options: Options, work: Work) -> Corpus:
    """Read files of one of `FORMATS`, and note in the provenance how that was done."""
    chosen = _format(name)
    options.refuse_others(name, chosen.takes)
    if not path.exists():
        raise FileError(f"{path} does not exist")
    for setting in ("sequences", "images", "source"):
        if (file := getattr(options, setting)) is not None and not file.exists():
            raise FileError(f"{file} does not exist", mend=setting)
    if is_corpus(path):
        raise FileError(f"{path} is a corpus already; it needs no import")
    corpus = chosen.function(chosen.reader)(path, options, work)
    problems = work.problems
    if not corpus.videos:
        why = next(iter([*problems.left_out, *reversed(problems.remarks)]), "it holds no videos")
        raise FileError(f"nothing of {path} can be imported: {why}")
    parameters = {
        "format": name,
        **options.given(),
        "remarks": problems.remarks[:_MOST_LINES_KEPT],
        "left_out": problems.left_out[:_MOST_LINES_KEPT],
        "left_out_count": len(problems.left_out),
    }
    return dataclasses.replace(corpus, provenance=Provenance.now("import", (str(path),), parameters))


def write_boxes(corpus: Corpus, format: str, out: str | os.PathLike[str]) -> Path:
    """Write the boxes of a corpus in another program's format, to a new folder; returns the folder."""
    writable = {item.name: item for item in FORMATS.values() if item.writes}
    if format not in writable:
        raise DataError(f"{format} cannot be written; these can: {', '.join(writable)}")
    folder = Path(out)
    if folder.exists():
        raise FileError(f"{folder} exists already; choose a new folder")
    try:
        with whole_folder(folder, replace=False) as unfinished:
            writable[format].function("write")(corpus, unfinished)
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {first_line(problem)}") from problem
    return folder


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise DataError(f"there is no format {name!r}; there are: corpus, {', '.join(FORMATS)}")
    return FORMATS[name]
