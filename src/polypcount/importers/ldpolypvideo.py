"""LDPolypVideo: 160 short videos, a text file of boxes for each frame, no identities.

    TrainValid/Images/<video>/<name>.jpg    TrainValid/Annotations/<video>/<name>.txt
    Test/Images/<video>/<name>.jpg          Test/Annotations/<video>/<name>.txt

A text file has the number of boxes and then a line `xmin ymin xmax ymax` for each, in pixels.
"""

from pathlib import Path

from polypcount.corpus import Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.decimals import decimal, whole
from polypcount.importers.files import IMAGE_SUFFIXES, list_files, read_text, subfolders
from polypcount.importers.numbering import frames_by_number, frames_by_rank, last_number
from polypcount.importers.one_polyp import one_polyp_a_video
from polypcount.importers.options import Options
from polypcount.importers.pixels import image_size
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows
from polypcount.importers.work import Task, Work

_PARTS = ("TrainValid", "Test")
_SIZE = (560, 480)
_TXT = frozenset({".txt"})
_LARGEST_BYTES = 1 << 20


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read all annotated videos. The polyp of a video is named as the video; the split is `trainvalid` or `test`."""
    tasks = []
    for part in _PARTS:
        annotations = path / part / "Annotations"
        if annotations.is_dir():
            for folder in subfolders(annotations):
                images = path / part / "Images" / folder.name
                arguments = (folder, images if images.is_dir() else None, part.lower(), options.split_tracks)
                # The size comes from the first image, and which frames there are from the folder's time of change.
                first = list_files(images, IMAGE_SUFFIXES)[:1] if images.is_dir() else []
                tasks.append(Task(arguments, (folder, *first), (images,), 250))
    if not tasks:
        raise FileError(f"{path} has neither TrainValid/Annotations nor Test/Annotations with a folder for each video")
    names: dict[str, Path] = {}
    for task in tasks:
        folder = task.arguments[0]
        if folder.name in names:
            raise FileError(f"{folder} has the same name as {names[folder.name]}; video folders must differ")
        names[folder.name] = folder
    return concatenate(work.read_all(read_video, tasks))


def read_video(folder: Path, images: Path | None, split: str, split_tracks: bool, problems: Problems) -> Corpus:
    """Read the text files of one video."""
    texts = list_files(folder, _TXT)
    pictures = list_files(images, IMAGE_SUFFIXES) if images else []
    stems = [picture.stem for picture in pictures] or [text.stem for text in texts]
    frames = frames_by_number(stems)
    if frames is None:
        frames = frames_by_rank(stems)
        if stems:
            problems.remark(f"video {folder.name}: file names have no numbers, so their order is taken")
    frame_of = dict(zip(stems, frames.tolist(), strict=True))
    # In one variant of the dataset only the number at the end of an image's name is that of the annotation.
    by_number = {number: frame for stem, frame in frame_of.items() if (number := last_number(stem)) is not None}
    size = image_size(pictures[0]) if pictures else _SIZE
    rows = Rows(problems, clamp=size)
    for text in texts:
        number = last_number(text.stem)
        frame = frame_of.get(text.stem, by_number.get(number) if number is not None else None)
        if frame is None:
            problems.bad(text, "no image has this name or this number")
            continue
        try:
            _read_boxes(text, frame, rows)
        except FileError as problem:
            problems.failed(problem)
    if len(pictures) > len(texts):
        problems.remark(f"video {folder.name}: {len(texts):,} annotation files for {len(pictures):,} images")
    frame_count = int(frames.max()) + 1 if len(frames) else 0
    video = Video(
        id=f"ldpolypvideo-{folder.name}",
        frame_count=frame_count,
        width=size[0],
        height=size[1],
        source=str(images) if images else None,
        dataset="ldpolypvideo",
        split=split,
    )
    files = None
    if pictures and len(pictures) != frame_count:
        files = (frames.tolist(), [picture.name for picture in pictures])
    return one_polyp_a_video(rows, video, split_tracks, files)


def _read_boxes(path: Path, frame: int, rows: Rows) -> None:
    lines = [
        (n, line.split()) for n, line in enumerate(read_text(path, _LARGEST_BYTES).splitlines(), 1) if line.strip()
    ]
    told = whole(lines[0][1][0]) if lines and len(lines[0][1]) == 1 else None
    if told is None:
        rows.problems.bad(f"{path}:1", "the number of boxes is expected alone in the first line")
        return
    if told != len(lines) - 1:
        rows.problems.bad(f"{path}:{lines[0][0]}", f"{told} boxes are announced, {len(lines) - 1} follow")
        return
    for number, words in lines[1:]:
        numbers = [value for word in words if (value := decimal(word)) is not None]
        if len(words) != 4 or len(numbers) != 4:
            rows.problems.bad(f"{path}:{number}", f"four numbers are expected, found {' '.join(words)[:80]!r}")
            continue
        x1, y1, x2, y2 = numbers
        rows.add(f"{path}:{number}", frame, (x1, y1, x2, y2))
