"""The data of a reproduction from disk: the public datasets, the combined files of the authors, or corpora."""

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from polypcount.corpus import Corpus, Video
from polypcount.errors import DataError
from polypcount.importers import Options, merge, published_counts, read_corpus
from polypcount.importers.datasets.real_colon import find_annotations, read_tables, split_of
from polypcount.reproduce.counts import data_counts, difference_note
from polypcount.reproduce.data import Benchmark, Stage, saved, silent
from polypcount.reproduce.rows import Row

_log = logging.getLogger(__name__)
DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")


def real_benchmark(
    folders: Mapping[str, Path], out: Path, stage: Stage = silent, *, tables_suffice: bool = False
) -> Benchmark:
    """REAL-Colon's study videos, and all other videos with a polyp to learn from.

    Both corpora are saved in `out`. The importers cache each video, so reading again is quick.

    Args:
        folders: Folder of each dataset, by the name of its importer. REAL-Colon is needed, the others add to it.
        out: Folder for the corpora.
        stage: Reports progress.
        tables_suffice: If REAL-Colon has no annotations, take videos and polyps from its tables, without boxes. That is
            enough to count them, and is not saved.
    """
    if "real-colon" not in folders:
        raise DataError("the folder of real-colon is needed: its videos are studied", mend="real-colon")
    root = folders["real-colon"]
    tables = tables_suffice and root.is_dir() and not find_annotations(root)
    parts = []
    for name in (name for name in DATASETS if name in folders):
        with stage(f"reading {name}") as progress:
            if tables and name == "real-colon":
                parts.append(read_tables(root, "train"))
            else:
                options = Options(split="train") if name == "real-colon" else Options()
                parts.append(read_corpus(name, folders[name], options, progress=progress))
    with stage("reading the study videos") as progress:
        study = (
            read_tables(root, "study") if tables else read_corpus("real-colon", root, progress=progress, split="study")
        )
    learn = merge(parts)
    for line in published_counts(learn):
        _log.info("%s", line)
    if not tables:
        learn, study = saved(learn, out / "learn"), saved(study, out / "study")
    return with_note(Benchmark("real", learn, study))


def e2e_benchmark(path: Path, out: Path, stage: Stage = silent) -> Benchmark:
    """The combined COCO files of the paper's authors: REAL-Colon's videos 009 to 015 are studied.

    All others are learnt from.

    The splits of the files are not used, since they differ between the published folds.
    """
    with stage("reading the combined files") as progress:
        corpus = read_corpus("e2e-coco", path, progress=progress)
    videos = tuple(
        dataclasses.replace(video, split=split_of(video.id) if video.dataset == "real-colon" else "train")
        for video in corpus.videos
    )
    return _parted("e2e", dataclasses.replace(corpus, videos=videos), out)


def corpus_benchmark(folders: Sequence[Path], out: Path) -> Benchmark:
    """Corpora that were imported before. Videos of the split `study` are studied, all others learnt from.

    If no video is of that split, all are studied and nothing is learnt from.
    """
    corpora = [Corpus.load(folder) for folder in folders]
    return _parted("corpus", merge(corpora) if len(corpora) > 1 else corpora[0], out)


def _parted(name: str, corpus: Corpus, out: Path) -> Benchmark:
    studied = [video.id for video in corpus.videos if video.split == "study"]
    others = [video.id for video in corpus.videos if video.split != "study"]
    if not studied:
        studied, others = others, []
    learn, study = (corpus.select(videos=ids) if ids else Corpus(()) for ids in (others, studied))
    return with_note(Benchmark(name, saved(learn, out / "learn"), saved(study, out / "study")))


def possible_rows(benchmark: Benchmark, rows: Sequence[Row], folder: Path) -> tuple[list[Row], str]:
    """The rows that can be run, and a line that says why the others cannot; it is empty if all can.

    Without images, or with nothing to learn from, only rows without an encoder can.

    Args:
        benchmark: The data.
        rows: The rows that are wanted.
        folder: Where the data were read from, for the line.
    """
    possible = [row for row in rows if row.encoder is None]
    videos = [video for corpus in (benchmark.learn, benchmark.study) for video in corpus.videos]
    bare = [video for video in videos if not _has_images(video)]
    if not bare and benchmark.learn.videos:
        return list(rows), ""
    why = (
        f"there are no images of {len(bare)} of {len(videos)} videos in {folder}, such as those of {bare[0].id}"
        if bare
        else (f"{folder} has no videos to learn from, only videos to study")
    )
    names = ", ".join(row.name for row in rows if row.encoder is not None)
    return possible, f"not possible: {names}: {why}" if names else ""


def _has_images(video: Video) -> bool:
    source = video.source
    if source is None or not os.path.exists(source):
        return False
    if not os.path.isdir(source):
        return True
    with os.scandir(source) as entries:
        return next(entries, None) is not None


def with_note(benchmark: Benchmark) -> Benchmark:
    """The same with the line that says how it differs from the paper's data."""
    return dataclasses.replace(benchmark, note=difference_note(data_counts(benchmark)))
