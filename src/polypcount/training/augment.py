"""Random changes to whole clips: where the polyp lies in its crop, its colours, its sharpness."""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

from polypcount.errors import DataError

_MOST = {"rotation": 180, "scale": 9, "exposure": 9, "hue": 0.5, "blur": 20}  # of the others, 1
# One column of random numbers each, whether in use or not: no setting changes what another one draws.
_DRAWN = (
    *("left_right", "top_bottom", "rotation", "shift_x", "shift_y", "scale"),
    *("brightness", "contrast", "saturation", "hue", "exposure", "blur"),
)
# Lightness, and two directions of colour in which grey is 0.
_YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))


@dataclass(frozen=True)
class Augmentation:
    """How far clips are changed at random; 0 or False is off, and all are off by default, as published.

    flip: mirror left-right and top-bottom, each with a chance of 1/2.
    rotation: largest angle in degrees, either way, about the middle.
    shift: largest way along x and along y, as a share of the side.
    scale: zoom about the middle by exp(u), u uniform within log(1 + scale) of 0, as if the box were drawn larger or
        smaller.
    brightness, contrast, saturation: largest distance of a factor from 1; on the values, on their distance from the
        clip's mean grey, and on their distance from the pixel's grey.
    hue: largest turn about the grey axis, as a share of the colour circle.
    exposure: gamma exp(u), u uniform within log(1 + exposure) of 0.
    blur: largest standard deviation of a Gaussian, in pixels of the output; drawn from 0 on.
    """

    flip: bool = False
    rotation: float = 0.0
    shift: float = 0.0
    scale: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    exposure: float = 0.0
    blur: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.flip, bool):
            raise DataError(f"augmentation: flip must be true or false, found {self.flip!r}")
        for name in (field.name for field in fields(self) if field.name != "flip"):
            value, most = getattr(self, name), _MOST.get(name, 1)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
                raise DataError(f"augmentation: {name} must be a number from 0 to {most}, found {value!r}")

    @property
    def off(self) -> bool:
        """Whether nothing is changed."""
        return self == Augmentation()


def augment(clips: Tensor, settings: Augmentation, size: int, generator: torch.Generator) -> Tensor:
    """Clips uint8[n, t, h, w, 3] as float32[n, t, 3, size, size] from 0 to 1, each changed in a way of its own.

    All frames of a clip are changed alike, so that it stays a clip. In order: mirror, turn, zoom, shift and change of
    size, in one resampling whose borders are drawn out (mirrored ones would double polyps); blur; exposure, brightness,
    contrast, saturation, hue; cut off at 0 and 1.

    generator: on the CPU, the only source of random numbers; the same state gives the same clips.
    """
    if clips.ndim != 5 or clips.shape[-1] != 3 or clips.dtype != torch.uint8 or 0 in clips.shape[1:]:
        raise DataError(f"clips must be uint8 [n, t, h, w, 3], found {clips.dtype} {list(clips.shape)}")
    if size < 1:
        raise DataError(f"the size of augmented clips must be at least 1 pixel, found {size}")
    numbers = torch.rand(len(clips), len(_DRAWN), dtype=torch.float64, generator=generator) * 2 - 1
    drawn = dict(zip(_DRAWN, numbers.unbind(1), strict=True))
    gamma = torch.exp(math.log1p(settings.exposure) * drawn["exposure"])[:, None, None, None, None]
    parts = (_places(settings, drawn), _kernels(settings, drawn), gamma, *_colours(settings, drawn))
    place, kernel, gamma, colour, pull = (part.float().to(clips.device) for part in parts)
    moving = settings.flip or any((settings.rotation, settings.shift, settings.scale))
    colouring = any((settings.brightness, settings.contrast, settings.saturation, settings.hue))
    out = torch.empty(*clips.shape[:2], 3, size, size, dtype=torch.float32, device=clips.device)
    # A few clips at a time stay in the processor's cache from step to step, which takes about half the time of all at
    # once and little memory beside the result. More than one, since sampling gives each thread whole clips.
    at_once = min(4, torch.get_num_threads()) if clips.device.type == "cpu" else 16
    with torch.autocast(clips.device.type, enabled=False):
        for some in (slice(start, start + at_once) for start in range(0, len(clips), at_once)):
            # Sorted into planes while they are bytes: a quarter to move.
            x = clips[some].permute(0, 1, 4, 2, 3).contiguous().float().div_(255)
            if moving or clips.shape[2:4] != (size, size):
                x = _resampled(x, place[some], size)
            if settings.blur:
                x = _blurred(x, kernel[some])
            if settings.exposure:
                x = x.log2_().mul_(gamma[some]).exp2_()  # half the time of pow; 0 goes by way of -inf to 0
            if colouring:
                x = _coloured(x, colour[some], pull[some])
            torch.clamp(x, 0, 1, out=out[some])
    return out


