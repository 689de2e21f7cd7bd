"""The XML files of REAL-Colon, 2.76 million of them: read once by a real parser, then recognised.

Files differ in little but their numbers. What precedes and follows the file name is remembered once a real XML parser
has accepted it; a file with the same surroundings needs no parser any more, only its objects are matched against the
one layout in which the dataset writes them. Anything else goes to the parser, which can also say what is wrong where.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from polypcount.errors import FileError
from polypcount.importers.files import read_bytes
from polypcount.importers.problems import Problems
from polypcount.importers.rows import Rows
from polypcount.importers.voc_frame import LARGEST_BYTES, read_voc_frame

_NUMBER = re.compile(r"([0-9]{1,9})(?:\.0+)?")
_SPACE = rb"[ \t\r\n]*"  # what XML takes for white space; \s takes more
_NUMBERS = rb"([-+.\d \t\r\n]+)"
_OBJECT = re.compile(
    _SPACE.join(
        [
            rb"",
            rb"<object>",
            rb"<name>[\w .-]*</name>",
            rb"<unique_id>([\w.-]+)</unique_id>",
            rb"<box_id>[\w .-]*</box_id>",
            rb"<bndbox>",
            *(b"<%s>%s</%s>" % (side, _NUMBERS, side) for side in (b"xmin", b"xmax", b"ymin", b"ymax")),
            rb"</bndbox>",
            rb"</object>",
        ]
    )
)
_PLAIN = re.compile(rb"[\w .:/\\-]*")
_END = re.compile(_SPACE + rb"</annotation>" + _SPACE)
_USUAL_BYTES = 1 << 14
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe among the files must not make us wait
_MOST_REMEMBERED = 256

# What stands before the file name and after it, up to the first object, and whether there is one.
Surroundings = tuple[bytes, bytes, bool]
_NOWHERE = (b"\0", b"\0")


class FrameReader:
    """Reads the annotation files of one video.

    numbers: frame number of each file.
    size: width and height of the frames, None until a file has told.
    rows: the boxes.
    """

    largest_bytes = LARGEST_BYTES

    def __init__(self, video: str, source: Path, problems: Problems) -> None:
        self._source, self._problems = source, problems
        self._prefix = f"{video}_"
        self._known: dict[Surroundings, tuple[int, int]] = {}
        # What stands before and after the name in the usual frame without an object, and with one up to the object.
        self._usual_empty = self._usual_seen = _NOWHERE
        self._seen: set[int] = set()
        self.numbers: list[int] = []
        self.size: tuple[int, int] | None = None
        self.rows = Rows(problems)

    def read_folder(self) -> None:
        """Read every XML file of the source folder."""
        empty: list[bytes] = []
        try:
            folder = os.open(self._source, os.O_RDONLY)
        except OSError as problem:
            raise FileError(f"{self._source} cannot be read: {problem.strerror}") from None
        try:
            before, after = self._usual_empty
            # Once a file, most often a frame without an object. Byte names below an open folder, bare system calls and
            # one comparison cost little more than the kernel's own work.
            for name in sorted(os.listdir(os.fsencode(self._source))):  # noqa: PTH208
                if (name[-4:] != b".xml" and name[-4:].lower() != b".xml") or name[:1] == b".":
                    continue
                try:
                    file = os.open(name, _READ, dir_fd=folder)
                    try:
                        data = os.read(file, _USUAL_BYTES)
                    finally:
                        os.close(file)
                except OSError as problem:
                    self._problems.bad(self._source / os.fsdecode(name), f"cannot be read: {problem.strerror}")
                    continue
                if data == before + name[:-4] + after:
                    empty.append(name)
                else:
                    self._add_other(os.fsdecode(name), data)
                    before, after = self._usual_empty
        finally:
            os.close(folder)
        self._claim_all(empty)

    def _add_other(self, name: str, data: bytes) -> None:
        try:
            self.add(name, data if len(data) < _USUAL_BYTES else read_bytes(self._source / name, LARGEST_BYTES))
        except FileError as problem:
            self._problems.failed(problem)

    def add(self, name: str, data: bytes) -> None:
        """Take in one file."""
        number = self._claim(name)
        if number is not None and (self._recognised(name, number, data) or self._parsed(name, number, data)):
            self.numbers.append(number)

    def _claim(self, name: str) -> int | None:
        """The number in a file's name, or None where it has none or another file has the same; that is reported."""
        match = _NUMBER.fullmatch(name, len(self._prefix), len(name) - 4)
        if not match or not name.startswith(self._prefix):
            self._problems.bad(self._source / name, f"the name must be {self._prefix}<number>.xml")
            return None
        number = int(match[1])
        if number in self._seen:
            self._problems.bad(self._source / name, f"frame {number} has another annotation file already")
            return None
        self._seen.add(number)
        return number

    def _claim_all(self, names: Sequence[bytes]) -> None:
        """Claim the numbers of many files: at once where all are in order, otherwise one by one."""
        prefix, length = self._prefix.encode(), len(self._prefix)
        texts = [name[length:-4] for name in names]
        if all(map(bytes.isdigit, texts)) and all(name.startswith(prefix) for name in names):
            numbers = {int(text) for text in texts if len(text) < 10}
            if len(numbers) == len(names) and self._seen.isdisjoint(numbers):
                self._seen |= numbers
                self.numbers += numbers
                return
        self.numbers += [number for name in names if (number := self._claim(os.fsdecode(name))) is not None]

    def _recognised(self, name: str, number: int, data: bytes) -> bool:
        """Take the file in if its surroundings are known and its objects have the usual layout."""
        before, after = self._usual_seen
        start = before + name[:-4].encode(errors="replace") + after
        if data.startswith(start) and self.size:
            position, size = len(start), self.size
        else:
            surroundings = _surroundings(data)
            if surroundings is None or surroundings not in self._known:
                return False
            size = self._known[surroundings]
            position = data.find(b"<object>")
            self._remember_usual(surroundings, size)
        found = []
        if position >= 0:
            while match := _OBJECT.match(data, position):
                found.append(match.groups())
                position = match.end()
            if not _END.fullmatch(data, position):
                return False
        try:
            boxes = [(float(x1), float(y1), float(x2), float(y2)) for _, x1, x2, y1, y2 in found]
        except ValueError:
            return False
        polyps = [polyp.decode() for polyp, *_ in found]
        width, height = size
        usual = all(0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height for x1, y1, x2, y2 in boxes)
        if size != self.size or not usual or not all(polyp.startswith(self._prefix) for polyp in polyps):
            return False
        for polyp, box in zip(polyps, boxes, strict=True):
            self.rows.add(name, number, box, polyp=polyp)
        return True

    def _remember_usual(self, surroundings: Surroundings, size: tuple[int, int]) -> None:
        if size == self.size:
            before, after, has_object = surroundings
            # Files are named after their image, so only the image's suffix is left of the name.
            usual = (before, b".jpg" + after)
            if has_object:
                self._usual_seen = usual
            else:
                self._usual_empty = usual

    def _parsed(self, name: str, number: int, data: bytes) -> bool:
        """Take the file in by way of the parser."""
        path = self._source / name
        try:
            frame = read_voc_frame(data, path, self._problems)
        except FileError as problem:
            self._problems.failed(problem)
            return False
        if frame.size is None:
            self._problems.bad(f"{path}: annotation/size", "width and height are missing")
            return False
        surroundings = _surroundings(data)
        if surroundings and len(self._known) < _MOST_REMEMBERED:
            self._known[surroundings] = frame.size
        if not self._takes_size(name, frame.size):
            return False
        for found in frame.objects:
            if found.identity is None or not found.identity.startswith(self._prefix):
                self._problems.bad(found.where, f"unique_id must begin with {self._prefix}, found {found.identity!r}")
            else:
                self.rows.add(found.where, number, found.box, polyp=found.identity)
        return True

    def _takes_size(self, name: str, size: tuple[int, int]) -> bool:
        """Whether a frame is as large as the others, the first of which decides; if not, that is reported."""
        if self.size is None:
            self.size = self.rows.clamp = size
        if size != self.size:
            expected, found = (f"{width} x {height}" for width, height in (self.size, size))
            self._problems.bad(self._source / name, f"the frame must be {expected} as others, found {found}")
        return size == self.size


def _surroundings(data: bytes) -> Surroundings | None:
    """The surroundings of the file name; None where they are not to be told simply."""
    start, found, _ = data.partition(b"<object>")
    before, opened, rest = start.partition(b"<filename>")
    name, closed, after = rest.partition(b"</filename>")
    return (before + opened, closed + after, bool(found)) if opened and closed and _PLAIN.fullmatch(name) else None
