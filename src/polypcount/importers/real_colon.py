"""REAL-Colon: 60 whole procedures, an XML file for each frame, polyps told apart by `unique_id`.

    SSS-VVV_annotations/SSS-VVV_<t>.xml   or SSS-VVV_annotations.tar.gz (also without the last s)
    SSS-VVV_frames/SSS-VVV_<t>.jpg        where downloaded
    video_info.csv, lesion_info.csv

`<t>` counts from 0 without padding, and may be written as a decimal (`123.0`).
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polypcount.corpus import Corpus, Polyp, Video, concatenate
from polypcount.errors import DataError, FileError
from polypcount.importers import archive
from polypcount.importers.decimals import decimal, whole
from polypcount.importers.files import IMAGE_SUFFIXES, list_folder, names_in, read_table
from polypcount.importers.numbering import last_number
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.real_colon_frames import FrameReader
from polypcount.importers.work import Task, Work

_ANNOTATIONS = re.compile(r"(\d{3}-\d{3})_annotations?(\.tar\.gz|\.tgz)?")
_LAST_TRAINING_INDEX = 8
_SPLITS = ("train", "study", "all")
# What the published split has: videos with a lesion, and their polyps.
_PUBLISHED = {"train": (27, 85), "study": (19, 47), "all": (60, 132)}


@dataclass(frozen=True)
class VideoInfo:
    """A row of `video_info.csv`."""

    fps: float
    frame_count: int


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the dataset, or a part of it.

    `--split train` gives the videos 001 to 008 of each study, `--split study` 009 to 015, both only those with a
    lesion; the default is all of them. Each video carries its split.
    """
    wanted = options.split or "all"
    if wanted not in _SPLITS:
        raise DataError(f"--split must be one of {', '.join(_SPLITS)}, found {wanted!r}")
    sources = find_annotations(path)
    if not sources:
        raise FileError(f"{path} has no folder or archive such as 001-001_annotations or 001-001_annotations.tar.gz")
    videos = _read_videos(path / "video_info.csv", work.problems)
    polyps = _read_lesions(path / "lesion_info.csv", work.problems)
    with_lesion = {polyp.video for polyp in polyps}
    chosen = [
        video
        for video in sources
        if wanted == "all" or (split_of(video) == wanted and (video in with_lesion or not polyps))
    ]
    parts = work.read_all(read_video, [_task(path, video, sources[video], videos, polyps) for video in chosen])
    if wanted != "all":
        parts = [part for part in parts if part.polyps]
    corpus = concatenate(parts)
    _compare_with_published(wanted, corpus, polyps, work.problems)
    return corpus


def find_annotations(root: Path) -> dict[str, Path]:
    """The annotation folder of each video or, where there is none, its archive, by video id."""
    found: dict[str, Path] = {}
    for entry in list_folder(root):
        if match := _ANNOTATIONS.fullmatch(entry.name):
            place, is_archive = root / entry.name, match[2] is not None
            if is_archive and entry.is_file() and match[1] not in found:
                found[match[1]] = place
            elif not is_archive and entry.is_dir() and _has_xml(place):
                if match[1] in found and found[match[1]].is_dir():
                    raise FileError(f"{place} and {found[match[1]].name} are for the same video; keep one")
                found[match[1]] = place
    return dict(sorted(found.items()))


def _has_xml(folder: Path) -> bool:
    """Whether a folder has an annotation, or is only the beginning of an extraction."""
    return any(name.lower().endswith(".xml") for name in names_in(folder))


def split_of(video: str) -> str:
    """The part that a video with a lesion belongs to, by its number in its study; empty for an id without one."""
    number = video[-3:]
    if not (number.isascii() and number.isdigit()):  # of a damaged table of lesions
        return ""
    return "train" if int(number) <= _LAST_TRAINING_INDEX else "study"


def _task(root: Path, video: str, source: Path, videos: dict[str, VideoInfo], polyps: list[Polyp]) -> Task:
    frames = root / f"{video}_frames"
    mine = tuple(polyp for polyp in polyps if polyp.video == video)
    info = videos.get(video)
    weight = info.frame_count if info else 50_000
    return Task((video, source, frames if frames.is_dir() else None, info, mine), (source,), (frames,), weight)


