"""Folders that are there whole or not at all.

`whole_folder` writes a folder under a temporary name and renames it. `VersionedFolder` is for a folder that is
replaced while other processes may read it. Its manifest names the subfolder with the current content:

    corpus.json        the manifest; its field `tables` names the subfolder
    tables-1a2b3c4d/   the content

Saving writes a new subfolder beside the old one, with the new manifest in it, and then renames that manifest over the
old one. This rename is the moment of change: a process killed before it leaves the old content, after it the new.
"""

import contextlib
import errno
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from polypcount.errors import FileError, first_line
from polypcount.storage.files import flush, write_json
from polypcount.storage.leftovers import abandoned, put_back, remove_leftovers, unfinished
from polypcount.storage.schema import Manifest, read_manifest

M = TypeVar("M", bound=Manifest)
T = TypeVar("T")


@contextlib.contextmanager
def whole_folder(folder: Path, *, replace: bool = True) -> Iterator[Path]:
    """Give a new folder to write into; when the block ends without an error, it becomes `folder` in one step.

    If anything fails, the old folder stays. A process that is killed between moving the old folder aside and putting
    the new one there leaves no folder; the next process that writes beside it puts the old one back.

    Args:
        folder: The folder.
        replace: Whether a folder that is there when the block ends is replaced. If two processes write the same folder
            without replacing, exactly one of them gets it.

    Raises:
        FileExistsError: Another folder is there, and `replace` is False.
    """
    target = Path(os.path.realpath(folder))
    with unfinished(target, lambda name: name.mkdir(parents=True)) as name:
        (name / "new").mkdir()
        try:
            yield name / "new"
            flush(name / "new")
            for number in itertools.count():
                if replace and os.path.lexists(target):
                    (name / f"old-{number}").mkdir()
                    with contextlib.suppress(FileNotFoundError):  # another process was faster
                        target.rename(name / f"old-{number}" / target.name)
                try:
                    (name / "new").rename(target)
                    break
                except OSError as problem:
                    if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                        raise
                    if not replace:
                        raise FileExistsError(errno.EEXIST, "it exists already", str(target)) from None
            flush(target.parent)
        finally:
            put_back(name, target.parent)


@dataclass(frozen=True)
class VersionedFolder(Generic[M]):
    """A kind of folder whose manifest names the subfolder with the current content.

    Attributes:
        kind: What such a folder is, for messages: "corpus".
        model: Schema of the manifest.
        manifest: File name of the manifest: "corpus.json".
        part: Field of the manifest that names the subfolder, and how such names begin: "tables".
    """

    kind: str
    model: type[M]
    manifest: str
    part: str

    def is_part(self, name: str) -> bool:
        """Whether a file name is that of a subfolder."""
        return re.fullmatch(rf"{self.part}-[0-9a-f]{{8}}", name) is not None

    def describe(self, folder: Path) -> M:
        """Read and check the manifest."""
        path = folder / self.manifest
        if not os.path.exists(path):
            what = "does not exist"
            if os.path.exists(folder):
                what = f"holds no {self.kind}: it has no {self.manifest}" if folder.is_dir() else "is not a folder"
            raise FileError(f"{folder} {what}; give a folder that polypcount has written")
        described = read_manifest(path, self.model)
        if not self.is_part(name := getattr(described, self.part)):
            raise FileError(f"{path}: {self.part} must be a name such as {self.part}-1a2b3c4d, found {name[:50]!r}")
        return described

    def holds(self, folder: Path) -> bool:
        """Whether the folder has a manifest that this version can read. The content may still be damaged."""
        return self._part_of(folder) is not None

    def read(self, folder: Path, load: Callable[[M, Path], T]) -> T:
        """Return `load(manifest, subfolder)`; if another process saves meanwhile, load again with its manifest."""
        while True:
            described = self.describe(folder)
            name = getattr(described, self.part)
            try:
                return load(described, folder / name)
            except FileError:
                if self._part_of(folder) in (None, name):
                    raise

    def refuse_unsuitable(self, folder: Path) -> None:
        """Raise `FileError` if nothing can be saved there: a file, or a manifest that this version cannot read."""
        remove_leftovers(folder)
        if folder.is_symlink() and not folder.exists():
            raise FileError(f"{folder} is a broken link; choose a new folder")
        if folder.exists() and not folder.is_dir():
            raise FileError(f"{folder} is a file; the {self.kind} needs a folder")
        if (folder / self.manifest).exists():
            try:
                self.describe(folder)
            except FileError as problem:
                raise FileError(f"{problem}; it is not replaced, choose a new folder") from None

    def write(self, folder: Path, fill: Callable[[Path], None], values: Mapping[str, Any]) -> None:
        """Save, replacing what is there.

        Args:
            folder: Made if it is missing. Other files in it are left alone.
            fill: Writes the content into the new, empty subfolder that it is given.
            values: Fields of the manifest, all but the format and the name of the subfolder.
        """
        name = f"{self.part}-{secrets.token_hex(4)}"
        replaced = self._part_of(folder)
        described = self.model.described(**values, **{self.part: name})
        try:
            with unfinished(folder / name, lambda hidden: hidden.mkdir(parents=True)) as hidden:
                fill(hidden)
                write_json(hidden / self.manifest, described.model_dump(mode="json"), indent=2)
                for path in hidden.iterdir():
                    flush(path)
                hidden.rename(folder / name)  # still locked
                (folder / name / self.manifest).replace(folder / self.manifest)
                flush(folder)
        except BaseException as problem:
            if self._part_of(folder) != name:
                shutil.rmtree(folder / name, ignore_errors=True)
            if isinstance(problem, OSError):
                raise FileError(f"{folder}: the {self.kind} could not be saved: {first_line(problem)}") from problem
            raise
        self._remove_leftovers(folder, replaced)

    def _part_of(self, folder: Path) -> str | None:
        try:
            return str(getattr(self.describe(folder), self.part))
        except FileError:
            return None

    def _remove_leftovers(self, folder: Path, replaced: str | None) -> None:
        """Remove replaced subfolders and those of killed saves, but not that of a save still at work."""
        with contextlib.suppress(OSError):  # another save may be removing the same
            for part in [entry for entry in folder.iterdir() if self.is_part(entry.name)]:
                with abandoned(part) as is_abandoned:
                    # In this order: a save ends its lock after the manifest names its subfolder.
                    if part.name == replaced or (is_abandoned and part.name != self._part_of(folder)):
                        shutil.rmtree(part, ignore_errors=True)
