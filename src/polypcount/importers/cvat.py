"""CVAT XML 1.1, for video and for images.

The video is the task: its name, size in frames and image size are in `meta`. Frames count from 0 (`--first-frame`).
The path is an XML file, or a folder of them.

`track` elements: frames between two boxes are interpolated linearly, with the attributes of the earlier one. A box
with outside="1" ends the track there until the next box without it; nothing follows the last box. `image` elements:
their `id` is the frame. Shapes other than boxes are left out, with a remark. Interpolation may give at most 2,000,000
boxes a file; a track that would give more is refused.

Identity: an attribute `identity`, `polyp`, `track_id` or `object_id` of the box names the polyp, and an empty one says
that it is not known; without such an attribute, the `id` of a track is its number; see `identities.py`. `--ids track`
makes track ids tracks. Attributes `score` and `track` are the box's score and tracker's number.

`write` gives one XML for video per video of the corpus; see `cvat_write.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.cvat_write import write
from polypcount.importers.decimals import decimal, whole
from polypcount.importers.files import list_files
from polypcount.importers.identities import join, number_or_text, polyp_name
from polypcount.importers.options import Options
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Box, Rows
from polypcount.importers.texts import shown, unquoted, usable
from polypcount.importers.videos import VideoFacts, check_options, frame_of, image_names, name_of, remark_classes
from polypcount.importers.work import Task, Work
from polypcount.importers.xml import Element, elements

__all__ = ["read", "write"]

_WANTED = frozenset({"meta", "track", "image"})
_SIDES = ("xtl", "ytl", "xbr", "ybr")
_IDENTITY_NAMES = ("identity", "polyp", "track_id", "object_id")
_NO_SHAPES = frozenset({"box", "attribute", "tag"})
_MOST_INTERPOLATED = 2_000_000
_CHUNK = 1 << 20
_LARGEST_BYTES = 1 << 31


@dataclass(frozen=True)
class _Shape:
    """A box as written, with what its attributes say. identity: empty where it is said not to be known."""

    frame: int
    box: Box
    outside: bool
    score: float
    track: int
    identity: str | None
    where: str


@dataclass
class _Reading:
    """What has been read of a file so far."""

    path: Path
    options: Options
    rows: Rows
    facts: VideoFacts
    image_at: dict[int, str] = field(default_factory=dict)
    interpolated: int = 0
    other_shapes: int = 0
    sizes: list[tuple[int, int]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)

    @property
    def problems(self) -> Problems:
        return self.rows.problems


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one XML file, or all those in a folder."""
    files = [path] if path.is_file() else list_files(path, frozenset({".xml"}))
    if not files:
        raise FileError(f"{path} holds no XML files")
    check_options(options, len(files), path)
    tasks = [Task((file, options), (file,), weight=1 + file.stat().st_size // 50_000) for file in files]
    return join(work.read_all(_read_file, tasks), path)


def _read_file(path: Path, options: Options, problems: Problems) -> Corpus:
    reading = _Reading(path, options, Rows(problems), VideoFacts(name_of(path)).with_options(options))
    for element in elements(_chunks(path), path, _WANTED, root="annotations"):
        if element.tag == "meta":
            reading.facts = _facts(element, reading).with_options(options)
        elif element.tag == "track":
            _read_track(element, reading)
        else:
            _read_image(element, reading)
    if reading.other_shapes:
        problems.remark(f"{path}: {reading.other_shapes:,} shapes are left out, since they are not boxes")
    remark_classes(path, reading.labels, problems)
    return _corpus(reading)


def _chunks(path: Path) -> Iterator[bytes]:
    total = 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                total += len(chunk)
                if total > _LARGEST_BYTES:
                    raise FileError(f"{path} is larger than the {_LARGEST_BYTES:,} bytes that such a file may have")
                yield chunk
    except OSError as problem:
        raise FileError(f"{path} cannot be read: {problem.strerror}") from None


def _facts(meta: Element, reading: _Reading) -> VideoFacts:
    """Name, length and size of the task, or of the job of it that was exported."""
    where = f"{reading.path}:{meta.line}: meta"
    project = meta.find("project")
    if project and len((project.find("tasks") or project).find_all("task")) > 1:
        raise FileError(f"{where}/project: several tasks are in one file; export each task by itself")
    task = meta.find("task") or meta.find("job") or meta
    name = unquoted(task.text_of("name") or "") or reading.facts.id
    if usable(name) is None:
        reading.problems.bad(f"{where}/task/name", f"a text that can be an id is expected, found {shown(name)}")
        name = reading.facts.id
    numbers = {}
    for key, place in (
        ("frame_count", ("size",)),
        ("width", ("original_size", "width")),
        ("height", ("original_size", "height")),
    ):
        text = task.text_of(*place)
        numbers[key] = whole(text) if text else None
        if text and numbers[key] is None:
            reading.problems.bad(f"{where}/task/{'/'.join(place)}", f"a whole number is expected, found {shown(text)}")
    # A task that begins later in the video, or takes every n-th frame, numbers its boxes as the video does.
    last = whole(task.text_of("stop_frame") or "")
    count = numbers["frame_count"]
    if count is not None and last is not None and count <= last < 2**31 - 1:
        count = last + 1
    return VideoFacts(name, None, numbers["width"], numbers["height"], count).checked(where, reading.problems)


def _read_track(track: Element, reading: _Reading) -> None:
    where = f"{reading.path}:{track.line}: track"
    number = whole(track.attributes.get("id", ""))
    if number is None or number < 0:
        reading.problems.bad(where, f"id must be a whole number from 0, found {shown(track.attributes.get('id'))}")
        return
    reading.labels.add(track.attributes.get("label", ""))
    reading.other_shapes += sum(child.tag not in _NO_SHAPES for child in track.children)
    shapes: dict[int, _Shape] = {}
    for box in track.find_all("box"):
        shape = _shape(box, box.attributes.get("frame"), reading)
        if shape and shape.frame in shapes:
            reading.problems.bad(shape.where, f"the track has a box in frame {shape.frame} already")
        elif shape:
            shapes[shape.frame] = shape
    ordered = [shapes[frame] for frame in sorted(shapes)]
    if too_many := _too_many(ordered, reading):
        reading.problems.bad(where, too_many)
        return
    named = next((shape.identity for shape in ordered if shape.identity is not None), None)
    for index, shape in enumerate(ordered):
        if not shape.outside:
            following = ordered[index + 1] if index + 1 < len(ordered) else None
            for frame, box_there in _until(shape, following):
                _add(shape, frame, box_there, named, number, reading)


def _too_many(shapes: Sequence[_Shape], reading: _Reading) -> str | None:
    """Count the boxes that interpolation will give; a complaint where the file would have more than it may."""
    gaps = sum(after.frame - before.frame - 1 for before, after in pairwise(shapes) if not before.outside)
    if reading.interpolated + gaps > _MOST_INTERPOLATED:
        return f"interpolation may give up to {_MOST_INTERPOLATED:,} boxes a file, this track adds {gaps:,}"
    reading.interpolated += gaps
    return None


def _until(shape: _Shape, following: _Shape | None) -> Iterator[tuple[int, Box]]:
    """Frame and box from a shape up to, not including, the next one of its track."""
    yield shape.frame, shape.box
    if following is None:
        return
    span = following.frame - shape.frame
    for step in range(1, span):
        part = step / span
        x1, y1, x2, y2 = (
            (1 - part) * before + part * after for before, after in zip(shape.box, following.box, strict=True)
        )
        yield shape.frame + step, (x1, y1, x2, y2)


def _read_image(image: Element, reading: _Reading) -> None:
    where = f"{reading.path}:{image.line}: image"
    frame = _frame(where, image.attributes.get("id"), reading)
    if frame is None:
        return
    if frame in reading.image_at:
        reading.problems.bad(where, f"ids must differ, {image.attributes['id']} was there before")
        return
    reading.image_at[frame] = image.attributes.get("name", "")
    width, height = (whole(image.attributes.get(side, "")) for side in ("width", "height"))
    if width and height:
        size = VideoFacts("image", width=width, height=height).checked(where, reading.problems)
        if size.width and size.height:
            reading.sizes.append((size.width, size.height))
    reading.other_shapes += sum(child.tag not in _NO_SHAPES for child in image.children)
    for box in image.find_all("box"):
        reading.labels.add(box.attributes.get("label", ""))
        shape = _shape(box, image.attributes["id"], reading)
        if shape and not shape.outside:
            _add(shape, shape.frame, shape.box, None, None, reading)


def _frame(where: str, text: str | None, reading: _Reading) -> int | None:
    number = whole(text or "")
    if number is None:
        reading.problems.bad(where, f"the number of a frame is expected, found {shown(text)}")
        return None
    return frame_of(where, number, reading.options.first_frame or 0, reading.facts.frame_count, reading.problems)


def _shape(box: Element, frame_text: str | None, reading: _Reading) -> _Shape | None:
    where = f"{reading.path}:{box.line}: box"
    frame = _frame(where, frame_text, reading)
    if frame is None:
        return None
    sides = [decimal(box.attributes.get(side, "")) for side in _SIDES]
    known = [side for side in sides if side is not None]
    attributes = {item.attributes.get("name", "").lower(): item.text for item in box.find_all("attribute")}
    score, track = decimal(attributes.get("score") or "1"), whole(attributes.get("track") or "-1")
    # A checkbox called polyp is no identity.
    told = {name: text for name, text in attributes.items() if name == "identity" or text not in ("true", "false")}
    identity = next((unquoted(told[name]) for name in _IDENTITY_NAMES if name in told), None)
    complaint = None
    if len(known) < 4:
        complaint = f"xtl, ytl, xbr and ybr must be numbers, found {shown(box.attributes)}"
    elif score is None or track is None:
        complaint = f"the attribute score must be a number, track a whole number, found {shown(attributes)}"
    elif identity and usable(identity) is None:
        complaint = f"an identity that can be an id is expected, found {shown(identity)}"
    if complaint or score is None or track is None:
        reading.problems.bad(where, complaint or "")
        return None
    if identity and "identity" not in attributes:
        identity = polyp_name(number_or_text(identity), reading.facts.id)
    outside = box.attributes.get("outside", "0").strip() == "1"
    return _Shape(frame, (known[0], known[1], known[2], known[3]), outside, score, track, identity, where)


def _add(shape: _Shape, frame: int, box: Box, named: str | None, number: int | None, reading: _Reading) -> None:
    """Keep a box. named: identity that other boxes of its track have. number: of its track."""
    identity = named if shape.identity is None else shape.identity
    polyp, track = identity or None, shape.track
    if reading.options.ids == "track":
        polyp, track = None, track if number is None else number
    elif identity is None and number is not None:
        polyp = polyp_name(number, reading.facts.id)
    reading.rows.add(shape.where, frame, box, shape.score, polyp, track)


def _corpus(reading: _Reading) -> Corpus:
    facts, options = reading.facts, reading.options
    if reading.sizes and not (facts.width and facts.height):
        facts = VideoFacts(facts.id, facts.fps, *reading.sizes[0], facts.frame_count)
    if others := sum(size != (facts.width, facts.height) for size in reading.sizes):
        reading.problems.remark(
            f"video {facts.id}: {others:,} images have another size than {facts.width} x {facts.height}, "
            "which is taken for all"
        )
    last = max(reading.rows.last_frame(), *reading.image_at, -1)
    video = facts.video(options, last + 1)
    names = list(reading.image_at.values())
    if options.source and options.source.is_dir() and all(names) and (found := image_names([options.source], names)):
        video = facts.video(Options(source=found[0]), last + 1)
        return reading.rows.to_corpus(video, files=(list(reading.image_at), found[1]))
    return reading.rows.to_corpus(video)
