"""LDPolypVideo: 160 short videos, a text file of boxes for each frame, no identities.

    TrainValid/Images/<video>/<name>.jpg    TrainValid/Annotations/<video>/<name>.txt
    Test/Images/<video>/<name>.jpg          Test/Annotations/<video>/<name>.txt

A text file has the number of boxes and then a line `xmin ymin xmax ymax` for each, in pixels.
"""

from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Video, concatenate
from polypcount.errors import FileError
from polypcount.importers.datasets.one_polyp import one_polyp_a_video
from polypcount.importers.reading import (
    BoxRows,
    ImportTask,
    Options,
    Problems,
    Work,
    decimals,
    first_file,
    frames_by_number,
    frames_by_rank,
    image_size,
    last_number,
    list_files,
    subfolders,
    whole,
)
from polypcount.storage import read_text

_PARTS = ("TrainValid", "Test")
_SIZE = (560, 480)


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read all annotated videos. Each polyp has its video's name; the split is `trainvalid` or `test`."""
    tasks: dict[str, ImportTask] = {}
    for part in _PARTS:
        annotations = path / part / "Annotations"
        for folder in subfolders(annotations) if annotations.is_dir() else ():
            if folder.name in tasks:
                other = tasks[folder.name].arguments[0]
                raise FileError(f"{folder} has the same name as {other}; video folders must differ")
            images = path / part / "Images" / folder.name
            arguments = (folder, images if images.is_dir() else None, part.lower(), options.split_tracks)
            # The size comes from the first image. The folder's time of change shows whether the list of frames changed.
            first = first_file(images, IMAGE_SUFFIXES) if images.is_dir() else None
            tasks[folder.name] = ImportTask(arguments, (folder, *([first] if first else [])), (images,), 250)
    if not tasks:
        raise FileError(f"{path} has neither TrainValid/Annotations nor Test/Annotations with a folder for each video")
    return concatenate(work.read_all(_read_video, list(tasks.values())))


def _read_video(folder: Path, images: Path | None, split: str, split_tracks: bool, problems: Problems) -> Corpus:
    """Read the text files of one video."""
    texts = list_files(folder, [".txt"])
    pictures = list_files(images, IMAGE_SUFFIXES) if images else []
    stems = [file.stem for file in pictures or texts]
    frames = frames_by_number(stems)
    if frames is None:
        frames = frames_by_rank(stems)
        problems.remark(f"video {folder.name}: file names have no numbers, so their order is taken")
    frame_of = dict(zip(stems, frames, strict=True))
    # In one variant of the dataset only the number at the end of an image's name is that of the annotation.
    by_number = {last_number(stem): frame for stem, frame in frame_of.items() if last_number(stem) is not None}
    size = image_size(pictures[0]) if pictures else _SIZE
    rows = BoxRows(problems, clamp=size)
    for text in texts:
        frame = frame_of.get(text.stem, by_number.get(last_number(text.stem)))
        if frame is None:
            problems.bad(text, "no image has this name or this number")
            continue
        try:
            _read_boxes(text, frame, rows)
        except FileError as problem:
            problems.failed(problem)
    if len(pictures) > len(texts):
        problems.remark(f"video {folder.name}: {len(texts):,} annotation files for {len(pictures):,} images")
    video = Video(
        id=f"ldpolypvideo-{folder.name}",
        frame_count=max(frames, default=-1) + 1,
        width=size[0],
        height=size[1],
        source=str(images) if images else None,
        dataset="ldpolypvideo",
        split=split,
    )
    listed = {frame: picture.name for frame, picture in zip(frames, pictures, strict=False)}
    return one_polyp_a_video(rows, video, split_tracks, None if len(listed) == video.frame_count else listed)


def _read_boxes(path: Path, frame: int, rows: BoxRows) -> None:
    text = read_text(path)
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    count = whole(lines[0][1][0]) if lines and len(lines[0][1]) == 1 else None
    if count is None or count != len(lines) - 1:
        following = max(len(lines) - 1, 0)
        rows.problems.bad(f"{path}:1", f"the number of boxes is expected alone in the first line, {following} follow")
        return
    for number, words in lines[1:]:
        numbers = decimals(words)
        if len(numbers) != 4:
            rows.problems.bad(f"{path}:{number}", f"four numbers are expected, found {' '.join(words)[:80]!r}")
            continue
        x1, y1, x2, y2 = numbers
        rows.add(f"{path}:{number}", frame, (x1, y1, x2, y2))
