"""PolypsSet of KUMC: sequences of frames with Pascal VOC files, sampled from longer videos.

val2019/{Image,Annotation}/<sequence>/<n>.jpg|.xml    test2019/ likewise: 39 sequences together, one polyp each
train2019/{Image,Annotation}/<n>.jpg|.xml             flat and shuffled, without sequences
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.boxes.voc import VocFrame, read_voc_file
from polypcount.importers.datasets.one_polyp import one_polyp_a_video
from polypcount.importers.reading import BoxRows, ImportTask, Options, Problems, Work, list_files, subfolders
from polypcount.natural import natural_key


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read val2019 and test2019; the polyp of a sequence has the name of the sequence.

    Frames are numbered by rank, since they were sampled and their numbers are not times. train2019 is left out: its
    frames are shuffled and belong to no sequence. The option `train2019` imports it too, in groups guessed from the
    path in each XML file.
    """
    if path.name == "train2019" and not options.train2019:
        raise FileError(
            f"{path}: the frames of train2019 are shuffled and belong to no sequence, so polyps cannot be told apart; "
            "import the folder above it, or group frames by the path in their XML files",
            mend="train2019",
        )
    roots = (path, path / "PolypsSet")
    root = next((r for r in roots if (r / "val2019").is_dir() or (r / "test2019").is_dir()), path)
    tasks = []
    for part in ("val", "test"):
        annotations = root / f"{part}2019" / "Annotation"
        for folder in subfolders(annotations) if annotations.is_dir() else []:
            images = root / f"{part}2019" / "Image" / folder.name
            arguments = (f"{part}-{folder.name}", part, folder, images, options.split_tracks)
            tasks.append(ImportTask(arguments, (folder,), (images,), weight=300))  # sizes are in the XML files
    shuffled = path if path.name == "train2019" else root / "train2019"
    parts = work.read_all(_read_sequence, tasks)
    if options.train2019 and (shuffled / "Annotation").is_dir():
        texts, images = shuffled / "Annotation", shuffled / "Image"
        parts += work.read_all(_read_shuffled, [ImportTask((texts, images, options.split_tracks), (texts,), (images,))])
    elif shuffled.is_dir():
        work.problems.remark("train2019 is left out: its frames belong to no sequence (train2019 imports them)")
    if not tasks and not options.train2019:
        raise FileError(f"{path} has neither val2019/Annotation nor test2019/Annotation")
    return concatenate(parts)


def _read_sequence(
    name: str, split: str, annotations: Path, images: Path, split_tracks: bool, problems: Problems
) -> Corpus:
    """Read one sequence of val2019 or test2019."""
    texts = {path.stem: path for path in list_files(annotations, [".xml"])}
    pictures = _pictures(images)
    stems = sorted({**pictures, **texts}, key=natural_key)
    frames = [read_voc_file(texts[stem], problems) if stem in texts else None for stem in stems]
    if len(pictures) > len(texts):
        problems.remark(f"video polypsset-{name}: {len(texts):,} annotation files for {len(pictures):,} images")
    # All files in natural order are the frames, unless a frame has no image.
    files = {frame: pictures[stem].name for frame, stem in enumerate(stems) if stem in pictures}
    listed = None if len(files) == len(stems) else files
    return _sequence(name, split, images if pictures else None, frames, listed, split_tracks, problems)


def _read_shuffled(annotations: Path, images: Path, split_tracks: bool, problems: Problems) -> Corpus:
    """Read train2019, with frames grouped by the folder from which their XML files say they came."""
    pictures = _pictures(images)
    groups: dict[str, list[tuple[str, str, VocFrame]]] = {}
    for path in list_files(annotations, [".xml"]):
        if content := read_voc_file(path, problems):
            group, original = _origin(content)
            groups.setdefault(group, []).append((original, path.stem, content))
    parts = []
    for number, group in enumerate(sorted(groups, key=natural_key), 1):
        members = sorted(groups[group], key=lambda member: (natural_key(member[0]), member[1]))
        files = {frame: pictures[stem].name for frame, (_, stem, _) in enumerate(members) if stem in pictures}
        frames = [content for _, _, content in members]
        source = images if pictures else None
        parts.append(_sequence(f"train-{number}", "train", source, frames, files, split_tracks, problems))
    problems.remark(f"train2019: {len(parts)} groups guessed from the paths in its XML files; not verified as polyps")
    return concatenate(parts)


def _pictures(images: Path) -> dict[str, Path]:
    return {path.stem: path for path in list_files(images, IMAGE_SUFFIXES)} if images.is_dir() else {}


def _origin(frame: VocFrame) -> tuple[str, str]:
    """The folder that a frame seems to come from, and its name there."""
    path = PurePosixPath(frame.path.replace("\\", "/"))
    folder = path.parent if path.suffix.lower() in IMAGE_SUFFIXES else path
    return str(folder), PurePosixPath(frame.filename).stem.removeprefix("adenoma_")


def _sequence(
    name: str,
    split: str,
    source: Path | None,
    frames: Sequence[VocFrame | None],
    files: Mapping[int, str] | None,
    split_tracks: bool,
    problems: Problems,
) -> Corpus:
    rows = BoxRows(problems)
    sizes = [content.size for content in frames if content and content.size]
    width, height = sizes[0] if sizes else (None, None)
    for frame, content in enumerate(frames):
        if content:
            rows.clamp = content.size or (sizes[0] if sizes else None)
            for item in content.objects:
                rows.add(item.where, frame, item.box)
    video = Video(
        id=f"polypsset-{name}",
        frame_count=len(frames),
        width=width,
        height=height,
        source=str(source) if source else None,
        dataset="polypsset",
        split=split,
    )
    return one_polyp_a_video(rows, video, split_tracks, files)
