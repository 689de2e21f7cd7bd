"""The boxes of a corpus as CVAT XML 1.1 for video, one file per video.

A polyp is a track with its id as the attribute `identity`. If it has several boxes in a frame, it becomes as many
tracks with that identity. Boxes without a polyp are tracks with an empty identity, one for each number that a tracker
gave, and
one for each box without such a number. After each run of frames stands a box with outside="1". Score and tracker's
number are attributes of the box where it has them. Numbers read back exactly.

The format cannot hold frame rates, nor polyps without boxes. Texts that XML would change are in JSON quotes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from xml.sax.saxutils import escape

import numpy as np

from polypcount.corpus import Boxes, Corpus, Video
from polypcount.importers.reading import quoted, safe_names, shortest

SIDES = ("xtl", "ytl", "xbr", "ybr")
_ATTRIBUTES = (("identity", False), ("score", True), ("track", True))


def write(corpus: Corpus, folder: Path) -> None:
    """Write one XML file per video to the folder."""
    identities = [*(quoted(polyp.id) for polyp in corpus.polyps), ""]  # -1, not known, is the last
    names = safe_names(video.id for video in corpus.videos)
    for row, (video, name) in enumerate(zip(corpus.videos, names, strict=True)):
        boxes = corpus.boxes.take(np.r_[corpus.boxes.of_video(row)])
        with (folder / f"{name}.xml").open("w", encoding="utf-8", newline="\n") as file:
            file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n')
            _write_meta(file, video)
            for number, rows in enumerate(_tracks(boxes)):
                _write_track(file, number, boxes, rows, identities, video.frame_count)
            file.write("</annotations>\n")


def _write_meta(file: TextIO, video: Video) -> None:
    attributes = "".join(
        f"<attribute><name>{name}</name><mutable>{mutable}</mutable><input_type>text</input_type>"
        "<default_value></default_value><values></values></attribute>"
        for name, mutable in _ATTRIBUTES
    )
    size = ""
    if video.width and video.height:
        size = f"<original_size><width>{video.width}</width><height>{video.height}</height></original_size>"
    file.write(
        f"  <meta><task><name>{escape(quoted(video.id))}</name><size>{video.frame_count}</size>"
        f"<mode>interpolation</mode><overlap>0</overlap><start_frame>0</start_frame>"
        f"<stop_frame>{max(video.frame_count - 1, 0)}</stop_frame>"
        f"<labels><label><name>polyp</name><attributes>{attributes}</attributes></label></labels>{size}</task></meta>\n"
    )


def _tracks(boxes: Boxes) -> Iterator[list[int]]:
    """Rows of each track, by frame, with at most one box per frame."""
    tracks: dict[tuple[str, int, int], list[int]] = {}
    latest: dict[tuple[str, int], tuple[int, int]] = {}
    for row, (frame, polyp, track) in enumerate(
        zip(boxes.frame.tolist(), boxes.polyp.tolist(), boxes.track.tolist(), strict=True)
    ):
        owner = ("polyp", polyp) if polyp >= 0 else ("track", track) if track >= 0 else ("box", row)
        before, copies = latest.get(owner, (-1, 0))
        copy = copies + 1 if before == frame else 0
        latest[owner] = (frame, copy)
        tracks.setdefault((*owner, copy), []).append(row)
    yield from tracks.values()


def _write_track(
    file: TextIO, number: int, boxes: Boxes, rows: list[int], identities: list[str], frame_count: int
) -> None:
    file.write(f'  <track id="{number}" label="polyp" source="manual">\n')
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        frame = int(boxes.frame[row])
        sides = shortest(boxes.xyxy[row])
        corners = " ".join(f'{side}="{text}"' for side, text in zip(SIDES, sides, strict=True))
        values = {"identity": identities[boxes.polyp[row]]}
        if boxes.score[row] != 1:
            (values["score"],) = shortest(boxes.score[row : row + 1])
        if boxes.track[row] >= 0:
            values["track"] = str(boxes.track[row])
        inner = "".join(f'<attribute name="{name}">{escape(text)}</attribute>' for name, text in values.items())
        next_frame = frame_count if following is None else int(boxes.frame[following])
        last_of_run = next_frame > frame + 1
        for at, outside in ((frame, 0), (frame + 1, 1))[: 2 if last_of_run else 1]:
            shown = f'frame="{at}" outside="{outside}" occluded="0" keyframe="1" {corners}'
            file.write(f'    <box {shown} z_order="0">{inner}</box>\n')
    file.write("  </track>\n")
