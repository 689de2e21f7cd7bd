"""Merge several corpora into one; equal ids of different datasets stay distinct."""

import dataclasses
from collections import Counter
from collections.abc import Sequence

from polypcount.corpus import Corpus, concatenate
from polypcount.importers.published import TRAINING


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

    def renamed(name: str, dataset: str, times: Counter[str]) -> str:
        return f"{dataset}/{name}" if times[name] > 1 and dataset else name

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


def published_counts(corpus: Corpus) -> list[str]:
    """A line for each dataset of the paper's training set, and one for all: polyps found here, polyps published."""
    dataset_of = {video.id: video.dataset for video in corpus.videos}
    polyps = Counter(dataset_of.get(polyp.video or "", "") for polyp in corpus.polyps)
    if not set(polyps) & set(TRAINING):
        return []
    expected = {name: published.polyps for name, published in TRAINING.items()}
    expected["together"] = sum(expected.values())
    here = {**polyps, "together": sum(polyps.values())}
    return [
        f"{name}: {here.get(name, 0)} polyps, the paper's training set has {count}"
        + ("" if here.get(name, 0) == count else f" ({here.get(name, 0) - count:+d})")
        for name, count in expected.items()
    ]
