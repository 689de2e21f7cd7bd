"""What is learnt from and what is studied: the public datasets as they lie on disk, or a simulated benchmark."""

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
from polypcount.reproduce.kept import read_json, write_json

_log = logging.getLogger(__name__)
Stage = Callable[[str], AbstractContextManager[Progress]]
"""Makes, from the name of some work, the context in which it runs, with the `Progress` to tell."""
DATASETS = ("real-colon", "ldpolypvideo", "sun", "polypsset")
REAL = "real"


def silent(task: str) -> AbstractContextManager[Progress]:  # noqa: ARG001
    """The `Stage` of callers who do not want to hear of it."""
    return nullcontext(no_progress)


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Videos to learn from, and others to study. name: `real`, or that of a render; a folder is called by it."""

    name: str
    learn: Corpus
    study: Corpus

    @cached_property
    def learn_key(self) -> str:
        """Of all that is learnt from."""
        return _content(self.learn)

    @cached_property
    def study_key(self) -> str:
        """Of all that is studied."""
        return _content(self.study)


def real_benchmark(places: Mapping[str, Path], out: Path, stage: Stage = silent) -> Benchmark:
    """REAL-Colon's study videos, and all other videos with a polyp to learn from. places: folder of each dataset.

    Both corpora are kept in `out`. What was read of each video is in the importers' cache, so to read again is quick.
    """
    if missing := [name for name in DATASETS if name not in places]:
        raise DataError(f"the folder of {missing[0]} is needed: --{missing[0]} DIR")
    parts = []
    for name in DATASETS:
        with stage(f"reading {name}") as progress:
            options = Options(split="train") if name == "real-colon" else Options()
            parts.append(read_corpus(name, places[name], options, progress=progress))
    with stage("reading the study videos") as progress:
        study = read_corpus("real-colon", places["real-colon"], progress=progress, split="study")
    learn = merge(parts)
    for line in published_counts(learn):
        _log.info("%s", line)
    return Benchmark(REAL, _kept(learn, out / "learn"), _kept(study, out / "study"))


def simulated_benchmark(
    render: int,
    out: Path,
    *,
    stills: Path | None,
    identities: int,
    looks: Mapping[str, float] | None = None,
    stage: Stage = silent,
) -> Benchmark:
    """Rendered procedures, made once and kept in `out`.

    render: number of the render; another one has other procedures. stills: folder of images with masks to animate.
    identities: how many polyps to learn from. looks: strengths of difficulties other than 1, see `simulate.Looks`.
    """
    from polypcount.simulate import Looks
    from polypcount.simulate.scene_file import FORMAT_VERSION
    from polypcount.simulate.scenes import write_benchmark

    asked = {
        "version": FORMAT_VERSION,
        "render": render,
        "stills": None if stills is None else os.path.abspath(stills),
        "identities": identities,
        **({"looks": dict(looks)} if looks else {}),
    }
    told, kept = out / "benchmark.json", (out / "learn", out / "study")
    if told.exists() and read_json(told) == asked and all(map(is_corpus, kept)):
        return Benchmark(out.name, *map(Corpus.load, kept))
    try:
        strengths = Looks(**(looks or {}))
    except TypeError:
        raise DataError(
            f"looks are {', '.join(item.name for item in fields(Looks))}, found {dict(looks or {})}"
        ) from None
    with stage(f"simulating render {render}") as progress:
        learn, study = write_benchmark(
            out / "scenes", render=render, stills=stills, identities=identities, looks=strengths, progress=progress
        )
    found = Benchmark(out.name, _kept(learn, kept[0]), _kept(study, kept[1]))
    write_json(told, asked)
    return found


def _kept(corpus: Corpus, folder: Path) -> Corpus:
    """The corpus, saved unless it is there already."""
    if is_corpus(folder):
        known = Corpus.load(folder)
        if known.content_hash == corpus.content_hash and known.videos == corpus.videos:
            return corpus
    corpus.save(folder)
    return corpus


def _content(corpus: Corpus) -> str:
    """SHA-256 of what the corpus says and of the files, such as scenes, that its videos are made from.

    Folders of images are left out: to read a terabyte takes hours, and the datasets do not change.
    """
    digest = hashlib.sha256(corpus.content_hash.encode())
    for video in corpus.videos:
        if video.source is not None and os.path.isfile(video.source):
            with Path(video.source).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
