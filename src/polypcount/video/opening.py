"""Opening a recording: a video file, a folder of images, a single image, or DICOM."""

import os
from importlib import import_module
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import IMAGE_SUFFIXES, FrameFiles, Video
from polypcount.errors import DataError, FileError, first_line
from polypcount.video.crop import CropRule
from polypcount.video.frame_folder import FrameFolder
from polypcount.video.frames import FrameSource, Image, refuse_no_file
from polypcount.video.video_file import VideoFile

# Simulated recordings: the suffix of the file name, and the class that opens them, as module:class. It is a text, since
# that room imports this one.
DRAWN = {".scene": "polypcount.simulate.scene_file:SceneSource"}
_DICOM_SUFFIXES = frozenset({".dcm", ".dicom"})


@runtime_checkable
class CropSource(Protocol):
    """A frame source that can also draw a crop alone, in less time than the whole frame.

    Only this method is named here: `isinstance` looks up all names of a protocol, and `width` would read an image.
    """

    def crop(self, frame: int, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop of a box, uint8[size, size, 3]; close to what `rule.crop` would cut from the frame."""
        ...


def open_source(path: str | os.PathLike[str], *, expected_frames: int = 0, threads: int = 0) -> FrameSource:
    """Open a video file, a folder of images, an image or a DICOM file.

    Args:
        path: The file or folder.
        expected_frames: Number of frames that the recording should have. If it has fewer, asking for one of those
            missing is a `FileError` (a missing frame), not a `DataError` (a wrong number).
        threads: For decoding a video; 0 lets FFmpeg decide.
    """
    path = Path(path)
    refuse_no_file(path)
    if path.is_dir():
        return FrameFolder(path, frame_count=expected_frames)
    if path.suffix in DRAWN:
        module, _, name = DRAWN[path.suffix].partition(":")
        drawn: FrameSource = getattr(import_module(module), name)(path)
        return drawn
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return FrameFolder(path.parent, [path.name], frame_count=expected_frames)
    if _is_dicom(path):
        from polypcount.video.dicom import open_dicom

        return open_dicom(path, expected_frames=expected_frames, threads=threads)
    return VideoFile(path, expected_frames=expected_frames, threads=threads)


def open_video(video: Video, files: FrameFiles | None = None, row: int = 0, *, threads: int = 0) -> FrameSource:
    """Open the frames of a video of a corpus.

    Args:
        video: The video.
        files: Frame files of the corpus. Where they list images of this video, those are its frames; otherwise image k
            of a folder, in natural order, is frame k.
        row: Row of the video in the corpus.
        threads: For decoding a video; 0 lets FFmpeg decide.
    """
    source = existing_source(video)
    listed = files.of_video(row) if files is not None else slice(0, 0)
    if files is not None and listed.stop > listed.start:
        names = dict(zip(files.frame[listed].tolist(), files.name[listed].tolist(), strict=True))
        return FrameFolder(source, names, frame_count=video.frame_count, fps=video.fps)
    if source.is_dir():
        folder = FrameFolder(source, frame_count=video.frame_count, fps=video.fps)
        if folder.frame_count < video.frame_count:  # images are numbered by order: after a gap, all numbers are wrong
            raise FileError(
                f"{source} has {folder.frame_count} images, and the video {video.id} has {video.frame_count} frames: "
                "some are missing; put them back, or import again"
            )
        return folder
    return open_source(source, expected_frames=video.frame_count, threads=threads)


def existing_source(video: Video) -> Path:
    """The path of the pixels of a video; an error where it has none, or they are gone."""
    if video.source is None:
        raise DataError(f"video {video.id} has no pixels: its source is not set; import it again with its source")
    if not os.path.exists(video.source):
        raise FileError(f"video {video.id}: its source {video.source} does not exist; move it back, or import again")
    return Path(video.source)


def _is_dicom(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM" or path.suffix.lower() in _DICOM_SUFFIXES
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
