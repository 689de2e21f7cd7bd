"""PolypsSet of KUMC: sequences of frames with Pascal VOC files, sampled from longer videos.

val2019/{Image,Annotation}/<sequence>/<n>.jpg|.xml    test2019/ likewise: 39 sequences together, one polyp each
train2019/{Image,Annotation}/<n>.jpg|.xml             flat and shuffled, without sequences
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from polypcount.corpus import Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.files import IMAGE_SUFFIXES, list_files, subfolders
from polypcount.importers.numbering import frames_by_rank
from polypcount.importers.one_polyp import one_polyp_a_video
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows
from polypcount.importers.voc_frame import VocFrame, read_voc_file
from polypcount.importers.work import Task, Work
from polypcount.natural import natural_key

_XML = frozenset({".xml"})


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read val2019 and test2019; the polyp of a sequence is named as the sequence.

    Frames are numbered by rank, since they were sampled and their numbers are not times. train2019 is left out: its
    frames are shuffled and belong to no sequence. `--train2019` imports it all the same, in groups guessed from the
    path that each XML file remembers.
    """
    parts_there = ("val2019", "test2019")
    places = (path, path / "PolypsSet")
    root = next((place for place in places if any((place / part).is_dir() for part in parts_there)), path)
    if path.name == "train2019" and not options.train2019:
        raise FileError(
            f"{path}: the frames of train2019 are shuffled and belong to no sequence, so polyps cannot be told apart; "
            "import the folder above it, or add --train2019 to group frames by the path in their XML files"
        )
    tasks = []
    for part in ("val", "test"):
        annotations = root / f"{part}2019" / "Annotation"
        for folder in subfolders(annotations) if annotations.is_dir() else []:
            images = root / f"{part}2019" / "Image" / folder.name
            arguments = (f"{part}-{folder.name}", part, folder, images, options.split_tracks)
            tasks.append(Task(arguments, (folder, images), weight=300))
    shuffled = path if path.name == "train2019" else root / "train2019"
    parts = work.read_all(read_sequence, tasks)
    if options.train2019 and (shuffled / "Annotation").is_dir():
        inputs = (shuffled / "Annotation", shuffled / "Image")
        parts += work.read_all(read_shuffled, [Task((*inputs, options.split_tracks), inputs)])
    elif shuffled.is_dir():
        work.problems.remark("train2019 is left out: its frames belong to no sequence (--train2019 imports them)")
    if not tasks and not options.train2019:
        raise FileError(f"{path} has neither val2019/Annotation nor test2019/Annotation")
    return concatenate(parts)


def read_sequence(
    name: str, split: str, annotations: Path, images: Path, split_tracks: bool, problems: Problems
) -> Corpus:
    """Read one sequence of val2019 or test2019."""
    texts = {path.stem: path for path in list_files(annotations, _XML)}
    pictures = {path.stem: path for path in list_files(images, IMAGE_SUFFIXES)} if images.is_dir() else {}
    stems = sorted({**pictures, **texts}, key=natural_key)
    frame_of = dict(zip(stems, frames_by_rank(stems).tolist(), strict=True))
    found = ((frame_of[stem], read_voc_file(path, problems)) for stem, path in texts.items())
    # All files in natural order are the frames, unless a frame has no image.
    if len(pictures) > len(texts):
        problems.remark(f"video polypsset-{name}: {len(texts):,} annotation files for {len(pictures):,} images")
    files = None if len(pictures) in (0, len(stems)) else _listed(pictures, frame_of)
    source = images if pictures else None
    return _sequence(name, split, len(stems), source, found, files, split_tracks, problems)


def read_shuffled(annotations: Path, images: Path, split_tracks: bool, problems: Problems) -> Corpus:
    """Read train2019, with frames grouped by the folder from which their XML files say they came."""
    pictures = {path.stem: path for path in list_files(images, IMAGE_SUFFIXES)} if images.is_dir() else {}
    groups: dict[str, list[tuple[str, str, VocFrame]]] = {}
    for path in list_files(annotations, _XML):
        frame = read_voc_file(path, problems)
        if frame:
            group, original = _origin(frame)
            groups.setdefault(group, []).append((original, path.stem, frame))
    parts = []
    for number, group in enumerate(sorted(groups, key=natural_key), 1):
        members = sorted(groups[group], key=lambda member: (natural_key(member[0]), member[1]))
        files = [(index, pictures[stem].name) for index, (_, stem, _) in enumerate(members) if stem in pictures]
        listed = ([index for index, _ in files], [name for _, name in files]) if files else None
        frames = ((index, frame) for index, (_, _, frame) in enumerate(members))
        source = images if pictures else None
        parts.append(
            _sequence(f"train-{number}", "train", len(members), source, frames, listed, split_tracks, problems)
        )
    problems.remark(f"train2019: {len(parts)} groups guessed from the paths in its XML files; not verified as polyps")
    return concatenate(parts)


def _origin(frame: VocFrame) -> tuple[str, str]:
    """The folder that a frame seems to come from, and its name there."""
    path = PurePosixPath(frame.path.replace("\\", "/"))
    folder = path.parent if path.suffix.lower() in IMAGE_SUFFIXES else path
    return str(folder), PurePosixPath(frame.filename).stem.removeprefix("adenoma_")


def _listed(pictures: dict[str, Path], frame_of: dict[str, int]) -> tuple[list[int], list[str]]:
    return [frame_of[stem] for stem in pictures], [path.name for path in pictures.values()]


def _sequence(
    name: str,
    split: str,
    frame_count: int,
    source: Path | None,
    frames: Iterable[tuple[int, VocFrame | None]],
    files: tuple[list[int], list[str]] | None,
    split_tracks: bool,
    problems: Problems,
) -> Corpus:
    rows = Rows(problems)
    size: tuple[int, int] | None = None
    for index, frame in frames:
        if frame:
            size = size or frame.size
            rows.clamp = frame.size or size
            for found in frame.objects:
                rows.add(found.where, index, found.box)
    video = Video(
        id=f"polypsset-{name}",
        frame_count=frame_count,
        width=size[0] if size else None,
        height=size[1] if size else None,
        source=str(source) if source else None,
        dataset="polypsset",
        split=split,
    )
    return one_polyp_a_video(rows, video, split_tracks, files)
