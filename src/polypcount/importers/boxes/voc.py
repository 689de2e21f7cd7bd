"""Pascal VOC XML, one file for each frame, as LabelImg and others write it.

The frame is the number at the end of the file name, from 0 (option `first_frame`); a file without objects is a frame
without boxes. Boxes are xmin, ymin, xmax, ymax (option `box`: "xyxy-inclusive" where xmax and ymax are the last pixels
inside). All classes are taken as polyps. Identity is `unique_id`, `identity_id` or `track_id` of the object; see
`identities.py` for the polyp's id. With `ids="track"`, ids are tracks.

The path is the folder of one video, or a folder of such folders.
"""

from dataclasses import dataclass
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.reading import (
    BoxNumbers,
    BoxRows,
    Element,
    ImportTask,
    Options,
    Problems,
    VideoFacts,
    Work,
    check_options,
    decimals,
    files_by_frame,
    join,
    list_files,
    name_of,
    number_or_text,
    parse,
    polyp_name,
    to_xyxy,
    track_numbers,
    usable,
    video_folders,
    whole,
)
from polypcount.storage import read_bytes, shown

LARGEST_BYTES = 1 << 22
_IDENTITY_TAGS = ("unique_id", "identity_id", "track_id")
_SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class VocObject:
    """One object: its identity if the file gives one, its box as written, and its position in the file."""

    identity: str | None
    box: BoxNumbers
    where: str


@dataclass(frozen=True)
class VocFrame:
    """What a file says about its frame; the size in pixels is None if the file does not give it."""

    size: tuple[int, int] | None
    objects: tuple[VocObject, ...]
    filename: str
    path: str


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read the XML files of one or several videos."""
    folders = video_folders(path, lambda folder: len(list_files(folder, [".xml"])), "XML")
    check_options(options, len(folders), path)
    tasks = [ImportTask((folder, options), (folder,), weight=count) for folder, count in folders.items()]
    return join(work.read_all(_read_video, tasks), path)


def _read_video(folder: Path, options: Options, problems: Problems) -> Corpus:
    facts = VideoFacts(name_of(folder)).with_options(options)
    files = files_by_frame(list_files(folder, [".xml"]), options.first_frame or 0, facts.frame_count, problems)
    frames = {frame: content for frame, file in files.items() if (content := read_voc_file(file, problems))}
    objects = []
    for frame, content in frames.items():
        for item in content.objects:
            if item.identity is None or usable(item.identity):
                objects.append((frame, item, None if item.identity is None else number_or_text(item.identity)))
            else:
                problems.bad(item.where, f"an identity that can be an id is expected, found {shown(item.identity)}")
    as_tracks = options.ids == "track"
    track_of = track_numbers(identity for _, _, identity in objects)
    rows = BoxRows(problems)
    for frame, item, identity in objects:
        polyp = None if identity is None or as_tracks else polyp_name(identity, facts.id)
        rows.add(item.where, frame, to_xyxy(item.box, options.box), 1.0, polyp, track_of[identity] if as_tracks else -1)
    facts = facts.with_size([content.size for content in frames.values() if content.size], problems)
    return rows.to_corpus(facts.video(options, max(frames, default=-1) + 1))


def read_voc_frame(data: bytes, name: object, problems: Problems) -> VocFrame:
    """Read one file. A bad object is reported and left out; XML that is not VOC at all is a `FileError`."""
    root = parse(data, name)
    if root.tag != "annotation":
        raise FileError(f"{name}:{root.line}: the root element must be annotation, found {root.tag}")
    objects = (_object(element, name, problems) for element in root.find_all("object"))
    return VocFrame(
        size=_size(root, name),
        objects=tuple(item for item in objects if item),
        filename=root.text_of("filename") or "",
        path=root.text_of("path") or "",
    )


def read_voc_file(path: Path, problems: Problems) -> VocFrame | None:
    """Read one file from disk; None, and a report, if it cannot be used at all."""
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
    texts = [bounds[0].text_of(side) or "" for side in _SIDES]
    if not (numbers := decimals(texts)):
        values = ", ".join(f"{side} {text!r}" for side, text in zip(_SIDES, texts, strict=True))
        problems.bad(f"{where}/bndbox", f"four numbers are expected, found {values}")
        return None
    x1, y1, x2, y2 = numbers
    identities = (element.text_of(tag) for tag in _IDENTITY_TAGS)
    return VocObject(next((text for text in identities if text), None), (x1, y1, x2, y2), where)
