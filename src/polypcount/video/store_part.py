"""One piece of the work of building a crop store: some boxes of one video, cut and kept as a file of their own."""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from polypcount.corpus import FrameFiles, Video
from polypcount.errors import FileError, first_line
from polypcount.video.crop import CropRule
from polypcount.video.frame_folder import FrameFolder
from polypcount.video.frames import FrameSource, Image
from polypcount.video.opening import CropSource, open_video
from polypcount.video.store import FORMAT, FORMAT_VERSION, METADATA, SCHEMA
from polypcount.whole import whole_file

QUALITY = 92
_BATCH_CROPS = 256
_SAMPLE_BYTES = 4096


@dataclass(frozen=True)
class Part:
    """Boxes of one video to be cut.

    key: of all that decides about the pixels; the same for the same work.
    video, files: the video, and its images where the corpus lists them, as of a corpus with this video alone.
    frame: int32[n], rising. xyxy: float32[n, 4]. rows: int64[n], box rows, rising.
    """

    key: str
    video: Video
    files: FrameFiles
    frame: NDArray[np.int32]
    xyxy: NDArray[np.float32]
    rows: NDArray[np.int64]
    rule: CropRule


def part_key(part: Part) -> str:
    """SHA-256 over the rule, the boxes, and size, time and some content of what is read; its place is left out."""
    digest = hashlib.sha256()
    names = part.files.name.tolist() if len(part.files) else []
    about = [FORMAT, FORMAT_VERSION, QUALITY, part.rule.fingerprint, part.video.id, part.video.width, part.video.height]
    for piece in (json.dumps([*about, names, part.files.frame.tolist(), _seen(part)]).encode(), part.frame, part.xyxy):
        content = bytes(piece) if isinstance(piece, bytes) else piece.astype(piece.dtype.newbyteorder("<")).tobytes()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _seen(part: Part) -> list[tuple[str, int, int, str]]:
    """Name, size in bytes, time of change in ns and a sample of the video file, or of each image that is wanted."""
    source = part.video.source
    if source is not None and os.path.isdir(source):
        folder = open_video(part.video, part.files, 0)
        assert isinstance(folder, FrameFolder)
        paths = [folder.file_of(frame) for frame in np.unique(part.frame).tolist()]
        return [(path.name, *_stat(path)) for path in paths if path is not None]
    return [] if source is None else [("", *_stat(Path(source)))]


def _stat(path: Path) -> tuple[int, int, str]:
    """Sizes and times of two recordings can be equal, above all of uncompressed images; bytes from inside are not."""
    sample = hashlib.sha256()
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            for place in (0, stat.st_size // 2, max(0, stat.st_size - _SAMPLE_BYTES)):
                file.seek(place)
                sample.update(file.read(_SAMPLE_BYTES))
    except OSError:
        return (-1, 0, "")  # it is named when it is to be read
    return (stat.st_size, stat.st_mtime_ns, sample.hexdigest())


def open_part(part: Part, threads: int) -> FrameSource:
    """The video of a part, opened."""
    return open_video(part.video, part.files, 0, threads=threads)


def crops_of(part: Part, source: FrameSource) -> Iterator[Image]:
    """The crops of a part one by one, in the order of its rows, from its video or one that is open already."""
    starts = np.searchsorted(part.frame, np.unique(part.frame))
    stops = [*starts[1:].tolist(), len(part.frame)]
    try:
        if isinstance(source, CropSource):
            for frame, box in zip(part.frame.tolist(), part.xyxy, strict=True):
                _refuse_other_size(part.video, frame, source.width, source.height)
                _refuse_outside(frame, box, source.width, source.height)
                yield source.crop(frame, box, part.rule)
            return
        for (index, image), start, stop in zip(source.frames(part.frame), starts.tolist(), stops, strict=True):
            _refuse_other_size(part.video, index, image.shape[1], image.shape[0])
            for box in part.xyxy[start:stop]:
                _refuse_outside(index, box, image.shape[1], image.shape[0])
                yield part.rule.crop(image, box)
    except FileError as problem:
        raise FileError(f"video {part.video.id}: {problem}") from None


def cut_part(part: Part, path: Path, threads: int) -> int:
    """Cut the crops and write them to `path`, whole; returns how many. Memory: a frame and some hundred crops."""
    import simplejpeg  # type: ignore[import-untyped]

    described = json.dumps({"key": part.key, "crops": len(part.rows)})
    schema = pa.schema([SCHEMA.field("jpeg")], {METADATA: described})
    try:
        with (
            whole_file(path) as unfinished,
            pa.ipc.new_file(str(unfinished), schema) as writer,
        ):
            crops = crops_of(part, open_part(part, threads))
            while pictures := [
                simplejpeg.encode_jpeg(crop, quality=QUALITY) for crop in itertools.islice(crops, _BATCH_CROPS)
            ]:
                writer.write_batch(pa.record_batch([pa.array(pictures, pa.large_binary())], schema=schema))
    except OSError as problem:
        raise FileError(f"{path}: crops cannot be written: {first_line(problem)}") from None
    return len(part.rows)


def read_part(path: Path, part: Part) -> pa.ChunkedArray | None:
    """Crops as JPEG of a finished part; None where the file is not there, damaged or of other work."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        described = json.loads(table.schema.metadata[METADATA])
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None
    whole = described == {"key": part.key, "crops": len(part.rows)} and len(table) == len(part.rows)
    return table.column("jpeg") if whole else None


def described_store(rule: CropRule, key: str, parts: list[Part]) -> bytes:
    """What the metadata of a whole store says."""
    lengths = [(part.key, len(part.rows)) for part in parts]
    about = {"format": FORMAT, "version": FORMAT_VERSION, "rule": asdict(rule), "key": key, "parts": lengths}
    return json.dumps(about).encode()


def _refuse_outside(frame: int, box: NDArray[np.float32], width: int, height: int) -> None:
    """A box beside the image is one of another recording, or of another size of this one."""
    if box[0] >= width or box[1] >= height or box[2] <= 0 or box[3] <= 0:
        raise FileError(
            f"frame {frame} has a box at {box.tolist()}, outside its {width} x {height} pixels; "
            "the boxes are of another size or recording"
        )


def _refuse_other_size(video: Video, frame: int, width: int, height: int) -> None:
    for name, expected, found in (("width", video.width, width), ("height", video.height, height)):
        if expected is not None and expected != found:
            raise FileError(
                f"{video.source}: frame {frame} has a {name} of {found} pixels, and the boxes are for {expected}; "
                "give the recording that the boxes were drawn on"
            )
