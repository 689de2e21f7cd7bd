"""Files straight from a tar archive, without unpacking it to disk."""

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from polypcount.errors import FileError

_MOST_MEMBERS = 5_000_000
_MOST_BYTES = 1 << 36
_LARGEST_READ = 1 << 24
_CHUNK = 1 << 20


def members(path: Path, suffix: str, largest: int) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file with this suffix in a .tar.gz, in its order; hidden files are left out.

    An archive is refused if it has links, devices, paths that lead outside, a file larger than `largest` bytes, or more
    files than any dataset has. Only its end shows whether it is complete. So nothing from an archive that ends in an
    error may be used.
    """
    count = total = 0
    try:
        with _Guarded(path) as unpacked:
            with tarfile.open(fileobj=unpacked, mode="r:") as archive:
                while (member := archive.next()) is not None:
                    archive.members.clear()  # type: ignore[attr-defined]  # tarfile remembers every member that it has passed
                    count, total = count + 1, total + max(member.size, 0)
                    _refuse_unsafe(path, member)
                    if count > _MOST_MEMBERS or total > _MOST_BYTES:
                        raise FileError(f"{path} has more than {_MOST_MEMBERS:,} files or {_MOST_BYTES:,} bytes")
                    name = PurePosixPath(member.name).name
                    if not member.isreg() or not name.lower().endswith(suffix) or name.startswith("."):
                        continue
                    if member.size > largest:
                        raise FileError(f"{path}: {member.name} is larger than {largest:,} bytes")
                    content = archive.extractfile(member)
                    assert content is not None
                    yield name, content.read()
            while unpacked.read(_CHUNK):  # the checksum is at the end
                pass
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, OverflowError) as problem:
        raise FileError(f"{path} is not a readable tar.gz archive, or damaged, or cut short: {problem}") from None


class _Guarded(gzip.GzipFile):
    """A compressed file that is never read in one huge piece, as a hostile header would make tarfile do."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or not 0 <= size <= _LARGEST_READ:
            raise FileError(f"{self.name}: an entry's header is larger than {_LARGEST_READ:,} bytes")
        return super().read(size)


def _refuse_unsafe(path: Path, member: tarfile.TarInfo) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        raise FileError(f"{path}: the entry {member.name} leads outside of the archive; it is not opened")
    if not (member.isreg() or member.isdir()):
        raise FileError(f"{path}: the entry {member.name} is a link or a device; it is not opened")
