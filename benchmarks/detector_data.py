"""What the bundled detector learns from, and what is kept from it.

The split rule of `encoder_data.py`, for all stills: stills that are of one polyp by their names and looks stay
together. A group with a held-back still is held back; of groups whose stills cannot be animated, every third is. Of
what is learnt from, every tenth group is left out for tuning: it chooses the threshold. Of CVC-ClinicDB, sequences 15
to 29 are learnt from, three of them are for tuning, and 1 to 14 are held back. CP-CHILD's images show no polyp.

Simulated frames are taken from procedures of learnt stills and of drawn polyps, with and without a polyp in view.
Polyp-free parts are cut from real stills beside their polyps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import simplejpeg  # type: ignore[import-untyped]
from benchmarks.encoder_data import cvc
from numpy.typing import NDArray
from PIL import Image as Pillow

import polypcount as pc
from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Video
from polypcount.natural import natural_key
from polypcount.simulate import TimelineSettings, list_stills, simulate_scenes
from polypcount.simulate.stills import Still, related
from polypcount.video import open_source
from polypcount.video.frames import Image
from polypcount.video.views import views
from polypcount.workers import in_processes

SIDE = 448
SETTINGS = TimelineSettings(width=640, height=512, minutes=2)
_THUMBNAIL = (24, 20)
_FREE_HEIGHT = (0.3, 0.9)  # of a polyp-free part, as shares of the height of the still
_ASPECT = 1.25
_CVC_TUNING = (17, 22, 27)


@dataclass(frozen=True)
class Parts:
    """Corpora of real frames, with a video for each still or sequence."""

    learnt: Corpus
    tuning: Corpus
    held_back: dict[str, Corpus]


def real_frames(kvasir: Path, polypgen: Path, clinic: Path, without: str = "") -> Parts:
    """The split. without: `kvasir`, `polypgen` or `cvc`: nothing of it is learnt from."""
    learnt, tuning, held_back = list[Corpus](), list[Corpus](), dict[str, Corpus]()
    for name, folder in (("kvasir", kvasir), ("polypgen", polypgen)):
        whole = pc.read_corpus("stills", folder)
        parts = split_groups(folder)
        of = [whole.select(videos=[f"{folder.resolve().name}-{stem}" for stem in part]) for part in parts]
        if name != without:
            learnt.append(of[0])
            tuning.append(of[1])
        held_back[name] = of[2]
    if without != "cvc":
        sequences = cvc(clinic, 15, 29)
        numbers = {video.id: int(video.id.rpartition("-")[2]) for video in sequences.videos}
        tuned = [name for name, number in numbers.items() if number in _CVC_TUNING]
        learnt.append(sequences.select(videos=[name for name in numbers if name not in tuned]))
        tuning.append(sequences.select(videos=tuned))
    held_back["cvc"] = cvc(clinic, 1, 14)
    return Parts(pc.merge(learnt), pc.merge(tuning), held_back)


def split_groups(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Names of stills to learn from, for tuning, and held back."""
    usable = [Path(still.image).stem for still in list_stills(folder)]
    held = set(usable[::3])
    images = {path.stem: path for path in sorted((folder / "images").rglob("*.*"))}
    names = sorted(images, key=natural_key)
    thumbnails = np.stack([_thumbnail(images[name]) for name in names])
    group = related(names, thumbnails)
    learnt, tuning, held_back = list[str](), list[str](), list[str]()
    odd = kept = 0
    for number in dict.fromkeys(group.tolist()):
        members = [name for name, own in zip(names, group.tolist(), strict=True) if own == number]
        animated = [name for name in members if name in usable]
        odd += not animated
        if held.intersection(members) or (not animated and odd % 3 == 1):
            held_back += members
        else:
            kept += 1
            (tuning if kept % 10 == 0 else learnt).extend(members)
    return learnt, tuning, held_back


def masks_of(corpus: Corpus) -> Corpus:
    """The masks of the stills of a corpus: videos of the same ids, whose images are masks."""
    videos, files = (
        [],
        dict(
            zip(
                zip(corpus.files.video.tolist(), corpus.files.frame.tolist(), strict=True),
                corpus.files.name,
                strict=True,
            )
        ),
    )
    names, rows, frames = [], [], []
    for row, video in enumerate(corpus.videos):
        folder = Path(str(video.source))
        mask_folder = _mask_folder(folder)
        videos.append(replace(video, source=str(mask_folder)))
        for frame in range(video.frame_count):
            mask = next(mask_folder.glob(f"{Path(files[row, frame]).stem}.*"))
            rows.append(row)
            frames.append(frame)
            names.append(mask.name)
    return Corpus(tuple(videos), files=FrameFiles(rows, frames, names))


def drawn_frames(folder: Path, stills: Sequence[Still], seed: int, procedures: int, each: tuple[int, int]) -> Corpus:
    """Frames of simulated procedures as images, half of them of drawn polyps. each: With and without a polyp."""
    if not (folder / "frames").exists():
        tasks = []
        for turn, own in enumerate((stills, None)):
            corpus = simulate_scenes(
                folder / f"scenes-{turn}", procedures // 2, seed + turn, "train", stills=own, settings=SETTINGS
            )
            tasks += [
                (corpus.select(videos=[video.id]), folder / "unfinished" / f"{turn}-{k}", each)
                for k, video in enumerate(corpus.videos)
            ]
        for number, _ in in_processes(_draw, tasks, 2):
            if number % 10 == 0:
                print(f"{number} of {len(tasks)} procedures drawn", flush=True)
        (folder / "unfinished").rename(folder / "frames")
    return pc.merge([Corpus.load(place / "corpus") for place in sorted((folder / "frames").iterdir())])


