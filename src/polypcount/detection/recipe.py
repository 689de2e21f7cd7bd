"""A recipe for a detector: everything that decides what it learns, apart from the corpus and the machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from polypcount.storage import Schema, check
from polypcount.training.recipe import OptimizerSettings
from polypcount.training.recipe_file import recipe_values

_Share = Annotated[float, Field(ge=0, le=1)]
_NotNegative = Annotated[float, Field(ge=0)]
_Count = Annotated[int, Field(ge=1)]
_Side = Annotated[int, Field(ge=32, le=2048, multiple_of=32)]


class FrameSettings(Schema):
    """Which frames are learnt from and validated on.

    Attributes:
        leave_out: Splits that are not used at all.
        validation: Splits to validate on. If no video belongs to one, `validation_share` of the videos is drawn by the
            seed.
        validation_share: Share of the videos.
        of_polyp: Most frames of each polyp, evenly spaced over its boxes.
        empty: Frames without a polyp for each frame with one, as far as there are any, evenly spaced over the videos.
    """

    leave_out: tuple[str, ...] = ("study",)
    validation: tuple[str, ...] = ("val", "validation")
    validation_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    of_polyp: _Count = 64
    empty: Annotated[float, Field(ge=0, le=100)] = 1.0


class NetworkSettings(Schema):
    """The network, see `DetectorNetwork`, and its first weights.

    Attributes:
        start: `bundled`, `imagenet`, `none` for random weights, or the folder of a trained detector.
        channels: Of the pyramid and the head.
        fixed_blocks: How many blocks of the backbone, and its stem, stay as they are: they see edges and colours, and
            take half of the time of a step. 0 trains everything.
        width: Of its input, in pixels.
        height: Of its input, in pixels.
    """

    start: str = "bundled"
    channels: _Count = 96
    fixed_blocks: Annotated[int, Field(ge=0, le=16)] = 3
    width: _Side = 320
    height: _Side = 256


class FrameChanges(Schema):
    """How far frames are changed at random; see `changed_frames`. Chances are from 0 to 1, and 0 is off.

    Attributes:
        empty: Chance that a part of a frame without a polyp is shown in place of the frame.
        zoom: Largest factor by which a frame is shown larger, or a polyp with its surroundings fills the view.
        shrink: Largest factor by which it is shown smaller.
        stretch: Largest change of its proportions, as exp(u), u within log(1 + stretch) of 0.
        rotation: Largest angle in degrees; half of the frames are turned by at most a tenth of it.
        flip: Mirror left-right and top-bottom, each with a chance of 1/2.
        border: Chance of a black octagon or oval around the view.
        exposure: Gamma exp(u), u within log(1 + exposure) of 0, and a factor on all values likewise.
        colour: Standard deviation of the log of a factor for each colour, and of contrast and saturation.
        grey: Chance of no colour at all.
        veil: Chance of a red or white veil, as when the lens touches the wall.
        blur: Largest standard deviation of a Gaussian, in pixels of the output; half of the frames are left sharp.
        smear: Longest smear by motion, along x or y, in pixels of the output; for a fifth of the frames.
        noise: Largest standard deviation of noise.
        glare: Chance of bright spots.
        blank: Chance of a black frame.
    """

    empty: _Share = 0.15
    zoom: Annotated[float, Field(ge=1, le=8)] = 2.5
    shrink: Annotated[float, Field(ge=1, le=8)] = 2.0
    stretch: Annotated[float, Field(ge=0, le=2)] = 0.25
    rotation: Annotated[float, Field(ge=0, le=180)] = 180.0
    flip: bool = True
    border: _Share = 0.15
    exposure: _NotNegative = 0.6
    colour: _NotNegative = 0.12
    grey: _Share = 0.03
    veil: _Share = 0.06
    blur: Annotated[float, Field(ge=0, le=10)] = 2.5
    smear: Annotated[int, Field(ge=0, le=31)] = 13
    noise: _Share = 0.05
    glare: _Share = 0.3
    blank: _Share = 0.01


class DetectorLossSettings(Schema):
    """Weights of the parts of the loss, beside that of the score, which is 1; see `loss_parts`."""

    box: _NotNegative = 2.0
    mask: _NotNegative = 0.5


class DetectorValidation(Schema):
    """After every epoch: average precision at an IoU of 0.5, of the averaged weights.

    Attributes:
        most: Most frames, evenly spaced.
        monitor: `ap50` keeps the epoch with the largest value, `last` the last one.
        patience: Training ends after this many epochs without a better one; None for never.
    """

    most: _Count = 1000
    monitor: Literal["ap50", "last"] = "ap50"
    patience: _Count | None = None


class DetectorRecipe(Schema):
    """The whole recipe.

    Attributes:
        side: Side in pixels of the squares in which frames are kept; more than the input, since parts are enlarged.
        batch: Frames in a batch.
        average: How much of the averaged weights, which are kept at the end, stays at each step.
        steps: Length of the training in steps, whatever the epochs; None for whole epochs.
    """

    task: Literal["detector"] = "detector"
    name: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    epochs: _Count = 20
    steps: _Count | None = None
    batch: _Count = 16
    side: Annotated[int, Field(ge=64, le=2048)] = 448
    data: FrameSettings = FrameSettings()
    model: NetworkSettings = NetworkSettings()
    changes: FrameChanges = FrameChanges()
    loss: DetectorLossSettings = DetectorLossSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    average: Annotated[float, Field(ge=0, lt=1)] = 0.998
    validation: DetectorValidation = DetectorValidation()

    def total_steps(self, batches: int) -> int:
        """Steps of the whole training, if an epoch has so many batches."""
        return self.steps or self.epochs * batches


def load_detector_recipe(
    recipe: str | Path | Mapping[str, Any] | DetectorRecipe = "detector", changes: Sequence[str] = ()
) -> DetectorRecipe:
    """A recipe by name, from a YAML file, or from its values; see `polypcount.training.load_recipe`."""
    values, source = recipe_values(recipe, changes)
    return check(DetectorRecipe, values, source)
