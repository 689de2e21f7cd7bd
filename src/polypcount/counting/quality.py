"""How well a polyp is to be seen in a frame, so that people are shown its best one."""

import numpy as np
from numpy.typing import NDArray

from polypcount.video.frames import Image

_DARK, _BLOWN = 30, 245  # grey values, of 255
_HALF_SHARP = 40.0  # variance of the Laplacian at which sharpness is one half; a soft frame has 10, a crisp one 200
_LARGE = 0.3  # box side over frame side from which on larger is not better


def quality(
    view: Image, inside: tuple[float, float, float, float], xyxy: NDArray[np.float32], width: int, height: int
) -> float:
    """0 to 1: sharpness * exposure * size^0.5 * (1 + centring) / 2.

    sharpness: v / (v + 40), v the variance of the Laplacian of the grey values within the box.
    exposure: share of pixels of the box that are neither nearly black nor blown out.
    size: square root of box area / frame area, over 0.3, at most 1.
    centring: 1 for a box in the middle of the frame, 0 for one in a corner.

    view: uint8[h, w, 3], the box and some of what is around it, always at one scale, so that a small box, which is
        enlarged, counts as less sharp. inside: left, top, right, bottom of the box in it.
    xyxy: the box in the frame, which is width x height pixels.
    """
    left, top, right, bottom = (round(value) for value in inside)
    grey = view[top : max(bottom, top + 3), left : max(right, left + 3)].astype(np.float32) @ _GREY
    if min(grey.shape) < 3:
        return 0.0
    laplacian = grey[1:-1, :-2] + grey[1:-1, 2:] + grey[:-2, 1:-1] + grey[2:, 1:-1] - 4 * grey[1:-1, 1:-1]
    variance = float(laplacian.var())
    exposure = float(((grey > _DARK) & (grey < _BLOWN)).mean())
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    size = min(np.sqrt(max((x2 - x1) * (y2 - y1), 0.0) / (width * height)) / _LARGE, 1.0)
    away = np.hypot((x1 + x2) / width - 1, (y1 + y2) / height - 1) / np.sqrt(2)
    centring = 1 - min(float(away), 1.0)
    return float(variance / (variance + _HALF_SHARP) * exposure * np.sqrt(size) * (1 + centring) / 2)


_GREY = np.array([0.299, 0.587, 0.114], np.float32)
