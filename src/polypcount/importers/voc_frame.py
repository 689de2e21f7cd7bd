"""One frame in Pascal VOC XML, as LabelImg, REAL-Colon and PolypsSet write it."""

from dataclasses import dataclass

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
    """Read one file; objects without four numbers are reported, XML that is not VOC is a `FileError`."""
    root = parse(data, name)
    if root.tag != "annotation":
        problems.bad(f"{name}:{root.line}", f"the root element must be annotation, found {root.tag}")
        return VocFrame(None, (), "", "")
    objects = (_object(element, name, problems) for element in root.find_all("object"))
    return VocFrame(
        size=_size(root, name, problems),
        objects=tuple(found for found in objects if found),
        filename=root.text_of("filename") or "",
        path=root.text_of("path") or "",
    )


def _size(root: Element, name: object, problems: Problems) -> tuple[int, int] | None:
    width, height = root.text_of("size", "width"), root.text_of("size", "height")
    if width is None or height is None:
        return None
    try:
        size = int(float(width)), int(float(height))
    except (ValueError, OverflowError):
        size = (0, 0)
    if not (0 < size[0] < 2**20 and 0 < size[1] < 2**20):
        problems.bad(f"{name}: annotation/size", f"width and height must be pixels, found {width!r} and {height!r}")
        return None
    return size


def _object(element: Element, name: object, problems: Problems) -> VocObject | None:
    where = f"{name}:{element.line}: object"
    bounds = element.find_all("bndbox")
    if len(bounds) != 1:
        problems.bad(where, f"one bndbox is expected, found {len(bounds)}")
        return None
    texts = [bounds[0].text_of(side) for side in _SIDES]
    try:
        x1, y1, x2, y2 = (float(text or "") for text in texts)
    except ValueError:
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
