"""The published numbers of the paper's data, to compare with what is found on disk."""

from typing import NamedTuple


class PublishedCounts(NamedTuple):
    """Videos with a polyp, and their polyps."""

    videos: int
    polyps: int


# By split. The whole has 60 videos, of which 14 show no polyp.
REAL_COLON = {"train": PublishedCounts(27, 85), "study": PublishedCounts(19, 47), "all": PublishedCounts(60, 132)}
TRAINING = {
    "real-colon": REAL_COLON["train"],
    "ldpolypvideo": PublishedCounts(160, 160),
    "sun": PublishedCounts(100, 100),
    "polypsset": PublishedCounts(39, 39),
}
"""The paper's training set, by dataset: 384 polyps."""
