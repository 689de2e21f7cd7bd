"""Settings of a detector."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from polypcount.storage import SettingsSchema

LARGEST_SIDE = 4096  # pixels of a detector's input
OutputForm = Literal["yolo-classes", "yolo-objectness", "yolo-final", "detr-logits", "detr-classes", "detr-final"]
_Share = Annotated[float, Field(ge=0, le=1)]
_Side = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]


class DetectorSettings(SettingsSchema):
    """How a detector is run and how its outputs are read; "auto" takes what the model file says.

    See docs/detectors.md.

    Attributes:
        confidence: Lowest score of a box that is kept, 0 to 1.
        iou: When two boxes overlap by more than this, the one with the lower score is dropped. Where the model already
            does this within a class, only boxes of different classes are compared.
        size: Width and height in pixels of the model's input, for a model that takes images of any size.
        family: "yolo" or "detr", or the exact form of the outputs.
        classes: Names, or numbers as text, of the classes to keep; None keeps all.
        normalise: "unit" gives the model pixel values from 0 to 1; "imagenet" subtracts the mean of ImageNet from them
            and divides by its standard deviation.
        activation: How the model's numbers become scores: "sigmoid"; "softmax", whose last class means no object;
            "none" if they are scores already.
        boxes: Whether a box is given by its centre and size or by two corners.
        scale: Whether boxes are in pixels of the input or in shares of it.
        engine: What computes the model: "onnx" (ONNX Runtime) or "openvino". "auto" takes OpenVINO for a detector of
            polypcount, where it is installed and gives the same as ONNX Runtime; otherwise ONNX Runtime.
    """

    KIND: ClassVar[str] = "detector"

    confidence: _Share = 0.1
    iou: _Share = 0.5
    size: Annotated[tuple[_Side, _Side], Field(strict=False)] | None = None
    family: Literal["auto", "yolo", "detr", OutputForm] = "auto"
    classes: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] | None = None
    normalise: Literal["auto", "unit", "imagenet"] = "auto"
    activation: Literal["auto", "none", "sigmoid", "softmax"] = "auto"
    boxes: Literal["auto", "cxcywh", "xyxy"] = "auto"
    scale: Literal["auto", "pixels", "unit"] = "auto"
    engine: Literal["auto", "onnx", "openvino"] = "auto"
