"""REAL-Colon: 60 whole procedures, an XML file for each frame, polyps identified by `unique_id`.

    SSS-VVV_annotations/SSS-VVV_<t>.xml   or SSS-VVV_annotations.tar.gz (also without the last s)
    SSS-VVV_frames/SSS-VVV_<t>.jpg        where downloaded
    video_info.csv, lesion_info.csv

`<t>` counts from 0 without padding, and may be written as a decimal (`123.0`).
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from polypcount.corpus import IMAGE_SUFFIXES, Corpus, Polyp, Video, concatenate
from polypcount.errors import DataError, FileError
from polypcount.importers.boxes.voc import LARGEST_BYTES
from polypcount.importers.datasets.real_colon_frames import FrameReader
from polypcount.importers.published import REAL_COLON
from polypcount.importers.reading import ImportTask, Options, Problems, Work, decimal, entries_of, last_number, whole
from polypcount.importers.reading.archive import members
from polypcount.storage import read_table

_ANNOTATIONS = re.compile(r"(\d{3}-\d{3})_annotations?(\.tar\.gz|\.tgz)?")
_LAST_TRAINING_INDEX = 8


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the dataset, or a part of it.

    The split "train" gives the videos 001 to 008 of each study, "study" 009 to 015, both only those with a lesion; the
    default is all of them. Each video carries its split.
    """
    split = options.split or "all"
    if split not in REAL_COLON:
        raise DataError(f"split must be one of {', '.join(REAL_COLON)}, found {split!r}", mend="split")
    sources = find_annotations(path)
    if not sources:
        raise FileError(f"{path} has no folder or archive such as 001-001_annotations or 001-001_annotations.tar.gz")
    videos = _read_videos(path / "video_info.csv", work.problems)
    polyps = _read_lesions(path / "lesion_info.csv", work.problems)
    with_lesion = {polyp.video for polyp in polyps}
    tasks = []
    for video, source in sources.items():
        if split in ("all", split_of(video)) and (split == "all" or video in with_lesion or not polyps):
            frames, info = path / f"{video}_frames", videos.get(video)
            lesions = tuple(polyp for polyp in polyps if polyp.video == video)
            arguments = (video, source, frames if frames.is_dir() else None, info, lesions)
            tasks.append(ImportTask(arguments, (source,), (frames,), info[1] if info else 50_000))
    parts = work.read_all(_read_video, tasks)
    corpus = concatenate([part for part in parts if part.polyps or split == "all"])
    _compare_with_published(split, corpus, polyps, work.problems)
    return corpus


def read_tables(path: Path, split: str) -> Corpus:
    """Videos with a lesion of one split, and their polyps, without boxes: what the two tables alone say."""
    problems = Problems()
    videos = _read_videos(path / "video_info.csv", problems)
    lesions = _read_lesions(path / "lesion_info.csv", problems)
    if not lesions:
        raise FileError(f"{path} has neither annotations, such as 001-001_annotations, nor lesions in lesion_info.csv")
    polyps = [polyp for polyp in lesions if split_of(polyp.video or "") == split]
    records = []
    for name in sorted({polyp.video for polyp in polyps if polyp.video}):
        fps, frame_count = videos.get(name, (None, 0))
        records.append(Video(name, frame_count, fps, dataset="real-colon", centre=name[:3], split=split))
    return Corpus(tuple(records), polyps=tuple(polyps))


def find_annotations(root: Path) -> dict[str, Path]:
    """The annotation folder of each video or, where there is none, its archive, by video id."""
    sources: dict[str, Path] = {}
    for entry in sorted(entries_of(root), key=lambda entry: entry.name):
        if match := _ANNOTATIONS.fullmatch(entry.name):
            path, video, is_archive = root / entry.name, match[1], match[2] is not None
            if is_archive and entry.is_file():
                sources.setdefault(video, path)
            # A folder without an annotation is only the beginning of an extraction.
            elif not is_archive and entry.is_dir() and any(n.name.lower().endswith(".xml") for n in entries_of(path)):
                if video in sources and sources[video].is_dir():
                    raise FileError(f"{path} and {sources[video].name} are for the same video; keep one")
                sources[video] = path
    return dict(sorted(sources.items()))


def split_of(video: str) -> str:
    """The part that a video with a lesion belongs to, by its number in its study; empty for an id without one."""
    number = video[-3:]
    if not (number.isascii() and number.isdigit()):  # of a damaged table of lesions
        return ""
    return "train" if int(number) <= _LAST_TRAINING_INDEX else "study"


def _read_video(
    video: str,
    source: Path,
    frames: Path | None,
    info: tuple[float, int] | None,
    polyps: tuple[Polyp, ...],
    problems: Problems,
) -> Corpus:
    """Read the annotations of one video, from a folder or an archive."""
    reader = FrameReader(video, source, problems)
    if source.is_dir():
        reader.read_folder()
    else:
        for name, data in members(source, ".xml", LARGEST_BYTES):
            reader.add(name, data)
    fps, frame_count = info or (None, 0)
    if info is None:
        problems.remark(f"video {video}: no row in video_info.csv, so its frame rate is not known")
    elif len(reader.numbers) != frame_count:
        problems.remark(f"video {video}: {len(reader.numbers):,} annotation files for {frame_count:,} frames")
    width, height = reader.size or (None, None)
    record = Video(
        id=video,
        frame_count=max(frame_count, max(reader.numbers, default=-1) + 1),
        fps=fps,
        width=width,
        height=height,
        source=str(frames) if frames else None,
        dataset="real-colon",
        centre=video[:3],
        split=split_of(video) if polyps or any(reader.rows.polyp) else "",
    )
    return reader.rows.to_corpus(record, polyps, _listed_images(frames, record, problems) if frames else None)


def _listed_images(frames: Path, video: Video, problems: Problems) -> dict[int, str] | None:
    """Name of each frame's image; None where the k-th image is frame k, as it is in a whole download."""
    # Names without folders, in any order: a folder has tens of thousands, and the corpus sorts them.
    names = [entry.name for entry in entries_of(frames) if not entry.name.startswith(".")]
    parts = [(*os.path.splitext(name), name) for name in names]
    numbered = [(last_number(stem), name) for stem, suffix, name in parts if suffix.lower() in IMAGE_SUFFIXES]
    listed = {number: name for number, name in numbered if number is not None and number < video.frame_count}
    if len(listed) == video.frame_count == len(numbered):
        return None
    problems.remark(f"video {video.id}: {len(listed):,} images for {video.frame_count:,} frames")
    return listed


def _read_videos(path: Path, problems: Problems) -> dict[str, tuple[float, int]]:
    """Frame rate and number of frames of each video, from `video_info.csv`."""
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
        videos[row["unique_video_name"]] = (fps, frames)
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


def _compare_with_published(split: str, corpus: Corpus, lesions: Iterable[Polyp], problems: Problems) -> None:
    """Remark how the result differs from the published counts, and which videos are missing."""
    videos, polyps = REAL_COLON[split]
    if (len(corpus.videos), len(corpus.polyps)) != (videos, polyps):
        present = {video.id for video in corpus.videos}
        expected = {polyp.video for polyp in lesions if polyp.video and split in ("all", split_of(polyp.video))}
        missing = sorted(name for name in expected if name and name not in present)
        named = f"; missing with lesions: {', '.join(missing)}" if missing else ""
        problems.remark(
            f"{split}: {len(corpus.videos)} videos with {len(corpus.polyps)} polyps, "
            f"published are {videos} with {polyps}{named}"
        )
