"""`check`: find everything in a corpus that would spoil a count or a study, before work begins."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus.boxes import Boxes
from polypcount.corpus.corpus import Corpus
from polypcount.corpus.findings import Finding, Findings, Severity
from polypcount.corpus.records import IMAGE_SUFFIXES, Video
from polypcount.corpus.splits import leaks_between, leaks_within
from polypcount.errors import DataError

_PLAUSIBLE_FPS = (5.0, 120.0)
_LAST_NUMBER = re.compile(r"(\d+)(?:\.0+)?$")


def check(*corpora: Corpus, names: Sequence[str] | None = None) -> Findings:
    """Look for defects in a corpus. Several corpora are also checked as splits that must share nothing.

    Args:
        corpora: One or more.
        names: Names of the corpora in findings; "corpus 1", "corpus 2", ... by default.
    """
    labels = [f"corpus {number}" for number in range(1, len(corpora) + 1)] if names is None else list(names)
    if len(labels) != len(corpora):
        raise DataError(f"there are {len(corpora)} corpora, but {len(labels)} names")
    findings: list[Finding] = []
    for corpus, label in zip(corpora, labels, strict=True):
        own = [*_videos(corpus), *_boxes(corpus), *_polyps(corpus), *_files(corpus), *leaks_within(corpus)]
        findings += own if len(corpora) == 1 else [replace(finding, corpus=label) for finding in own]
    if len(corpora) > 1:
        findings += leaks_between(corpora, labels)
    return Findings(tuple(findings))


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
    width = np.array([video.width or np.inf for video in corpus.videos])[boxes.video]
    height = np.array([video.height or np.inf for video in corpus.videos])[boxes.video]
    x1, y1, x2, y2 = boxes.xyxy.T
    off = (x2 <= 0) | (y2 <= 0) | (x1 >= width) | (y1 >= height)
    over = ~off & ((x1 < 0) | (y1 < 0) | (x2 > width) | (y2 > height))
    yield from _by_video(corpus, off, "error", "box outside image", "entirely outside the image: {count}")
    yield from _by_video(corpus, over, "warning", "box outside image", "over the edge of the image: {count}")
    same = _repeats(boxes, boxes.xyxy)
    yield from _by_video(corpus, same, "warning", "duplicate boxes", "same as another box of the frame: {count}")
    twice = _repeats(boxes, boxes.polyp[:, None]) & (boxes.polyp >= 0)
    yield from _by_video(corpus, twice, "warning", "polyp twice in a frame", "polyp has another box there: {count}")


def _polyps(corpus: Corpus) -> Iterator[Finding]:
    boxes = corpus.boxes
    pairs, first = np.unique(np.column_stack([boxes.polyp, boxes.video]), axis=0, return_index=True)
    first_frames: list[dict[str, int]] = [{} for _ in corpus.polyps]
    for (polyp, video), box in zip(pairs.tolist(), first, strict=True):
        if polyp >= 0:
            first_frames[polyp][corpus.videos[video].id] = int(boxes.frame[box])
    for polyp, frames in zip(corpus.polyps, first_frames, strict=True):
        videos = sorted(set(frames) | ({polyp.video} if polyp.video else set()))
        if len(videos) > 1:
            message = f"polyp {polyp.id} belongs to {len(videos)} videos: {', '.join(videos[:5])}"
            yield Finding("error", "polyp in two videos", videos[0], frames.get(videos[0]), len(videos), message)
        if not frames:
            yield Finding("note", "polyp without boxes", polyp.video, None, 1, f"polyp {polyp.id} has no box")


def _files(corpus: Corpus) -> Iterator[Finding]:
    for row, video in enumerate(corpus.videos):
        files = corpus.files.of_video(row)
        if video.source is not None and not os.path.exists(video.source):
            message = f"the source is not there: {video.source}"
            yield Finding("error", "missing source", video.id, None, 1, message)
        elif files.stop > files.start:
            yield from _listed_files(corpus, row)
        elif video.source is not None and os.path.isdir(video.source):
            yield from _folder_of_images(video)


def _listed_files(corpus: Corpus, row: int) -> Iterator[Finding]:
    """Findings on a video whose image files the corpus lists."""
    video, files = corpus.videos[row], corpus.files.of_video(row)
    frames, names = corpus.files.frame[files], corpus.files.name[files]
    source = video.source
    gone = [k for k, name in enumerate(names) if source and not os.path.exists(os.path.join(source, name))]
    if gone:
        message = f"{_many(len(gone), 'image file')} not there, first {names[gone[0]]}"
        yield Finding("error", "missing source", video.id, int(frames[gone[0]]), len(gone), message)
    yield from _gaps(video, [-1, *frames.tolist(), video.frame_count])
    bare = np.setdiff1d(corpus.boxes.frame[corpus.boxes.of_video(row)], frames)
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
    if len(numbers) == len(stems):
        yield from _gaps(video, sorted(set(numbers)))


def _gaps(video: Video, numbers: Sequence[int]) -> Iterator[Finding]:
    """A finding where ascending numbers do not follow each other."""
    holes = [(before + 1, after - before - 1) for before, after in pairwise(numbers) if after - before > 1]
    if holes:
        first, missing = holes[0][0], sum(size for _, size in holes)
        message = f"frame numbers have gaps: {_many(missing, 'number')} missing, first {first}"
        yield Finding("warning", "gap in frame numbers", video.id, first, missing, message)


def _by_video(corpus: Corpus, bad: NDArray[np.bool_], severity: Severity, kind: str, message: str) -> Iterator[Finding]:
    """One finding per video that has bad boxes, with their number and the first frame."""
    rows = np.flatnonzero(bad)
    videos, first, counts = np.unique(corpus.boxes.video[rows], return_index=True, return_counts=True)
    for video, box, count in zip(videos, rows[first], counts.tolist(), strict=True):
        text = message.format(count="1 box" if count == 1 else f"{count:,} boxes")
        yield Finding(severity, kind, corpus.videos[video].id, int(corpus.boxes.frame[box]), count, text)


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
