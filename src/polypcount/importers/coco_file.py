"""A COCO JSON file, checked: its videos, images and boxes, with what else each of them says.

Places in the file are told as JSON paths, `boxes.json: annotations[17].bbox`. Ids may be numbers or texts; the number
1 and the text "1" are the same id.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polypcount.errors import FileError
from polypcount.importers.decimals import json_decimal, json_whole
from polypcount.importers.files import read_text
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box
from polypcount.importers.texts import shown, usable
from polypcount.importers.videos import VideoFacts

_LARGEST_BYTES = 1 << 30
Record = Mapping[str, Any]


@dataclass(frozen=True)
class CocoVideo:
    """An entry of `videos`, as CocoVID has them. values: the whole entry. where: its JSON path."""

    id: str
    facts: VideoFacts
    values: Record
    where: str


@dataclass(frozen=True)
class CocoImage:
    """An entry of `images`.

    file_name: empty where the file does not give one.
    size: width and height in pixels, None where the file does not give them.
    video: id of its video, None where it names none.
    values: the whole entry. where: its JSON path.
    """

    id: str
    file_name: str
    size: tuple[int, int] | None
    video: str | None
    values: Record
    where: str


@dataclass(frozen=True)
class CocoBox:
    """An entry of `annotations`. box: its `bbox` as written. values: the whole entry. where: its JSON path."""

    image: CocoImage
    box: Box
    score: float
    values: Record
    where: str


@dataclass(frozen=True)
class CocoFile:
    """A file. values: everything at its top."""

    videos: tuple[CocoVideo, ...]
    images: tuple[CocoImage, ...]
    boxes: tuple[CocoBox, ...]
    values: Record


def load_json(path: Path) -> Any:
    """The value in a JSON file; a `FileError` where it holds none."""
    text = read_text(path, _LARGEST_BYTES)
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise FileError(f"{path}:{problem.lineno}: not valid JSON: {problem.msg}") from None
    except ValueError:  # a number of thousands of digits
        raise FileError(f"{path}: not readable as JSON: a number is too long") from None
    except RecursionError:
        raise FileError(f"{path}: not readable as JSON: nested too deep") from None


def load_coco(path: Path, problems: Problems) -> CocoFile:
    """Read a COCO file. Entries that cannot be used are reported and left out, with the boxes that need them."""
    values = load_json(path)
    if not isinstance(values, dict):
        hint = "; the format of a list of detections is coco-results" if isinstance(values, list) else ""
        raise FileError(f"{path}: an object with images and annotations is expected, found {shown(values)}{hint}")
    for key in ("images", "annotations"):
        if not isinstance(values.get(key), list):
            raise FileError(f"{path}: {key} must be a list, found {shown(values.get(key))}")
    videos = tuple(_videos(values, path, problems))
    images = tuple(_images(values, path, problems))
    return CocoFile(videos, images, tuple(_boxes(values, images, path, problems)), values)


def entries(values: Record, key: str, path: Path, problems: Problems) -> Iterator[tuple[str, Record]]:
    """JSON path and content of each object in a list of the file."""
    found = values.get(key)
    if found is not None and not isinstance(found, list):
        raise FileError(f"{path}: {key} must be a list, found {shown(found)}")
    for index, entry in enumerate(found or ()):
        where = f"{path}: {key}[{index}]"
        if isinstance(entry, dict):
            yield where, entry
        else:
            problems.bad(where, f"an object is expected, found {shown(entry)}")


def id_of(value: object) -> str | None:
    """An id as text, from a number or a text; None where it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return usable(value)


def box_of(where: str, values: Record, problems: Problems) -> tuple[Box, float] | None:
    """The four numbers of `bbox`, and `score`, which is 1 where there is none."""
    given = values.get("bbox")
    numbers = [json_decimal(number) for number in given] if isinstance(given, list) else []
    known = [number for number in numbers if number is not None]
    if len(numbers) != 4 or len(known) != 4:
        problems.bad(f"{where}.bbox", f"four numbers are expected, found {shown(given)}")
        return None
    score = 1.0 if values.get("score") is None else json_decimal(values["score"])
    if score is None:
        problems.bad(f"{where}.score", f"a number is expected, found {shown(values['score'])}")
        return None
    return (known[0], known[1], known[2], known[3]), score


