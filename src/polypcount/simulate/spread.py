"""How widely boxes are spread: the figures by which simulated boxes are compared with real ones.

All are about tracklets of at least 30 boxes, made by the rule of the paper, unless something else is said. A length is
in heights of the image, and the size of a box is the root of its area. A place in the image is in shares of its sides.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Corpus
from polypcount.tracking import link_tracklets

_LEAST_BOXES = 30
_LEAST_TRACKLETS = 3  # of a polyp, for a deviation between them
_AT_EDGE = 0.0065  # a box that is nearer to a side of the image, in shares of it, is at its edge

Quantiles = tuple[float, ...]


@dataclass(frozen=True)
class BoxSpread:
    """The figures of a corpus. Undefined ones are NaN.

    Attributes:
        all_tracklets: Number of tracklets of any length.
        tracklets: Number of tracklets of at least 30 boxes.
        seconds: Their length: quantiles 10, 50, 90 %.
        gap_seconds: From the end of one to the start of the next of the polyp: quantiles 25, 50, 75, 90 %.
        motion: How far the middle of a box moves in a frame: the median within a tracklet, and of these the median.
        size: Geometric mean of a tracklet's sizes: quantiles 10, 50, 90 %.
        size_between: Standard deviation of the log of that mean over the tracklets of a polyp, median over polyps with
            at least 3 tracklets.
        size_within: Standard deviation of the log of size within a tracklet, median.
        aspect_within: Standard deviation of the log of width / height within a tracklet, median.
        distance: From the middle of the image to the mean place of a tracklet, median.
        edge: Share of a tracklet's boxes at an edge: quantiles 50, 90 %.
        short: Share of all tracklets with fewer than 30 boxes.
        fragmentation: Tracklets for each polyp that has one, mean over videos that have one: FR without clustering.
        fragmentation_spread: Its standard deviation over these videos.
    """

    all_tracklets: int
    tracklets: int
    seconds: Quantiles
    gap_seconds: Quantiles
    motion: float
    size: Quantiles
    size_between: float
    size_within: float
    aspect_within: float
    distance: float
    edge: Quantiles
    short: float
    fragmentation: float
    fragmentation_spread: float

    @property
    def medians(self) -> dict[str, float]:
        """The figures that say where the middle of each spread is."""
        return {
            "seconds": self.seconds[1],
            "gap_seconds": self.gap_seconds[1],
            "motion": self.motion,
            "size": self.size[1],
            "size_between": self.size_between,
            "size_within": self.size_within,
            "aspect_within": self.aspect_within,
            "distance": self.distance,
            "edge": self.edge[0],
            "short": self.short,
        }


def box_spread(corpus: Corpus) -> BoxSpread:
    """The figures of a corpus whose videos have a size and a frame rate, and whose boxes name their polyps."""
    boxes, tracklets = corpus.boxes, link_tracklets(corpus.boxes)
    sides = np.array([(video.width or np.nan, video.height or np.nan) for video in corpus.videos]).reshape(-1, 2)
    fps = np.array([video.fps or np.nan for video in corpus.videos])
    kept = np.flatnonzero(tracklets.box_count >= _LEAST_BOXES)
    places = boxes.xyxy.reshape(-1, 2, 2).astype(np.float64) / sides[boxes.video][:, None, :]
    middle, extent = places.mean(axis=1), places[:, 1] - places[:, 0]
    heights = np.column_stack([sides[:, 0] / sides[:, 1], np.ones(len(sides))])[boxes.video]  # of a side
    log_size = np.log(np.maximum((extent * heights).prod(axis=1), 1e-12)) / 2
    log_aspect = np.log(np.maximum(extent, 1e-6) * heights) @ [1, -1]
    at_edge = ((places[:, 0] < _AT_EDGE) | (places[:, 1] > 1 - _AT_EDGE)).any(axis=1)
    rows = [tracklets.rows(k) for k in kept.tolist()]
    steps = [np.linalg.norm(np.diff(middle[mine] * heights[mine], axis=0), axis=1) for mine in rows]
    mean_log = np.array([log_size[mine].mean() for mine in rows])
    polyp, video = tracklets.polyp[kept], tracklets.video[kept]
    follows = np.lexsort((tracklets.start_frame[kept], polyp))
    same = polyp[follows[1:]] == polyp[follows[:-1]]
    gaps = tracklets.start_frame[kept[follows[1:]]] - tracklets.stop_frame[kept[follows[:-1]]]
    between = [mean_log[polyp == k].std(ddof=1) for k in np.unique(polyp) if (polyp == k).sum() >= _LEAST_TRACKLETS]
    rate = np.array([(video == v).sum() / len(np.unique(polyp[video == v])) for v in np.unique(video)])
    return BoxSpread(
        all_tracklets=len(tracklets),
        tracklets=len(kept),
        seconds=_quantiles(tracklets.box_count[kept] / fps[video], 0.1, 0.5, 0.9),
        gap_seconds=_quantiles((gaps / fps[video[follows[1:]]])[same], 0.25, 0.5, 0.75, 0.9),
        motion=_median([np.median(step) for step in steps]),
        size=_quantiles(np.exp(mean_log), 0.1, 0.5, 0.9),
        size_between=_median(between),
        size_within=_median([log_size[mine].std() for mine in rows]),
        aspect_within=_median([log_aspect[mine].std() for mine in rows]),
        distance=_median([np.linalg.norm(middle[mine].mean(axis=0) - 0.5) for mine in rows]),
        edge=_quantiles(np.array([at_edge[mine].mean() for mine in rows]), 0.5, 0.9),
        short=1 - len(kept) / len(tracklets) if len(tracklets) else np.nan,
        fragmentation=float(rate.mean()) if len(rate) else np.nan,
        fragmentation_spread=float(rate.std(ddof=1)) if len(rate) > 1 else np.nan,
    )


def _quantiles(values: NDArray[np.floating], *shares: float) -> Quantiles:
    return tuple(np.quantile(values, shares).tolist()) if len(values) else (np.nan,) * len(shares)


def _median(values: "list[np.floating]") -> float:
    return float(np.median(values)) if values else np.nan
