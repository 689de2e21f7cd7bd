"""Which data `polypcount reproduce` was given: exactly one of its sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polypcount.errors import DataError

if TYPE_CHECKING:
    from polypcount.reproduce import Benchmark, Stage


@dataclass(frozen=True)
class GivenData:
    """The sources on disk that the user named; none of them with --simulated."""

    datasets: Mapping[str, Path]
    e2e: Path | None
    corpora: Sequence[Path]

    def __bool__(self) -> bool:
        return bool(self.datasets or self.e2e or self.corpora)

    def refuse_unsuitable(self, simulated: bool) -> None:
        """Raise unless one source is named."""
        if [simulated, bool(self.datasets), self.e2e is not None, bool(self.corpora)].count(True) != 1:
            raise DataError("give one of --real-colon (with any other datasets), --e2e, --corpus or --simulated")
        if self.datasets and "real-colon" not in self.datasets:
            raise DataError("give --real-colon, too: its videos are studied, the other datasets are only learnt from")

    @property
    def folder(self) -> Path:
        """The folder to name in messages."""
        return self.e2e or (self.corpora[0] if self.corpora else next(iter(self.datasets.values())))

    def benchmark(self, out: Path, stage: "Stage", *, tables_suffice: bool = False) -> "Benchmark":
        """Read the data; corpora are saved in `out`. For `tables_suffice` see `real_benchmark`."""
        from polypcount import reproduce as room

        if self.e2e is not None:
            return room.e2e_benchmark(self.e2e, out / "e2e", stage)
        if self.corpora:
            return room.corpus_benchmark(self.corpora, out / "corpus")
        return room.real_benchmark(self.datasets, out / "real", stage, tables_suffice=tables_suffice)
