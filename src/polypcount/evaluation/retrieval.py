"""How well vectors tell polyps apart, before any grouping: by search, and by looking at pairs.

Both compare tracklets by the cosine of their vectors; a zero vector has the cosine 0 with every other. Cosines are
rounded to nine decimals, so that tracklets that are equally similar stay so wherever they stand in the table.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.clustering.similarity import finite_rows, unit_vectors
from polypcount.corpus.columns import Int32Column, int_column
from polypcount.errors import DataError
from polypcount.evaluation.pairs import polyp_column

Floats = NDArray[np.float64]
BLOCK = 512  # rows of the similarity matrix that exist at a time
DECIMALS = 9


@dataclass(frozen=True)
class RetrievalScores:
    """Each tracklet asks for the others of its polyp, among all others of all videos, most similar first.

    mean_average_precision: mean over queries of the mean over their r matches, k = 1 .. r by falling similarity, of
        k / rank of match k.
    hit_rate_1, hit_rate_5: the share of queries with a match among the first 1 and 5.
    queries: how many tracklets have another one of their polyp.
    queries_left_out: how many have none, and so cannot be asked.

    Of equally similar tracklets those of other polyps come first: vectors that cannot tell gain nothing. All three
    scores are NaN without queries.
    """

    mean_average_precision: float
    hit_rate_1: float
    hit_rate_5: float
    queries: int
    queries_left_out: int


@dataclass(frozen=True)
class ReidentificationScores:
    """Pairs of tracklets, judged by their similarity alone: of one polyp (positive) or of two (negative).

    auroc: the chance that a positive pair is more similar than a negative one, equally similar counting as half.
    aupr: average precision, the sum over the thresholds t_i of (R_i - R_i-1) * P_i, with the recall R_i and the
        precision P_i of taking pairs of at least the similarity t_i for positive.
    positive_pairs, negative_pairs: how many pairs there are of each kind; the scores are NaN where one is missing.
    """

    auroc: float
    aupr: float
    positive_pairs: int
    negative_pairs: int


def retrieval_scores(vectors: ArrayLike, polyp: ArrayLike) -> RetrievalScores:
    """Search for each tracklet of all videos among all others.

    vectors: [n, d], an embedding per tracklet.
    polyp: [n], the polyp of each, a number of at least 0 that no two polyps of any videos share.
    """
    unit, owner = _checked(vectors, polyp)
    precisions, ahead_of_first = [], []
    for start in range(0, len(unit), BLOCK):
        similarity = _cosines(unit[start : start + BLOCK], unit)
        for query, row in enumerate(similarity, start):
            mine = owner == owner[query]
            others = row[~mine]
            mine[query] = False
            matches = -np.sort(-row[mine])
            if len(matches):
                ahead = len(others) - np.searchsorted(np.sort(others), matches, side="left")
                place = np.arange(1, len(matches) + 1)
                precisions.append(float((place / (place + ahead)).mean()))
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
    """Tell pairs of one polyp from pairs of two, over the strict lower triangle of the matrix of cosines.

    vectors: [n, d], an embedding per tracklet.
    polyp: [n], the polyp of each, a number of at least 0 that no two polyps of any videos share.
    video: [n], the video of each; with it only pairs within a video are looked at, which a counter has to tell apart.
    """
    unit, owner = _checked(vectors, polyp)
    place = np.zeros(len(unit), np.int32) if video is None else int_column("tracklets", "video", video)
    if len(place) != len(unit):
        raise DataError(f"video must have a row per vector, found {len(place)} rows for {len(unit)} vectors")
    members = [np.flatnonzero(place == one) for one in np.unique(place)]
    positive = [similarity[same] for rows in members for similarity, same in _lower_triangle(unit[rows], owner[rows])]
    marks, matches = np.unique(np.concatenate([np.empty(0), *positive]), return_counts=True)
    # Negative pairs, which are by far the most, are only counted: below, at and above each positive similarity.
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
    found = np.cumsum(matches[::-1])[::-1]  # positives at or above each mark
    aupr = float((matches / positives * found / (found + negatives - less)).sum())
    return ReidentificationScores(auroc, aupr, positives, negatives)


def _lower_triangle(unit: Floats, owner: Int32Column) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    """Cosines below the diagonal, and whether both are of one polyp, a block of rows at a time."""
    for start in range(0, len(unit), BLOCK):
        stop = min(start + BLOCK, len(unit))
        below = np.tri(stop - start, stop, start - 1, dtype=bool)
        yield _cosines(unit[start:stop], unit[:stop])[below], (owner[start:stop, None] == owner[:stop])[below]


def _cosines(rows: Floats, columns: Floats) -> Floats:
    return np.round(rows @ columns.T, DECIMALS)


def _checked(vectors: ArrayLike, polyp: ArrayLike) -> tuple[Floats, Int32Column]:
    """Vectors of length 1 (or 0) float64[n, d], and polyps int32[n]."""
    rows, owner = finite_rows(vectors), polyp_column(polyp)
    if len(rows) != len(owner):
        raise DataError(f"there must be a vector for each polyp entry, found {len(rows)} and {len(owner)}")
    return unit_vectors(rows), owner
