"""`check`: everything in a corpus that would spoil a count or a study, found before work begins."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.findings import Finding, Findings, Severity
from polypcount.corpus.records import Video
from polypcount.corpus.splits import shared_between_splits

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp"})
_PLAUSIBLE_FPS = (5.0, 120.0)
_LAST_NUMBER = re.compile(r"(\d+)(?:\.0+)?$")


def check(*corpora: Corpus, names: Sequence[str] | None = None) -> Findings:
    """Look for defects in a corpus; several corpora are also taken as splits that must share nothing.

    names: what to call the corpora in findings; "corpus 1", "corpus 2", ... where not given.
    """
    found: list[Finding] = []
    for corpus in corpora:
        found += _videos(corpus)
        found += _boxes(corpus)
        found += _polyps(corpus)
        found += _files(corpus)
    found += shared_between_splits(corpora, names or [f"corpus {i + 1}" for i in range(len(corpora))])
    return Findings(tuple(found))


def _videos(corpus: Corpus) -> Iterator[Finding]:
    boxes_in = np.bincount(corpus.boxes.video, minlength=len(corpus.videos))
    low, high = _PLAUSIBLE_FPS
    for video, box_count in zip(corpus.videos, boxes_in, strict=True):
        if video.frame_count == 0:
            yield Finding("error", "empty video", video.id, None, 1, "the video has no frames")
        elif box_count == 0:
            yield Finding("note", "empty video", video.id, None, 1, "no frame of the video has a box")
        if video.fps is not None and not low <= video.fps <= high:
            message = f"{video.fps:g} frames per second is implausible (expected {low:g} to {high:g})"
            yield Finding("warning", "implausible fps", video.id, None, 1, message)


def _boxes(corpus: Corpus) -> Iterator[Finding]:
    boxes = corpus.boxes
    no_limit = np.inf
    width = np.array([video.width or no_limit for video in corpus.videos])[boxes.video]
    height = np.array([video.height or no_limit for video in corpus.videos])[boxes.video]
    x1, y1, x2, y2 = boxes.xyxy.T
    off = (x2 <= 0) | (y2 <= 0) | (x1 >= width) | (y1 >= height)
    over = ~off & ((x1 < 0) | (y1 < 0) | (x2 > width) | (y2 > height))
    yield from _by_video(corpus, off, "error", "box outside image", "wholly outside the image: {count}")
    yield from _by_video(corpus, over, "warning", "box outside image", "over the edge of the image: {count}")
    same = _repeats(boxes, boxes.xyxy)
    yield from _by_video(corpus, same, "warning", "duplicate boxes", "same as another box of the frame: {count}")
    twice = _repeats(boxes, boxes.polyp[:, None]) & (boxes.polyp >= 0)
    message = "polyp has another box in the frame already: {count}"
    yield from _by_video(corpus, twice, "warning", "polyp twice in a frame", message)


def _polyps(corpus: Corpus) -> Iterator[Finding]:
    boxes = corpus.boxes
    pairs, first = np.unique(np.column_stack([boxes.polyp, boxes.video]), axis=0, return_index=True)
    seen_in: dict[int, list[str]] = {row: [] for row in range(len(corpus.polyps))}
    first_frame: dict[int, int] = {}
    for (polyp, video), box in zip(pairs.tolist(), first, strict=True):
        if polyp >= 0:
            seen_in[polyp].append(corpus.videos[video].id)
            first_frame[polyp] = int(boxes.frame[box])
    for row, polyp in enumerate(corpus.polyps):
        videos = sorted(set(seen_in[row]) | ({polyp.video} if polyp.video else set()))
        if len(videos) > 1:
            message = f"polyp {polyp.id} belongs to {len(videos)} videos: {', '.join(videos[:5])}"
            yield Finding("error", "polyp in two videos", videos[0], first_frame[row], len(videos), message)
        if not seen_in[row]:
            yield Finding("note", "polyp without boxes", polyp.video, None, 1, f"polyp {polyp.id} has no box")


def _files(corpus: Corpus) -> Iterator[Finding]:
    for row, video in enumerate(corpus.videos):
        mine = corpus.files.of_video(row)
        if video.source is not None and not os.path.exists(video.source):
            message = f"the source is not there: {video.source}"
            yield Finding("error", "missing source", video.id, None, 1, message)
        elif mine.stop > mine.start:
            yield from _listed_files(corpus, row)
        elif video.source is not None and os.path.isdir(video.source):
            yield from _folder_of_images(video)


def _listed_files(corpus: Corpus, row: int) -> Iterator[Finding]:
    """Findings on a video whose image files the corpus lists."""
    video, files = corpus.videos[row], corpus.files.take(np.r_[corpus.files.of_video(row)])
    if video.source is not None:
        there = [os.path.exists(os.path.join(video.source, name)) for name in files.name]
        if gone := [index for index, found in enumerate(there) if not found]:
            message = f"{_many(len(gone), 'image file')} not there, first {files.name[gone[0]]}"
            yield Finding("error", "missing source", video.id, int(files.frame[gone[0]]), len(gone), message)
    yield from _gaps(video, files.frame, range(video.frame_count))
    bare = np.setdiff1d(corpus.boxes.frame[corpus.boxes.of_video(row)], files.frame)
    if len(bare):
        message = f"{_many(len(bare), 'frame')} with boxes but no image file"
        yield Finding("error", "missing source", video.id, int(bare[0]), len(bare), message)


def _folder_of_images(video: Video) -> Iterator[Finding]:
    """Findings on a video whose frames are all the images of a folder."""
    assert video.source is not None
    stems = [
        Path(entry.name).stem
        for entry in os.scandir(video.source)
        if os.path.splitext(entry.name)[1].lower() in IMAGE_SUFFIXES
    ]
    if len(stems) != video.frame_count:
        message = f"{video.source} holds {_many(len(stems), 'image')}, the video has {video.frame_count} frames"
        yield Finding("error", "missing source", video.id, None, abs(len(stems) - video.frame_count), message)
    numbers = [int(match[1]) for stem in stems if (match := _LAST_NUMBER.search(stem))]
    if numbers and len(numbers) == len(stems):
        yield from _gaps(video, np.array(numbers), range(min(numbers), max(numbers) + 1))


def _gaps(video: Video, present: NDArray[np.integer], expected: range) -> Iterator[Finding]:
    missing = np.setdiff1d(np.arange(expected.start, expected.stop), present)
    if len(missing):
        message = f"frame numbers have gaps: {_many(len(missing), 'number')} missing, first {missing[0]}"
        yield Finding("warning", "gap in frame numbers", video.id, int(missing[0]), len(missing), message)


def _by_video(corpus: Corpus, bad: NDArray[np.bool_], severity: Severity, kind: str, message: str) -> Iterator[Finding]:
    """One finding per video that has bad boxes, with their number and the first frame."""
    boxes: Boxes = corpus.boxes
    rows = np.flatnonzero(bad)
    videos, first, counts = np.unique(boxes.video[rows], return_index=True, return_counts=True)
    for video, box, count in zip(videos, rows[first], counts.tolist(), strict=True):
        told = "1 box" if count == 1 else f"{count:,} boxes"
        frame = int(boxes.frame[box])
        yield Finding(severity, kind, corpus.videos[video].id, frame, count, message.format(count=told))


def _repeats(boxes: Boxes, values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Mask of the boxes whose values [n, k] equal those of an earlier box of the same frame."""
    same_frame = (np.diff(boxes.video) == 0) & (np.diff(boxes.frame) == 0)
    rows = np.flatnonzero(np.append(False, same_frame) | np.append(same_frame, False))
    keys = np.column_stack([boxes.video[rows], boxes.frame[rows], values[rows]])
    _, first = np.unique(keys, axis=0, return_index=True)
    mask = np.zeros(len(boxes), bool)
    mask[np.delete(rows, first)] = True
    return mask


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
