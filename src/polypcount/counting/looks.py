"""Where the pixels of a box come from: a frame at hand, or a source that draws parts of frames."""

from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from polypcount.video import CropRule, FrameSource
from polypcount.video.frames import Image
from polypcount.video.opening import CropSource


class Mask(Protocol):
    """What blackens the parts of a frame that are not to be shown, such as a patient's name."""

    def apply(self, frame: Image) -> Image:
        """The frame as it may be shown."""
        ...


class Look(Protocol):
    """One frame, to be looked at.

    width, height: of the frame in pixels.
    """

    @property
    def width(self) -> int: ...  # noqa: D102 - described above, with the one below
    @property
    def height(self) -> int: ...  # noqa: D102

    def crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for the encoder."""
        ...

    def shown_crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, for people: what is not to be shown is black."""
        ...

    def shown(self) -> Image:
        """The whole frame, for people."""
        ...


class FrameLook:
    """A frame that is in memory, RGB uint8[height, width, 3].

    What is masked is masked for people only: the encoder sees the frame as it is, so that a mask never changes a count.
    """

    def __init__(self, frame: Image, mask: Mask | None = None) -> None:
        self.frame = frame
        self.mask = mask
        self.height, self.width = frame.shape[:2]

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


class DrawnLook:
    """A frame of a source that draws crops by themselves, for much less than the frame around them."""

    def __init__(self, source: FrameSource, frame: int) -> None:
        assert isinstance(source, CropSource)
        self._source = source
        self._crops: CropSource = source
        self._frame = frame
        self.width, self.height = source.width, source.height

    def crop(self, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box."""
        return self._crops.crop(self._frame, xyxy, rule)

    shown_crop = crop

    def shown(self) -> Image:
        """The whole frame."""
        return next(self._source.frames([self._frame]))[1]
