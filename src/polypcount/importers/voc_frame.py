"""One frame in Pascal VOC XML, as LabelImg, REAL-Colon and PolypsSet write it."""

from dataclasses import dataclass
from pathlib import Path

from polypcount.errors import FileError
from polypcount.importers.decimals import decimal, whole
from polypcount.importers.files import read_bytes
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box
from polypcount.importers.xml import Element, parse

LARGEST_BYTES = 1 << 22
_IDENTITY_TAGS = ("unique_id", "identity_id", "track_id")
_SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class VocObject:
    """One object: its class name, identity if the file gives one, box as written, and where it stands."""

    name: str
    identity: str | None
    box: Box
    where: str


@dataclass(frozen=True)
class VocFrame:
    """What a file says of its frame; the size is None where it does not say."""

    size: tuple[int, int] | None
    objects: tuple[VocObject, ...]
    filename: str
    path: str


def read_voc_frame(data: bytes, name: object, problems: Problems) -> VocFrame:
    """Read one file. A bad object is reported and left out; XML that is not VOC at all is a `FileError`."""
    root = parse(data, name)
    if root.tag != "annotation":
        raise FileError(f"{name}:{root.line}: the root element must be annotation, found {root.tag}")
    objects = (_object(element, name, problems) for element in root.find_all("object"))
    return VocFrame(
        size=_size(root, name),
        objects=tuple(found for found in objects if found),
        filename=root.text_of("filename") or "",
        path=root.text_of("path") or "",
    )


def read_voc_file(path: Path, problems: Problems) -> VocFrame | None:
    """Read one file from disk; None where it cannot be used at all, which is reported."""
    try:
        return read_voc_frame(read_bytes(path, LARGEST_BYTES), path, problems)
    except FileError as problem:
        problems.failed(problem)
        return None


def _size(root: Element, name: object) -> tuple[int, int] | None:
    width, height = root.text_of("size", "width"), root.text_of("size", "height")
    if width is None or height is None:
        return None
    size = whole(width) or 0, whole(height) or 0
    if not (0 < size[0] < 2**20 and 0 < size[1] < 2**20):
        raise FileError(f"{name}: annotation/size: width and height must be pixels, found {width!r} and {height!r}")
    return size


def _object(element: Element, name: object, problems: Problems) -> VocObject | None:
    where = f"{name}:{element.line}: object"
    bounds = element.find_all("bndbox")
    if len(bounds) != 1:
        problems.bad(where, f"one bndbox is expected, found {len(bounds)}")
        return None
    texts = [bounds[0].text_of(side) for side in _SIDES]
    x1, y1, x2, y2 = (decimal(text or "") for text in texts)
    if x1 is None or y1 is None or x2 is None or y2 is None:
        told = ", ".join(f"{side} {text!r}" for side, text in zip(_SIDES, texts, strict=True))
        problems.bad(f"{where}/bndbox", f"four numbers are expected, found {told}")
        return None
    identities = (element.text_of(tag) for tag in _IDENTITY_TAGS)
    return VocObject(
        name=element.text_of("name") or "",
        identity=next((text for text in identities if text), None),
        box=(x1, y1, x2, y2),
        where=where,
    )
