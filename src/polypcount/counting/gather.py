"""The frames of each tracklet that are looked at, and the vectors made of them."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polypcount.counting.jumps import jumps
from polypcount.counting.looks import Look
from polypcount.counting.quality import quality
from polypcount.counting.result import Picture
from polypcount.encoder import Encoder
from polypcount.video import CropRule, resize
from polypcount.video.frames import Image

# Of a tracklet so many frames are looked at; twice as many move its vector by less than another frame does.
MOST_LOOKED_AT = 32
RESAMPLES = 20
_VIEW = CropRule(scale=2.0, size=224, shape="pad")
_VIEWS, _WHOLE_WIDTH, _JPEG_QUALITY = 4, 720, 85


def step_for(boxes: int) -> int:
    """Which boxes of a tracklet of this many are looked at: every so many-th, from the first on.

    The smallest power of two that leaves at most `MOST_LOOKED_AT`, so that whoever does not know how long a tracklet
    will be can drop every second one as it grows, and ends with the same ones as who knows.
    """
    step = 1
    while -(-boxes // step) > MOST_LOOKED_AT:
        step *= 2
    return step


@dataclass(frozen=True, eq=False)
class Gathered:
    """A tracklet as far as counting needs it.

    number: running number that its linker gave it. part: 0, or more for a later part of one that was split.
    vectors: float32[1 + RESAMPLES, d]; the first of all frames that were looked at, the others each of as many drawn
        from them with replacement.
    """

    number: int
    start_frame: int
    stop_frame: int
    box_count: int
    vectors: NDArray[np.float32]
    views: tuple[Picture, ...] = ()
    whole: Picture | None = None
    part: int = 0


@dataclass(frozen=True)
class _Seen:
    """A box that was looked at. index: of the box in its tracklet."""

    index: int
    frame: int
    crop: Image
    view: Picture | None


@dataclass
class _Open:
    """A tracklet that may go on."""

    seen: list[_Seen] = field(default_factory=list)
    whole: Picture | None = None


class Gatherer:
    """Looks at boxes of several tracklets, as frames come by, and makes vectors of those that have ended.

    Memory: up to 32 small crops for each tracklet that has not ended; none for those that have.

    pictures: whether people will want to see something.
    split: whether a tracklet is split where its looks change at once, as where a tracker went over to another polyp.
    seconds: where the time went.
    """

    def __init__(self, encoder: Encoder, *, pictures: bool = True, split: bool = False, seed: int = 0) -> None:
        self.encoder = encoder
        self.pictures = pictures
        self.split = split
        self.seed = seed
        self.seconds = {"crop": 0.0, "pictures": 0.0, "embed": 0.0}
        self._open: dict[int, _Open] = {}
        self._rule = encoder.spec.preprocessing.crop

    def see(self, number: int, index: int, frame: int, xyxy: NDArray[np.float32], look: Look) -> None:
        """Look at a box. number: of its tracklet; index: of the box in it, rising; boxes between may be left out."""
        step = step_for(index + 1)
        if index % step:
            return
        started = time.perf_counter()
        mine = self._open.setdefault(number, _Open())
        if len(mine.seen) == MOST_LOOKED_AT:
            mine.seen = [one for one in mine.seen if one.index % step == 0]
        crop = look.crop(xyxy, self._rule)
        cut = time.perf_counter()
        view = self._picture(mine, frame, xyxy, look) if self.pictures else None
        mine.seen.append(_Seen(index, frame, crop, view))
        self.seconds["crop"] += cut - started
        self.seconds["pictures"] += time.perf_counter() - cut

    def _picture(self, mine: _Open, frame: int, xyxy: NDArray[np.float32], look: Look) -> Picture:
        """What people see of a box; and the whole frame, where none was better."""
        shown = look.shown_crop(xyxy, _VIEW)
        inside = _box_in_view(xyxy, look.width, look.height)
        good = quality(shown, inside, xyxy, look.width, look.height)
        if mine.whole is None or good > mine.whole.quality:
            image = look.shown()
            scale = min(1.0, _WHOLE_WIDTH / image.shape[1])
            height, width = (max(1, round(side * scale)) for side in image.shape[:2])
            left, top, right, bottom = (float(value) * scale for value in xyxy)
            mine.whole = _picture(frame, resize(image, width, height), (left, top, right, bottom), good)
        return _picture(frame, shown, inside, good)

    def so_far(self, number: int) -> NDArray[np.float32] | None:
        """float32[d], the vector of a tracklet that has not ended; None where nothing of it was looked at."""
        mine = self._open.get(number)
        if mine is None:
            return None
        with self._embedding():
            features = self._features(mine.seen)
            return np.asarray(self.encoder.encode_sequences(features[None], np.ones((1, len(features)), bool))[0])

    def forget(self, number: int) -> None:
        """Drop a tracklet that is not wanted."""
        self._open.pop(number, None)

    def end(self, number: int, start_frame: int, stop_frame: int, box_count: int) -> list[Gathered]:
        """A tracklet has ended: its vectors and its best pictures; of each part, where it was split."""
        mine = self._open.pop(number)
        with self._embedding():
            features = self._features(mine.seen)
            cuts = jumps(features, self.encoder) if self.split else []
        found = []
        for part, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(mine.seen)], strict=True)):
            seen = mine.seen[first:last]
            start = mine.seen[first].frame if first else start_frame
            stop = mine.seen[last].frame if last < len(mine.seen) else stop_frame
            until = mine.seen[last].index if last < len(mine.seen) else box_count
            boxes = until - mine.seen[first].index
            rng = np.random.default_rng([self.seed, start, stop, boxes])
            with self._embedding():
                vectors = self._resampled(features[first:last], rng)
            views = _best_views([one.view for one in seen if one.view is not None])
            whole = mine.whole if mine.whole is not None and start <= mine.whole.frame < stop else None
            found.append(Gathered(number, start, stop, boxes, vectors, views, whole, part))
        return found

    def _features(self, seen: Sequence[_Seen]) -> NDArray[np.float32]:
        return self.encoder.encode_frames(np.stack([one.crop for one in seen]))

    def _resampled(self, features: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
        every = np.arange(len(features))[None]
        chosen = np.vstack([every, rng.integers(0, len(features), (RESAMPLES, len(features)))])
        return self.encoder.encode_sequences(features[chosen], np.ones(chosen.shape, bool))

    @contextmanager
    def _embedding(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds["embed"] += time.perf_counter() - started


def _picture(frame: int, image: Image, xyxy: tuple[float, float, float, float], good: float) -> Picture:
    import simplejpeg  # type: ignore[import-untyped, unused-ignore]

    jpeg: bytes = simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality=_JPEG_QUALITY)
    return Picture(frame, jpeg, image.shape[1], image.shape[0], xyxy, good)


def _box_in_view(xyxy: NDArray[np.float32], width: int, height: int) -> tuple[float, float, float, float]:
    """Where the box is in the picture that the rule of views cuts."""
    left, top, right, bottom = _VIEW.region(xyxy, width, height)
    shown_width, shown_height = _VIEW.shown_size(right - left, bottom - top)
    across, down = shown_width / (right - left), shown_height / (bottom - top)
    x, y = (_VIEW.size - shown_width) // 2, (_VIEW.size - shown_height) // 2
    corners = (
        x + (float(xyxy[0]) - left) * across,
        y + (float(xyxy[1]) - top) * down,
        x + (float(xyxy[2]) - left) * across,
        y + (float(xyxy[3]) - top) * down,
    )
    x1, y1, x2, y2 = (min(max(value, 0.0), float(_VIEW.size)) for value in corners)
    return x1, y1, x2, y2


def _best_views(views: Sequence[Picture]) -> tuple[Picture, ...]:
    """The best of each of a few equal runs, in time order."""
    if not views:
        return ()
    runs = np.array_split(np.arange(len(views)), min(_VIEWS, len(views)))
    return tuple(max((views[k] for k in run), key=lambda view: view.quality) for run in runs)
