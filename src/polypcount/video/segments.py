"""Parts of a file read as if they were one file."""

import bisect
import io
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path


class Segments(io.RawIOBase):
    """The bytes at (offset, length) of each segment of a file, one after the other."""

    def __init__(self, path: Path, segments: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._segments = segments
        self._ends = list(accumulate(length for _, length in segments))
        self._position = 0

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Whether it can be searched: yes."""
        return True

    def tell(self) -> int:
        """Bytes from the start of the first segment."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move as in any file."""
        size = self._ends[-1] if self._ends else 0
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Fill the buffer up to the end of the segment; 0 at the very end."""
        place = bisect.bisect_right(self._ends, self._position)
        if place == len(self._ends):
            return 0
        offset, length = self._segments[place]
        left = self._ends[place] - self._position
        self._file.seek(offset + length - left)
        count = self._file.readinto(memoryview(buffer)[:left])
        self._position += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
