"""A part of the work of building a crop store: some boxes of one video, cut and kept in a separate file."""

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from polypcount.corpus import FrameFiles, Video
from polypcount.errors import FileError, first_line
from polypcount.storage import content_key, whole_file
from polypcount.video.crop import CropRule
from polypcount.video.frame_folder import FrameFolder
from polypcount.video.frames import FrameSource, Image
from polypcount.video.opening import CropSource, open_video
from polypcount.video.store import SCHEMA

QUALITY = 92
_BATCH_CROPS = 256
_SAMPLE_BYTES = 4096


@dataclass(frozen=True)
class CropPart:
    """Boxes of one video to be cut.

    Attributes:
        video: The video.
        files: Its images where the corpus lists them, as in a corpus with this video alone.
        frame: int32[n], rising.
        xyxy: float32[n, 4].
        rows: int64[n], box rows, rising.
        rule: How the crops are cut.
    """

    video: Video
    files: FrameFiles
    frame: NDArray[np.int32]
    xyxy: NDArray[np.float32]
    rows: NDArray[np.int64]
    rule: CropRule

    @cached_property
    def key(self) -> str:
        """Key of all that decides the pixels: the rule, the boxes, and size, time and a sample of the files.

        Where the video is on the disk does not matter.
        """
        video = [self.video.id, self.video.width, self.video.height]
        images = [self.files.name.tolist(), self.files.frame.tolist(), self._samples()]
        about = ["crop part", 2, QUALITY, self.rule.fingerprint, video, images]
        return content_key(about, self.frame, self.xyxy)

    def _samples(self) -> list[tuple[str, int, int, str]]:
        """The state of the video file, or of each image that is needed."""
        if self.video.source is None:
            return []
        if not os.path.isdir(self.video.source):
            return [("", *_sample(Path(self.video.source)))]
        folder = open_video(self.video, self.files, 0)
        assert isinstance(folder, FrameFolder)
        paths = [folder.file_of(frame) for frame in np.unique(self.frame).tolist()]
        return [(path.name, *_sample(path)) for path in paths if path is not None]


def _sample(path: Path) -> tuple[int, int, str]:
    """Size in bytes, time of change in ns, and a hash of some bytes: uncompressed images all have the same size."""
    sample = hashlib.sha256()
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            for offset in (0, stat.st_size // 2, max(0, stat.st_size - _SAMPLE_BYTES)):
                file.seek(offset)
                sample.update(file.read(_SAMPLE_BYTES))
    except OSError:
        return (-1, 0, "")  # the error is raised when it is decoded
    return (stat.st_size, stat.st_mtime_ns, sample.hexdigest())


def open_part(part: CropPart, threads: int) -> FrameSource:
    """The video of a part, opened."""
    return open_video(part.video, part.files, 0, threads=threads)


def crops_of(part: CropPart, source: FrameSource) -> Iterator[Image]:
    """The crops of a part one by one, in the order of its rows, cut from its opened video."""
    frames, starts = np.unique(part.frame, return_index=True)
    try:
        if isinstance(source, CropSource):
            for frame, box in zip(part.frame.tolist(), part.xyxy, strict=True):
                _check_box(part.video, frame, box, source.width, source.height)
                yield source.crop(frame, box, part.rule)
            return
        groups = np.split(part.xyxy, starts[1:])
        for (frame, image), boxes in zip(source.frames(frames), groups, strict=True):
            for box in boxes:
                _check_box(part.video, frame, box, image.shape[1], image.shape[0])
                yield part.rule.crop(image, box)
    except FileError as problem:
        raise FileError(f"video {part.video.id}: {problem}") from None


def cut_part(part: CropPart, path: Path, threads: int) -> int:
    """Cut the crops and write them to `path`, whole; returns how many. Memory: a frame and some hundred crops."""
    import simplejpeg  # type: ignore[import-untyped]

    schema = pa.schema([SCHEMA.field("jpeg")])
    try:
        with whole_file(path) as unfinished, pa.ipc.new_file(str(unfinished), schema) as writer:
            crops = crops_of(part, open_part(part, threads))
            while images := [
                simplejpeg.encode_jpeg(crop, quality=QUALITY) for crop in itertools.islice(crops, _BATCH_CROPS)
            ]:
                writer.write_batch(pa.record_batch([pa.array(images, pa.large_binary())], schema=schema))
    except OSError as problem:
        raise FileError(f"{path}: crops cannot be written: {first_line(problem)}") from None
    return len(part.rows)


def read_part(path: Path, part: CropPart) -> pa.Array | None:
    """Crops of a finished part as JPEG; None where the file is missing or damaged."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        return None
    return table.column("jpeg").combine_chunks() if len(table) == len(part.rows) else None


def _check_box(video: Video, frame: int, box: NDArray[np.float32], width: int, height: int) -> None:
    """Raise if a frame has another size than the corpus says, or if a box lies outside it."""
    expected = (video.width or width, video.height or height)
    if (width, height) != expected:
        raise FileError(
            f"{video.source}: frame {frame} has {width} x {height} pixels, and the boxes are for "
            f"{expected[0]} x {expected[1]}; give the recording that the boxes were drawn on"
        )
    if box[0] >= width or box[1] >= height or box[2] <= 0 or box[3] <= 0:
        raise FileError(
            f"frame {frame} has a box at {box.tolist()}, outside its {width} x {height} pixels; "
            "the boxes are of another size or recording"
        )
