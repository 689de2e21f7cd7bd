"""A COCO JSON file, checked: its videos, images and boxes, with all their other fields.

Places in the file are JSON paths, `boxes.json: annotations[17].bbox`. Ids may be numbers or texts; the number 1 and the
text "1" are the same id.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polypcount.errors import FileError
from polypcount.importers.reading import BoxNumbers, Problems, VideoFacts, json_decimal, json_whole, usable
from polypcount.storage import shown

_FACTS = {"fps": "fps", "width": "width", "height": "height", "frame_count": "length"}


@dataclass(frozen=True)
class CocoEntry:
    """An entry of a list in the file.

    Attributes:
        id: Empty for an annotation without one.
        values: The whole entry.
        where: Its JSON path.
    """

    id: str
    values: Mapping[str, Any]
    where: str


@dataclass(frozen=True)
class CocoVideo(CocoEntry):
    """An entry of `videos`, as CocoVID has them."""

    facts: VideoFacts


@dataclass(frozen=True)
class CocoImage(CocoEntry):
    """An entry of `images`.

    Attributes:
        file_name: Empty where the file does not give one.
        size: Width and height in pixels; None where the file does not give them.
        video: Id of its video; None where it names none.
    """

    file_name: str
    size: tuple[int, int] | None
    video: str | None


@dataclass(frozen=True)
class CocoBox(CocoEntry):
    """An entry of `annotations`, with its `bbox` as written."""

    image: CocoImage
    box: BoxNumbers
    score: float


@dataclass(frozen=True)
class CocoFile:
    """The content of a file; `values` is everything at its top, with the lists `videos` and `polyps` in any case."""

    videos: tuple[CocoVideo, ...]
    images: tuple[CocoImage, ...]
    boxes: tuple[CocoBox, ...]
    values: Mapping[str, Any]


def check_coco(values: Any, path: Path, problems: Problems) -> CocoFile:
    """Check the content of a COCO file. Bad entries are reported and left out, with the boxes that need them."""
    if not isinstance(values, dict):
        hint = "; the format of a list of detections is coco-results" if isinstance(values, list) else ""
        raise FileError(f"{path}: an object with images and annotations is expected, found {shown(values)}{hint}")
    values = {**values, "videos": values.get("videos") or [], "polyps": values.get("polyps") or []}
    for key in ("images", "annotations", "videos", "polyps"):
        if not isinstance(values.get(key), list):
            raise FileError(f"{path}: {key} must be a list, found {shown(values.get(key))}")
    videos = tuple(_videos(values["videos"], f"{path}: videos", problems))
    images = tuple(_images(values["images"], f"{path}: images", problems))
    boxes = tuple(_boxes(values["annotations"], f"{path}: annotations", images, problems))
    return CocoFile(videos, images, boxes, values)


def entries(values: list[Any], where: str, problems: Problems) -> Iterator[tuple[str, dict[str, Any]]]:
    """JSON path and content of each object in a list; anything else in it is reported."""
    for index, entry in enumerate(values):
        if isinstance(entry, dict):
            yield f"{where}[{index}]", entry
        else:
            problems.bad(f"{where}[{index}]", f"an object is expected, found {shown(entry)}")


def id_of(value: object) -> str | None:
    """An id as text, from a number or a text; None where it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return usable(value)


def box_of(where: str, values: Mapping[str, Any], problems: Problems) -> tuple[BoxNumbers, float] | None:
    """The four numbers of `bbox`, and `score`, which is 1 where there is none; None, and a report, for bad ones."""
    bbox, score = values.get("bbox"), values.get("score")
    numbers = [n for value in bbox if (n := json_decimal(value)) is not None] if isinstance(bbox, list) else []
    if len(numbers) != 4 or len(bbox or ()) != 4:
        problems.bad(f"{where}.bbox", f"four numbers are expected, found {shown(bbox)}")
        return None
    confidence = 1.0 if score is None else json_decimal(score)
    if confidence is None:
        problems.bad(f"{where}.score", f"a number is expected, found {shown(score)}")
        return None
    return (numbers[0], numbers[1], numbers[2], numbers[3]), confidence


def identity_of(value: object) -> int | str | None:
    """An identity: a number from 0, or a text. None for null, an empty text and -1, which mean that it is not known."""
    number = json_whole(value)
    return (None if number < 0 else number) if number is not None else usable(value)


def is_identity(value: object) -> bool:
    """Whether a value is an identity, or means that it is not known."""
    return value is None or value in ("", -1) or identity_of(value) is not None


def _videos(values: list[Any], where: str, problems: Problems) -> Iterator[CocoVideo]:
    names: set[str] = set()
    for video, entry, place in _with_ids(values, where, problems):
        name = id_of(entry["name"]) if entry.get("name") is not None else video
        if name is None or name in names:
            problems.bad(f"{place}.name", f"a name that no other video has is expected, found {shown(entry['name'])}")
            continue
        names.add(name)
        yield CocoVideo(video, entry, place, _facts(name, entry, place, problems))


def _images(values: list[Any], where: str, problems: Problems) -> Iterator[CocoImage]:
    for image, entry, place in _with_ids(values, where, problems):
        file_name, video = entry.get("file_name"), entry.get("video_id")
        if file_name is not None and usable(file_name) is None:
            problems.bad(f"{place}.file_name", f"a text is expected, found {shown(file_name)}")
        elif video is not None and id_of(video) is None:
            problems.bad(f"{place}.video_id", f"a number or a text is expected, found {shown(video)}")
        else:
            size = _facts(image, entry, place, problems).size if "width" in entry else None
            yield CocoImage(image, entry, place, file_name or "", size, id_of(video))


def _boxes(values: list[Any], where: str, images: tuple[CocoImage, ...], problems: Problems) -> Iterator[CocoBox]:
    image_of = {image.id: image for image in images}
    for box, entry, place in _with_ids(values, where, problems, optional=True):
        image = image_of.get(id_of(entry.get("image_id")) or "")
        if image is None:
            problems.bad(f"{place}.image_id", f"the id of an image is expected, found {shown(entry.get('image_id'))}")
        elif numbers := box_of(place, entry, problems):
            yield CocoBox(box, entry, place, image, *numbers)


def _with_ids(
    values: list[Any], where: str, problems: Problems, optional: bool = False
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Id, content and JSON path of each entry that has an id of its own, or none where that is optional."""
    ids: set[str] = set()
    for place, entry in entries(values, where, problems):
        name = id_of(entry.get("id"))
        if name in ids:
            problems.bad(f"{place}.id", f"ids must differ, {shown(name)} was there before")
        elif name is not None:
            ids.add(name)
            yield name, entry, place
        elif optional and "id" not in entry:
            yield "", entry, place
        else:
            problems.bad(f"{place}.id", f"a number or a text is expected, found {shown(entry.get('id'))}")


def _facts(name: str, entry: Mapping[str, Any], where: str, problems: Problems) -> VideoFacts:
    """Frame rate, size and length in an entry, if they are possible numbers."""
    numbers: dict[str, Any] = {}
    for fact, key in _FACTS.items():
        number = json_decimal(entry.get(key))
        if number is None and entry.get(key) is not None:
            problems.bad(f"{where}.{key}", f"a number is expected, found {shown(entry[key])}")
        numbers[fact] = number if number is None or fact == "fps" else int(number)
    return VideoFacts(name, **numbers).checked(where, problems)
