"""Random changes to whole clips: where the polyp lies in its crop, its colours, its sharpness."""

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

from polypcount.errors import DataError
from polypcount.training.recipe import Augmentation

# Each setting has its own column of random numbers, used or not. So no setting changes what another one draws.
_DRAWN = (
    *("left_right", "top_bottom", "rotation", "shift_x", "shift_y", "scale"),
    *("brightness", "contrast", "saturation", "hue", "exposure", "blur"),
)
# Lightness, and two directions of colour in which grey is 0.
_YIQ = ((0.299, 0.587, 0.114), (0.596, -0.274, -0.322), (0.211, -0.523, 0.312))


def augment(clips: Tensor, settings: Augmentation, size: int, generator: torch.Generator) -> Tensor:
    """Change each clip in its own random way.

    All frames of a clip are changed in the same way, so that it stays a clip. In order: mirror, turn, zoom, shift and
    change of
    size, in one resampling that repeats the border pixels (mirrored borders would double polyps); blur; exposure,
    brightness, contrast, saturation, hue; cut off at 0 and 1.

    Args:
        clips: uint8[n, t, h, w, 3].
        settings: How far to change them.
        size: Side of the result in pixels.
        generator: On the CPU, the only source of random numbers. The same state gives the same clips.

    Returns:
        float32[n, t, 3, size, size], from 0 to 1.
    """
    if clips.ndim != 5 or clips.shape[-1] != 3 or clips.dtype != torch.uint8 or 0 in clips.shape[1:]:
        raise DataError(f"clips must be uint8 [n, t, h, w, 3], found {clips.dtype} {list(clips.shape)}")
    numbers = torch.rand(len(clips), len(_DRAWN), dtype=torch.float64, generator=generator) * 2 - 1
    drawn = dict(zip(_DRAWN, numbers.unbind(1), strict=True))
    gamma = torch.exp(math.log1p(settings.exposure) * drawn["exposure"])[:, None, None, None, None]
    parts = (_affine(settings, drawn), _kernels(settings, drawn), gamma, *_colours(settings, drawn))
    affine, kernel, gamma, colour, pull = (part.float().to(clips.device) for part in parts)
    moving = settings.flip or any((settings.rotation, settings.shift, settings.scale))
    colouring = any((settings.brightness, settings.contrast, settings.saturation, settings.hue))
    out = torch.empty(*clips.shape[:2], 3, size, size, dtype=torch.float32, device=clips.device)
    # A few clips at a time stay in the processor's cache between steps. This takes about half the time of all clips at
    # once, and little memory. It is more than one clip, since sampling gives each thread whole clips.
    at_once = min(4, torch.get_num_threads()) if clips.device.type == "cpu" else 16
    with torch.autocast(clips.device.type, enabled=False):
        for some in (slice(start, start + at_once) for start in range(0, len(clips), at_once)):
            # Permuted while still bytes: a quarter of the data to move.
            x = clips[some].permute(0, 1, 4, 2, 3).contiguous().float().div_(255)
            if moving or clips.shape[2:4] != (size, size):
                x = _resampled(x, affine[some], size)
            if settings.blur:
                x = _blurred(x, kernel[some])
            if settings.exposure:
                x = x.log2_().mul_(gamma[some]).exp2_()  # half the time of pow; 0 goes by way of -inf to 0
            if colouring:
                x = _coloured(x, colour[some], pull[some])
            torch.clamp(x, 0, 1, out=out[some])
    return out


def _affine(settings: Augmentation, drawn: dict[str, Tensor]) -> Tensor:
    """For points q of the result their points p in the clip, [n, 2, 3]: M and v of p = M q + v, coordinates -1 to 1.

    The inverse of q = shift + zoom * R * mirror * p, with R a turn by the angle from x (right) to y (down).
    """
    left_right, top_bottom = (1 - 2 * settings.flip * (drawn[name] < 0) for name in ("left_right", "top_bottom"))
    angle = math.radians(settings.rotation) * drawn["rotation"]
    shrink = torch.exp(-math.log1p(settings.scale) * drawn["scale"])
    cos, sin = shrink * angle.cos(), shrink * angle.sin()
    rows = torch.stack([left_right * cos, left_right * sin, -top_bottom * sin, top_bottom * cos], 1).view(-1, 2, 2)
    shift = 2 * settings.shift * torch.stack([drawn["shift_x"], drawn["shift_y"]], 1)
    return torch.cat([rows, -rows @ shift[:, :, None]], 2)


def _resampled(x: Tensor, affine: Tensor, size: int) -> Tensor:
    """Resample [n, t, 3, h, w]. Frames and colours of a clip are channels of one image, so the grid is made once."""
    grid = affine_grid(affine, [len(x), 1, size, size], align_corners=False)
    sampled = grid_sample(x.flatten(1, 2), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return sampled.view(*x.shape[:3], size, size)


def _kernels(settings: Augmentation, drawn: dict[str, Tensor]) -> Tensor:
    """Gaussians [n, 2 r + 1] that add up to 1; r is 3 times the largest standard deviation, rounded up."""
    radius = math.ceil(3 * settings.blur)
    deviation = settings.blur * (1 + drawn["blur"]) / 2
    steps = torch.arange(-radius, radius + 1, dtype=torch.float64)
    # Below 0.01, all weights except the middle one are 0 anyway. The limit avoids a division by 0.
    weight = torch.exp(-((steps / deviation.clamp(min=0.01)[:, None]) ** 2) / 2)
    return weight / weight.sum(1, keepdim=True)


def _blurred(x: Tensor, kernel: Tensor) -> Tensor:
    """Each clip of [n, t, 3, h, w] blurred along x, then y, by its kernel [n, 2 r + 1]; border pixels are repeated."""
    radius, planes = kernel.shape[1] // 2, x.shape[:3].numel()
    weight = kernel.repeat_interleave(planes // len(x), 0)[:, None, None]
    wide = pad(x.flatten(0, 2)[None], [radius] * 4, mode="replicate")
    return conv2d(conv2d(wide, weight, groups=planes), weight.mT, groups=planes).view(x.shape)


def _colours(settings: Augmentation, drawn: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Brightness, contrast, saturation and hue in one: [n, 3, 3] on the colours, and [n], the share of the mean grey.

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
    """Apply `_colours` to clips [n, t, 3, h, w]: always one product and one sum."""
    grey = x.mean((1, 3, 4)) @ x.new_tensor(_YIQ[0])
    mixed = colour[:, None] @ x.flatten(3)
    return mixed.add_((pull * grey)[:, None, None, None]).view(x.shape)
