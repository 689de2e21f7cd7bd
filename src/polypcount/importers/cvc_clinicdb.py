"""CVC-ClinicDB: 612 stills of 29 sequences, `Original/N.png` (or .tif) with masks `Ground Truth/N.png`."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from polypcount.corpus import Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.files import IMAGE_SUFFIXES, list_files, read_table
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size, mask_boxes
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows
from polypcount.importers.work import Task, Work

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
    """Read the stills; each sequence is a video, and its polyp is named as the sequence.

    Which still belongs to which sequence is read from `--sequences`, a CSV with the columns frame and sequence, or
    from `sequences.csv` in the folder, or taken from the published ranges. The stills of a sequence are numbered by
    rank: they are not consecutive frames.
    """
    originals, masks = path / "Original", path / "Ground Truth"
    for folder in (originals, masks):
        if not folder.is_dir():
            raise FileError(f"{folder} is not there; CVC-ClinicDB has the folders Original and Ground Truth")
    beside = path / "sequences.csv"
    table = options.sequences or (beside if beside.exists() else None)
    sequences = _read_sequences(table, work.problems) if table else published_sequences()
    mask_of = {mask.stem: mask for mask in list_files(masks, IMAGE_SUFFIXES)}
    members: dict[str, list[tuple[Path, Path]]] = {}
    images = list_files(originals, IMAGE_SUFFIXES)
    if repeated := [stem for stem, times in Counter(image.stem for image in images).items() if times > 1]:
        raise FileError(f"{originals} has two images called {repeated[0]}; keep one")
    for image in images:
        number = int(image.stem) if image.stem.isdecimal() and len(image.stem) < 10 else -1
        if number not in sequences:
            work.problems.bad(image, "it belongs to no sequence")
        elif image.stem not in mask_of:
            work.problems.bad(image, f"there is no mask of this name in {masks}")
        else:
            members.setdefault(sequences[number], []).append((image, mask_of[image.stem]))
    tasks = [
        Task((f"{name:0>2}", tuple(stills)), tuple(file for still in stills for file in still), weight=20 * len(stills))
        for name, stills in members.items()
    ]
    return concatenate(work.read_all(read_sequence, tasks))


def read_sequence(name: str, stills: tuple[tuple[Path, Path], ...], problems: Problems) -> Corpus:
    """Read the stills of one sequence: (image, mask) each."""
    size = image_size(stills[0][0])
    rows = Rows(problems, clamp=size)
    video_id = f"cvc-clinicdb-{name}"
    for frame, (_, mask) in enumerate(stills):
        try:
            if image_size(mask) != size:
                raise FileError(f"{mask} must be {size[0]} x {size[1]} pixels as its image")
            for x1, y1, x2, y2 in mask_boxes(mask).tolist():
                rows.add(mask, frame, (x1, y1, x2, y2), polyp=video_id)
        except FileError as problem:
            problems.failed(problem)
    video = Video(video_id, len(stills), None, *size, str(stills[0][0].parent), "cvc-clinicdb")
    return rows.to_corpus(video, files=(list(range(len(stills))), [image.name for image, _ in stills]))


def _read_sequences(path: Path, problems: Problems) -> dict[int, str]:
    sequences = {}
    for line, row in read_table(path, ("frame", "sequence")):
        if row["frame"].isdecimal() and len(row["frame"]) < 10 and row["sequence"]:
            sequences[int(row["frame"])] = row["sequence"]
        else:
            problems.bad(f"{path}:{line}", f"a frame number and a sequence are expected, found {row}")
    return sequences
