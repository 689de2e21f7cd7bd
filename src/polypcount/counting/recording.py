"""A recording and its boxes, in whatever form they come."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Boxes, Corpus, Video, is_corpus, refuse_crowded
from polypcount.counting.part import part_of
from polypcount.counting.settings import BOX_FILE_SETTINGS, CountSettings
from polypcount.errors import DataError, FileError
from polypcount.importers import read_boxes
from polypcount.video import FrameMask, FrameSource, open_source, open_video
from polypcount.video.frame_folder import FrameFolder
from polypcount.video.frames import Image, TimedSource
from polypcount.video.opening import CropSource
from polypcount.video.view_mask import find_view

_FRAMES_FOR_VIEW = 8


@dataclass(frozen=True, eq=False)
class Recording:
    """One recording with its boxes.

    Attributes:
        source: Gives its frames.
        video: Name, length, frame rate and size.
        boxes: Boxes of video row 0, by frame; None where there are none yet.
        sources: Names of the files that were read.
        part: The frames that are counted.
        unread_frames: How many frames a detector could not read.
        times: float64[frame_count + 1], when each frame is shown, in seconds from the first one, and when the last one
            ends; None where the frame rate is constant or not known.
    """

    source: FrameSource
    video: Video
    boxes: Boxes | None
    sources: tuple[str, ...]
    part: range
    unread_frames: int = 0
    times: NDArray[np.float64] | None = None

    @property
    def seconds(self) -> float | None:
        """Duration of the part; None where the frame rate is not known."""
        if self.times is not None:
            return float(self.times[self.part.stop] - self.times[self.part.start])
        return None if self.video.fps is None else len(self.part) / self.video.fps


def open_recording(
    source: str | os.PathLike[str],
    boxes: str | os.PathLike[str] | Corpus | Boxes | None = None,
    settings: CountSettings | None = None,
) -> Recording:
    """Open a recording and read its boxes.

    Args:
        source: A video file, a folder of images, a DICOM file, or a corpus folder.
        boxes: A file or folder in any format that `read_boxes` reads, a corpus, or a table of video row 0. With None, a
            corpus folder uses its own boxes, and any other recording has none.
        settings: Those about the boxes file, `video`, `fps`, `start`, `stop`, `name` and `anonymous` are used here. If
            the boxes are of several videos, the one named `video` is taken, or else the one with the name of the
            recording.

    Raises:
        FileError: Something is missing, damaged or of an unknown format.
        DataError: The boxes do not fit the recording, or it is not clear which video to take.
    """
    settings = settings or CountSettings()
    recording = _open(Path(source), settings)
    if isinstance(boxes, Boxes):
        if boxes.video.any():
            raise DataError("a table of boxes must be of one video, row 0; give a corpus of several", mend="video")
        recording = replace(recording, boxes=boxes.ordered())
    elif boxes is not None:
        recording = _with_boxes(recording, boxes, settings)
    for_a_file = [name for name in BOX_FILE_SETTINGS if getattr(settings, name) is not None]
    if for_a_file and not isinstance(boxes, str | os.PathLike):
        raise DataError(f"{for_a_file[0]} is a setting for a file of boxes, and none was given", mend=for_a_file[0])
    _refuse_misfit(recording)
    recording = _cut(recording, part_of(recording.video, settings.start, settings.stop, recording.times))
    name = settings.name or recording.video.id
    if settings.anonymous:
        return replace(recording, video=replace(recording.video, id=name, source=None), sources=())
    return replace(recording, video=replace(recording.video, id=name))


def find_mask(recording: Recording, settings: CountSettings) -> FrameMask | None:
    """What is blacked out in pictures of the recording; None for nothing."""
    view = _find_view(recording) if settings.mask_border else None
    return FrameMask(settings.mask, view) if settings.mask or view is not None else None


def refuse_outside(boxes: Boxes, width: int, height: int, name: str) -> None:
    """Raise `DataError` where a box lies outside its frame. name: What the boxes are, for the message."""
    x1, y1, x2, y2 = boxes.xyxy.T
    outside = (x1 >= width) | (y1 >= height) | (x2 <= 0) | (y2 <= 0)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{name}: frame {boxes.frame[row]} has a box at {boxes.xyxy[row].tolist()}, outside its "
            f"{width} x {height} pixels; the boxes are of another size or recording"
        )


def _open(path: Path, settings: CountSettings) -> Recording:
    if is_corpus(path):
        corpus = Corpus.load(path)
        row = _video_row(corpus, str(path), settings.video, mend=("video", "all"))
        video = corpus.videos[row]
        source = open_video(video, corpus.files, row)
        video = replace(video, fps=video.fps or source.fps or settings.fps, width=source.width, height=source.height)
        own_boxes = corpus.select(videos=[video.id]).boxes
        times = _times(source, video)
        return Recording(source, video, own_boxes, (str(path),), range(video.frame_count), times=times)
    source, whole = open_source(path), Path(os.path.abspath(path))
    video = Video(
        id=whole.name if whole.is_dir() else whole.stem,
        frame_count=source.frame_count,
        fps=source.fps or settings.fps,
        width=source.width,
        height=source.height,
        source=str(whole),
    )
    return Recording(source, video, None, (str(path),), range(video.frame_count), times=_times(source, video))


def _times(source: FrameSource, video: Video) -> NDArray[np.float64] | None:
    """The times of the video's frames, by the source. Frames that the source should have and has not are even."""
    times = source.times if isinstance(source, TimedSource) else None
    if times is None or not video.fps:
        return None
    missing = np.arange(1, video.frame_count + 2 - len(times)) / video.fps
    return np.append(times, times[-1] + missing)[: video.frame_count + 1]


