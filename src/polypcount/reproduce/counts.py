"""How much data there is, beside the published numbers, and the line for tables that says how they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.importers import REAL_COLON, TRAINING, PublishedCounts
from polypcount.reproduce.data import Benchmark
from polypcount.tracking import fragments, link_tracklets

Part = Literal["learn", "study"]
TITLES = {"real-colon": "REAL-Colon", "ldpolypvideo": "LDPolypVideo", "sun": "SUN", "polypsset": "PolypsSet"}
"""Names of the paper's datasets as people write them."""


@dataclass(frozen=True)
class DatasetCounts:
    """The data of one dataset to learn from or to study. Only known polyps count.

    Attributes:
        name: The dataset.
        part: What its videos are for.
        videos: Videos with a polyp.
        polyps: Polyps in them.
        published_videos: The paper's number of such videos; None for other datasets.
        published_polyps: The paper's number of polyps; None for other datasets.
        boxes: Boxes of polyps; 0 if only tables were read.
        tracklets: Tracklets of polyps that are long enough.
        fragments: Whole fragments of these tracklets.
    """

    name: str
    part: Part
    videos: int
    polyps: int
    published_videos: int | None
    published_polyps: int | None
    boxes: int
    tracklets: int
    fragments: int


def data_counts(benchmark: Benchmark, *, length: int = 8, stride: int = 4, min_frames: int = 30) -> list[DatasetCounts]:
    """Counts of each dataset to learn from, then of each to study.

    Args:
        benchmark: The data.
        length: Boxes of a fragment.
        stride: Step between them.
        min_frames: Fewest boxes of a tracklet.
    """
    cut = (length, stride, min_frames)
    return [*_of_corpus(benchmark.learn, "learn", cut), *_of_corpus(benchmark.study, "study", cut)]


def _of_corpus(corpus: Corpus, part: Part, cut: tuple[int, int, int]) -> list[DatasetCounts]:
    names = [*TITLES, *sorted({video.dataset for video in corpus.videos} - {*TITLES})]
    number = {name: index for index, name in enumerate(names)}
    dataset = np.array([number[video.dataset] for video in corpus.videos], np.int64)
    row_of = {video.id: row for row, video in enumerate(corpus.videos)}
    known = corpus.boxes.polyp >= 0
    owner = np.array([row_of.get(polyp.video or "", -1) for polyp in corpus.polyps], np.int64)
    owner[corpus.boxes.polyp[known]] = corpus.boxes.video[known]
    owner = owner[owner >= 0]
    tracklets = link_tracklets(corpus.boxes)
    pieces = fragments(tracklets, *cut)
    of_polyp = tracklets.polyp >= 0

    def count(videos: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(dataset[videos], minlength=len(names))

    videos, polyps, boxes = count(np.unique(owner)), count(owner), count(corpus.boxes.video[known])
    long_enough = count(tracklets.video[of_polyp & (tracklets.box_count >= cut[2])])
    whole = count(tracklets.video[pieces.tracklet[of_polyp[pieces.tracklet]]])
    counts = []
    for row in np.flatnonzero(videos):
        published = _published(names[row], part)
        counts.append(
            DatasetCounts(
                name=names[row],
                part=part,
                videos=int(videos[row]),
                polyps=int(polyps[row]),
                published_videos=published.videos if published else None,
                published_polyps=published.polyps if published else None,
                boxes=int(boxes[row]),
                tracklets=int(long_enough[row]),
                fragments=int(whole[row]),
            )
        )
    return counts


def _published(name: str, part: Part) -> PublishedCounts | None:
    if part == "learn":
        return TRAINING.get(name)
    return REAL_COLON["study"] if name == "real-colon" else None


def difference_note(counts: Sequence[DatasetCounts]) -> str:
    """A line that says how the data differ from the paper's; empty if they do not."""
    learnt, studied = ([one for one in counts if one.part == part] for part in ("learn", "study"))
    names = [TITLES.get(one.name, one.name or "other videos") for one in learnt]
    absent = [title for name, title in TITLES.items() if name not in {one.name for one in learnt}]
    paper_polyps = sum(published.polyps for published in TRAINING.values())
    if any(one.name not in TITLES for one in learnt):  # such as dataset0: it may be any of the paper's
        absent, differs = [], sum(one.polyps for one in learnt) != paper_polyps
    else:
        differs = bool(absent) or any(_differs(one) for one in learnt)
    parts = []
    if not learnt:
        parts.append("nothing was learnt from")
    elif differs:
        alone = " alone" if len(names) == 1 else ""
        paper = f"the paper {f'adds {_listed(absent)} (' if absent else 'learns from '}{paper_polyps} polyps"
        parts.append(f"learnt from {_listed(names)}{alone} ({_total(learnt)}); {paper}{')' * bool(absent)}")
    if [one.name for one in studied] != ["real-colon"] or any(_differs(one) for one in studied):
        videos, polyps = REAL_COLON["study"]
        parts.append(f"studied on {_total(studied)}; the paper has {videos} videos, {polyps} polyps of REAL-Colon")
    return "; ".join(parts)


def _differs(one: DatasetCounts) -> bool:
    return (one.videos, one.polyps) != (one.published_videos, one.published_polyps)


def _total(counts: Sequence[DatasetCounts]) -> str:
    videos, polyps = sum(one.videos for one in counts), sum(one.polyps for one in counts)
    return f"{videos} video{'s' * (videos != 1)}, {polyps} polyp{'s' * (polyps != 1)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
