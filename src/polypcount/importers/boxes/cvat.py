"""CVAT XML 1.1, for video and for images.

The video is the task: its name, size in frames and image size are in `meta`. Frames count from 0 (option
`first_frame`). The path is an XML file, or a folder of them.

`track` elements: frames between two boxes are interpolated linearly, with the attributes of the earlier one. A box with
outside="1" ends the track there until the next box without it; nothing follows the last box. `image` elements: their
`id` is the frame. Shapes other than boxes are left out, with a remark. Interpolation may give at most 2,000,000 boxes
for a file; a track that would give more is refused.

Identity: an attribute `identity`, `polyp`, `track_id` or `object_id` of the box names the polyp, and an empty one means
that it is not known. Without such an attribute, the `id` of a track is its number; see `identities.py`. With
`ids="track"`, track ids are tracks. Attributes `score` and `track` are the score of the box and the tracker's number.

`write` gives one XML for video for each video of the corpus; see `cvat_write.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers.boxes.cvat_write import SIDES, write
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
    decimal,
    decimals,
    elements,
    frame_of,
    image_names,
    join,
    list_files,
    name_of,
    number_or_text,
    polyp_name,
    remark_classes,
    unquoted,
    usable,
    whole,
)
from polypcount.storage import read_bytes, shown

__all__ = ["read", "write"]

_ELEMENTS = frozenset({"meta", "track", "image"})
_IDENTITY_NAMES = ("identity", "polyp", "track_id", "object_id")
_NO_SHAPES = frozenset({"box", "attribute", "tag"})
_MOST_INTERPOLATED = 2_000_000


@dataclass(frozen=True)
class _Shape:
    """A box as written, with what its attributes say; the identity is empty if the file marks it as unknown."""

    frame: int
    box: BoxNumbers
    outside: bool
    score: float
    track: int
    identity: str | None
    where: str


def read(path: Path, options: Options, work: Work) -> Corpus:
    """Read one XML file, or all those in a folder."""
    files = [path] if path.is_file() else list_files(path, [".xml"])
    if not files:
        raise FileError(f"{path} holds no XML files")
    check_options(options, len(files), path)
    tasks = [ImportTask((file, options), (file,), weight=1 + file.stat().st_size // 50_000) for file in files]
    return join(work.read_all(_read_file, tasks), path)


def _read_file(path: Path, options: Options, problems: Problems) -> Corpus:
    reader = _Reader(path, options, BoxRows(problems), VideoFacts(name_of(path)).with_options(options))
    read_element = {"meta": reader.read_meta, "track": reader.read_track, "image": reader.read_image}
    for element in elements(read_bytes(path), path, _ELEMENTS, root="annotations"):
        read_element[element.tag](element)
    return reader.to_corpus()


@dataclass
class _Reader:
    """Reads the elements of one file."""

    path: Path
    options: Options
    rows: BoxRows
    facts: VideoFacts
    image_at: dict[int, str] = field(default_factory=dict)
    interpolated: int = 0
    other_shapes: int = 0
    sizes: list[tuple[int, int]] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)

    def bad(self, where: str, message: str) -> None:
        self.rows.problems.bad(f"{self.path}:{where}", message)

    def read_meta(self, meta: Element) -> None:
        """Name, length and size of the task, or of the job of it that was exported."""
        project = meta.find("project")
        if project and len((project.find("tasks") or project).find_all("task")) > 1:
            raise FileError(f"{self.path}:{meta.line}: meta/project: several tasks in one file; export each by itself")
        task = meta.find("task") or meta.find("job") or meta
        name = unquoted(task.text_of("name") or "") or self.facts.id
        if usable(name) is None:
            self.bad(f"{meta.line}: meta/task/name", f"a text that can be an id is expected, found {shown(name)}")
            name = self.facts.id
        numbers = []
        for tags in (("original_size", "width"), ("original_size", "height"), ("size",)):
            text = task.text_of(*tags)
            numbers.append(whole(text) if text else None)
            if text and numbers[-1] is None:
                where = f"{meta.line}: meta/task/{'/'.join(tags)}"
                self.bad(where, f"a whole number is expected, found {shown(text)}")
        width, height, count = numbers
        # A task that begins later in the video, or takes every n-th frame, numbers its boxes as the video does.
        last = whole(task.text_of("stop_frame") or "")
        if count is not None and last is not None and count <= last < 2**31 - 1:
            count = last + 1
        facts = VideoFacts(name, None, width, height, count)
        self.facts = facts.checked(f"{self.path}:{meta.line}: meta", self.rows.problems).with_options(self.options)

    def read_track(self, track: Element) -> None:
        where = f"{track.line}: track"
        number = whole(track.attributes.get("id", ""))
        if number is None or number < 0:
            self.bad(where, f"id must be a whole number from 0, found {shown(track.attributes.get('id'))}")
            return
        self.labels.add(track.attributes.get("label", ""))
        self.other_shapes += sum(child.tag not in _NO_SHAPES for child in track.children)
        by_frame: dict[int, _Shape] = {}
        for box in track.find_all("box"):
            shape = self._shape(box, box.attributes.get("frame"))
            if shape and shape.frame in by_frame:
                self.bad(f"{box.line}: box", f"the track has a box in frame {shape.frame} already")
            elif shape:
                by_frame[shape.frame] = shape
        shapes = [by_frame[frame] for frame in sorted(by_frame)]
        gaps = sum(after.frame - before.frame - 1 for before, after in pairwise(shapes) if not before.outside)
        if self.interpolated + gaps > _MOST_INTERPOLATED:
            limit = f"{_MOST_INTERPOLATED:,}"
            self.bad(where, f"interpolation may give up to {limit} boxes for a file, this track adds {gaps:,}")
            return
        self.interpolated += gaps
        named = next((shape.identity for shape in shapes if shape.identity is not None), None)
        for shape, following in zip_longest(shapes, shapes[1:]):
            if not shape.outside:
                for frame, box_there in _until(shape, following):
                    self._add(shape, frame, box_there, named, number)

    def read_image(self, image: Element) -> None:
        where = f"{image.line}: image"
        frame = self._frame(where, image.attributes.get("id"))
        if frame is None:
            return
        if frame in self.image_at:
            self.bad(where, f"ids must differ, {image.attributes['id']} was there before")
            return
        self.image_at[frame] = image.attributes.get("name", "")
        width, height = (whole(image.attributes.get(side, "")) or None for side in ("width", "height"))
        facts = VideoFacts("", width=width, height=height).checked(f"{self.path}:{where}", self.rows.problems)
        if facts.size:
            self.sizes.append(facts.size)
        self.other_shapes += sum(child.tag not in _NO_SHAPES for child in image.children)
        for box in image.find_all("box"):
            self.labels.add(box.attributes.get("label", ""))
            shape = self._shape(box, image.attributes["id"])
            if shape and not shape.outside:
                self._add(shape, shape.frame, shape.box, None, None)

    def _frame(self, where: str, text: str | None) -> int | None:
        number = whole(text or "")
        if number is None:
            self.bad(where, f"the number of a frame is expected, found {shown(text)}")
            return None
        first_frame = self.options.first_frame or 0
        return frame_of(f"{self.path}:{where}", number, first_frame, self.facts.frame_count, self.rows.problems)

    def _shape(self, box: Element, frame_text: str | None) -> _Shape | None:
        where = f"{box.line}: box"
        frame = self._frame(where, frame_text)
        if frame is None:
            return None
        sides = decimals(box.attributes.get(side, "") for side in SIDES)
        attributes = {item.attributes.get("name", "").lower(): item.text for item in box.find_all("attribute")}
        score, track = decimal(attributes.get("score") or "1"), whole(attributes.get("track") or "-1")
        # A checkbox named polyp is not an identity.
        names = {name: text for name, text in attributes.items() if name == "identity" or text not in ("true", "false")}
        identity = next((unquoted(names[name]) for name in _IDENTITY_NAMES if name in names), None)
        if not sides:
            self.bad(where, f"xtl, ytl, xbr and ybr must be numbers, found {shown(box.attributes)}")
        elif score is None or track is None:
            self.bad(where, f"the attribute score must be a number, track a whole number, found {shown(attributes)}")
        elif identity and usable(identity) is None:
            self.bad(where, f"an identity that can be an id is expected, found {shown(identity)}")
        else:
            if identity and "identity" not in attributes:
                identity = polyp_name(number_or_text(identity), self.facts.id)
            x1, y1, x2, y2 = sides
            outside = box.attributes.get("outside", "0").strip() == "1"
            return _Shape(frame, (x1, y1, x2, y2), outside, score, track, identity, f"{self.path}:{where}")
        return None

    def _add(self, shape: _Shape, frame: int, box: BoxNumbers, named: str | None, number: int | None) -> None:
        """Keep a box; `named` is the identity that other boxes of its track have, `number` the id of the track."""
        identity = named if shape.identity is None else shape.identity
        polyp, track = identity or None, shape.track
        if self.options.ids == "track":
            polyp, track = None, track if number is None else number
        elif identity is None and number is not None:
            polyp = polyp_name(number, self.facts.id)
        self.rows.add(shape.where, frame, box, shape.score, polyp, track)

    def to_corpus(self) -> Corpus:
        problems = self.rows.problems
        if self.other_shapes:
            problems.remark(f"{self.path}: {self.other_shapes:,} shapes are left out, since they are not boxes")
        remark_classes(self.path, self.labels, problems)
        facts, source = self.facts.with_size(self.sizes, problems), self.options.source
        least = max(self.rows.last_frame(), *self.image_at, -1) + 1
        images = image_names([source], list(self.image_at.values())) if source and source.is_dir() else None
        if images is None:
            return self.rows.to_corpus(facts.video(self.options, least))
        video = facts.video(Options(source=images[0]), least)
        return self.rows.to_corpus(video, files=dict(zip(self.image_at, images[1], strict=True)))


def _until(shape: _Shape, following: _Shape | None) -> Iterator[tuple[int, BoxNumbers]]:
    """Frame and box from a shape up to, not including, the next one of its track."""
    yield shape.frame, shape.box
    span = following.frame - shape.frame if following else 0
    for step in range(1, span):
        part = step / span
        x1, y1, x2, y2 = (
            (1 - part) * before + part * after
            for before, after in zip(shape.box, following.box if following else shape.box, strict=True)
        )
        yield shape.frame + step, (x1, y1, x2, y2)
