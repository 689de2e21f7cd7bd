"""What a user may say about a detector."""

from dataclasses import dataclass
from typing import Literal, get_args

from polypcount.errors import DataError

LARGEST_SIDE = 4096  # pixels of a detector's input
Form = Literal["yolo-classes", "yolo-objectness", "yolo-final", "detr-logits", "detr-classes", "detr-final"]
Family = Literal["auto", "yolo", "detr", Form]
Normalise = Literal["auto", "unit", "imagenet"]
Activation = Literal["auto", "none", "sigmoid", "softmax"]
BoxNumbers = Literal["auto", "cxcywh", "xyxy"]
Scale = Literal["auto", "pixels", "unit"]


@dataclass(frozen=True)
class DetectorSettings:
    """How a detector is run and read; what is "auto" is told by the model, see docs/detectors.md.

    Attributes:
        confidence: lowest score of a box that is kept, 0 to 1.
        iou: of two boxes that overlap by more than this the one with the lower score is dropped; where a model drops
            such boxes itself, only those of another class.
        size: width and height in pixels of the model's input, where the model leaves them open.
        family: "yolo" or "detr", or the exact form of the outputs.
        classes: names, or numbers as text, of the classes to keep; None keeps all.
        normalise: "unit" gives the model pixel values from 0 to 1, "imagenet" subtracts the mean of ImageNet from them
            and divides by its standard deviation.
        activation: what makes scores of what the model gives: "sigmoid"; "softmax", whose last class is no object;
            "none" where the model did it.
        boxes: whether its boxes are centre and size or two corners.
        scale: whether they are in pixels of its input or in shares of it.
    """

    confidence: float = 0.1
    iou: float = 0.5
    size: tuple[int, int] | None = None
    family: Family = "auto"
    classes: tuple[str, ...] | None = None
    normalise: Normalise = "auto"
    activation: Activation = "auto"
    boxes: BoxNumbers = "auto"
    scale: Scale = "auto"

    def __post_init__(self) -> None:
        for name in ("confidence", "iou"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise DataError(f"detector: {name} must be a number from 0 to 1, found {value!r}")
        if self.size is not None:
            refuse_size("detector: size", self.size)
            object.__setattr__(self, "size", tuple(self.size))
        if isinstance(self.classes, str) or self.classes == ():
            raise DataError(f"detector: classes must be a list of at least one name, found {self.classes!r}")
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        kinds = {"family": Family, "normalise": Normalise, "activation": Activation, "boxes": BoxNumbers}
        for name, kind in {**kinds, "scale": Scale}.items():
            if (value := getattr(self, name)) not in get_args(kind):
                raise DataError(f"detector: {name} must be one of {', '.join(get_args(kind))}, found {value!r}")


def refuse_size(what: str, size: object) -> None:
    """Raise where a width and height are not two whole numbers of pixels that an input may have."""
    sides = list(size) if isinstance(size, list | tuple) else []
    whole = all(isinstance(side, int) and not isinstance(side, bool) for side in sides)
    if len(sides) != 2 or not whole or not 1 <= min(sides) <= max(sides) <= LARGEST_SIDE:
        raise DataError(f"{what} must be a width and a height from 1 to {LARGEST_SIDE} pixels, found {size!r}")
