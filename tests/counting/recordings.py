"""A short recording with polyps that come and go, drawn once for all tests of a process."""

import functools
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from polypcount.clustering import Scope
from polypcount.corpus import Boxes, Corpus, Polyp, Video, concatenate
from polypcount.counting.operating_points import POINTS_FILE, read_operating_points, write_operating_points
from polypcount.encoder import Encoder, bundled_folder, load_encoder
from polypcount.importers import FORMATS, write_boxes
from polypcount.video.write import write_video

WIDTH, HEIGHT, FRAMES, FPS = 160, 128, 220, 25.0
# Of each tracklet: first frame, frame after the last, polyp, left and top of its box.
TRACKLETS: tuple[tuple[int, int, int, int, int], ...] = (
    (5, 45, 0, 20, 20),
    (60, 100, 1, 90, 60),
    (80, 120, 0, 15, 30),
    (140, 180, 1, 80, 50),
    (190, 200, 2, 60, 20),
)
SIDE = 48


@functools.cache
def encoder_for_any_recording() -> Encoder:
    """The bundled encoder, with operating points that claim an interval for recordings of any length."""
    folder = Path(tempfile.mkdtemp(prefix="polypcount-test-"))
    for entry in bundled_folder().iterdir():
        (folder / entry.name).symlink_to(entry)
    points = read_operating_points(folder)
    (folder / POINTS_FILE).unlink()
    scope = Scope(tracklets=(1, 10_000), seconds=(0.0, 1e6))
    widened = {name: point.model_copy(update={"scope": scope}) for name, point in points.points.items()}
    write_operating_points(folder, widened, points.default)
    return load_encoder(folder)


@functools.cache
def recording() -> Path:
    """An mp4 file of textured discs on a plain wall."""
    path = Path(tempfile.mkdtemp(prefix="polypcount-test-")) / "case.mp4"
    write_video(path, [frame_at(frame) for frame in range(FRAMES)], FPS, quality=12)
    return path


def frame_at(frame: int, tracklets: Sequence[tuple[int, int, int, int, int]] = TRACKLETS) -> np.ndarray:
    """RGB uint8[128, 160, 3]. tracklets: First frame, frame after the last, polyp, left and top of its box."""
    image = np.full((HEIGHT, WIDTH, 3), (150, 90, 80), np.uint8)
    for start, stop, polyp, x, y in tracklets:
        if start <= frame < stop:
            left, top = place(frame, start, x, y)
            image[top : top + SIDE, left : left + SIDE] = looks(polyp)
    return image


def place(frame: int, start: int, left: int, top: int) -> tuple[int, int]:
    """Where a disc is: it moves by a pixel every four frames."""
    return left + (frame - start) // 4 % 8, top + (frame - start) // 8 % 8


@functools.cache
def looks(polyp: int) -> np.ndarray:
    """A texture of its own for each polyp: stripes, spots or rings in another colour."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(np.float64)
    pattern = (np.sin(x / 1.5), np.sin(x / 3) * np.sin(y / 3), np.sin(np.hypot(x - 24, y - 24)))[polyp]
    colour = np.array(((230, 190, 60), (90, 30, 120), (40, 160, 150))[polyp], np.float64)
    return np.asarray(np.clip(colour + 60 * pattern[:, :, None], 0, 255), np.uint8)


def boxes(*, polyps: bool = False, tracks: bool = False, only: slice = slice(None)) -> Boxes:
    """All boxes, by frame; with the polyp or with the number of the tracklet."""
    rows = [
        (frame, *place(frame, start, x, y), polyp, number)
        for number, (start, stop, polyp, x, y) in enumerate(TRACKLETS[only])
        for frame in range(start, stop)
    ]
    table = np.array(sorted(rows), np.int64).reshape(-1, 5)
    frame, left, top, polyp, number = table.T
    return Boxes(
        np.zeros(len(table), np.int32),
        frame,
        np.stack([left, top, left + SIDE, top + SIDE], axis=1).astype(np.float32),
        polyp=polyp if polyps else None,
        track=number if tracks else None,
    )


def corpus(*, polyps: bool = False) -> Corpus:
    """The recording as a corpus of its own."""
    video = Video("case", FRAMES, FPS, WIDTH, HEIGHT, str(recording()))
    known = tuple(Polyp(f"p{number}", "case") for number in range(3)) if polyps else ()
    return Corpus((video,), boxes(polyps=polyps), known)


def several(*names: str) -> Corpus:
    """Videos of these names: the first has all boxes, with tracks, and the others one each."""
    tables = [boxes(tracks=True), *(boxes(tracks=True).take(np.array([0])) for _ in names[1:])]
    videos = [Video(name, FRAMES, FPS, WIDTH, HEIGHT) for name in names]
    return concatenate([Corpus((video,), table) for video, table in zip(videos, tables, strict=True)])


def write_in(format: str, folder: Path, table: Boxes, *, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Path:
    """Write boxes of the recording in a format to a new folder; the file or folder that a user would give."""
    width, height = size
    written = Corpus((Video("case", FRAMES, FPS, width, height),), table)
    if format == "corpus":
        written.save(folder)
        return folder
    if FORMATS[format].writes:
        (place,) = write_boxes(written, format, folder).iterdir()
        return place
    folder.mkdir(parents=True)
    rows = list(zip(table.frame.tolist(), table.xyxy.tolist(), table.track.tolist(), strict=True))
    if format == "voc":
        for frame in range(FRAMES):
            write_voc(folder / f"{frame:04}.xml", [(box, track) for at, box, track in rows if at == frame], size)
        return folder
    if format == "frames-json":
        frames = [[{"bbox": box, "track": track} for at, box, track in rows if at == k] for k in range(FRAMES)]
        values: object = {"width": width, "height": height, "frames": frames}
    else:
        assert format == "coco-results"
        values = [
            {"image_id": frame, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": 1.0, "track_id": track}
            for frame, (x1, y1, x2, y2), track in rows
        ]
    (folder / "case.json").write_text(json.dumps(values))
    return folder / "case.json"


def write_voc(path: Path, found: Iterable[tuple[list[float], int]], size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    """One frame as Pascal VOC. found: box and track of each."""
    objects = "".join(
        f"<object><name>polyp</name><track_id>{track}</track_id><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin>"
        f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
        for (x1, y1, x2, y2), track in found
    )
    shape = f"<size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>"
    path.write_text(f"<annotation>{shape}{objects}</annotation>")


def write_images(folder: Path, numbers: Iterable[int]) -> Path:
    """The first frames as images whose names end in these numbers."""
    from PIL import Image

    folder.mkdir(parents=True)
    for frame, number in enumerate(numbers):
        Image.fromarray(frame_at(frame)).save(folder / f"image_{number:04}.png", compress_level=1)
    return folder


def same_boxes(found: Boxes, expected: Boxes) -> bool:
    """Whether two tables have the same boxes, put to tracks or polyps alike; in a frame they may come in any order."""
    one, other = (table.take(np.lexsort((table.xyxy[:, 0], table.frame))) for table in (found, expected))
    identity = one.track if (one.track >= 0).any() else one.polyp
    pairs = np.unique(np.stack([identity, other.track]), axis=1).shape[1]
    return (
        np.array_equal(one.frame, other.frame)
        and np.allclose(one.xyxy, other.xyxy, atol=1e-3)
        and pairs == len(np.unique(identity)) == len(np.unique(other.track))
    )
