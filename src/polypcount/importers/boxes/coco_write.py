"""The boxes of a corpus as one COCO file; `coco.py` says what is in it."""

import json
from pathlib import Path
from typing import Any

from polypcount.corpus import Corpus
from polypcount.importers.reading import corners_and_sides, safe_names, shortest
from polypcount.storage import write_text

_CATEGORY = 1


def write(corpus: Corpus, folder: Path) -> None:
    """Write `boxes.json` to the folder."""
    images, image_of_box = _images(corpus)
    content = {
        "info": {"description": "boxes exported by polypcount"},
        "licenses": [],
        "videos": _videos(corpus),
        "images": images,
        "annotations": _annotations(corpus, image_of_box),
        "categories": [{"id": _CATEGORY, "name": "polyp", "supercategory": "polyp"}],
        "polyps": _polyps(corpus),
    }
    write_text(folder / "boxes.json", json.dumps(content))


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "")}


def _videos(corpus: Corpus) -> list[dict[str, Any]]:
    return [
        {
            "id": row + 1,
            "name": video.id,
            "length": video.frame_count,
            **_known(
                {
                    "fps": video.fps,
                    "width": video.width,
                    "height": video.height,
                    "dataset": video.dataset,
                    "centre": video.centre,
                    "split": video.split,
                }
            ),
        }
        for row, video in enumerate(corpus.videos)
    ]


def _images(corpus: Corpus) -> tuple[list[dict[str, Any]], list[int]]:
    """An image for each frame with boxes, and the image id of each box."""
    names = {
        (video, frame): name
        for video, frame, name in zip(
            corpus.files.video.tolist(), corpus.files.frame.tolist(), corpus.files.name, strict=True
        )
    }
    folders = safe_names(video.id for video in corpus.videos)
    images: list[dict[str, Any]] = []
    image_of_box = []
    before = None
    for key in zip(corpus.boxes.video.tolist(), corpus.boxes.frame.tolist(), strict=True):
        if key != before:
            row, frame = before = key
            video = corpus.videos[row]
            name = names.get(key, f"{frame:06d}.jpg")
            about = {
                "id": len(images) + 1,
                "video_id": row + 1,
                "frame_id": frame,
                "file_name": f"{folders[row]}/{name}",
            }
            images.append(about | _known({"width": video.width, "height": video.height}))
        image_of_box.append(len(images))
    return images, image_of_box


def _annotations(corpus: Corpus, image_of_box: list[int]) -> list[dict[str, Any]]:
    boxes = corpus.boxes
    annotations = []
    for row, (box, score) in enumerate(zip(corners_and_sides(boxes.xyxy), shortest(boxes.score), strict=True)):
        polyp, track = int(boxes.polyp[row]), int(boxes.track[row])
        about = {
            "id": row + 1,
            "image_id": image_of_box[row],
            "category_id": _CATEGORY,
            "bbox": box,
            "area": round(box[2] * box[3], 4),
            "iscrowd": 0,
            "score": float(score),
            "identity_id": corpus.polyps[polyp].id if polyp >= 0 else None,
        }
        annotations.append(about | ({"track_id": track} if track >= 0 else {}))
    return annotations


def _polyps(corpus: Corpus) -> list[dict[str, Any]]:
    """What is known about polyps; polyps of no video or of several videos have no entry."""
    row_of = {video.id: row for row, video in enumerate(corpus.videos)}
    return [
        {
            "id": polyp.id,
            "video_id": row_of[polyp.video] + 1,
            **_known({"size_mm": polyp.size_mm, "site": polyp.site, "histology": polyp.histology}),
        }
        for polyp in corpus.polyps
        if polyp.video is not None
    ]