def read_video(
    video: str, source: Path, frames: Path | None, info: VideoInfo | None, polyps: tuple[Polyp, ...], problems: Problems
) -> Corpus:
    """Read the annotations of one video, from a folder or an archive."""
    reader = FrameReader(video, source, problems)
    if source.is_dir():
        reader.read_folder()
    else:
        for name, data in archive.members(source, ".xml", reader.largest_bytes):
            reader.add(name, data)
    numbers = np.sort(np.array(reader.numbers, np.int64))
    last = int(numbers[-1]) if len(numbers) else -1
    frame_count = max(last + 1, info.frame_count if info else 0)
    if info is None:
        problems.remark(f"video {video}: no row in video_info.csv, so its frame rate is not known")
    elif len(numbers) != info.frame_count:
        problems.remark(f"video {video}: {len(numbers):,} annotation files for {info.frame_count:,} frames")
    size = reader.size or (None, None)
    record = Video(
        id=video,
        frame_count=frame_count,
        fps=info.fps if info else None,
        width=size[0],
        height=size[1],
        source=str(frames) if frames else None,
        dataset="real-colon",
        centre=video[:3],
        split=split_of(video) if polyps or any(reader.rows.polyp) else "",
    )
    return reader.rows.to_corpus(record, polyps, _listed_images(frames, record, problems) if frames else None)


def _listed_images(frames: Path, video: Video, problems: Problems) -> tuple[list[int], list[str]] | None:
    """Frame and name of each image; None where the k-th image is frame k, as it is in a whole download."""
    # Bare names: a folder has tens of thousands, and the corpus puts them in order.
    split_names = [(*os.path.splitext(name), name) for name in names_in(frames)]
    numbered = [
        (last_number(stem), name)
        for stem, suffix, name in split_names
        if suffix.lower() in IMAGE_SUFFIXES and not name.startswith(".")
    ]
    kept = {number: name for number, name in numbered if number is not None and number < video.frame_count}
    if len(kept) == video.frame_count == len(numbered):
        return None
    problems.remark(f"video {video.id}: {len(kept):,} images for {video.frame_count:,} frames")
    return list(kept), list(kept.values())


def _read_videos(path: Path, problems: Problems) -> dict[str, VideoInfo]:
    if not path.exists():
        problems.remark(f"{path.name} is not there: frame rates are not known")
        return {}
    videos = {}
    for line, row in read_table(path, ("unique_video_name", "fps", "num_frames")):
        fps, frames = decimal(row["fps"]), whole(row["num_frames"])
        if fps is None or frames is None or not (0 < fps < 1e6 and 0 <= frames < 2**31):
            problems.bad(
                f"{path}:{line}", f"fps and num_frames must be numbers, found {row['fps']!r} and {row['num_frames']!r}"
            )
            continue
        videos[row["unique_video_name"]] = VideoInfo(fps, frames)
    return videos


def _read_lesions(path: Path, problems: Problems) -> list[Polyp]:
    if not path.exists():
        problems.remark(f"{path.name} is not there: size, site and histology of polyps are not known")
        return []
    columns = ("unique_object_id", "unique_video_name", "size [mm]", "site", "histology_class")
    polyps: dict[str, Polyp] = {}
    for line, row in read_table(path, columns):
        name, video, size, site, histology = (row[column] for column in columns)
        millimetres = decimal(size)
        if size and (millimetres is None or millimetres < 0):
            problems.bad(f"{path}:{line}", f"size [mm] must be a number, found {size!r}")
        elif not name or not video or name in polyps:
            problems.bad(f"{path}:{line}", f"a lesion must have a video and an id of its own, found {name!r}")
        else:
            polyps[name] = Polyp(name, video, millimetres, site, histology)
    return list(polyps.values())


def _compare_with_published(wanted: str, corpus: Corpus, lesions: Iterable[Polyp], problems: Problems) -> None:
    """Say how the result differs from the published counts, and which videos are missing."""
    videos, polyps = _PUBLISHED[wanted]
    if (len(corpus.videos), len(corpus.polyps)) != (videos, polyps):
        present = {video.id for video in corpus.videos}
        expected = {polyp.video for polyp in lesions if polyp.video and wanted in ("all", split_of(polyp.video))}
        missing = sorted(name for name in expected if name and name not in present)
        named = f"; missing with lesions: {', '.join(missing)}" if missing else ""
        problems.remark(
            f"{wanted}: {len(corpus.videos)} videos with {len(corpus.polyps)} polyps, "
            f"published are {videos} with {polyps}{named}"
        )
