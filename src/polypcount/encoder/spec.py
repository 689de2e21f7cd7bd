"""What an encoder is, apart from its weights: plain values that are kept as JSON."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from polypcount.storage import SettingsSchema
from polypcount.video import CropRule

_SMALLEST_IMAGE = 8
_Positive = Annotated[float, Field(gt=0)]


class Preprocessing(SettingsSchema):
    """How a box in a frame becomes the image that the backbone sees.

    Attributes:
        crop: Which part of the frame, and how it becomes a square.
        mean: Mean of red, green and blue, on pixel values 0 to 1; it is subtracted.
        std: Standard deviation of red, green and blue, on pixel values 0 to 1; the difference is divided by it.
    """

    KIND: ClassVar[str] = "preprocessing"
    model_config = ConfigDict(strict=False)  # takes lists, and the crop rule as a dict, as JSON gives them

    crop: CropRule = CropRule()
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[_Positive, _Positive, _Positive] = (0.229, 0.224, 0.225)

    @field_validator("crop")
    @classmethod
    def _large_enough(cls, crop: CropRule) -> CropRule:
        if crop.size < _SMALLEST_IMAGE:
            raise ValueError(f"size must be at least {_SMALLEST_IMAGE} pixels, found {crop.size}")
        return crop


class EncoderSpec(SettingsSchema):
    """The architecture of a tracklet encoder and the images that it expects.

    Attributes:
        backbone: Name that `load_backbone` was given.
        feature_size: Numbers per frame, from the backbone.
        backbone_config: What a transformers backbone is built from, as JSON; None for the built-in ones.
        d: Numbers per tracklet.
        layers: Layers of the transformer over the frames.
        heads: Attention heads of each layer; their number divides d.
        ff: Width inside its layers.
        dropout: Share of numbers that training sets to zero.
        pooling: `cls`, a transformer over the frames and a learned token whose output is the vector; or `mean`, the
            mean of the projected frames, without a transformer.
        positions: Whether the transformer knows the order of the frames. If not, the vector does not depend on the
            order.
        preprocessing: From box to image.
    """

    KIND: ClassVar[str] = "spec"

    backbone: str = Field(min_length=1)
    feature_size: int = Field(ge=1, le=65536)
    backbone_config: dict[str, Any] | None = None
    d: int = Field(default=128, ge=1, le=8192)
    layers: int = Field(default=3, ge=1, le=64)
    heads: int = Field(default=8, ge=1, le=256)
    ff: int = Field(default=2048, ge=1, le=65536)
    dropout: float = Field(default=0.1, ge=0, le=0.99)
    pooling: Literal["cls", "mean"] = "cls"
    positions: bool = False
    preprocessing: Preprocessing = Field(default=Preprocessing(), strict=False)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.pooling == "mean" and self.positions:
            raise ValueError("positions need the transformer: set pooling to cls, or positions to false")
        if self.pooling == "cls" and (self.d % self.heads or (self.positions and self.d % 2)):
            raise ValueError(
                "d must be divisible by heads, and even where positions are true, "
                f"found d {self.d} and {self.heads} heads"
            )
        return self