def _with_boxes(recording: Recording, boxes: str | os.PathLike[str] | Corpus, settings: CountSettings) -> Recording:
    """The recording with the boxes of its video in a corpus or file."""
    video, source_name = recording.video, recording.sources[0]
    drawn_on = settings.size or (video.width, video.height)
    if isinstance(boxes, Corpus):
        corpus, name = boxes, "the corpus of boxes"
    else:
        name = str(boxes)
        corpus = read_boxes(
            boxes,
            settings.boxes_format,
            width=drawn_on[0],
            height=drawn_on[1],
            image_names=_image_names(recording.source),
            first_frame=settings.first_frame,
            box=settings.box,
            ids=settings.ids,
            images=settings.images,
        )
    # In a corpus folder, the setting has already chosen the recording.
    video_id = None if is_corpus(Path(source_name)) else settings.video
    own = corpus.videos[_video_row(corpus, name, video_id, prefer=(video.id, Path(video.source or "").name))]
    for side, actual in zip(("width", "height"), drawn_on, strict=True):
        expected = getattr(own, side)
        if expected is not None and expected != actual:
            frames = f"those of {source_name} have" if settings.size is None else "the given size has"
            raise DataError(
                f"{name} is for frames with a {side} of {expected} pixels, and {frames} {actual}; give the recording "
                "that the boxes were drawn on, or the size of its frames, to which the boxes are then scaled",
                mend="size",
            )
    own_boxes = corpus.select(videos=[own.id]).boxes
    if settings.size is not None and video.width and video.height:
        scale = np.array([video.width / settings.size[0], video.height / settings.size[1]] * 2, np.float32)
        own_boxes = replace(own_boxes, xyxy=own_boxes.xyxy * scale)
    video = replace(video, fps=video.fps or own.fps)
    return replace(recording, video=video, boxes=own_boxes, sources=(source_name, name))


def _cut(recording: Recording, part: range) -> Recording:
    """The recording with the boxes of a part of its frames."""
    if recording.boxes is None or len(part) == recording.video.frame_count:
        return replace(recording, part=part)
    frame = recording.boxes.frame
    inside = np.flatnonzero((frame >= part.start) & (frame < part.stop))
    return replace(recording, part=part, boxes=recording.boxes.take(inside))


def _image_names(source: FrameSource) -> list[str] | None:
    """File names of a folder of images in frame order; None for any other recording."""
    if not isinstance(source, FrameFolder):
        return None
    files = (source.file_of(frame) for frame in range(source.frame_count))
    return ["" if file is None else file.name for file in files]


def _video_row(
    corpus: Corpus,
    name: str,
    video_id: str | None,
    prefer: tuple[str, ...] = (),
    mend: tuple[str, ...] = ("video",),
) -> int:
    """Row of the video with this id. Without an id: the row of a preferred video, or of the only one."""
    ids = [video.id for video in corpus.videos]
    for candidate in prefer if video_id is None else (video_id,):
        if candidate in ids:
            return ids.index(candidate)
    if len(ids) == 1 and (video_id is None or video_id in prefer):
        return 0
    shown = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
    if video_id is not None:
        raise DataError(f"{name} has no video {video_id!r}; it has: {shown}")
    raise DataError(f"{name} has {len(ids)} videos ({shown}); say which one to take", mend=mend)


def _refuse_misfit(recording: Recording) -> None:
    """Raise `DataError` where boxes are of other frames or another size."""
    boxes, video = recording.boxes, recording.video
    if boxes is None or not len(boxes):
        return
    names = " and ".join(recording.sources)
    if int(boxes.frame.max()) >= video.frame_count:
        raise DataError(
            f"{names}: there are boxes up to frame {int(boxes.frame.max())}, and the recording has frames 0 to "
            f"{video.frame_count - 1}; give the recording that the boxes were drawn on, or say that the boxes count "
            "frames from 1",
            mend="first_frame",
        )
    if video.width and video.height:
        refuse_outside(boxes, video.width, video.height, names)
    refuse_crowded(boxes, [names])


def _find_view(recording: Recording) -> NDArray[np.bool_] | None:
    """The endoscope's view, bool[height, width]; None where it fills the frame."""
    if isinstance(recording.source, CropSource):  # drawn, with nothing around the view
        return None
    boxes = recording.boxes
    frames = np.array(recording.part) if boxes is None or not len(boxes) else np.unique(boxes.frame)
    if not len(frames):
        return None
    chosen = frames[np.unique(np.linspace(0, len(frames) - 1, _FRAMES_FOR_VIEW).round().astype(np.int64))]
    return find_view(_readable(recording.source, chosen))


def _readable(source: FrameSource, frames: NDArray[np.integer]) -> Iterator[Image]:
    with contextlib.suppress(FileError):
        for _, image in source.frames(frames):
            yield image
