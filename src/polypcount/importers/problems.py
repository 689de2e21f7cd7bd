"""What an importer does about input that breaks the rules: stop at once, or leave it out and say so."""

from dataclasses import dataclass, field

from polypcount.errors import FileError

_HINT = " (--skip-bad imports the rest)"


@dataclass
class Problems:
    """Collects what is wrong while files are read.

    skip_bad: leave bad input out and go on; otherwise the first piece of it ends the import.
    left_out: one line for each piece that was left out: where, what was expected, what was found.
    remarks: one line for each thing that was imported but that the user should know of.
    """

    skip_bad: bool = False
    left_out: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def bad(self, where: object, message: str) -> None:
        """Report a piece of input that cannot be used.

        where: the file, with line, JSON path or XML element.
        """
        self.failed(FileError(f"{where}: {message}"))

    def failed(self, error: FileError) -> None:
        """Report a whole file that cannot be used."""
        line = " ".join(str(error).split())
        if not self.skip_bad:
            raise FileError(f"{line.removesuffix(_HINT)}{_HINT}")
        self.left_out.append(line)

    def remark(self, message: str) -> None:
        """Report something that was imported all the same."""
        self.remarks.append(message)
