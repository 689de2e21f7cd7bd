"""A scene on disk: a small JSON file that says how a procedure is drawn, in the place of its pixels.

It holds the timeline's seed and settings, the strength of each difficulty, and for each polyp the still that it is
taken from, or none where it is drawn. Any reader of frames can open it; pixels are made when they are asked for.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.corpus import Corpus
from polypcount.errors import DataError, FileError, first_line
from polypcount.simulate.appearance import Looks
from polypcount.simulate.drawn_polyp import drawn_polyp
from polypcount.simulate.figures import Part
from polypcount.simulate.scene import PatchMaker, Scene
from polypcount.simulate.still_polyp import still_polyp
from polypcount.simulate.timeline import TimelineSettings, simulate_timeline
from polypcount.video import CropRule
from polypcount.video.crop import padded
from polypcount.video.frames import Image, refuse_large, wanted_frames
from polypcount.whole import whole_file

# To be raised with every change of what is drawn: it is in the file, so that whatever was made from it is made anew.
FORMAT, FORMAT_VERSION = "polypcount-scene", 1
SUFFIX = ".scene"
_LARGEST_BYTES = 1 << 20


@dataclass(frozen=True)
class Still:
    """A still and its mask. image, mask: paths of files."""

    image: str
    mask: str


@dataclass(frozen=True)
class SceneFile:
    """What decides every pixel of a procedure.

    seed, index, like, settings: of the timeline, see `simulate_timelines`. looks: strength of each difficulty.
    stills: for each polyp, or None for one that is drawn.
    """

    seed: int
    index: int
    like: Part
    settings: TimelineSettings
    looks: Looks
    stills: tuple[Still | None, ...]

    def save(self, path: Path) -> None:
        """Write the file, unless it is there with the same content: what was made from it stays valid."""
        text = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}, indent=1) + "\n"
        try:
            if not path.is_file() or path.read_bytes() != text.encode():
                with whole_file(path) as unfinished:
                    unfinished.write_bytes(text.encode())
        except OSError as problem:
            raise FileError(f"{path} cannot be written: {first_line(problem)}") from None

    @classmethod
    def load(cls, path: Path) -> "SceneFile":
        """Read a file that `save` has written; anything else is a `FileError`."""
        try:
            with path.open("rb") as file:
                values: Any = json.loads(file.read(_LARGEST_BYTES))
            if not isinstance(values, dict):
                raise ValueError("a JSON object is expected")
            if values.pop("format", None) != FORMAT or values.pop("format_version", None) != FORMAT_VERSION:
                raise ValueError(f'"format" must be "{FORMAT}", version {FORMAT_VERSION}')
            if values["like"] not in get_args(Part):
                raise ValueError(f"like must be one of {', '.join(get_args(Part))}")
            for name in ("seed", "index"):
                if not isinstance(values[name], int) or values[name] < 0:
                    raise ValueError(f"{name} must be a whole number from 0")
            return cls(
                values["seed"],
                values["index"],
                values["like"],
                TimelineSettings(**values["settings"]),
                Looks(**values["looks"]),
                tuple(
                    None if still is None else Still(str(still["image"]), str(still["mask"]))
                    for still in values["stills"]
                ),
            )
        except OSError as problem:
            raise FileError(f"{path} cannot be read: {problem.strerror}") from None
        except KeyError as problem:
            raise FileError(
                f"{path} is not a scene of polypcount simulate: {problem} is missing; simulate it again"
            ) from None
        except (ValueError, TypeError, RecursionError) as problem:
            raise FileError(f"{path} is not a scene of polypcount simulate: {problem}; simulate it again") from None

    def timeline(self) -> Corpus:
        """Who is where when, a corpus of one video."""
        return simulate_timeline(self.seed, self.index, self.like, self.settings)

    def scene(self) -> Scene:
        """Ready to be drawn."""
        timeline = self.timeline()
        if len(self.stills) != len(timeline.polyps):
            raise DataError(
                f"the scene has {len(timeline.polyps)} polyps and {len(self.stills)} stills; simulate it again"
            )
        return Scene(timeline, [_maker(still) for still in self.stills], self.looks, [self.seed, self.index])


def _maker(still: Still | None) -> PatchMaker:
    if still is None:
        return drawn_polyp
    return lambda patient, _: still_polyp(Path(still.image), Path(still.mask), patient)


class SceneSource:
    """A scene as a source of frames, which also draws crops at once; see `polypcount.video.FrameSource`."""

    def __init__(self, path: Path) -> None:
        self._path, self._scene = path, _opened(path, path.stat().st_mtime_ns)
        video = self._scene.video
        self.frame_count, self.fps = video.frame_count, video.fps
        self.width, self.height = self._scene.width, self._scene.height
        refuse_large(path, self.width, self.height)

    def frames(self, wanted: ArrayLike) -> Iterator[tuple[int, Image]]:
        """Each wanted frame once, in rising order."""
        for frame in wanted_frames(wanted, self.frame_count, self._path).tolist():
            yield frame, self._scene.draw(frame)

    def crop(self, frame: int, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop around a box, drawn in its own size: some 10 times faster than to draw a whole frame and cut it."""
        wanted_frames([frame], self.frame_count, self._path)
        left, top, right, bottom = rule.region(xyxy, self.width, self.height)
        width, height = rule.shown_size(right - left, bottom - top)
        return padded(self._scene.draw(frame, (left, top, right, bottom), (width, height)), rule.size)


@lru_cache(maxsize=4)
def _opened(path: Path, changed_ns: int) -> Scene:  # noqa: ARG001 - a changed file is another scene
    return SceneFile.load(path).scene()
