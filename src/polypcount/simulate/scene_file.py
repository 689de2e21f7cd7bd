"""A scene on disk: a small JSON file that says how a procedure is drawn, in place of its pixels.

It holds the seed and settings of the timeline, the difficulty, and for each polyp the still that it is taken from, or
none if it is drawn. Every reader of frames can open it; pixels are drawn when they are asked for.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from polypcount.errors import DataError, FileError, first_line
from polypcount.simulate.appearance import Difficulty
from polypcount.simulate.figures import SplitPart
from polypcount.simulate.patches import drawn_polyp
from polypcount.simulate.scene import PatchMaker, Scene
from polypcount.simulate.settings import TimelineSettings
from polypcount.simulate.stills import Still, still_polyp
from polypcount.simulate.timeline import SimulatedTimeline, simulate_timeline
from polypcount.storage import Manifest, read_manifest, write_text
from polypcount.video import CropRule
from polypcount.video.crop import padded
from polypcount.video.frames import Image, refuse_large, wanted_frames
from polypcount.video.views import FrameView

# Raise it with every change in drawing. It is in the file, so everything made from the file is then made again.
FORMAT_VERSION = 2
SUFFIX = ".scene"
_LARGEST_BYTES = 1 << 20


class SceneFile(Manifest):
    """What decides every pixel of a procedure.

    Attributes:
        seed: Seed of the timeline, see `simulate_timelines`.
        index: Index of the procedure, see `simulate_timelines`.
        like: The part of REAL-Colon that the timeline is modelled on.
        settings: Settings of the timeline.
        looks: The difficulty.
        stills: The still of each polyp; None for a polyp that is drawn.
    """

    FORMAT: ClassVar[str] = "polypcount-scene"
    VERSION: ClassVar[int] = FORMAT_VERSION
    KIND: ClassVar[str] = "a scene of polypcount simulate"

    format: str = "polypcount-scene"
    format_version: int = FORMAT_VERSION
    seed: Annotated[int, Field(ge=0)]
    index: Annotated[int, Field(ge=0)]
    like: SplitPart
    settings: TimelineSettings
    looks: Difficulty
    stills: tuple[Still | None, ...]

    def save(self, path: Path) -> None:
        """Write the file, unless it exists with the same content. Then files that were made from it stay valid."""
        stills = [still and asdict(still) for still in self.stills]
        values = {**dict(self), "settings": asdict(self.settings), "looks": asdict(self.looks), "stills": stills}
        text = json.dumps(values, indent=1) + "\n"
        try:
            if not path.is_file() or path.read_bytes() != text.encode():
                write_text(path, text)
        except OSError as problem:
            raise FileError(f"{path} cannot be written: {first_line(problem)}") from None

    @classmethod
    def load(cls, path: Path) -> "SceneFile":
        """Read a file that `save` has written; any other file is a `FileError`."""
        scene = read_manifest(path, cls, _LARGEST_BYTES)
        if scene.format_version < FORMAT_VERSION:
            raise FileError(
                f"{path} is a scene of an older version ({scene.format_version}); this polypcount draws version "
                f"{FORMAT_VERSION}, and what it draws would not fit the boxes; simulate it again"
            )
        return scene

    def timeline(self) -> SimulatedTimeline:
        """Which polyp is where, and when."""
        return simulate_timeline(self.seed, self.index, self.like, self.settings)

    def scene(self) -> Scene:
        """The scene, ready to be drawn."""
        timeline = self.timeline()
        if len(self.stills) != len(timeline.corpus.polyps):
            raise DataError(
                f"the scene has {len(timeline.corpus.polyps)} polyps and {len(self.stills)} stills; simulate it again"
            )
        return Scene(timeline, [_maker(still) for still in self.stills], self.looks, [self.seed, self.index])


def _maker(still: Still | None) -> PatchMaker:
    if still is None:
        return drawn_polyp
    return lambda patient, _: still_polyp(Path(still.image), Path(still.mask), patient)


class SceneSource:
    """A scene as a source of frames, which also draws single crops; see `polypcount.video.FrameSource`."""

    def __init__(self, path: Path) -> None:
        self._path, self._scene = path, _opened(path, path.stat().st_mtime_ns)
        self.frame_count, self.fps = self._scene.video.frame_count, self._scene.video.fps
        self.width, self.height = self._scene.width, self._scene.height
        refuse_large(path, self.width, self.height)

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order."""
        return ((frame, view.pixels.image()) for frame, view in self.views(wanted))

    def views(self, wanted: ArrayLike) -> Iterator[tuple[int, FrameView]]:
        """The same frames, drawn when their pixels are asked for, and small at once; see `polypcount.video.views`."""
        for frame in wanted_frames(wanted, self.frame_count, self._path).tolist():
            yield frame, FrameView(self.width, self.height, _Drawing(self._scene, frame))

    def crop(self, frame: int, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, drawn at its own size: about 10 times faster than cutting it from a whole frame."""
        wanted_frames([frame], self.frame_count, self._path)
        left, top, right, bottom = rule.region(xyxy, self.width, self.height)
        size = rule.shown_size(right - left, bottom - top)
        return padded(self._scene.draw(frame, (left, top, right, bottom), size), rule.size)


class _Drawing:
    """A frame that is not drawn yet; see `polypcount.video.views.Pixels`."""

    def __init__(self, scene: Scene, frame: int) -> None:
        self._scene, self._frame = scene, frame

    def image(self) -> Image:
        return self._scene.draw(self._frame)

    def scaled(self, width: int, height: int) -> Image:
        return self._scene.draw(self._frame, size=(width, height))


@lru_cache(maxsize=4)
def _opened(path: Path, changed_ns: int) -> Scene:  # noqa: ARG001 - a changed file is another scene
    return SceneFile.load(path).scene()
