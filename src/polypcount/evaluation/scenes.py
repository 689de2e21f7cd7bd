"""Saved embeddings, video by video, as the methods take them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Scene
from polypcount.corpus import Embeddings, Video
from polypcount.errors import DataError


@dataclass(frozen=True, eq=False)
class StudyVideo:
    """One video of a study.

    start_frame, stop_frame, truth: int32[n], span and polyp of each tracklet, the polyp as row in the embeddings'.
    annotated_polyps: how many polyps it has, with those that own no tracklet.
    """

    video: Video
    scene: Scene
    start_frame: NDArray[np.int32]
    stop_frame: NDArray[np.int32]
    truth: NDArray[np.int32]
    annotated_polyps: int

    @property
    def polyps(self) -> int:
        """How many polyps own a tracklet."""
        return len(np.unique(self.truth))


def kept_in_study(embeddings: Embeddings, *, min_frames: int, drop_unlabelled: bool) -> Embeddings:
    """The tracklets that a study looks at."""
    kept = embeddings.long_enough(min_frames)
    return kept.labelled() if drop_unlabelled else kept


def study_videos(embeddings: Embeddings, *, cannot_link: bool) -> Sequence[StudyVideo]:
    """Cut embeddings into videos; those without any annotated polyp have nothing to judge and are left out.

    Positions are start frame / frame count. cannot_link: whether tracklets with boxes in one frame are kept apart.
    """
    unknown = embeddings.polyp < 0
    if unknown.any():
        row = int(np.argmax(unknown))
        raise DataError(
            f"{int(unknown.sum())} of {len(embeddings)} tracklets have no polyp, the first of them in video "
            f"{embeddings.videos[embeddings.video[row]].id} from frame {embeddings.start_frame[row]}; a study compares "
            "with the truth: name their polyps or drop them (--drop-unlabelled)"
        )
    annotated: dict[str, int] = {}
    for polyp in embeddings.polyps:
        annotated[str(polyp.video)] = annotated.get(str(polyp.video), 0) + 1
    found = []
    for place, video in enumerate(embeddings.videos):
        if video.id not in annotated:
            continue
        rows = embeddings.of_video(place)
        pairs = embeddings.together[embeddings.video[embeddings.together[:, 0]] == place] - rows.start
        scene = Scene.of(
            embeddings.vectors[rows],
            embeddings.start_frame[rows],
            pairs if cannot_link else None,
            truth=embeddings.polyp[rows],
            duration=max(video.frame_count, 1),
        )
        spans = embeddings.start_frame[rows], embeddings.stop_frame[rows]
        found.append(StudyVideo(video, scene, *spans, embeddings.polyp[rows], annotated[video.id]))
    return found