def _draw(corpus: Corpus, folder: Path, each: tuple[int, int]) -> None:
    folder.mkdir(parents=True)
    video, rng = corpus.videos[0], np.random.default_rng(0)
    shown = np.unique(corpus.boxes.frame)
    empty = np.setdiff1d(np.arange(video.frame_count), shown)
    chosen = [np.sort(rng.permutation(some)[:count]) for some, count in zip((shown, empty), each, strict=True)]
    numbers = np.sort(np.concatenate(chosen))
    width, height = int(video.width or 0), int(video.height or 0)
    size = SIDE, round(SIDE * height / width)
    images = list[str]()
    for index, view in views(open_source(str(video.source)), numbers):
        images.append(save_image(folder / f"{len(images):04d}.jpg", view.scaled(*size)))
        assert index == numbers[len(images) - 1]
    rows = np.flatnonzero(np.isin(corpus.boxes.frame, numbers))
    xyxy = corpus.boxes.xyxy[rows] * np.float32(SIDE / width)
    frame = np.searchsorted(numbers, corpus.boxes.frame[rows])
    name = f"drawn-{folder.name}"
    moved = Video(name, len(numbers), None, *size, str(folder.parent.parent / "frames" / folder.name))
    polyps = tuple(Polyp(f"{name}-{polyp.id}", name) for polyp in corpus.polyps)
    boxes = Boxes(np.zeros(len(rows)), frame, xyxy, polyp=corpus.boxes.polyp[rows])
    Corpus((moved,), boxes, polyps, files=FrameFiles(np.zeros(len(numbers)), np.arange(len(numbers)), images)).save(
        folder / "corpus"
    )


def folder_of_empty_frames(folder: Path, name: str) -> Corpus:
    """All images of a folder as one video without polyps; the images have one size."""
    images = sorted((path.name for path in folder.glob("*.jpg")), key=natural_key)
    with Pillow.open(folder / images[0]) as first:
        size = first.size
    video = Video(name, len(images), None, *size, str(folder.resolve()))
    return Corpus((video,), files=FrameFiles(np.zeros(len(images)), np.arange(len(images)), images))


def polyp_free_parts(corpus: Corpus, seed: int, most: int, tries: int = 60) -> list[Image]:
    """Parts of stills without a polyp, at most so many of each frame: folds, lumen, highlights, tools."""
    rng, parts = np.random.default_rng(seed), []
    for row, video in enumerate(corpus.videos):
        own = np.flatnonzero(corpus.boxes.video == row)
        source = None
        for frame in np.unique(corpus.boxes.frame[own]).tolist():
            boxes = corpus.boxes.xyxy[own[corpus.boxes.frame[own] == frame]]
            regions = free_regions((int(video.width or 0), int(video.height or 0)), boxes, rng, most, tries)
            if regions:
                source = source or pc.video.open_video(video, corpus.files, row)
                ((_, image),) = source.frames([frame])
                parts += [image[top:bottom, left:right] for left, top, right, bottom in regions]
    return parts


def free_regions(
    size: tuple[int, int], boxes: NDArray[np.float32], rng: np.random.Generator, most: int, tries: int
) -> list[tuple[int, int, int, int]]:
    """Rectangles of a frame that touch no box, the largest found first, none over another by more than half."""
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) * 1.1 / 2
    low, high = middle - half, middle + half
    drawn = []
    for _ in range(tries):
        height = rng.uniform(*_FREE_HEIGHT) * size[1]
        width = min(height * _ASPECT, size[0])
        left, top = rng.uniform(0, size[0] - width), rng.uniform(0, size[1] - height)
        apart = (low[:, 0] >= left + width) | (high[:, 0] <= left) | (low[:, 1] >= top + height) | (high[:, 1] <= top)
        if apart.all():
            drawn.append((int(left), int(top), int(left + width), int(top + height)))
    chosen: list[tuple[int, int, int, int]] = []
    for one in sorted(drawn, key=lambda region: region[1] - region[3]):
        if len(chosen) < most and all(_common(one, other) < 0.5 for other in chosen):
            chosen.append(one)
    return chosen


def save_image(path: Path, image: Image) -> str:
    """Write a JPEG; returns its name."""
    path.write_bytes(simplejpeg.encode_jpeg(np.ascontiguousarray(image), quality=92))
    return path.name


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """The common area of two rectangles as a share of the smaller one."""
    sides = [min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1)]
    areas = [(r[2] - r[0]) * (r[3] - r[1]) for r in (one, other)]
    return max(0, sides[0]) * max(0, sides[1]) / max(1, min(areas))


def _mask_folder(images: Path) -> Path:
    """`masks/SPLIT` beside `images/SPLIT`, and `Ground Truth` beside `Original`."""
    if images.name == "Original":
        return images.parent / "Ground Truth"
    parts = ["masks" if part == "images" else part for part in images.parts]
    folder = Path(*parts)
    return folder if folder.is_dir() else folder.parent


def _thumbnail(path: Path) -> NDArray[np.float32]:
    with Pillow.open(path) as image:
        return np.asarray(image.convert("RGB").resize(_THUMBNAIL), np.float32).ravel() / np.float32(255)
