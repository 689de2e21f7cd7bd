"""Datasets with known videos but unknown polyps: each video is taken as one polyp."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from polypcount.corpus import Corpus, Video, iou
from polypcount.importers.reading import BoxRows

_LEAST_OVERLAP = 0.1


def one_polyp_a_video(rows: BoxRows, video: Video, split_tracks: bool, files: Mapping[int, str] | None) -> Corpus:
    """Assign all boxes of a video to one polyp with the name of the video.

    That is wrong if a frame has several boxes, so a remark says so. With `split_tracks` the boxes of such a video
    are separated into tracks by overlap instead, and its polyps are left unknown.
    """
    crowded = sum(count > 1 for count in Counter(rows.frame).values())
    if crowded and split_tracks:
        rows.track = tracks_by_overlap(rows)
        rows.problems.remark(f"video {video.id}: several boxes in {crowded:,} frames, separated into tracks")
    else:
        rows.polyp = [video.id] * len(rows.frame)
        if crowded:
            rows.problems.remark(
                f"video {video.id}: several boxes in {crowded:,} frames, though it counts as one polyp "
                "(split_tracks separates them)"
            )
    return rows.to_corpus(video, files=files)


def tracks_by_overlap(rows: BoxRows) -> list[int]:
    """Number of the track of each box: boxes of neighbouring frames belong together, best overlap first."""
    track = [-1] * len(rows.frame)
    by_frame: dict[int, list[int]] = {}
    for row, frame in enumerate(rows.frame):
        by_frame.setdefault(frame, []).append(row)
    count = 0
    boxes = np.array(rows.xyxy, np.float64)
    for frame in sorted(by_frame):
        before, now = by_frame.get(frame - 1, []), by_frame[frame]
        pairs = [(old, new) for old in before for new in now]
        if pairs:
            old_rows, new_rows = np.array(pairs).T
            overlap = iou(boxes[old_rows], boxes[new_rows])
            for index in np.argsort(-overlap, kind="stable"):
                old, new = pairs[index]
                if overlap[index] >= _LEAST_OVERLAP and track[new] < 0 and track[old] not in [track[r] for r in now]:
                    track[new] = track[old]
        for row in now:
            if track[row] < 0:
                track[row], count = count, count + 1
    return track
