"""What an importer does with bad input: stop at once, or leave it out and report it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from polypcount.errors import FileError


@dataclass
class Problems:
    """Collects what is wrong while files are read.

    Attributes:
        skip_bad: Leave bad input out and go on; otherwise the first bad entry ends the import.
        left_out: One line for each entry that was left out: where, what was expected, what was found.
        remarks: One line for each thing that was imported but that the user should know about.
    """

    skip_bad: bool = False
    left_out: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def bad(self, where: object, message: str, mend: Sequence[str] = ()) -> None:
        """Report an entry that cannot be used.

        Args:
            where: The file, with line, JSON path or XML element.
            message: What was expected and what was found.
            mend: Settings that would help.
        """
        self.failed(FileError(f"{where}: {message}", mend=mend))

    def failed(self, error: FileError) -> None:
        """Report a whole file that cannot be used."""
        line = " ".join(str(error).split())
        if not self.skip_bad:
            raise FileError(line, mend=tuple(dict.fromkeys(("skip_bad", *error.mend))))
        self.left_out.append(line)

    def remark(self, message: str) -> None:
        """Report something that was imported in spite of a doubt."""
        self.remarks.append(message)
