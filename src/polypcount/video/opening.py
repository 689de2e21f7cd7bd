"""The right frame source for what is there: video file, folder of images, single image, or DICOM."""

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

# What is drawn rather than recorded, by the end of its file name: who opens it, as module:function. A name, since that
# room comes after this one; anything else that gives frames can be added here.
DRAWN = {".scene": "polypcount.simulate.scene_file:SceneSource"}
_DICOM_SUFFIXES = frozenset({".dcm", ".dicom"})


@runtime_checkable
class CropSource(Protocol):
    """What a frame source has besides, that gives a crop without the frame around it, for less.

    It names the one method only: asking whether a source is of this kind looks up all names, and so would read the size
    of the first image of a folder.
    """

    def crop(self, frame: int, xyxy: NDArray[np.float32], rule: CropRule) -> Image:
        """The crop of a box as `rule.crop` would cut it from the frame, or close to that; uint8[size, size, 3]."""
        ...


def open_source(path: str | os.PathLike[str], *, expected_frames: int = 0, threads: int = 0) -> FrameSource:
    """Open a video file, a folder of images, an image or a DICOM file, whichever `path` is.

    expected_frames: where the recording should be longer than it is, a wanted frame up to there is a `FileError`
        about a missing frame rather than a `DataError` about a wrong number.
    threads: for decoding a video; 0 leaves it to FFmpeg.
    """
    place = Path(path)
    refuse_no_file(place)
    if place.suffix in DRAWN and place.is_file():
        module, _, name = DRAWN[place.suffix].partition(":")
        drawn: FrameSource = getattr(import_module(module), name)(place)
        return drawn
    if place.is_dir():
        return FrameFolder(place, frame_count=expected_frames)
    if place.suffix.lower() in IMAGE_SUFFIXES:
        return FrameFolder(place.parent, [place.name], frame_count=expected_frames)
    if _is_dicom(place):
        from polypcount.video.dicom import open_dicom

        return open_dicom(place, expected_frames=expected_frames, threads=threads)
    return VideoFile(place, expected_frames=expected_frames, threads=threads)


def open_video(video: Video, files: FrameFiles | None = None, row: int = 0, *, threads: int = 0) -> FrameSource:
    """Open the frames of a corpus's video.

    files, row: the corpus's frame files, and the video's row in the corpus. Where they list images of this video,
        those are its frames; otherwise image k of a folder, in natural order, is frame k.
    """
    source = existing_source(video)
    listed = files.of_video(row) if files is not None else slice(0, 0)
    if files is not None and listed.stop > listed.start:
        names = dict(zip(files.frame[listed].tolist(), files.name[listed].tolist(), strict=True))
        return FrameFolder(source, names, frame_count=video.frame_count, fps=video.fps)
    if source.is_dir():
        folder = FrameFolder(source, frame_count=video.frame_count, fps=video.fps)
        if folder.frame_count < video.frame_count:  # by their order, images after a missing one would be other frames
            raise FileError(
                f"{source} has {folder.frame_count} images, and the video {video.id} has {video.frame_count} frames: "
                "some are missing; put them back, or import again"
            )
        return folder
    return open_source(source, expected_frames=video.frame_count, threads=threads)


def existing_source(video: Video) -> Path:
    """Where the pixels of a video are; an error where it has none, or they are not there any more."""
    if video.source is None:
        raise DataError(f"video {video.id} has no pixels: its source is not set; import it again with --source")
    if not os.path.exists(video.source):
        raise FileError(f"video {video.id}: its source {video.source} does not exist; move it back, or import again")
    return Path(video.source)


def _is_dicom(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM" or path.suffix.lower() in _DICOM_SUFFIXES
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {first_line(problem)}") from None
