"""What people see of a tracklet: views of the polyp over time, and its best frame as a whole."""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter

from polypcount.counting.result import Picture
from polypcount.video import CropRule, FrameMask, FrameSource, FrameView, resize
from polypcount.video.frames import Image
from polypcount.video.opening import CropSource

VIEW = CropRule(scale=1.0, size=224, shape="pad")  # of the window around a box, see `view_window`
_VIEW_SCALE, _LEAST_WINDOW = 2.0, 16  # side of a window over the longer side of the box; in pixels
_VIEWS, _WHOLE_WIDTH, _JPEG_QUALITY = 4, 720, 85
# Grey values, of 255: a pixel counts fully from 90 to 180, and not at all below 20 or above 245.
_GREY_VALUES, _GREY_WEIGHTS = (20, 90, 180, 245), (0.0, 1.0, 1.0, 0.0)
_GLARE, _AROUND_GLARE = 230, 3  # grey value; pixels around it whose contrast is that of the glare, not of the polyp
_HALF_SHARP = 0.003  # relative variance of the Laplacian at which sharpness is one half; real polyps: 0.0007 to 0.05
_DARKEST_MEAN = 20  # grey value; below, contrast is noise
_LARGE = 0.3  # box side over frame side above which larger is not better
_GREY = np.array([0.299, 0.587, 0.114], np.float32)


class FramePixels(Protocol):
    """The pixels of one frame: crops for the encoder, and what may be shown to people."""

    @property
    def width(self) -> int: ...  # noqa: D102
    @property
    def height(self) -> int: ...  # noqa: D102

    def crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for the encoder."""
        ...

    def shown_crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for people: masked parts are black."""
        ...

    def shown(self) -> Image:
        """The whole frame, for people."""
        ...


class DecodedFrame:
    """A frame in memory: RGB uint8[height, width, 3], or a view whose pixels are converted when they are needed.

    The mask is for people only. The encoder sees the frame as it is, so a mask never changes a count.
    """

    def __init__(self, frame: Image | FrameView, mask: FrameMask | None = None) -> None:
        self._view = frame if isinstance(frame, FrameView) else FrameView.of(frame)
        self.mask = mask
        self.height, self.width = self._view.height, self._view.width

    @property
    def frame(self) -> Image:
        """The whole frame."""
        return self._view.image

    @cached_property
    def _shown(self) -> Image:
        return self.frame if self.mask is None else self.mask.apply(self.frame)

    def crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for the encoder."""
        return rule.crop(self.frame, xyxy)

    def shown_crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for people."""
        return rule.crop(self._shown, xyxy)

    def shown(self) -> Image:
        """The whole frame, for people."""
        return self._shown


class DrawnFrame:
    """A frame of a source that can draw a crop alone, much faster than the whole frame."""

    def __init__(self, source: FrameSource, frame: int, mask: FrameMask | None = None) -> None:
        assert isinstance(source, CropSource)
        self._source = source
        self._crops: CropSource = source
        self._frame = frame
        self._mask = mask
        self.width, self.height = source.width, source.height

    def crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for the encoder."""
        return self._crops.crop(self._frame, xyxy, rule)

    def shown_crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for people."""
        return self.crop(xyxy, rule) if self._mask is None else rule.crop(self.shown(), xyxy)

    def shown(self) -> Image:
        """The whole frame, for people."""
        image = next(self._source.frames([self._frame]))[1]
        return image if self._mask is None else self._mask.apply(image)


def view_picture(frame: int, xyxy: NDArray[np.float32], pixels: FramePixels) -> Picture:
    """The box and a little around it."""
    window = view_window(xyxy, pixels.width, pixels.height)
    image, inside = pixels.shown_crop(np.array(window, np.float32), VIEW), _box_in_view(xyxy, window)
    return _picture(frame, image, inside, quality(image, inside, xyxy, pixels.width, pixels.height))


def whole_picture(frame: int, xyxy: NDArray[np.float32], pixels: FramePixels, good: float) -> Picture:
    """The whole frame with the box. good: The quality of the box's view."""
    image = pixels.shown()
    scale = min(1.0, _WHOLE_WIDTH / image.shape[1])
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    left, top, right, bottom = (float(value) * scale for value in xyxy)
    return _picture(frame, resize(image, width, height), (left, top, right, bottom), good)


def best_views(views: Sequence[Picture]) -> tuple[Picture, ...]:
    """Split the views into a few runs of equal length, and take the best of each, in time order."""
    if not views:
        return ()
    runs = np.array_split(np.arange(len(views)), min(_VIEWS, len(views)))
    return tuple(max((views[k] for k in run), key=lambda view: view.quality) for run in runs)


