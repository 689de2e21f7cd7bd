"""What a user can set for an import; each format accepts only the options that it uses."""

from pathlib import Path
from typing import Any, Literal

from polypcount.errors import DataError
from polypcount.storage import Schema

BoxConvention = Literal["xyxy", "xyxy-inclusive", "xywh", "cxcywh"]


class Options(Schema):
    """Options of an import. None means the default of the format.

    Attributes:
        split: Part of the dataset, such as "train" or "study".
        split_tracks: If only the video of a box is known, separate several boxes of a frame by track.
        train2019: Import the part of PolypsSet that has no sequences.
        sequences: CSV file that says which frame belongs to which sequence.
        images: Folder with the images, or a COCO file that lists them.
        source: The video file or frame folder that the boxes belong to.
        video: Id for the one video in a file without video names.
        width: Width of the frames in pixels, for formats that do not give it.
        height: Height of the frames, likewise.
        fps: Frames per second, for formats that do not give it.
        frame_count: Frames in the video, for formats that do not give it; by default the last frame with a box is the
            end.
        first_frame: The number that the format gives to the first frame.
        box: What the four numbers of a box are; with "xyxy-inclusive", x2 and y2 are the last pixels inside.
        ids: Whether numbers in the file mean polyps, or tracks of a tracker.
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
    ids: Literal["polyp", "track"] | None = None

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, as JSON values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def refuse_others(self, format_name: str, takes: frozenset[str]) -> None:
        """Raise `DataError` if an option is set that the format does not use."""
        for name in self.given():
            if name not in takes:
                able = ", ".join(sorted(takes)) or "none"
                raise DataError(f"{format_name} has no use for {name}; its own options are: {able}", mend=name)