def identity_of(value: object) -> int | str | None:
    """An identity: a number from 0, or a text. None for null, an empty text and -1, which say that it is not known."""
    number = json_whole(value)
    return (None if number < 0 else number) if number is not None else usable(value)


def is_identity(value: object) -> bool:
    """Whether a value is an identity, or says that it is not known."""
    return value is None or value in ("", -1) or identity_of(value) is not None


def _videos(values: Record, path: Path, problems: Problems) -> Iterator[CocoVideo]:
    ids: set[str] = set()
    names: set[str] = set()
    for where, entry in entries(values, "videos", path, problems):
        video = _new_id(where, entry, ids, problems)
        if video is None:
            continue
        name = id_of(entry["name"]) if entry.get("name") is not None else video
        if name is None or name in names:
            problems.bad(f"{where}.name", f"a name that no other video has is expected, found {shown(entry['name'])}")
            continue
        names.add(name)
        length = _optional(where, entry, "length", problems)
        facts = VideoFacts(
            name,
            fps=_optional(where, entry, "fps", problems),
            width=_optional_whole(where, entry, "width", problems),
            height=_optional_whole(where, entry, "height", problems),
            frame_count=None if length is None else int(length),
        )
        yield CocoVideo(video, facts.checked(where, problems), entry, where)


def _images(values: Record, path: Path, problems: Problems) -> Iterator[CocoImage]:
    ids: set[str] = set()
    for where, entry in entries(values, "images", path, problems):
        image = _new_id(where, entry, ids, problems)
        if image is None:
            continue
        file_name = entry.get("file_name")
        if file_name is not None and usable(file_name) is None:
            problems.bad(f"{where}.file_name", f"a text is expected, found {shown(file_name)}")
            continue
        video = None
        if entry.get("video_id") is not None and (video := id_of(entry["video_id"])) is None:
            problems.bad(f"{where}.video_id", f"a number or a text is expected, found {shown(entry['video_id'])}")
            continue
        facts = VideoFacts(
            image,
            width=_optional_whole(where, entry, "width", problems),
            height=_optional_whole(where, entry, "height", problems),
        ).checked(where, problems)
        size = (facts.width, facts.height) if facts.width and facts.height else None
        yield CocoImage(image, file_name or "", size, video, entry, where)


def _boxes(values: Record, images: tuple[CocoImage, ...], path: Path, problems: Problems) -> Iterator[CocoBox]:
    image_of = {image.id: image for image in images}
    ids: set[str] = set()
    for where, entry in entries(values, "annotations", path, problems):
        if "id" in entry and _new_id(where, entry, ids, problems) is None:
            continue
        image = image_of.get(id_of(entry.get("image_id")) or "")
        if image is None:
            problems.bad(f"{where}.image_id", f"the id of an image is expected, found {shown(entry.get('image_id'))}")
        elif found := box_of(where, entry, problems):
            yield CocoBox(image, *found, entry, where)


def _new_id(where: str, entry: Record, ids: set[str], problems: Problems) -> str | None:
    found = id_of(entry.get("id"))
    if found is None:
        problems.bad(f"{where}.id", f"a number or a text is expected, found {shown(entry.get('id'))}")
    elif found in ids:
        problems.bad(f"{where}.id", f"ids must differ, {shown(found)} was there before")
        found = None
    else:
        ids.add(found)
    return found


def _optional(where: str, entry: Record, key: str, problems: Problems) -> float | None:
    if entry.get(key) is None:
        return None
    number = json_decimal(entry[key])
    if number is None:
        problems.bad(f"{where}.{key}", f"a number is expected, found {shown(entry[key])}")
    return number


def _optional_whole(where: str, entry: Record, key: str, problems: Problems) -> int | None:
    number = _optional(where, entry, key, problems)
    return None if number is None else int(number)
