"""Frames whose pixels are converted when they are asked for, whole or straight at a smaller size."""

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from polypcount.errors import DataError
from polypcount.video.crop import resize
from polypcount.video.frames import LARGEST_PIXELS, FrameSource, Image, refuse_no_image

SizeOf = Callable[[int, int], tuple[int, int]]


class Pixels(Protocol):
    """What a view converts: a frame as its decoder gives it. Threads may use it at the same time."""

    def image(self) -> Image:
        """The whole frame, RGB uint8[height, width, 3]."""
        ...

    def scaled(self, width: int, height: int) -> Image:
        """The frame resized without aliasing, RGB uint8[height, width, 3]."""
        ...


class FrameView:
    """One frame of a recording. Its pixels are converted when they are asked for, in any thread.

    Until then it holds the frame as the decoder gave it, about half of the memory of RGB for a video.

    Args:
        width: Pixels of the frame.
        height: Pixels of the frame.
        pixels: Converts the frame.
    """

    def __init__(self, width: int, height: int, pixels: Pixels) -> None:
        self.width, self.height = width, height
        self.pixels = pixels
        self._image: Image | None = None
        self._scaled: tuple[tuple[int, int], Image] | None = None

    @classmethod
    def of(cls, image: Image) -> "FrameView":
        """The view of an image, RGB uint8[height, width, 3]."""
        refuse_no_image(image)
        return cls(image.shape[1], image.shape[0], _Plain(image))

    @property
    def image(self) -> Image:
        """The whole frame, RGB uint8[height, width, 3]; converted at the first use, and kept."""
        if self._image is None:
            self._image = self.pixels.image()
        return self._image

    def scaled(self, width: int, height: int) -> Image:
        """The frame at another size, RGB uint8[height, width, 3], without aliasing; the last one is kept.

        It is made from what the decoder gave, in one pass, so it does not wait for `image`. Values differ by a few
        levels from resizing `image`.
        """
        if self._scaled is None or self._scaled[0] != (width, height):
            self._scaled = (width, height), self._at(width, height)
        return self._scaled[1]

    def _at(self, width: int, height: int) -> Image:
        if (width, height) == (self.width, self.height):
            return self.image
        if min(width, height) < 1 or width * height > LARGEST_PIXELS:
            raise DataError(f"a frame can be resized to 1 to {LARGEST_PIXELS:,} pixels, not to {width} x {height}")
        return self.pixels.scaled(width, height)


@runtime_checkable
class ViewSource(Protocol):
    """A frame source that gives frames without converting their pixels."""

    def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
        """Like `FrameSource.frames`, with a view of each frame.

        A single image that is damaged can be found out when its pixels are asked for.
        """
        ...


def views(source: FrameSource, wanted: ArrayLike, size_of: SizeOf | None = None) -> Iterator[tuple[int, FrameView]]:
    """Each wanted frame once, in rising order, as (index, view), from any source.

    Several views can be held at a time, and used by other threads than the one that iterates.

    Args:
        source: Gives the frames.
        wanted: Indices of frames.
        size_of: Gives the width and height that will be asked of a view, from those of its frame. If given, the thread
            that iterates converts the pixels to this size, and an error in them is raised there.

    Raises:
        DataError: The recording has no frame of this index.
        FileError: A frame cannot be read; raised after the readable frames before it. Of a folder of JPEG images, a
            damaged one raises it when its pixels are asked for, here or in its view.
    """
    found = source.views(wanted) if isinstance(source, ViewSource) else _plain_views(source.frames(wanted))
    return found if size_of is None else _converted(found, size_of)


def _plain_views(frames: Iterator[tuple[int, Image]]) -> Iterator[tuple[int, FrameView]]:
    for index, image in frames:
        yield index, FrameView.of(image)


def _converted(found: Iterator[tuple[int, FrameView]], size_of: SizeOf) -> Iterator[tuple[int, FrameView]]:
    for index, view in found:
        view.scaled(*size_of(view.width, view.height))
        yield index, view


class _Plain:
    """An image that is there."""

    def __init__(self, image: Image) -> None:
        self._image = image

    def image(self) -> Image:
        return self._image

    def scaled(self, width: int, height: int) -> Image:
        return resize(self._image, width, height)
