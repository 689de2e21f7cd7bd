"""A recipe: everything that decides what an encoder learns, apart from the corpus and the machine."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from polypcount.storage import Schema
from polypcount.video import CropRule

_Share = Annotated[float, Field(ge=0, le=1)]
_Positive = Annotated[float, Field(gt=0)]
_NotNegative = Annotated[float, Field(ge=0)]
_Count = Annotated[int, Field(ge=1)]


class DataSettings(Schema):
    """Which videos are used for training and validation.

    By default all but those of the study are learnt from, as in the paper, and none is validated on.

    Attributes:
        leave_out: Splits that are not used at all.
        validation: Splits to validate on. If no video belongs to one, `validation_share` of the videos is drawn by the
            seed. A polyp that is seen in such a video is not learnt from, in any video.
        validation_share: Share of the videos.
    """

    leave_out: tuple[str, ...] = ("study",)
    validation: tuple[str, ...] = ()
    validation_share: Annotated[float, Field(ge=0, lt=1)] = 0.0


class ModelSettings(Schema):
    """The encoder, see `EncoderSpec`, and its first weights.

    Attributes:
        weights: Weights of the backbone: true for the published ones, false for random ones, a weights file, or the
            folder of
            an encoder with the same backbone, such as an SFE for an MVE.
        start: Folder of an encoder of the same shape; all its weights are used.
        normalise: `backbone`: by the mean and standard deviation that the backbone was trained with. `none`: values
            from 0 to 1, as in the published code.
        batch_norm: `fixed`: by the statistics of the backbone's weights. A view then does not depend on the rest of its
            batch, so several processes or pieces give the same result. `batch`: by the statistics of the batch, as in
            the published code.
    """

    backbone: str = "resnet-50"
    weights: str | bool = True
    start: str | None = None
    d: _Count = 128
    layers: _Count = 3
    heads: _Count = 8
    ff: _Count = 2048
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    pooling: Literal["cls", "mean"] = "cls"
    positions: bool = False
    normalise: Literal["backbone", "none"] = "backbone"
    batch_norm: Literal["fixed", "batch"] = "fixed"


class NeighbourSettings(Schema):
    """SFE: two frames of one polyp, see `NeighbouringFrames`.

    Attributes:
        samples: Pairs in a batch.
        spread: Standard deviation of the distance of the second frame from the first, in boxes of the polyp. Below 0.5,
            hardly any draw would give another frame.
    """

    samples: _Count = 128
    spread: Annotated[float, Field(ge=0.5, le=1e9)] = 30.0
    kind: Literal["neighbouring-frames"] = "neighbouring-frames"


class SegmentSettings(Schema):
    """MVE and TPC: two segments of a polyp, see `TrackletSegments`.

    Attributes:
        samples: Polyps in a batch.
        length: Frames of a segment.
        strides: The possible steps between the frames of a segment.
        min_frames: Fewest boxes of a tracklet.
        one_tracklet: Chance at the beginning that both segments are of one tracklet.
        one_tracklet_end: That chance after the share `over` of the training. The fall is the curriculum of TPC; with 1
            and 1 it is MVE.
        over: Share of the training over which the chance falls.
    """

    samples: _Count = 28
    length: _Count = 8
    strides: Annotated[tuple[_Count, ...], Field(min_length=1)] = (1, 2, 3, 4)
    min_frames: Annotated[int, Field(ge=0)] = 30
    one_tracklet: _Share = 1.0
    one_tracklet_end: _Share = 1.0
    over: Annotated[float, Field(gt=0, le=1)] = 1.0
    kind: Literal["tracklet-segments"] = "tracklet-segments"

    def chance(self, done: float) -> float:
        """Chance of one tracklet, when the share `done` of the training is over.

        It is end + (begin - end) * (1 - min(done / over, 1)).
        With 50 epochs and a share of 0.1 these are, at the end of each epoch, the published values.
        """
        left = 1 - min(done / self.over, 1)
        return self.one_tracklet_end + (self.one_tracklet - self.one_tracklet_end) * left


class PolypViewSettings(Schema):
    """Supervised and temporally-aware: `polyps` times `views` fragments in every batch, see `PolypViews`.

    Attributes:
        length: Frames of a fragment.
        stride: Step between its frames.
        min_frames: Fewest boxes of a tracklet.
        strict: Leave out polyps with fewer fragments than views, as the published sampler does.
    """

    polyps: _Count = 4
    views: Annotated[int, Field(ge=2)] = 14
    length: _Count = 8
    stride: _Count = 4
    min_frames: Annotated[int, Field(ge=0)] = 30
    strict: bool = False
    kind: Literal["polyp-views"] = "polyp-views"


SamplerSettings = Annotated[NeighbourSettings | SegmentSettings | PolypViewSettings, Field(discriminator="kind")]


class LossSettings(Schema):
    """The loss.

    Attributes:
        targets: See `polypcount.training.targets`.
        decay: Decay of temporal targets, the paper's lambda.
    """

    targets: Literal["instance", "identity", "temporal"] = "temporal"
    temperature: _Positive = 0.25
    decay: _NotNegative = 1.0


class Augmentation(Schema):
    """How far clips are changed at random. 0 or False is off; all are off by default, as published.

    Attributes:
        flip: Mirror left-right and top-bottom, each with a chance of 1/2.
        rotation: Largest angle in degrees, either way, about the middle.
        shift: Largest shift along x and along y, as a share of the side.
        scale: Zoom about the middle by exp(u), u uniform within log(1 + scale) of 0, as if the box were drawn larger or
            smaller.
        brightness: Largest distance of a factor from 1; the factor is applied to the values.
        contrast: The same, applied to the distance of the values from the clip's mean grey.
        saturation: The same, applied to the distance of the values from the pixel's grey.
        hue: Largest turn about the grey axis, as a share of the colour circle.
        exposure: Gamma exp(u), u uniform within log(1 + exposure) of 0.
        blur: Largest standard deviation of a Gaussian, in pixels of the output; drawn from 0 on.
    """

    flip: bool = False
    rotation: Annotated[float, Field(ge=0, le=180)] = 0.0
    shift: _Share = 0.0
    scale: Annotated[float, Field(ge=0, le=9)] = 0.0
    brightness: _Share = 0.0
    contrast: _Share = 0.0
    saturation: _Share = 0.0
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    exposure: Annotated[float, Field(ge=0, le=9)] = 0.0
    blur: Annotated[float, Field(ge=0, le=20)] = 0.0

    @property
    def off(self) -> bool:
        """Whether nothing is changed."""
        return self == Augmentation()


class OptimizerSettings(Schema):
    """The optimiser and its learning rate.

    Attributes:
        backbone_factor: The backbone's learning rate as a multiple of `lr`. With 0 the backbone is not trained, which
            costs less.
        schedule: `constant`, or `cosine`: up from 0 over the share `warmup` of all steps, then down to 0.
        clip: Largest norm of the gradient over all weights; None for no limit.
    """

    name: Literal["adamw", "adam"] = "adamw"
    lr: Annotated[float, Field(gt=0, le=10)] = 1e-5
    weight_decay: _NotNegative = 1e-4
    backbone_factor: _NotNegative = 1.0
    schedule: Literal["constant", "cosine"] = "constant"
    warmup: _Share = 0.0
    clip: _Positive | None = None


class ValidationSettings(Schema):
    """After every epoch: the loss over at most `batches` batches, always the same, and retrieval.

    Attributes:
        of: Whether `tracklets` or `fragments` (for corpora with one tracklet per polyp) search for others of their
            polyp.
        most: Most tracklets or fragments to use.
        frames: Frames of each, evenly spaced.
        monitor: The value that decides which epoch is the best one; with `last` it is the last epoch.
        patience: Training ends after this many epochs without a better one; None for never.
    """

    batches: _Count = 20
    of: Literal["tracklets", "fragments"] = "tracklets"
    most: _Count = 500
    frames: _Count = 8
    monitor: Literal["loss", "mean_average_precision", "hit_rate_1", "auroc", "last"] = "loss"
    patience: _Count | None = None


class Recipe(Schema):
    """The whole recipe.

    Attributes:
        epochs: An epoch of every sampler shows about as many frames as there are boxes to choose from, at its largest
            stride: each box once for single frames, every fourth for fragments of every fourth frame.
        batches_per_epoch: Batches of each epoch in place of that number. A `polyp-views` sampler has no more than its
            fragments fill.
        steps: Length of the training in steps, whatever the epochs; the last epoch may be cut. None for whole epochs.
    """

    name: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 42
    epochs: _Count = 50
    batches_per_epoch: _Count | None = None
    steps: _Count | None = None
    data: DataSettings = DataSettings()
    crop: CropRule = CropRule()
    model: ModelSettings = ModelSettings()
    sampler: SamplerSettings = PolypViewSettings()
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
            raise ValueError("optimizer.warmup is for optimizer.schedule=cosine; a constant schedule has none")
        if self.validation.patience and self.validation.monitor == "last":
            raise ValueError("validation.patience needs a value to watch: set validation.monitor")
        return self

    @property
    def views(self) -> int:
        """Views in a batch."""
        sampler = self.sampler
        return sampler.polyps * sampler.views if isinstance(sampler, PolypViewSettings) else 2 * sampler.samples

    @property
    def views_of_polyp(self) -> int:
        """Views of each polyp in a batch."""
        return self.sampler.views if isinstance(self.sampler, PolypViewSettings) else 2

    @property
    def frames(self) -> int:
        """Most frames of a view."""
        return 1 if isinstance(self.sampler, NeighbourSettings) else self.sampler.length

    @property
    def images(self) -> int:
        """Frames in a batch."""
        return self.views * self.frames

    def total_steps(self, batches: int) -> int:
        """Steps of the whole training, if an epoch has so many batches."""
        return self.steps or self.epochs * batches
