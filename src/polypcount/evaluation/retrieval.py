"""How well vectors separate polyps, before any grouping: by search, and over pairs.

Both compare tracklets by the cosine of their vectors; a zero vector has the cosine 0 with every other. Cosines are
rounded to nine decimals, so that equal similarities stay equal in every order of the rows.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.clustering.similarity import Matrix, finite_rows, unit_vectors
from polypcount.corpus import Embeddings
from polypcount.corpus.columns import Int32Column, int_column
from polypcount.errors import DataError
from polypcount.evaluation.pairs import polyp_column

BLOCK = 512  # rows of the similarity matrix that exist at a time
DECIMALS = 9  # of cosines


@dataclass(frozen=True)
class RetrievalScores:
    """Search for the other tracklets of a polyp among all others of all videos, most similar first.

    Of equally similar tracklets those of other polyps come first, so ties gain nothing. The scores are NaN without
    queries.

    Attributes:
        mean_average_precision: Mean over queries of the mean over their r matches, k = 1 .. r by falling similarity, of
            k / rank of match k.
        hit_rate_1: Share of queries whose first result is a match.
        hit_rate_5: Share of queries with a match among the first 5 results.
        queries: Number of tracklets that have another one of their polyp.
        queries_left_out: Number of tracklets that have none.
    """

    mean_average_precision: float
    hit_rate_1: float
    hit_rate_5: float
    queries: int
    queries_left_out: int


@dataclass(frozen=True)
class ReidentificationScores:
    """Pairs of tracklets, judged by their similarity alone: of one polyp (positive) or of two (negative).

    The scores are NaN where one kind of pair is missing.

    Attributes:
        auroc: Probability that a positive pair is more similar than a negative one; equal similarities count as half.
        aupr: Average precision, the sum over the thresholds t_i of (R_i - R_i-1) * P_i, where R_i is the recall and P_i
            the precision of calling pairs with a similarity of at least t_i positive.
        positive_pairs: Number of pairs of one polyp.
        negative_pairs: Number of pairs of two polyps.
    """

    auroc: float
    aupr: float
    positive_pairs: int
    negative_pairs: int


def retrieval_scores(vectors: ArrayLike, polyp: ArrayLike) -> RetrievalScores:
    """Search for each tracklet of all videos among all others.

    Args:
        vectors: float[n, d], one for each tracklet.
        polyp: int[n], the polyp of each: a number of at least 0 that is unique over all videos.
    """
    unit, owner = _checked(vectors, polyp)
    precisions, ahead_of_first = [], []
    for start in range(0, len(unit), BLOCK):
        similarity = np.round(unit[start : start + BLOCK] @ unit.T, DECIMALS)
        for query, row in enumerate(similarity, start):
            same = owner == owner[query]
            others = row[~same]
            same[query] = False
            matches = -np.sort(-row[same])
            if len(matches):
                ahead = len(others) - np.searchsorted(np.sort(others), matches, side="left")
                rank = np.arange(1, len(matches) + 1)
                precisions.append(float((rank / (rank + ahead)).mean()))
                ahead_of_first.append(int(ahead[0]))
    queries = len(precisions)
    if not queries:
        return RetrievalScores(math.nan, math.nan, math.nan, 0, len(unit))
    first = np.array(ahead_of_first)
    return RetrievalScores(
        mean_average_precision=float(np.mean(precisions)),
        hit_rate_1=float((first < 1).mean()),
        hit_rate_5=float((first < 5).mean()),
        queries=queries,
        queries_left_out=len(unit) - queries,
    )


def reidentification_scores(
    vectors: ArrayLike, polyp: ArrayLike, video: ArrayLike | None = None
) -> ReidentificationScores:
    """Separate pairs of one polyp from pairs of two, over the strict lower triangle of the matrix of cosines.

    Args:
        vectors: float[n, d], one for each tracklet.
        polyp: int[n], the polyp of each: a number of at least 0 that is unique over all videos.
        video: int[n], the video of each. With it, only pairs within a video count, as in counting.
    """
    unit, owner = _checked(vectors, polyp)
    videos = np.zeros(len(unit), np.int32) if video is None else int_column("tracklets", "video", video)
    if len(videos) != len(unit):
        raise DataError(f"video must have a row per vector, found {len(videos)} rows for {len(unit)} vectors")
    members = [np.flatnonzero(videos == number) for number in np.unique(videos)]
    positive = [similarity[same] for rows in members for similarity, same in _lower_triangle(unit[rows], owner[rows])]
    marks, matches = np.unique(np.concatenate([np.empty(0), *positive]), return_counts=True)
    # Most pairs are negative. They are only counted: below, at and above each positive similarity.
    below, upto = np.zeros(len(marks) + 1, np.int64), np.zeros(len(marks) + 1, np.int64)
    for rows in members:
        for similarity, same in _lower_triangle(unit[rows], owner[rows]):
            others = similarity[~same]
            below += np.bincount(np.searchsorted(marks, others, side="right"), minlength=len(marks) + 1)
            upto += np.bincount(np.searchsorted(marks, others, side="left"), minlength=len(marks) + 1)
    positives, negatives = int(matches.sum()), int(below.sum())
    if not positives or not negatives:
        return ReidentificationScores(math.nan, math.nan, positives, negatives)
    less, not_more = np.cumsum(below)[:-1], np.cumsum(upto)[:-1]  # negatives below, and at or below, each mark
    auroc = float((matches * (less + not_more) / 2).sum() / (positives * negatives))
    at_least = np.cumsum(matches[::-1])[::-1]  # positives at or above each mark
    aupr = float((matches / positives * at_least / (at_least + negatives - less)).sum())
    return ReidentificationScores(auroc, aupr, positives, negatives)


def pair_auc_by_video(embeddings: Embeddings) -> dict[str, float]:
    """The AUROC of `reidentification_scores` in each video, by video id; NaN where a kind of pair is missing."""
    videos = {video.id: embeddings.of_video(place) for place, video in enumerate(embeddings.videos)}
    return {
        name: reidentification_scores(embeddings.vectors[rows], embeddings.polyp[rows]).auroc
        for name, rows in videos.items()
    }


def _lower_triangle(unit: Matrix, owner: Int32Column) -> Iterator[tuple[Matrix, NDArray[np.bool_]]]:
    """Cosines below the diagonal, and whether both are of one polyp, a block of rows at a time."""
    for start in range(0, len(unit), BLOCK):
        stop = min(start + BLOCK, len(unit))
        below = np.tri(stop - start, stop, start - 1, dtype=bool)
        cosines = np.round(unit[start:stop] @ unit[:stop].T, DECIMALS)
        yield cosines[below], (owner[start:stop, None] == owner[:stop])[below]


def _checked(vectors: ArrayLike, polyp: ArrayLike) -> tuple[Matrix, Int32Column]:
    """Vectors of length 1 (or 0) float64[n, d], and polyps int32[n]."""
    rows, owner = finite_rows(vectors), polyp_column(polyp)
    if len(rows) != len(owner):
        raise DataError(f"there must be a vector for each polyp entry, found {len(rows)} and {len(owner)}")
    return unit_vectors(rows), owner
