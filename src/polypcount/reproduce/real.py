"""The data of a reproduction from disk: the public datasets."""

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path

from polypcount.errors import DataError
from polypcount.importers import Options, merge, published_counts, read_corpus
from polypcount.importers.datasets.real_colon import find_annotations, read_tables
from polypcount.reproduce.counts import data_counts, difference_note
from polypcount.reproduce.data import Benchmark, Stage, saved, silent

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


def with_note(benchmark: Benchmark) -> Benchmark:
    """The same with the line that says how it differs from the paper's data."""
    return dataclasses.replace(benchmark, note=difference_note(data_counts(benchmark)))