def _places(settings: Augmentation, drawn: dict[str, Tensor]) -> Tensor:
    """Where each place of the result lies in the clip, [n, 2, 3]: M and v of p = M q + v, both sides from -1 to 1.

    The inverse of q = shift + zoom * R * mirror * p, with R a turn by the angle from x (right) to y (down).
    """
    left_right, top_bottom = (1 - 2 * settings.flip * (drawn[name] < 0) for name in ("left_right", "top_bottom"))
    angle = math.radians(settings.rotation) * drawn["rotation"]
    shrink = torch.exp(-math.log1p(settings.scale) * drawn["scale"])
    cos, sin = shrink * angle.cos(), shrink * angle.sin()
    rows = torch.stack([left_right * cos, left_right * sin, -top_bottom * sin, top_bottom * cos], 1).view(-1, 2, 2)
    shift = 2 * settings.shift * torch.stack([drawn["shift_x"], drawn["shift_y"]], 1)
    return torch.cat([rows, -rows @ shift[:, :, None]], 2)


def _resampled(x: Tensor, place: Tensor, size: int) -> Tensor:
    """All frames and colours [n, t, 3, h, w] of a clip as channels of one picture: where to look is worked out once."""
    grid = affine_grid(place, [len(x), 1, size, size], align_corners=False)
    found = grid_sample(x.flatten(1, 2), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return found.view(*x.shape[:3], size, size)


def _kernels(settings: Augmentation, drawn: dict[str, Tensor]) -> Tensor:
    """Gaussians [n, 2 r + 1] that add up to 1, r being 3 of the largest standard deviations, rounded up."""
    radius = math.ceil(3 * settings.blur)
    deviation = settings.blur * (1 + drawn["blur"]) / 2
    steps = torch.arange(-radius, radius + 1, dtype=torch.float64)
    # From 0.01 down all but the middle weight are 0 anyway, and nothing is divided by 0.
    weight = torch.exp(-((steps / deviation.clamp(min=0.01)[:, None]) ** 2) / 2)
    return weight / weight.sum(1, keepdim=True)


def _blurred(x: Tensor, kernel: Tensor) -> Tensor:
    """Each clip of [n, t, 3, h, w] blurred along x, then y, by its kernel [n, 2 r + 1]; borders are drawn out."""
    radius, planes = kernel.shape[1] // 2, x.shape[:3].numel()
    weight = kernel.repeat_interleave(planes // len(x), 0)[:, None, None]
    wide = pad(x.flatten(0, 2)[None], [radius] * 4, mode="replicate")
    return conv2d(conv2d(wide, weight, groups=planes), weight.mT, groups=planes).view(x.shape)


def _colours(settings: Augmentation, drawn: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Brightness, contrast, saturation and hue as one: [n, 3, 3] on the colours, and [n], the share of the mean grey.

    With factors b, c, s and W the weights of grey in each of 3 rows: value -> c b H (s + (1 - s) W) value + (1 - c) b
    mean grey. The hue's H turns I and Q of YIQ, which leaves grey as it is.
    """
    names = ("brightness", "contrast", "saturation")
    bright, contrast, saturation = (1 + getattr(settings, name) * drawn[name] for name in names)
    yiq = torch.tensor(_YIQ, dtype=torch.float64)
    angle = 2 * math.pi * settings.hue * drawn["hue"]
    turn = torch.eye(3, dtype=torch.float64).repeat(len(angle), 1, 1)
    turn[:, 1, 1] = turn[:, 2, 2] = angle.cos()
    turn[:, 2, 1] = angle.sin()
    turn[:, 1, 2] = -angle.sin()
    turn[:, 1:] *= saturation[:, None, None]  # I and Q are the distance from grey
    return (contrast * bright)[:, None, None] * (yiq.inverse() @ turn @ yiq), (1 - contrast) * bright


def _coloured(x: Tensor, colour: Tensor, pull: Tensor) -> Tensor:
    """The clips [n, t, 3, h, w] with `_colours` applied: one product and one sum, however many are on."""
    grey = x.mean((1, 3, 4)) @ x.new_tensor(_YIQ[0])
    mixed = colour[:, None] @ x.flatten(3)
    return mixed.add_((pull * grey)[:, None, None, None]).view(x.shape)
