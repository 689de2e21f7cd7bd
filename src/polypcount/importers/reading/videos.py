"""A video of box files: what the file says about it, what the user sets, and frame numbers."""

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from polypcount.corpus import Video
from polypcount.errors import DataError, FileError
from polypcount.importers.reading.files import subfolders
from polypcount.importers.reading.options import Options
from polypcount.importers.reading.problems import Problems
from polypcount.importers.reading.values import last_number, usable
from polypcount.storage import shown

_MOST_PIXELS = 1 << 20
_MOST_FRAMES = 2**31 - 1
_LIMITS = {
    "fps": (1e-6, 1e6),
    "width": (1, _MOST_PIXELS),
    "height": (1, _MOST_PIXELS),
    "frame_count": (0, _MOST_FRAMES),
}


@dataclass(frozen=True)
class VideoFacts:
    """What a file says about a video; None for what it does not say. See `Video` for the fields."""

    id: str
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    frame_count: int | None = None

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height in pixels, where both are known."""
        return (self.width, self.height) if self.width and self.height else None

    def checked(self, where: object, problems: Problems) -> "VideoFacts":
        """The same without impossible values, each of which is reported."""
        wrong: dict[str, None] = {}
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                problems.bad(where, f"{name} must be a number from {least:g} to {most:,.0f}, found {value}")
                wrong[name] = None
        return dataclasses.replace(self, **wrong) if wrong else self  # type: ignore[arg-type]

    def with_options(self, options: Options) -> "VideoFacts":
        """The same, with the values that the user has set."""
        values = {name: value for name in _LIMITS if (value := getattr(options, name)) is not None}
        return dataclasses.replace(self, id=options.video or self.id, **values)

    def with_size(self, sizes: Collection[tuple[int, int]], problems: Problems) -> "VideoFacts":
        """The same, with the size of the first image where none is known. A remark says if images have another size."""
        if not sizes:
            return self
        width, height = size = self.size or next(iter(sizes))
        if others := sum(other != size for other in sizes):
            problems.remark(
                f"video {self.id}: {others:,} of {len(sizes):,} images have another size than {width} x {height}, "
                "which is taken for all"
            )
        return dataclasses.replace(self, width=width, height=height)

    def video(self, options: Options, least_frames: int, source: Path | None = None) -> Video:
        """The video.

        Args:
            options: What the user has set.
            least_frames: Length of the video, if it is not known otherwise.
            source: Where its frames are, unless the options say where.
        """
        return Video(
            id=self.id,
            frame_count=least_frames if self.frame_count is None else self.frame_count,
            fps=self.fps,
            width=self.width,
            height=self.height,
            source=str(options.source or source) if options.source or source else None,
        )


def frame_of(where: object, number: int, first_frame: int, frame_count: int | None, problems: Problems) -> int | None:
    """The frame, from 0, that has this number in the file; None, and a report, where the video has no such frame."""
    frame, last = number - first_frame, (_MOST_FRAMES if frame_count is None else frame_count) - 1
    if 0 <= frame <= last:
        return frame
    expected = f"from {first_frame}" if frame < 0 else f"{first_frame} to {last + first_frame}"
    problems.bad(where, f"frames are numbered {expected}, found {shown(number)}", ["first_frame"] if frame < 0 else ())
    return None


def files_by_frame(
    files: Iterable[Path], first_frame: int, frame_count: int | None, problems: Problems
) -> dict[int, Path]:
    """The file of each frame, by the number at the end of its name; files that have no frame are reported."""
    file_at: dict[int, Path] = {}
    for path in files:
        number = last_number(path.stem)
        if number is None:
            problems.bad(path, "a name that ends in the number of the frame is expected")
        elif (frame := frame_of(path, number, first_frame, frame_count, problems)) is not None:
            if frame in file_at:
                problems.bad(path, f"frame {number} has a file already, {file_at[frame].name}")
            file_at.setdefault(frame, path)
    return file_at


def video_folders(path: Path, count: Callable[[Path], int], kind: str) -> dict[Path, int]:
    """Folders that each hold the files of one video, with their number: the folder itself, or those in it.

    Args:
        path: The folder.
        count: Counts the files in a folder that describe a video.
        kind: What such files are called, for messages.
    """
    if not path.is_dir():
        raise FileError(f"{path}: a folder of {kind} files is expected, found a file")
    here = count(path)
    counts = {path: here} if here else {folder: count(folder) for folder in subfolders(path)}
    if not any(counts.values()):
        raise FileError(f"{path} holds no {kind} files, nor folders that do")
    return {folder: number for folder, number in counts.items() if number}


def check_options(options: Options, videos: int, name: object) -> None:
    """Raise `DataError` if options for one video are set for several videos, or if the id is not valid."""
    for option in ("video", "source", "frame_count"):
        if getattr(options, option) is not None and videos != 1:
            raise DataError(f"the option {option} is for one video; {name} holds {videos}")
    if options.video is not None and usable(options.video) is None:
        raise DataError(f"the id of a video must be a text of whole characters, found {shown(options.video)}")


def remark_classes(path: Path, classes: Collection[str], problems: Problems) -> None:
    """Remark that boxes of several classes were imported, since all of them count as polyps."""
    if len(classes) > 1:
        some = ", ".join(shown(name) for name in sorted(classes)[:5])
        problems.remark(f"{path}: boxes of {len(classes)} classes are all taken as polyps: {some}")


def name_of(path: Path) -> str:
    """Video id from the name of a file without extension, or of a folder."""
    resolved = path.resolve()
    text = usable(resolved.name if resolved.is_dir() else resolved.stem)
    if text is None:
        raise FileError(f"{shown(str(path))} has a name that cannot be the id of a video; rename it")
    return text


def image_names(folders: Sequence[Path], names: Sequence[str]) -> tuple[Path, list[str]] | None:
    """The folder that holds these images, and their names in it; None if no folder holds the first image.

    Args:
        folders: Where to look.
        names: Names of the images as the file lists them, perhaps with folders that do not exist on disk.
    """
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    if not paths or any(path.is_absolute() or ".." in path.parts or not path.name for path in paths):
        return None
    for folder in folders:
        if os.path.isfile(folder / paths[0]):
            parents = {path.parent for path in paths}
            if len(parents) == 1:
                return folder / parents.pop(), [path.name for path in paths]
            return folder, [str(path) for path in paths]
        if os.path.isfile(folder / paths[0].name) and len({path.name for path in paths}) == len(paths):
            return folder, [path.name for path in paths]
    return None
