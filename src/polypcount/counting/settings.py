"""What a user can set about a count: plain values."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from polypcount.counting.part import Moment
from polypcount.importers import BoxConvention
from polypcount.storage import SettingsSchema
from polypcount.tracking import TrackRules

_Count = Annotated[int, Field(ge=1, le=10**9)]
_Rectangle = Annotated[tuple[int, int, int, int], Field(strict=False)]
BOX_FILE_SETTINGS = ("boxes_format", "first_frame", "box", "ids", "size", "images")


class CountSettings(SettingsSchema):
    """How a recording is counted. The defaults are those of `polypcount count`.

    Attributes:
        method: Name of the grouping method, such as "temporal-ap"; None for the default of the encoder's operating
            points, the best that was measured.
        polyps: How many polyps there are, for example from the endoscopist's report. The grouping then gives this
            number, or the nearest that the tracklets and constraints allow.
        min_polyps: Fewest polyps there can be, likewise.
        max_polyps: Most polyps there can be, likewise.
        min_frames: Boxes that a tracklet must have to be counted; None for `least_boxes`.
        tracker: Rules for tracking boxes that come without tracks or polyps.
        keep_polyps: Whether the polyps that came with the boxes are kept: tracklets of one of them are one polyp, and
            tracklets of two are two. Without it they are used only to link boxes to tracklets.
        start: First frame that is counted: its number, or a time such as "1:30" or "90s"; None for the first of all.
        stop: The moment up to which frames are counted, likewise; its own frame is not.
        boxes_format: Format of the boxes file; None detects it from the content.
        video: Id of the video, where a corpus or the boxes have several.
        fps: Frames per second, where the recording does not say.
        first_frame: The number that the boxes file gives to the first frame; None for the default of its format.
        box: What the four numbers of a box in the file are, such as "xywh"; None for the default of its format.
        ids: Whether numbers in the file mean polyps or tracks; None for the default of its format.
        size: Width and height of the frames that the boxes were drawn on; the boxes are scaled to the recording. None
            for the size of the recording.
        images: Folder of the images that the boxes belong to, or a COCO file that lists them.
        pictures: Whether the report shows pictures.
        mask_border: Whether everything outside the endoscope's view is blacked out in pictures.
        mask: Rectangles (x, y, width, height) in pixels that are blacked out in pictures.
        name: Name of the recording in the report; None for the name of its file, or its id in a corpus.
        anonymous: Whether the report leaves out the names of files. Use it with a pseudonym as `name`.
    """

    KIND: ClassVar[str] = "count"

    method: str | None = None
    polyps: _Count | None = None
    min_polyps: _Count | None = None
    max_polyps: _Count | None = None
    min_frames: _Count | None = None
    tracker: TrackRules = TrackRules()
    keep_polyps: bool = False
    start: Moment | None = None
    stop: Moment | None = None
    boxes_format: str | None = None
    video: str | None = None
    fps: Annotated[float, Field(gt=0)] | None = None
    first_frame: int | None = None
    box: BoxConvention | None = None
    ids: Literal["polyp", "track"] | None = None
    size: Annotated[tuple[_Count, _Count], Field(strict=False)] | None = None
    images: Annotated[Path, Field(strict=False)] | None = None
    pictures: bool = True
    mask_border: bool = True
    mask: Annotated[tuple[_Rectangle, ...], Field(strict=False)] = ()
    name: str | None = None
    anonymous: bool = False

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Self:
        if self.polyps is not None and (self.min_polyps is not None or self.max_polyps is not None):
            raise ValueError("polyps is the exact number; give it, or min_polyps and max_polyps")
        if self.min_polyps is not None and self.max_polyps is not None and self.min_polyps > self.max_polyps:
            raise ValueError(f"min_polyps {self.min_polyps} is above max_polyps {self.max_polyps}")
        return self

    @property
    def polyp_range(self) -> tuple[int, int | None] | None:
        """The fewest and the most polyps there can be, None for no limit; None without any hint."""
        fewest, most = self.polyps or self.min_polyps, self.polyps or self.max_polyps
        return None if fewest is None and most is None else (fewest or 0, most)
