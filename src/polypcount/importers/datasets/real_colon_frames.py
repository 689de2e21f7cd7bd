"""Fast reading of the 2.76 million XML files of REAL-Colon.

Most files differ only in their numbers. Once a real XML parser has accepted a file, the text before and after its file
name is remembered. A later file with the same text needs no parser: only its objects are matched, against the one
layout that the dataset uses. All other files go to the parser, which can also say what is wrong and where.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from polypcount.errors import FileError
from polypcount.importers.boxes.voc import LARGEST_BYTES, read_voc_frame
from polypcount.importers.reading import BoxRows, Problems
from polypcount.storage import read_bytes

_NUMBER = re.compile(r"([0-9]{1,9})(?:\.0+)?")
_SPACE = rb"[ \t\r\n]*"  # the white space of XML; \s matches more
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

# The text before the file name, the text after it up to the first object, and whether there is an object.
_Surroundings = tuple[bytes, bytes, bool]


class FrameReader:
    """Reads the annotation files of one video.

    Attributes:
        numbers: Frame number of each file.
        size: Width and height of the frames in pixels; None until a file gives them.
        rows: The boxes.
    """

    def __init__(self, video: str, source: Path, problems: Problems) -> None:
        self._source, self._problems = source, problems
        self._prefix = f"{video}_"
        self._known: dict[_Surroundings, tuple[int, int]] = {}
        # The text before and after the name in the usual frame without an object.
        self._usual = (b"\0", b"\0")
        self._claimed: set[int] = set()
        self.numbers: list[int] = []
        self.size: tuple[int, int] | None = None
        self.rows = BoxRows(problems)

    def read_folder(self) -> None:
        """Read every XML file of the source folder."""
        empty: list[bytes] = []
        try:
            folder = os.open(self._source, os.O_RDONLY)
        except OSError as problem:
            raise FileError(f"{self._source} cannot be read: {problem.strerror}") from None
        try:
            before, after = self._usual
            # This runs for each file, most often a frame without an object. Byte names below an open folder, direct
            # system calls and one comparison cost little more than the kernel's own work.
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
                    before, after = self._usual
        finally:
            os.close(folder)
        self._claim_all(empty)

    def _add_other(self, name: str, data: bytes) -> None:
        try:
            self.add(name, data if len(data) < _USUAL_BYTES else read_bytes(self._source / name, LARGEST_BYTES))
        except FileError as problem:
            self._problems.failed(problem)

    def add(self, name: str, data: bytes) -> None:
        """Read one file."""
        number = self._claim(name)
        if number is not None and (self._recognised(name, number, data) or self._parsed(name, number, data)):
            self.numbers.append(number)

    def _claim(self, name: str) -> int | None:
        """The number in a file's name, or None, and a report, if it has none or another file has the same."""
        match = _NUMBER.fullmatch(name, len(self._prefix), len(name) - 4)
        if not match or not name.startswith(self._prefix):
            self._problems.bad(self._source / name, f"the name must be {self._prefix}<number>.xml")
            return None
        number = int(match[1])
        if number in self._claimed:
            self._problems.bad(self._source / name, f"frame {number} has another annotation file already")
            return None
        self._claimed.add(number)
        return number

    def _claim_all(self, names: Sequence[bytes]) -> None:
        """Claim the numbers of many files: at once where all are in order, otherwise one by one."""
        prefix, length = self._prefix.encode(), len(self._prefix)
        texts = [name[length:-4] for name in names]
        if all(map(bytes.isdigit, texts)) and all(name.startswith(prefix) for name in names):
            numbers = {int(text) for text in texts if len(text) < 10}
            if len(numbers) == len(names) and self._claimed.isdisjoint(numbers):
                self._claimed |= numbers
                self.numbers += numbers
                return
        self.numbers += [number for name in names if (number := self._claim(os.fsdecode(name))) is not None]

    def _recognised(self, name: str, number: int, data: bytes) -> bool:
        """Read the file if its surroundings are known and its objects have the usual layout."""
        surroundings = _surroundings(data)
        if surroundings is None or self.size is None or self._known.get(surroundings) != self.size:
            return False
        before, after, has_object = surroundings
        matches = []
        if has_object:
            position = data.find(b"<object>")
            while match := _OBJECT.match(data, position):
                matches.append(match.groups())
                position = match.end()
            if not _END.fullmatch(data, position):
                return False
        else:
            # A file has the name of its image, so only the image's suffix remains of the name.
            self._usual = (before, b".jpg" + after)
        try:
            boxes = [(float(x1), float(y1), float(x2), float(y2)) for _, x1, x2, y1, y2 in matches]
        except ValueError:
            return False
        polyps = [polyp.decode() for polyp, *_ in matches]
        width, height = self.size
        usual = all(0 <= x1 < x2 <= width and 0 <= y1 < y2 <= height for x1, y1, x2, y2 in boxes)
        if not usual or not all(polyp.startswith(self._prefix) for polyp in polyps):
            return False
        for polyp, box in zip(polyps, boxes, strict=True):
            self.rows.add(name, number, box, polyp=polyp)
        return True

    def _parsed(self, name: str, number: int, data: bytes) -> bool:
        """Read the file with the parser."""
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
        for item in frame.objects:
            if item.identity is None or not item.identity.startswith(self._prefix):
                self._problems.bad(item.where, f"unique_id must begin with {self._prefix}, found {item.identity!r}")
            else:
                self.rows.add(item.where, number, item.box, polyp=item.identity)
        return True

    def _takes_size(self, name: str, size: tuple[int, int]) -> bool:
        """Whether a frame has the size of the first one; reports it if not."""
        if self.size is None:
            self.size = self.rows.clamp = size
        if size != self.size:
            expected = f"{self.size[0]} x {self.size[1]} as others, found {size[0]} x {size[1]}"
            self._problems.bad(self._source / name, f"the frame must be {expected}")
        return size == self.size


def _surroundings(data: bytes) -> _Surroundings | None:
    """The text around the file name; None if it cannot be separated simply."""
    start, has_object, _ = data.partition(b"<object>")
    before, opened, rest = start.partition(b"<filename>")
    name, closed, after = rest.partition(b"</filename>")
    return (before + opened, closed + after, bool(has_object)) if opened and closed and _PLAIN.fullmatch(name) else None
