"""The data to learn from and to study. `real.py` reads them from disk; here they are simulated."""

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from polypcount.corpus import Corpus, is_corpus
from polypcount.errors import DataError
from polypcount.progress import Progress, no_progress
from polypcount.storage import content_key, read_json, write_json

Stage = Callable[[str], AbstractContextManager[Progress]]
"""Takes the name of a piece of work, and returns the context in which it runs and reports its progress."""


def silent(task: str) -> AbstractContextManager[Progress]:  # noqa: ARG001
    """The `Stage` that reports nothing."""
    return nullcontext(no_progress)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Videos to learn from, and others to study.

    Attributes:
        name: `real`, or that of a render; folders are named after it.
        note: How the data differ from the paper's, in a line for tables; empty if they do not, and if they are
            simulated.
    """

    name: str
    learn: Corpus
    study: Corpus
    note: str = ""

    @cached_property
    def learn_key(self) -> str:
        """Key of all data to learn from."""
        return _content(self.learn)

    @cached_property
    def study_key(self) -> str:
        """Key of all data to study."""
        return _content(self.study)


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
        learn, study = map(Corpus.load, folders)
        return Benchmark(out.name, learn, study)
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
    learn, study = map(saved, corpora, folders)
    benchmark = Benchmark(out.name, learn, study)
    write_json(manifest, settings)
    return benchmark


def saved(corpus: Corpus, folder: Path) -> Corpus:
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