def quality(
    view: Image, inside: tuple[float, float, float, float], xyxy: NDArray[np.float32], width: int, height: int
) -> float:
    """How well a polyp can be seen, 0 to 1: sharpness * exposure^2 * size^0.5 * (1 + centring) / 2.

    Sharpness is v / (v + 0.003), with v the variance of the Laplacian of the grey values inside the box / their mean
    squared, so that a brighter picture is not a sharper one. Glare and what is next to it are left out of both: the
    edge of a highlight is sharp, but shows nothing of the polyp. Exposure is the mean weight of the box's pixels: 1 for
    grey values from 90 to 180, falling to 0 at 20 and at 245. Size is the square root of box area / frame area, divided
    by 0.3, at most 1. Centring is 1 for a box in the middle of the frame and 0 for one in a corner.

    Args:
        view: uint8[h, w, 3], the box and a little around it. All views have one size, so a small box, which is
            enlarged, counts as less sharp.
        inside: Left, top, right, bottom of the box in the view.
        xyxy: The box in the frame.
        width: Width of the frame in pixels.
        height: Height of the frame in pixels.
    """
    left, top, right, bottom = (round(value) for value in inside)
    grey = view[top : max(bottom, top + 3), left : max(right, left + 3)].astype(np.float32) @ _GREY
    if min(grey.shape) < 3:
        return 0.0
    near_glare = maximum_filter(grey > _GLARE, 2 * _AROUND_GLARE + 1)
    clear = ~near_glare[1:-1, 1:-1]
    if not clear.any():
        return 0.0
    laplacian = grey[1:-1, :-2] + grey[1:-1, 2:] + grey[:-2, 1:-1] + grey[2:, 1:-1] - 4 * grey[1:-1, 1:-1]
    mean = max(float(grey[1:-1, 1:-1][clear].mean()), _DARKEST_MEAN)
    variance = float(laplacian[clear].var()) / mean**2
    exposure = float(np.interp(grey, _GREY_VALUES, _GREY_WEIGHTS).mean())
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    size = min(np.sqrt(max((x2 - x1) * (y2 - y1), 0.0) / (width * height)) / _LARGE, 1.0)
    away = np.hypot((x1 + x2) / width - 1, (y1 + y2) / height - 1) / np.sqrt(2)
    centring = 1 - min(float(away), 1.0)
    return float(variance / (variance + _HALF_SHARP) * exposure**2 * np.sqrt(size) * (1 + centring) / 2)


def _picture(frame: int, image: Image, xyxy: tuple[float, float, float, float], good: float) -> Picture:
    import simplejpeg  # type: ignore[import-untyped, unused-ignore]

    jpeg: bytes = simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality=_JPEG_QUALITY)
    return Picture(frame, jpeg, image.shape[1], image.shape[0], xyxy, good)


def view_window(xyxy: NDArray[np.float32], width: int, height: int) -> tuple[int, int, int, int]:
    """The part of the frame that a view shows: left, top, right, bottom in whole pixels.

    It is a square about the box, twice as large as its longer side, moved into the frame. Where the frame has no room
    for that, the square is as large as fits, but never smaller than the box; what then lies outside is cut off.
    """
    x1, y1, x2, y2 = (float(value) for value in xyxy)
    longer = max(min(x2, width) - max(x1, 0.0), min(y2, height) - max(y1, 0.0), _LEAST_WINDOW / _VIEW_SCALE)
    side = math.ceil(max(min(_VIEW_SCALE * longer, width, height), longer))
    (left, right), (top, bottom) = _moved_inside(x1, x2, side, width), _moved_inside(y1, y2, side, height)
    return left, top, right, bottom


def _moved_inside(low: float, high: float, side: int, length: int) -> tuple[int, int]:
    """The span of this side about the middle of a box, moved into 0 .. length."""
    side = min(side, length)
    start = round(min(max((low + high - side) / 2, 0), length - side))
    return start, start + side


def _box_in_view(xyxy: NDArray[np.float32], window: tuple[int, int, int, int]) -> tuple[float, float, float, float]:
    """The position of the box in its view."""
    left, top, right, bottom = window
    shown_width, shown_height = VIEW.shown_size(right - left, bottom - top)
    across, down = shown_width / (right - left), shown_height / (bottom - top)
    x, y = (VIEW.size - shown_width) // 2, (VIEW.size - shown_height) // 2
    corners = (
        x + (float(xyxy[0]) - left) * across,
        y + (float(xyxy[1]) - top) * down,
        x + (float(xyxy[2]) - left) * across,
        y + (float(xyxy[3]) - top) * down,
    )
    x1, y1, x2, y2 = (min(max(value, 0.0), float(VIEW.size)) for value in corners)
    return x1, y1, x2, y2
