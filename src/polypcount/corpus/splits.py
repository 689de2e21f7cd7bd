"""Splits must share nothing: neither a video nor a polyp."""

import os
from collections.abc import Iterator, Sequence

import numpy as np

from polypcount.corpus.corpus import Corpus
from polypcount.corpus.findings import Finding

_ALL_FILES = "*"

_Key = tuple[str, ...]
# For each thing, the splits that have it, and a video of each such split.
_Owners = dict[_Key, dict[str, str]]


def leaks_within(corpus: Corpus) -> Iterator[Finding]:
    """Findings on videos and polyps in two of the splits that the corpus's videos name."""
    yield from _leaks([(corpus, [video.split for video in corpus.videos])])


def leaks_between(corpora: Sequence[Corpus], names: Sequence[str]) -> Iterator[Finding]:
    """Findings on videos and polyps in two corpora."""
    numbered = [f"{name} ({number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]
    yield from _leaks([(c, [name] * len(c.videos)) for c, name in zip(corpora, numbered, strict=True)])


def _leaks(parts: Sequence[tuple[Corpus, Sequence[str]]]) -> Iterator[Finding]:
    """Findings for corpora whose videos are in these splits; an empty name is no split.

    Two videos are the same if their dataset and id are, or if they come from the same file. Two polyps are the same if
    their id is. In several corpora their dataset must be the same too or, if it has no name, the id of their video.
    """
    videos: _Owners = {}
    polyps: _Owners = {}
    for corpus, splits in parts:
        for row, video in enumerate(corpus.videos):
            for key in _video_keys(corpus, row) if splits[row] else ():
                videos.setdefault(key, {}).setdefault(splits[row], video.id)
        for polyp_id, row in _polyps_seen(corpus):
            video, split = corpus.videos[row], splits[row]
            if split:
                home = "" if len(parts) == 1 else video.dataset or f"video {video.id}"
                polyps.setdefault((polyp_id, home), {}).setdefault(split, video.id)
    reported = set()
    for key, owners in videos.items():
        whole_folder = videos.get((*key[:2], _ALL_FILES), {}) if key[0] == "file" else {}
        where = tuple({**whole_folder, **owners}.items())
        if len(where) > 1 and where not in reported:
            reported.add(where)
            also = ", ".join(f"{video} in {split}" for split, video in where)
            yield Finding("error", "video in two splits", where[0][1], None, len(where), f"the same video is {also}")
    for (polyp_id, _), owners in polyps.items():
        if len(owners) > 1:
            message = f"polyp {polyp_id} is in the splits {', '.join(owners)}"
            yield Finding("error", "polyp in two splits", next(iter(owners.values())), None, len(owners), message)


def _video_keys(corpus: Corpus, row: int) -> Iterator[_Key]:
    video = corpus.videos[row]
    yield ("id", video.dataset, video.id)
    if video.source is not None:
        source = os.path.realpath(video.source)
        names = corpus.files.name[corpus.files.of_video(row)]
        for name in names if len(names) else [_ALL_FILES]:
            yield ("file", source, os.path.normpath(name))


def _polyps_seen(corpus: Corpus) -> list[tuple[str, int]]:
    """(polyp id, video row) for each video that a polyp names or has boxes in."""
    row_of = {video.id: row for row, video in enumerate(corpus.videos)}
    named = {(polyp.id, row_of[polyp.video]) for polyp in corpus.polyps if polyp.video is not None}
    pairs = np.unique(np.column_stack([corpus.boxes.polyp, corpus.boxes.video]), axis=0)
    return sorted(named | {(corpus.polyps[polyp].id, video) for polyp, video in pairs.tolist() if polyp >= 0})
