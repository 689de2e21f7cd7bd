"""The data to learn from and to study: the public datasets on disk, or a simulated benchmark."""

import hashlib
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from polypcount.corpus import Corpus, is_corpus
from polypcount.errors import DataError
from polypcount.importers import Options, merge, published_counts, read_corpus
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key, read_json, write_json

_log = logging.getLogger(__name__)
Stage = Callable[[str], AbstractContextManager[Progress]]
"""Takes the name of a piece of work, and returns the context in which it runs and reports its progress."""
DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")


def silent(task: str) -> AbstractContextManager[Progress]:  # noqa: ARG001
    """The `Stage` that reports nothing."""
    return nullcontext(no_progress)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Videos to learn from, and others to study.

    Attributes:
        name: `real`, or that of a render; folders are named after it.
    """

    name: str
    learn: Corpus
    study: Corpus

    @cached_property
    def learn_key(self) -> str:
        """Key of all data to learn from."""
        return _content(self.learn)

    @cached_property
    def study_key(self) -> str:
        """Key of all data to study."""
        return _content(self.study)


def real_benchmark(folders: Mapping[str, Path], out: Path, stage: Stage = silent) -> Benchmark:
    """REAL-Colon's study videos, and all other videos with a polyp to learn from.

    Both corpora are saved in `out`. The importers cache each video, so reading again is quick.

    Args:
        folders: Folder of each dataset, by the name of its importer.
        out: Folder for the corpora.
        stage: Reports progress.
    """
    if missing := [name for name in DATASETS if name not in folders]:
        raise DataError(f"the folder of {missing[0]} is needed", mend=missing[0])
    parts = []
    for name in DATASETS:
        with stage(f"reading {name}") as progress:
            options = Options(split="train") if name == "real-colon" else Options()
            parts.append(read_corpus(name, folders[name], options, progress=progress))
    with stage("reading the study videos") as progress:
        study = read_corpus("real-colon", folders["real-colon"], progress=progress, split="study")
    learn = merge(parts)
    for line in published_counts(learn):
        _log.info("%s", line)
    return Benchmark("real", _saved(learn, out / "learn"), _saved(study, out / "study"))


def simulated_benchmark(
    render: int,
    out: Path,
    *,
    stills: Path | None,
    identities: int,
    looks: Mapping[str, float] | None = None,
    stage: Stage = silent,
) -> Benchmark:
    """Rendered procedures, made once and saved in `out`.

    Args:
        render: Number of the render; another one has other procedures.
        out: Folder for the scenes and corpora.
        stills: Folder of images with masks to animate.
        identities: How many polyps to learn from.
        looks: Strengths of difficulties other than 1, see `simulate.Difficulty`.
        stage: Reports progress.
    """
    from polypcount.simulate import Difficulty
    from polypcount.simulate.scene_file import FORMAT_VERSION
    from polypcount.simulate.scenes import write_benchmark

    settings = {
        "version": FORMAT_VERSION,
        "render": render,
        "stills": None if stills is None else os.path.abspath(stills),
        "identities": identities,
        **({"looks": dict(looks)} if looks else {}),
    }
    manifest, folders = out / "benchmark.json", (out / "learn", out / "study")
    if manifest.exists() and read_json(manifest) == settings and all(map(is_corpus, folders)):
        return Benchmark(out.name, *map(Corpus.load, folders))
    try:
        difficulty = Difficulty(**(looks or {}))
    except TypeError:
        names = ", ".join(field.name for field in fields(Difficulty))
        raise DataError(f"looks are {names}, found {dict(looks or {})}", mend="looks") from None
    with stage(f"simulating render {render}") as progress:
        corpora = write_benchmark(
            out / "scenes",
            render=render,
            stills=stills,
            identities=identities,
            difficulty=difficulty,
            progress=progress,
        )
    benchmark = Benchmark(out.name, *map(_saved, corpora, folders))
    write_json(manifest, settings)
    return benchmark


def _saved(corpus: Corpus, folder: Path) -> Corpus:
    """The corpus, saved unless the same one is there already."""
    old = Corpus.load(folder) if is_corpus(folder) else None
    if old is None or old.content_hash != corpus.content_hash or old.videos != corpus.videos:
        corpus.save(folder)
    return corpus


def _content(corpus: Corpus) -> str:
    """Key of the corpus and of the files, such as scenes, that its videos are made from.

    Folders of images are left out: reading a terabyte takes hours, and the datasets do not change.
    """
    hashes = []
    for video in corpus.videos:
        if video.source is not None and os.path.isfile(video.source):
            with Path(video.source).open("rb") as file:
                hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    return content_key("benchmark 2", corpus.content_hash, hashes)
