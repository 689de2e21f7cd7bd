"""Recordings with known polyps, as counting sees them, for choosing operating points."""

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.corpus import Embeddings, Polyp
from polypcount.counting.decide import USUAL_FPS
from polypcount.counting.tracklets import least_boxes
from polypcount.evaluation.videos import StudyVideo, study_videos


@dataclass(frozen=True, eq=False)
class CountedVideo(StudyVideo):
    """One recording with the tracklets that `count` counts by default.

    Attributes:
        known_polyps: How many polyps own a tracklet. In `truth`, each false alarm is a polyp of its own.
        seconds: float64[n], how long each tracklet is seen.
        tracked: Whether our tracker made the tracks.
    """

    known_polyps: int
    seconds: NDArray[np.float64]
    tracked: bool

    @property
    def polyps(self) -> int:
        """How many polyps own a tracklet."""
        return self.known_polyps


def counted_videos(embeddings: Embeddings) -> list[CountedVideo]:
    """The videos that have a tracklet to count, as `count` would see them."""
    tracked, videos = bool(embeddings.provenance.parameters.get("tracker")), []
    for video in embeddings.videos:
        own = embeddings.select(videos=[video.id]).long_enough(least_boxes(video.frame_count))
        if not len(own):
            continue
        seconds = own.box_count / (video.fps or USUAL_FPS)
        known = len(np.unique(own.polyp[own.polyp >= 0]))
        (one,) = study_videos(_alarms_named(own) if tracked else own, cannot_link=True)
        fields = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
        videos.append(CountedVideo(**fields, known_polyps=known, seconds=seconds, tracked=tracked))
    return videos


def _alarms_named(embeddings: Embeddings) -> Embeddings:
    """The embeddings of one video, in which each tracklet without a polyp has a polyp of its own."""
    alarms = np.flatnonzero(embeddings.polyp < 0)
    (video,) = embeddings.videos
    named = tuple(Polyp(f"{video.id} false alarm {k}", video.id) for k in range(len(alarms)))
    polyp = embeddings.polyp.copy()
    polyp[alarms] = len(embeddings.polyps) + np.arange(len(alarms))
    return dataclasses.replace(embeddings, polyps=(*embeddings.polyps, *named), polyp=polyp)
