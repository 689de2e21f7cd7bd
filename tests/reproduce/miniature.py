"""All four datasets in their layouts on disk, with pixels: coloured squares that come, go and return."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import simplejpeg  # type: ignore[import-untyped]
from numpy.typing import NDArray

from tests.importers.miniatures import LESION_INFO, VIDEO_INFO, Box, real_colon_xml, sun_name, voc, write

WIDTH, HEIGHT, SEEN, PAUSE = 64, 48, 30, 2
# Polyps of each video. By their numbers, 001 to 008 are learnt from and 009 to 015 are studied.
TRAINING = {"001-001": 3, "002-003": 3}
STUDIED = {"001-009": 2, "001-010": 1, "002-009": 3, "002-010": 2}
RETURNS = {"training": 2, "study": 3}
CASES, TRAINVALID, TEST, VAL2019, TEST2019 = 10, 8, 2, 3, 2
LEARNT = sum(TRAINING.values()) + CASES + TRAINVALID + TEST + VAL2019 + TEST2019
"""Polyps to learn from where only the study videos are left out."""


def miniature(root: Path) -> dict[str, Path]:
    """Write the datasets; gives the folder of each by the name of its importer."""
    looks = _looks()
    return {
        "real-colon": _real_colon(root / "real-colon", looks),
        "ldpolypvideo": _ldpolypvideo(root / "ldpolypvideo", looks),
        "sun": _sun(root / "sun", looks),
        "polypsset": _polypsset(root / "polypsset", looks),
    }


def many_polyps(root: Path) -> Path:
    """REAL-Colon alone, with enough polyps for the batch with the most of them, which has 28."""
    return _real_colon(root, _looks(), {"001-001": 14, "002-003": 14})


def _real_colon(root: Path, looks: Iterator[NDArray[np.uint8]], training: Mapping[str, int] = TRAINING) -> Path:
    rows, lesions = "", ""
    for videos, returns in ((training, RETURNS["training"]), (STUDIED, RETURNS["study"])):
        for video, polyps in videos.items():
            colours = list(itertools.islice(looks, polyps))
            frames = polyps * returns * (SEEN + PAUSE)
            rows += f'"{video}",60,"male","Olympus",25,{frames},{polyps},8.5\n'
            lesions += "".join(f'"{video}_{k}","{video}",4,"sigma","adenoma","AD"\n' for k in range(polyps))
            for frame in range(frames):
                turn, place = divmod(frame, SEEN + PAUSE)
                polyp = turn % polyps
                found = [(f"{video}_{polyp}", _box(place, turn))] if place < SEEN else []
                text = real_colon_xml(video, frame, *found, size=(WIDTH, HEIGHT))
                write(root / f"{video}_annotations" / f"{video}_{frame}.xml", text)
                colour = colours[polyp] if found else None
                _picture(root / f"{video}_frames" / f"{video}_{frame}.jpg", place, turn, colour)
    write(root / "video_info.csv", VIDEO_INFO + rows)
    write(root / "lesion_info.csv", LESION_INFO + lesions)
    return root


def _ldpolypvideo(root: Path, looks: Iterator[NDArray[np.uint8]]) -> Path:
    names = [("TrainValid", 1 + k) for k in range(TRAINVALID)] + [("Test", 101 + k) for k in range(TEST)]
    for part, video in names:
        colour = next(looks)
        for frame in range(SEEN):
            _picture(root / part / "Images" / str(video) / f"{frame + 1}.jpg", frame, video, colour)
            box = " ".join(map(str, _box(frame, video)))
            write(root / part / "Annotations" / str(video) / f"{frame + 1}.txt", f"1\n{box}\n")
    return root


def _sun(root: Path, looks: Iterator[NDArray[np.uint8]]) -> Path:
    for case in range(1, CASES + 1):
        colour, lines = next(looks), ""
        for frame in range(SEEN):
            name = sun_name(2, frame + 1)
            _picture(root / f"case{case}" / name, frame, case, colour)
            lines += f"{name} {','.join(map(str, _box(frame, case)))},0\n"
        write(root / "annotation_txt" / f"case{case}.txt", lines)
    return root


def _polypsset(root: Path, looks: Iterator[NDArray[np.uint8]]) -> Path:
    for part, sequences in (("val2019", VAL2019), ("test2019", TEST2019)):
        for sequence in range(1, sequences + 1):
            colour = next(looks)
            for frame in range(SEEN):
                _picture(root / part / "Image" / str(sequence) / f"{frame + 1}.jpg", frame, sequence, colour)
                x1, y1, x2, y2 = map(str, _box(frame, sequence))
                text = voc(WIDTH, HEIGHT, (x1, y1, x2, y2))
                write(root / part / "Annotation" / str(sequence) / f"{frame + 1}.xml", text)
    return root


def _box(place: int, turn: int) -> Box:
    left, top = 8 + place // 3, 8 + 4 * (turn % 3)
    return (left, top, left + 20, top + 18)


def _looks() -> Iterator[NDArray[np.uint8]]:
    """A colour for one polyp after the other."""
    rng = np.random.default_rng(0)
    while True:
        yield rng.integers(60, 256, 3).astype(np.uint8)


def _picture(path: Path, place: int, turn: int, colour: NDArray[np.uint8] | None) -> None:
    rng = np.random.default_rng([place, turn])
    picture = rng.integers(0, 50, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    if colour is not None:
        x1, y1, x2, y2 = map(int, _box(place, turn))
        picture[y1:y2, x1:x2] = np.clip(colour + rng.integers(-30, 30, 3), 0, 255)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(simplejpeg.encode_jpeg(picture, quality=90))
