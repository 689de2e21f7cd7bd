"""Files straight from a tar archive, without unpacking it to disk."""

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from polypcount.errors import FileError

_MOST_MEMBERS = 5_000_000
_MOST_BYTES = 1 << 36


def members(path: Path, suffix: str, largest: int) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file with this suffix, in the order of the archive.

    An archive is refused if it has links, devices, paths that lead outside, a file larger than `largest`, or more
    than it could reasonably have.
    """
    count = total = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                count, total = count + 1, total + max(member.size, 0)
                _refuse_unsafe(path, member)
                if count > _MOST_MEMBERS or total > _MOST_BYTES:
                    raise FileError(f"{path} has more than {_MOST_MEMBERS:,} files or {_MOST_BYTES:,} bytes")
                if not member.isreg() or not member.name.endswith(suffix):
                    continue
                if member.size > largest:
                    raise FileError(f"{path}: {member.name} is larger than {largest:,} bytes")
                content = archive.extractfile(member)
                assert content is not None
                yield PurePosixPath(member.name).name, content.read()
                archive.members = []  # type: ignore[attr-defined] # tarfile remembers every member it has passed
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError) as problem:
        raise FileError(f"{path} is not a readable tar archive, or cut short: {problem}") from None


def _refuse_unsafe(path: Path, member: tarfile.TarInfo) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise FileError(f"{path}: the entry {member.name} leads outside of the archive; it is not opened")
    if not (member.isreg() or member.isdir()):
        raise FileError(f"{path}: the entry {member.name} is a link or a device; it is not opened")
