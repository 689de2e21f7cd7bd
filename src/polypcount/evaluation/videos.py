"""Saved embeddings, video by video, as input of the methods."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import GroupingInput
from polypcount.corpus import Embeddings, Video
from polypcount.errors import DataError
from polypcount.tracking import duration_frames


@dataclass(frozen=True, eq=False)
class StudyVideo:
    """One video of a study.

    Attributes:
        video: The video.
        tracklets: Its n tracklets, as the methods take them.
        start_frame: int32[n], first frame of each tracklet.
        stop_frame: int32[n], the frame after the last of each tracklet.
        truth: int32[n], the polyp of each tracklet, as row in the polyps of the embeddings.
        annotated_polyps: Number of polyps of the video, including those without a tracklet.
    """

    video: Video
    tracklets: GroupingInput
    start_frame: NDArray[np.int32]
    stop_frame: NDArray[np.int32]
    truth: NDArray[np.int32]
    annotated_polyps: int

    @property
    def polyps(self) -> int:
        """Number of polyps that have a tracklet."""
        return len(np.unique(self.truth))


def kept_in_study(embeddings: Embeddings, *, min_frames: int, drop_unlabelled: bool) -> Embeddings:
    """The tracklets that a study uses: those with at least `min_frames` boxes, and only labelled ones if asked."""
    long_enough = embeddings.long_enough(min_frames)
    return long_enough.labelled() if drop_unlabelled else long_enough


def study_videos(embeddings: Embeddings, *, cannot_link: bool) -> Sequence[StudyVideo]:
    """Split embeddings into videos. Videos without any annotated polyp cannot be scored and are left out.

    Args:
        embeddings: Tracklets with known polyps. Their positions are start frames.
        cannot_link: Whether tracklets with boxes in one frame are kept apart.

    Raises:
        DataError: A tracklet has no polyp.
    """
    unlabelled = embeddings.polyp < 0
    if unlabelled.any():
        row = int(np.argmax(unlabelled))
        raise DataError(
            f"{int(unlabelled.sum())} of {len(embeddings)} tracklets have no polyp, the first of them in video "
            f"{embeddings.videos[embeddings.video[row]].id} from frame {embeddings.start_frame[row]}; a study compares "
            "with the truth: name their polyps or leave them out",
            mend="drop_unlabelled",
        )
    annotated = Counter(str(polyp.video) for polyp in embeddings.polyps)
    videos = []
    for place, video in enumerate(embeddings.videos):
        if video.id not in annotated:
            continue
        rows = embeddings.of_video(place)
        start, stop, truth = embeddings.start_frame[rows], embeddings.stop_frame[rows], embeddings.polyp[rows]
        together = embeddings.together[embeddings.video[embeddings.together[:, 0]] == place] - rows.start
        tracklets = GroupingInput.of(
            embeddings.vectors[rows],
            start,
            together if cannot_link else None,
            truth=truth,
            duration=duration_frames(video.frame_count, video.fps),
        )
        videos.append(StudyVideo(video, tracklets, start, stop, truth, annotated[video.id]))
    return videos


def refuse_too_few(videos: Sequence[StudyVideo], fewest: int, fpr_average: str) -> None:
    """Raise before any work where there are too few videos to choose an operating point on.

    FPR is undefined in a video with one polyp, so videos with two are needed, unless undefined values count as 0.
    """
    polyps = 1 if fpr_average == "zero-filled" else 2
    suitable = sum(video.polyps >= polyps for video in videos)
    if suitable < fewest:
        raise DataError(
            f"choosing parameters takes {fewest} videos with tracklets of {('a polyp', 'two polyps')[polyps - 1]}, "
            f"found {suitable} of {len(videos)}: add videos, or give fixed parameters",
            mend="parameters",
        )
