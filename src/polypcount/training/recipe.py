"""A recipe: everything that decides what an encoder learns, apart from the corpus and the machine."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from polypcount.training.augment import Augmentation
from polypcount.training.samplers import NeighbourSettings, PolypViewSettings, SegmentSettings
from polypcount.video import CropRule

Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Sampler = Annotated[NeighbourSettings | SegmentSettings | PolypViewSettings, Field(discriminator="kind")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class DataSettings(_Part):
    """Which videos are learnt from.

    leave_out: splits that are never touched.
    validation: splits to validate on; where no video is of any, `validation_share` of the videos, drawn by the seed.
    """

    leave_out: tuple[str, ...] = ("study", "test")
    validation: tuple[str, ...] = ("val", "validation")
    validation_share: Annotated[float, Field(ge=0, lt=1)] = 0.15


class ModelSettings(_Part):
    """The encoder, see `EncoderSpec`, and how it starts.

    weights: of the backbone: true for the published ones, false for random ones, a file of them, or the folder of an
        encoder with the same backbone, such as an SFE for an MVE.
    start: folder of an encoder of the same shape, to go on from.
    normalise: `backbone`, by the mean and deviation it was trained with, or `none`, values 0 to 1 as in the published
        code.
    batch_norm: `fixed`, by the statistics the backbone came with: a view then does not depend on the rest of its batch,
        and processes or pieces change nothing; `batch`, by those of the batch, as in the published code.
    """

    backbone: str = "resnet-50"
    weights: bool | str = True
    start: str | None = None
    d: Count = 128
    layers: Count = 3
    heads: Count = 8
    ff: Count = 2048
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    pooling: Literal["cls", "mean"] = "cls"
    positions: bool = False
    normalise: Literal["backbone", "none"] = "backbone"
    batch_norm: Literal["fixed", "batch"] = "fixed"


class LossSettings(_Part):
    """targets: see `polypcount.training.targets`. decay: of temporal targets, the paper's lambda."""

    targets: Literal["instance", "identity", "temporal"] = "temporal"
    temperature: Positive = 0.25
    decay: NotNegative = 1.0


class OptimizerSettings(_Part):
    """Steps.

    backbone_factor: the backbone's learning rate as a multiple of `lr`; with 0 it stays as it is and costs less.
    schedule: `constant`, or `cosine`: up from 0 over the share `warmup` of all steps, then down to 0.
    clip: longest gradient, over all weights; null for any.
    """

    name: Literal["adamw", "adam"] = "adamw"
    lr: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] = 1e-5
    weight_decay: NotNegative = 1e-4
    backbone_factor: NotNegative = 1.0
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: Share = 0.0
    clip: Positive | None = None


class ValidationSettings(_Part):
    """After every epoch: the loss over at most `batches` batches, always the same, and retrieval.

    of: whether `tracklets` or `fragments` (for corpora with one tracklet a polyp) look for others of their polyp;
        at most `most` of them, each by `frames` frames at even distances.
    monitor: what decides which epoch is the best one; `last` for none, the last one counts.
    patience: epochs without a better one after which training ends; null for never.
    """

    batches: Count = 20
    of: Literal["tracklets", "fragments"] = "tracklets"
    most: Count = 500
    frames: Count = 8
    monitor: Literal["loss", "mean_average_precision", "hit_rate_1", "auroc", "last"] = "loss"
    patience: Count | None = None


class Recipe(_Part):
    """The whole of it. `epochs`: passes over what the sampler gives; `batches_per_epoch`: at most so many of each."""

    name: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    epochs: Count = 50
    batches_per_epoch: Count | None = None
    data: DataSettings = DataSettings()
    crop: CropRule = CropRule()
    model: ModelSettings = ModelSettings()
    sampler: Sampler = PolypViewSettings()
    loss: LossSettings = LossSettings()
    augmentation: Augmentation = Augmentation()
    optimizer: OptimizerSettings = OptimizerSettings()
    validation: ValidationSettings = ValidationSettings()

    @model_validator(mode="after")
    def _settings_that_fit(self) -> "Recipe":
        if self.loss.targets == "instance" and isinstance(self.sampler, PolypViewSettings):
            raise ValueError(
                "loss.targets instance needs two views of a sample: set sampler.kind to tracklet-segments or "
                "neighbouring-frames"
            )
        if self.optimizer.warmup and self.optimizer.schedule == "constant":
            raise ValueError("optimizer.warmup is for optimizer.schedule=cosine, and a constant one has none")
        if self.validation.patience and self.validation.monitor == "last":
            raise ValueError("validation.patience needs a value to watch: set validation.monitor")
        return self
