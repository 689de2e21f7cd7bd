"""Short clips of real frames: a window that moves over a still, as recordings with known polyps.

No whole recording with known polyps is at hand. But scores of a detector on drawn or animated polyps are not those on
real ones. So the rule for false alarms is fitted on these clips as well. A clip shows one still for three seconds: the
window drifts, comes nearer and shakes, and light and sharpness change. Ten black frames lie between two clips, so no
track goes on from one to the next. Clips without a polyp show parts of stills beside their polyps, and mucosa.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.detector_data import free_regions
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageFilter

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.natural import natural_key
from polypcount.tracking import evenly
from polypcount.video import open_source, open_video, write_video
from polypcount.video.frames import Image

WIDTH, HEIGHT, FPS = 640, 512, 30
CLIP, BLACK = 90, 10  # frames
_ASPECT = WIDTH / HEIGHT
_NEAREST = 0.55  # smallest height of a window, as a share of the largest one that fits
_LEAST_SHOWN = 0.3  # of the area of a polyp; with less in view, it has no box
_LEAST_HEIGHT = 100  # pixels of the still


@dataclass(frozen=True, eq=False)
class Moving:
    """A still, and where the window may move.

    Attributes:
        image: RGB uint8[height, width, 3].
        boxes: float[n, 4], its polyps.
        region: Left, top, right, bottom.
    """

    image: Image
    boxes: NDArray[np.float64]
    region: tuple[float, float, float, float]


def with_polyps(corpus: Corpus, of_each: int, most: int) -> list[Moving]:
    """Frames as a whole: at most so many of each video and in all, evenly spaced."""
    listed = []
    for row, frame, boxes in _frames(corpus, of_each, most):
        image = _read(corpus, row, frame)
        listed.append(Moving(image, boxes, (0, 0, image.shape[1], image.shape[0])))
    return listed


def without_polyps(corpus: Corpus, of_each: int, most: int, seed: int) -> list[Moving]:
    """A part beside the polyps of such frames, where there is one that is large enough."""
    rng, listed = np.random.default_rng(seed), []
    for row, frame, boxes in _frames(corpus, of_each, most):
        image = _read(corpus, row, frame)
        regions = free_regions((image.shape[1], image.shape[0]), boxes.astype(np.float32), rng, 1, 60)
        if regions and regions[0][3] - regions[0][1] >= _LEAST_HEIGHT:
            listed.append(Moving(image, np.empty((0, 4)), regions[0]))
    return listed


def mucosa(folder: Path, left_out: Sequence[str], most: int) -> list[Moving]:
    """At most so many images of a folder that show no polyp, and that are not among those left out."""
    names = sorted((path.name for path in folder.glob("*.jpg") if path.name not in left_out), key=natural_key)
    listed = []
    for name in (names[place] for place in evenly(len(names), most).tolist()):
        ((_, image),) = open_source(folder / name).frames([0])
        listed.append(Moving(image, np.empty((0, 4)), (0, 0, image.shape[1], image.shape[0])))
    return listed


def recording(path: Path, stills: Sequence[Moving], seed: int) -> Corpus:
    """One recording of clips of all stills, written if it is not there, as a corpus with the true boxes."""
    windows = [_windows(still, np.random.default_rng([seed, number])) for number, still in enumerate(stills)]
    if not path.exists():
        write_video(path, _pictures(stills, windows, seed), FPS)
    frame, xyxy, polyp = list[int](), list[NDArray[np.float64]](), list[int]()
    polyps = 0
    for number, (still, own) in enumerate(zip(stills, windows, strict=True)):
        for box in still.boxes:
            for place, window in enumerate(own):
                seen = _seen(box, window)
                if seen is not None:
                    frame.append(number * (CLIP + BLACK) + place)
                    xyxy.append(seen)
                    polyp.append(polyps)
            polyps += 1
    video = Video(path.stem, len(stills) * (CLIP + BLACK), FPS, WIDTH, HEIGHT, str(path))
    boxes = Boxes(np.zeros(len(frame)), frame, np.reshape(xyxy, (-1, 4)), polyp=polyp).ordered()
    return Corpus((video,), boxes, tuple(Polyp(str(number), path.stem) for number in range(polyps)))


def _frames(corpus: Corpus, of_each: int, most: int) -> list[tuple[int, int, NDArray[np.float64]]]:
    """Video, frame and boxes of some frames with polyps."""
    listed = []
    for row in range(len(corpus.videos)):
        own = np.flatnonzero(corpus.boxes.video == row)
        frames = np.unique(corpus.boxes.frame[own])
        for frame in frames[evenly(len(frames), of_each)].tolist():
            listed.append((row, frame, corpus.boxes.xyxy[own[corpus.boxes.frame[own] == frame]].astype(float)))
    return [listed[place] for place in evenly(len(listed), most).tolist()]


def _read(corpus: Corpus, row: int, frame: int) -> Image:
    ((_, image),) = open_video(corpus.videos[row], corpus.files, row).frames([frame])
    return image


def _windows(still: Moving, rng: np.random.Generator) -> NDArray[np.float64]:
    """Left, top and height of the window in each frame of a clip, float64[CLIP, 3]; it stays inside the region."""
    left, top, right, bottom = still.region
    largest = min(bottom - top, (right - left) / _ASPECT)
    time = (1 - np.cos(np.linspace(0, np.pi, CLIP))) / 2
    ends = rng.uniform(_NEAREST, 1.0, 2) * largest
    height = ends[0] + (ends[1] - ends[0]) * time
    places = []
    for first, last, side in ((left, right, height * _ASPECT), (top, bottom, height)):
        share = rng.uniform(0, 1, 2)
        drift = share[0] + (share[1] - share[0]) * time
        # A shake that is about 0.01 of the window from frame to frame, as in real recordings.
        shake = np.convolve(rng.normal(0, 0.02, CLIP + 8), np.ones(9) / 9 * 3, mode="valid") * side
        places.append(np.clip(first + drift * (last - first - side) + shake, first, np.maximum(first, last - side)))
    return np.column_stack([*places, height])


def _pictures(stills: Sequence[Moving], windows: Sequence[NDArray[np.float64]], seed: int) -> Iterator[Image]:
    for number, (still, own) in enumerate(zip(stills, windows, strict=True)):
        rng = np.random.default_rng([seed, number, 1])
        picture = Pillow.fromarray(still.image)
        light = np.exp(np.cumsum(rng.normal(0, 0.01, CLIP)) + rng.normal(0, 0.15))
        blur = np.maximum(0, np.convolve(rng.normal(0, 1.5, CLIP + 14), np.ones(15) / 15 * 3, mode="valid"))
        for (left, top, height), gain, radius in zip(own, light, blur, strict=True):
            part = picture.resize(
                (WIDTH, HEIGHT), Pillow.Resampling.BILINEAR, (left, top, left + height * _ASPECT, top + height)
            )
            part = part.filter(ImageFilter.BoxBlur(float(radius))) if radius > 0.3 else part
            yield np.clip(np.asarray(part, np.float32) * np.float32(gain), 0, 255).astype(np.uint8)
        for _ in range(BLACK):
            yield np.zeros((HEIGHT, WIDTH, 3), np.uint8)


def _seen(box: NDArray[np.float64], window: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The part of a polyp's box that a window shows, in pixels of the recording; None if that is too little."""
    left, top, height = window
    scale = HEIGHT / height
    whole = (box - np.array([left, top, left, top])) * scale
    inside = np.clip(whole, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    area, shown = ((one[2:] - one[:2]).prod() for one in (whole, inside))
    return inside if area > 0 and shown >= _LEAST_SHOWN * area and (inside[2:] - inside[:2]).min() >= 8 else None
