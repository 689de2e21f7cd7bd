"""What a count keeps for its review: nothing has to be decoded, detected or embedded again.

review/review.json       tracklets, how they are grouped, and where each picture is
review/vectors.npy       float32[tracklets * vectors of each, d]
review/boxes.parquet     all boxes, with the tracklet of each
review/pictures.bin      the JPEG files of the pictures, one after the other
review/times.npy         when each frame is shown, where the frame rate is not constant
review/view.png          what is not blacked out in frames, where a border is
review/recording.json    private: where the recording lies. Not there if names of files must not be kept
"""

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from polypcount.clustering import OperatingPoint
from polypcount.storage import Manifest, Schema

REVIEW_FOLDER = "review"
REVIEW, RECORDING, VECTORS, BOXES = "review.json", "recording.json", "vectors.npy", "boxes.parquet"
PICTURES, TIMES, VIEW = "pictures.bin", "times.npy", "view.png"
DECISIONS, CORRECTED = "decisions.sqlite", "corrected"
BOX_COLUMNS = ("frame", "x1", "y1", "x2", "y2", "score", "tracklet")
MOST_PIXELS = 1 << 28
_MOST_TRACKLETS, _MOST_VECTORS, _MOST_SIZE = 100_000, 1000, 100_000
_LARGEST = 2**31 - 1
_Index = Annotated[int, Field(ge=0, le=_LARGEST)]
_Count = Annotated[int, Field(ge=1, le=_LARGEST)]
_Place = Annotated[int, Field(ge=0, le=2**53)]
_Four = Annotated[tuple[float, float, float, float], Field(strict=False)]
_Pair = Annotated[tuple[_Index, _Index], Field(strict=False)]


class Span(Schema):
    """Where a tracklet is in time.

    Attributes:
        number: Its number in boxes.parquet; parts of a tracklet that was split share it.
        start_frame: First frame.
        stop_frame: The frame after the last one.
        box_count: How many boxes it has.
    """

    number: _Index
    start_frame: _Index
    stop_frame: _Count
    box_count: _Count

    @model_validator(mode="after")
    def _refuse_empty(self) -> Self:
        if self.stop_frame <= self.start_frame:
            raise ValueError(f"stop_frame must be after start_frame {self.start_frame}, found {self.stop_frame}")
        return self


class CountedSpan(Span):
    """A tracklet that was counted. polyp: Number of its polyp, from 1."""

    polyp: _Count


class SetAsideSpan(Span):
    """A tracklet that is perhaps no polyp. probability: That it shows one."""

    probability: Annotated[float, Field(ge=0, le=1)]


class KeptPicture(Schema):
    """A picture in pictures.bin.

    Attributes:
        tracklet: Row of the tracklet in its list.
        set_aside: Whether that list is the one of tracklets that are perhaps no polyp.
        whole: Whether it shows a whole frame.
        frame: Its frame.
        width: In pixels.
        height: In pixels.
        xyxy: The box in pixels of the picture.
        quality: How well the polyp can be seen.
        start: Where its bytes begin.
        size: How many bytes it has.
    """

    tracklet: _Index
    set_aside: bool
    whole: bool
    frame: _Index
    width: _Count
    height: _Count
    xyxy: _Four
    quality: float
    start: _Place
    size: _Count


class ReviewFile(Manifest):
    """Schema of review.json."""

    FORMAT: ClassVar[str] = "polypcount-review"
    KIND: ClassVar[str] = "the data of a review"

    digest: str
    point: OperatingPoint
    duration: Annotated[float, Field(gt=0)]
    fps: Annotated[float, Field(gt=0)] | None
    frame_count: _Index
    width: _Count | None
    height: _Count | None
    tracked: bool
    polyp_range: Annotated[tuple[_Index, _Index | None], Field(strict=False)] | None
    vectors: Annotated[tuple[_Index, _Index], Field(strict=False)]  # of each tracklet, and numbers in each
    tracklets: list[CountedSpan]
    set_aside: list[SetAsideSpan]
    together: list[_Pair]
    one_polyp: list[_Pair]
    two_polyps: list[_Pair]
    rectangles: list[Annotated[tuple[int, int, int, int], Field(strict=False)]]
    has_view: bool
    has_times: bool
    pictures: list[KeptPicture]

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        count = len(self.tracklets)
        if count > _MOST_TRACKLETS or self.vectors[0] > _MOST_VECTORS or self.vectors[1] > _MOST_SIZE:
            raise ValueError("it holds more tracklets or larger vectors than can be reviewed")
        if count and not all(self.vectors):
            raise ValueError("vectors must have a length")
        for name in ("together", "one_polyp", "two_polyps"):
            if any(max(pair) >= count for pair in getattr(self, name)):
                raise ValueError(f"{name} names a tracklet that there is not")
        for picture in self.pictures:
            if picture.tracklet >= len(self.set_aside if picture.set_aside else self.tracklets):
                raise ValueError("pictures name a tracklet that there is not")
        if any(span.stop_frame > self.frame_count for span in (*self.tracklets, *self.set_aside)):
            raise ValueError("a tracklet ends after the recording")
        return self


class RecordingFile(Schema):
    """Schema of recording.json: where the recording lies, and which video of it was counted."""

    source: Annotated[str, Field(min_length=1)]
    video: str | None = None
