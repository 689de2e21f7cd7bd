"""CVC-ClinicDB: 612 stills of 29 sequences, `Original/N.png` (or .tif) with masks `Ground Truth/N.png`."""

from itertools import pairwise
from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.datasets.stills import boxes_of_mask
from polypcount.importers.reading import (
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    files_by_stem,
    image_size,
    whole,
)
from polypcount.storage import read_table

# First still of each sequence, as published; the last of all is 612.
_FIRST_STILLS = (
    *(1, 26, 51, 68, 79, 104, 127, 152, 178, 200, 206, 228, 253, 278, 298),
    *(318, 343, 364, 384, 409, 429, 448, 467, 479, 504, 529, 547, 572, 592),
)
_LAST_STILL = 612


def published_sequences() -> dict[int, str]:
    """Sequence of each still, by the published ranges."""
    bounds = pairwise((*_FIRST_STILLS, _LAST_STILL + 1))
    return {still: str(number) for number, (first, after) in enumerate(bounds, 1) for still in range(first, after)}


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the stills; each sequence is a video, and its polyp has the name of the sequence.

    Which still belongs to which sequence is read from the option `sequences`, a CSV with the columns frame and
    sequence, or from `sequences.csv` in the folder, or taken from the published ranges. The stills of a sequence are
    numbered by rank: they are not consecutive frames.
    """
    originals, masks = path / "Original", path / "Ground Truth"
    for folder in (originals, masks):
        if not folder.is_dir():
            raise FileError(f"{folder} is not there; CVC-ClinicDB has the folders Original and Ground Truth")
    beside = path / "sequences.csv"
    table = options.sequences or (beside if beside.exists() else None)
    sequences = _read_sequences(table, work.problems) if table else published_sequences()
    mask_of = files_by_stem(masks, IMAGE_SUFFIXES)
    members: dict[str, list[tuple[Path, Path]]] = {}
    for stem, image in files_by_stem(originals, IMAGE_SUFFIXES).items():
        sequence = sequences.get(whole(stem) or 0)
        if sequence is None:
            work.problems.bad(image, "it belongs to no sequence")
        elif stem not in mask_of:
            work.problems.bad(image, f"there is no mask of this name in {masks}")
        else:
            members.setdefault(sequence, []).append((image, mask_of[stem]))
    tasks = [
        # Of the images, only the first is opened, for its size; the names of all are in the arguments.
        ImportTask(
            (f"{name:0>2}", tuple(stills)), (stills[0][0], *(mask for _, mask in stills)), weight=20 * len(stills)
        )
        for name, stills in members.items()
    ]
    return concatenate(work.read_all(_read_sequence, tasks))


def _read_sequence(name: str, stills: tuple[tuple[Path, Path], ...], problems: Problems) -> Corpus:
    """Read the stills of one sequence: (image, mask) each."""
    size = image_size(stills[0][0])
    rows = BoxRows(problems, clamp=size)
    video_id = f"cvc-clinicdb-{name}"
    for frame, (_, mask) in enumerate(stills):
        try:
            for where, box in boxes_of_mask(mask, size):
                rows.add(where, frame, box, polyp=video_id)
        except FileError as problem:
            problems.failed(problem)
    video = Video(video_id, len(stills), None, *size, str(stills[0][0].parent), "cvc-clinicdb")
    return rows.to_corpus(video, files={frame: image.name for frame, (image, _) in enumerate(stills)})


def _read_sequences(path: Path, problems: Problems) -> dict[int, str]:
    sequences = {}
    for line, row in read_table(path, ("frame", "sequence")):
        frame = whole(row["frame"])
        if frame is None or not row["sequence"]:
            problems.bad(f"{path}:{line}", f"a frame number and a sequence are expected, found {row}")
        else:
            sequences[frame] = row["sequence"]
    return sequences
