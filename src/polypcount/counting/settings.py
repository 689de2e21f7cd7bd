"""What a user can set about a count: plain values."""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from polypcount.storage import SettingsSchema
from polypcount.tracking import TrackRules

_Count = Annotated[int, Field(ge=1)]
_Rectangle = Annotated[tuple[int, int, int, int], Field(strict=False)]


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
        boxes_format: Format of the boxes file; None detects it from the content.
        video: Id of the video, where a corpus or the boxes have several.
        fps: Frames per second, where the recording does not say.
        first_frame: The number that the boxes file gives to the first frame; None for the default of its format.
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
    boxes_format: str | None = None
    video: str | None = None
    fps: Annotated[float, Field(gt=0)] | None = None
    first_frame: int | None = None
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
