"""Several corpora into one, with ids kept apart by dataset."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from polypcount.corpus import Corpus, concatenate


def merge(corpora: Sequence[Corpus]) -> Corpus:
    """Put corpora together.

    Where videos or polyps of different datasets have the same id, the dataset goes before it, as in `sun/case1`.
    The same id twice in one dataset is refused, as it would be counted twice.
    """
    videos = Counter(video.id for corpus in corpora for video in corpus.videos)
    polyps = Counter(polyp.id for corpus in corpora for polyp in corpus.polyps)
    return concatenate([_apart(corpus, videos, polyps) for corpus in corpora])


def _apart(corpus: Corpus, videos: Counter[str], polyps: Counter[str]) -> Corpus:
    dataset_of = {video.id: video.dataset for video in corpus.videos}

    def renamed(name: str, dataset: str, seen: Counter[str]) -> str:
        return f"{dataset}/{name}" if seen[name] > 1 and dataset else name

    return dataclasses.replace(
        corpus,
        videos=tuple(
            dataclasses.replace(video, id=renamed(video.id, video.dataset, videos)) for video in corpus.videos
        ),
        polyps=tuple(
            dataclasses.replace(
                polyp,
                id=renamed(polyp.id, dataset_of.get(polyp.video or "", ""), polyps),
                video=polyp.video and renamed(polyp.video, dataset_of[polyp.video], videos),
            )
            for polyp in corpus.polyps
        ),
    )
