"""A video as box files describe it: what the file says, what the user says, and frame numbers."""

import dataclasses
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from polypcount.corpus import Video
from polypcount.errors import DataError, FileError
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.texts import shown, usable

_MOST_PIXELS = 1 << 20
_MOST_FRAMES = 2**31 - 1
_FASTEST = 1e6


@dataclass(frozen=True)
class VideoFacts:
    """What a file says of a video; None where it does not say. Values that no video can have are refused.

    fps: frames per second. width, height: pixels.
    """

    id: str
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    frame_count: int | None = None

    def checked(self, where: object, problems: Problems) -> "VideoFacts":
        """The same without the values that cannot be, each of which is reported."""
        limits = {"fps": _FASTEST, "width": _MOST_PIXELS, "height": _MOST_PIXELS, "frame_count": _MOST_FRAMES}
        wrong: dict[str, None] = {}
        for name, most in limits.items():
            value = getattr(self, name)
            least = 0 if name == "frame_count" else 1e-6
            if value is not None and not least <= value <= most:
                problems.bad(where, f"{name} must be a number up to {most:,.0f} and positive, found {value}")
                wrong[name] = None
        return dataclasses.replace(self, **wrong)  # type: ignore[arg-type]

    def with_options(self, options: Options) -> "VideoFacts":
        """The same, with what the user has set instead."""
        given = {name: getattr(options, name) for name in ("fps", "width", "height", "frame_count")}
        return dataclasses.replace(
            self, id=options.video or self.id, **{name: value for name, value in given.items() if value is not None}
        )

    def video(self, options: Options, least_frames: int, source: Path | None = None) -> Video:
        """The video, as long as the facts say or as the frames seen need.

        source: where its frames are, unless the options say.
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
    frame = number - first_frame
    if frame < 0:
        problems.bad(
            where, f"frames are numbered from {first_frame}, found {shown(number)}; --first-frame sets another number"
        )
        return None
    if frame >= (_MOST_FRAMES if frame_count is None else frame_count):
        last = (_MOST_FRAMES if frame_count is None else frame_count) - 1 + first_frame
        problems.bad(where, f"frames are numbered {first_frame} to {last}, found {shown(number)}")
        return None
    return frame


def check_options(options: Options, videos: int, name: object) -> None:
    """Raise where options for one video meet another number of videos, or where the source is not there."""
    for option in ("video", "source", "frame_count"):
        if getattr(options, option) is not None and videos != 1:
            flag = f"--{option}".replace("_", "-")
            raise DataError(f"{flag} is for one video; {name} holds {videos}")
    if options.video is not None and usable(options.video) is None:
        raise DataError(f"--video must be a text to name the video by, found {shown(options.video)}")
    if options.source is not None and not options.source.exists():
        raise FileError(f"{options.source} does not exist; --source is the video file or the folder of its frames")


def remark_classes(path: Path, classes: Collection[str], problems: Problems) -> None:
    """Say where boxes of several classes were imported, since all of them count as polyps."""
    if len(classes) > 1:
        told = ", ".join(shown(name) for name in sorted(classes)[:5])
        problems.remark(f"{path}: boxes of {len(classes)} classes are all taken as polyps: {told}")


def name_of(path: Path) -> str:
    """Video id from the name of a file without extension, or of a folder."""
    resolved = path.resolve()
    text = usable(resolved.name if resolved.is_dir() else resolved.stem)
    if text is None:
        raise FileError(f"{shown(str(path))} has a name that cannot be the id of a video; rename it, or set --video")
    return text


def image_names(folders: Sequence[Path], names: Sequence[str]) -> tuple[Path, list[str]] | None:
    """The folder that holds these images, and their names in it; None where no folder of the given ones does.

    names: as a file lists them, perhaps with folders before the name that the folder on disk does not have.
    Only the first image is looked for.
    """
    if not names:
        return None
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    if any(path.is_absolute() or ".." in path.parts or not path.name for path in paths):
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
