"""What a user can set when importing or exporting; a format takes the options it has a use for."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from polypcount.errors import DataError

BoxConvention = Literal["xyxy", "xyxy-inclusive", "xywh", "cxcywh"]
Ids = Literal["polyp", "track"]


@dataclass(frozen=True)
class Options:
    """Options of an import. None means the format's own default.

    split: part of the dataset, such as "train" or "study".
    split_tracks: where only the video's identity is known, separate several boxes of a frame by track.
    train2019: import the part of PolypsSet that has no sequences.
    sequences: CSV file that says which frame belongs to which sequence.
    images: folder with the images, or a COCO file that lists them.
    source: the video file or frame folder that the boxes belong to.
    video: id for the one video that a file without video names describes.
    width, height: of the frames in pixels, for formats that do not say.
    fps: frames per second, for formats that do not say.
    frame_count: frames in the video, for formats that do not say; otherwise the last frame with a box ends it.
    first_frame: number that the format gives to the first frame.
    box: what the four numbers of a box are; "xyxy-inclusive" means that x2 and y2 are the last pixels inside.
    ids: whether numbers in the file tell polyps, or tracks of a tracker.
    """

    split: str | None = None
    split_tracks: bool = False
    train2019: bool = False
    sequences: Path | None = None
    images: Path | None = None
    source: Path | None = None
    video: str | None = None
    width: int | None = None
    height: int | None = None
    fps: float | None = None
    frame_count: int | None = None
    first_frame: int | None = None
    box: BoxConvention | None = None
    ids: Ids | None = None

    def __post_init__(self) -> None:
        for name in ("sequences", "images", "source"):
            if (place := getattr(self, name)) is not None:
                object.__setattr__(self, name, Path(place))

    def given(self) -> dict[str, object]:
        """The options that differ from their defaults, as JSON values."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in values.items()
            if value is not None and value is not False
        }

    def refuse_others(self, format_name: str, takes: frozenset[str]) -> None:
        """Raise where an option is set that the format has no use for."""
        for name in self.given():
            if name not in takes:
                told = ", ".join(sorted({flag_of(taken) for taken in takes})) or "none"
                raise DataError(f"{format_name} has no use for {flag_of(name)}; its own options are: {told}")


def flag_of(option: str) -> str:
    """How an option is called on the command line."""
    return "--size" if option in ("width", "height") else f"--{option}".replace("_", "-")
