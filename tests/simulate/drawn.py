"""Small timelines, scenes and stills, drawn by the tests that need them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.simulate import Difficulty, TimelineSettings
from polypcount.simulate.mucosa import Patient
from polypcount.simulate.patches import Patch, drawn_polyp
from polypcount.simulate.paths import Visit
from polypcount.simulate.scene import Scene
from polypcount.simulate.scene_file import SceneFile
from polypcount.simulate.timeline import SimulatedTimeline, simulate_timeline

Picture = NDArray[np.uint8]
Box = tuple[float, float, float, float]
WIDTH, HEIGHT, FPS = 160, 128, 25.0
CLEAN = Difficulty(0, 0, 0, 0, 0, 0)
SHORT = TimelineSettings(width=WIDTH, height=HEIGHT, minutes=0.2)
STILL_WIDTH, STILL_HEIGHT = 200, 160


def timeline(seen: Mapping[int, Mapping[int, Box]], frame_count: int = 100) -> SimulatedTimeline:
    """One video in which polyp p, seen from the front, is at `seen[frame][p]`; nothing comes before it."""
    rows = [(frame, polyp, box) for frame in sorted(seen) for polyp, box in seen[frame].items()]
    boxes = Boxes(
        np.zeros(len(rows), np.int32),
        [frame for frame, _, _ in rows],
        np.array([box for _, _, box in rows], np.float32).reshape(-1, 4),
        polyp=[polyp for _, polyp, _ in rows],
    )
    count = 1 + max((polyp for _, polyp, _ in rows), default=-1)
    visits = []
    for polyp in range(count):
        pose = np.tile([0.0, 0.0, 0.1, 0.0, 0.0, 0.0], (frame_count, 1))
        shown = np.zeros(frame_count, bool)
        for frame, owner, (left, top, right, bottom) in rows:
            if owner == polyp:
                middle = np.array([left + right - WIDTH, top + bottom - HEIGHT]) / 2 / HEIGHT
                pose[frame, :3] = *middle, np.sqrt((right - left) * (bottom - top)) / HEIGHT
                shown[frame] = True
        visits.append(Visit(polyp, 0, pose, shown, np.zeros((frame_count, 3)), np.ones(frame_count, bool)))
    video = Video("v", frame_count, FPS, WIDTH, HEIGHT)
    return SimulatedTimeline(Corpus((video,), boxes, tuple(Polyp(f"p{k}", "v") for k in range(count))), tuple(visits))


def scene_of(
    line: SimulatedTimeline, difficulty: Difficulty = CLEAN, seed: int = 1, changed: Mapping[int, str] | None = None
) -> Scene:
    """The scene of a timeline, with drawn polyps; changed: polyps that are drawn "bare" or "unseen"."""
    kinds = {"": drawn_polyp, "bare": bare, "unseen": unseen}
    makers = [kinds[(changed or {}).get(k, "")] for k in range(len(line.corpus.polyps))]
    return Scene(line, makers, difficulty, [seed])


def bare(patient: Patient, rng: np.random.Generator) -> Patch:
    """A drawn polyp without the tissue around it."""
    return _covering(drawn_polyp(patient, rng), lambda level: level[..., 6])


def unseen(patient: Patient, rng: np.random.Generator) -> Patch:
    """The outline of a drawn polyp, and nothing to be seen there."""
    return _covering(drawn_polyp(patient, rng), lambda level: np.zeros_like(level[..., 6]))


def _covering(patch: Patch, opacity: Callable[[Picture], Picture]) -> Patch:
    levels = []
    for level in patch.levels:
        changed = level.copy()
        changed[..., 3] = opacity(level)
        levels.append(changed)
    return replace(patch, levels=tuple(levels))


def procedure(
    seed: int, index: int = 0, difficulty: Difficulty | None = None, settings: TimelineSettings = SHORT
) -> SceneFile:
    """A simulated procedure with drawn polyps."""
    stills = (None,) * len(simulate_timeline(seed, index, "study", settings).corpus.polyps)
    looks = difficulty or Difficulty()
    return SceneFile(seed=seed, index=index, like="study", settings=settings, looks=looks, stills=stills)


def still(seed: int, middle: tuple[int, int] = (100, 80), tint: Sequence[float] = (1, 1, 1)) -> tuple[Picture, Picture]:
    """Colour uint8[160, 200, 3] and mask uint8[160, 200] of a made-up still: a disc on blurred noise."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(130, 210, (9, 11, 3), dtype=np.uint8)
    wall = np.asarray(Image.fromarray(coarse).resize((STILL_WIDTH, STILL_HEIGHT), Image.Resampling.BICUBIC))
    y, x = np.mgrid[:STILL_HEIGHT, :STILL_WIDTH]
    marked = (x - middle[0]) ** 2 + (y - middle[1]) ** 2 < (25 + 5 * rng.uniform()) ** 2
    colour = wall.astype(np.float64) * [1.1, 0.75, 0.6]
    colour[marked] = colour[marked] * 0.5 + rng.uniform([90, 40, 30], [150, 90, 80])
    return np.clip(colour * tint, 0, 255).astype(np.uint8), marked.astype(np.uint8) * 255


def write_still(folder: Path, name: str, colour: Picture, mask: Picture) -> tuple[Path, Path]:
    """Save a still as PNG below images/ and masks/; their paths."""
    paths = folder / "images" / f"{name}.png", folder / "masks" / f"{name}.png"
    for path, picture in zip(paths, (colour, mask), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path)
    return paths


def write_stills(folder: Path, count: int) -> Path:
    """As many stills, all of them different."""
    for seed in range(count):
        write_still(folder, f"still {seed}", *still(seed))
    return folder


def difference(one: Picture, other: Picture) -> float:
    """Mean absolute difference of two pictures, in levels of 0 to 255."""
    assert one.shape == other.shape
    return float(np.abs(one.astype(np.int16) - other).mean())
