"""Splits must share nothing: neither a video nor a polyp."""

from collections.abc import Iterator, Sequence

import numpy as np

from polypcount.corpus.corpus import Corpus
from polypcount.corpus.findings import Finding


def shared_between_splits(corpora: Sequence[Corpus], names: Sequence[str]) -> Iterator[Finding]:
    """Findings on videos and polyps in two splits.

    With one corpus the splits are those that its videos name; with several, each corpus is a split. A video is the
    same where its dataset and id are, or where it is made from the same file; a polyp where its dataset and id are.
    """
    one = len(corpora) == 1
    video_splits: dict[tuple[str, ...], dict[str, str]] = {}
    polyp_splits: dict[tuple[str, ...], dict[str, str]] = {}
    for corpus, name in zip(corpora, names, strict=True):
        for row, video in enumerate(corpus.videos):
            split = video.split if one else name
            if split:
                for key in _video_keys(corpus, row):
                    video_splits.setdefault(key, {}).setdefault(split, video.id)
        for polyp_id, row in _polyps_seen(corpus):
            video = corpus.videos[row]
            split = video.split if one else name
            if split:
                polyp_splits.setdefault((video.dataset, polyp_id), {}).setdefault(split, video.id)
    told = set()
    for splits in video_splits.values():
        if len(splits) > 1 and (where := tuple(splits.items())) not in told:
            told.add(where)
            also = ", ".join(f"{video} in {split}" for split, video in where)
            yield Finding("error", "video in two splits", where[0][1], None, len(splits), f"the same video is {also}")
    for (_, polyp_id), splits in polyp_splits.items():
        if len(splits) > 1:
            message = f"polyp {polyp_id} is in the splits {', '.join(splits)}"
            yield Finding("error", "polyp in two splits", next(iter(splits.values())), None, len(splits), message)


def _video_keys(corpus: Corpus, row: int) -> Iterator[tuple[str, ...]]:
    video = corpus.videos[row]
    yield ("id", video.dataset, video.id)
    if video.source is not None:
        names = corpus.files.name[corpus.files.of_video(row)]
        yield from (("file", video.source, name) for name in names) if len(names) else [("file", video.source)]


def _polyps_seen(corpus: Corpus) -> set[tuple[str, int]]:
    """(polyp id, video row) for each video that a polyp names or has boxes in."""
    row_of = {video.id: row for row, video in enumerate(corpus.videos)}
    seen = {(polyp.id, row_of[polyp.video]) for polyp in corpus.polyps if polyp.video is not None}
    pairs = np.unique(np.column_stack([corpus.boxes.polyp, corpus.boxes.video]), axis=0)
    return seen | {(corpus.polyps[polyp].id, video) for polyp, video in pairs.tolist() if polyp >= 0}
