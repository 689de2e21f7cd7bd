"""What is compared: the encoders, the rows that use them, and the tables of the paper with its numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from polypcount.clustering import VisualSimilarity
from polypcount.errors import DataError

FROZEN = "frozen"
REFERENCE = "temporal"  # the encoder whose length the others are measured by
NESTED = "nested"  # in place of a method: the best of several on the other videos


@dataclass(frozen=True)
class EncoderRow:
    """An encoder to train: a recipe of the package and changes to it. FROZEN is not trained.

    Attributes:
        sparse: Further changes if the videos have only every fourth frame, so that views cover the same seconds.
    """

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ("sampler.stride=1", "sampler.min_frames=8")

    @property
    def trained(self) -> bool:
        """Whether it is trained, so that it depends on the seed and shares the budget."""
        return self.name != FROZEN


@dataclass(frozen=True)
class Row:
    """One way of counting.

    Attributes:
        encoder: Name of an `EncoderRow`; None if the images are not used.
        method: Name from `METHODS`, or NESTED.
    """

    name: str
    encoder: str | None
    method: str
    similarity: VisualSimilarity = "minmax-euclidean"


@dataclass(frozen=True)
class Published:
    """The paper's numbers: means over the 19 videos of REAL-Colon, with sample standard deviations."""

    fr: float
    fr_std: float
    fpr: float
    fpr_std: float | None


@dataclass(frozen=True)
class Line:
    """A row in a table.

    Attributes:
        label: Its name in the table.
        published: None if it is not in the paper.
    """

    row: str
    label: str
    published: Published | None = None


@dataclass(frozen=True)
class PaperTable:
    """A table to write: name of its files, title, and lines."""

    name: str
    title: str
    lines: tuple[Line, ...] = field(repr=False)


def _views(views: int) -> EncoderRow:
    return EncoderRow(f"views-{views}", "temporal", (f"sampler.views={views}", f"sampler.polyps={56 // views}"))


_SPARSE_SEGMENTS = ("sampler.strides=[1]", "sampler.min_frames=8")
ENCODERS: dict[str, EncoderRow] = {
    encoder.name: encoder
    for encoder in (
        EncoderRow("sfe", "sfe", sparse=("sampler.spread=7.5",)),
        EncoderRow("mve", "mve", sparse=_SPARSE_SEGMENTS),
        EncoderRow("tpc", "tpc", sparse=_SPARSE_SEGMENTS),
        EncoderRow("temporal", "temporal"),
        EncoderRow("supervised", "supervised"),
        *map(_views, (2, 4, 7, 28)),
        EncoderRow(FROZEN, "temporal"),
    )
}
ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("none", None, "none"),
        Row("sfe", "sfe", "threshold"),
        Row("mve", "mve", "threshold"),
        Row("tpc", "tpc", "ap"),
        Row("ours", "temporal", "temporal-ap"),
        *(Row(f"views-{views}", f"views-{views}", "temporal-ap") for views in (2, 4, 7, 28)),
        Row("self-supervised", "mve", "temporal-ap"),
        Row("supervised", "supervised", "temporal-ap"),
        Row("ours-ap", "temporal", "ap"),
        Row("ours+", "temporal", NESTED),
        Row("time-only", None, "time-only"),
        *(Row(f"{FROZEN}-{method}", FROZEN, method, "cosine") for method in ("threshold", "ap", "temporal-ap")),
    )
}
_OURS = Published(2.32, 1.80, 0.0225, 0.0420)
TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (
        PaperTable(
            "table-1",
            "Table 1: methods",
            (
                Line("none", "no clustering", Published(20.74, 20.78, 0.0, None)),
                Line("sfe", "SFE, threshold", Published(9.37, 6.28, 0.0314, 0.0618)),
                Line("mve", "MVE, threshold", Published(8.42, 4.50, 0.0449, 0.1361)),
                Line("tpc", "TPC, affinity propagation", Published(5.10, 3.43, 0.0249, 0.0408)),
                Line("ours", "ours, Temporal-AP", _OURS),
            ),
        ),
        PaperTable(
            "table-2",
            "Table 2: views and polyps in a batch of 56",
            (
                Line("views-2", "2 views of 28 polyps", Published(2.57, 2.07, 0.0276, 0.0576)),
                Line("views-4", "4 views of 14 polyps", Published(3.97, 3.13, 0.0417, 0.0987)),
                Line("views-7", "7 views of 8 polyps", Published(2.36, 1.77, 0.0325, 0.0642)),
                Line("ours", "14 views of 4 polyps", _OURS),
                Line("views-28", "28 views of 2 polyps", Published(4.54, 3.86, 0.0317, 0.0557)),
            ),
        ),
        PaperTable(
            "table-3",
            "Table 3: loss and clustering",
            (
                Line("self-supervised", "self-supervised, Temporal-AP", Published(10.47, 19.96, 0.0210, 0.0248)),
                Line("supervised", "supervised, Temporal-AP", Published(3.96, 2.68, 0.0252, 0.0507)),
                Line("ours", "temporally-aware, Temporal-AP", _OURS),
                Line("ours-ap", "temporally-aware, AP", Published(4.18, 2.86, 0.0259, 0.0397)),
            ),
        ),
        PaperTable(
            "table-4",
            "Table 4: beyond the paper",
            (
                Line("ours", "ours, Temporal-AP", _OURS),
                Line("ours+", "ours+, nested selection"),
                Line("time-only", "time only"),
                Line("frozen-threshold", "frozen standardised, threshold"),
                Line("frozen-ap", "frozen standardised, AP"),
                Line("frozen-temporal-ap", "frozen standardised, Temporal-AP"),
            ),
        ),
    )
}


def choose_rows(names: Iterable[str]) -> list[Row]:
    """Rows by their names or by the names of tables, in the order of `ROWS`; all rows for no name."""
    chosen: set[str] = set()
    for name in filter(None, map(str.strip, names)):
        if name not in (*ROWS, *TABLES):
            raise DataError(f"there is no row {name!r}; there are: {', '.join([*ROWS, *TABLES])}", mend="rows")
        chosen.update([line.row for line in TABLES[name].lines] if name in TABLES else [name])
    return [row for row in ROWS.values() if row.name in chosen or not chosen]


def encoders_of(rows: Iterable[Row]) -> list[EncoderRow]:
    """The encoders that these rows need, once each."""
    names = {row.encoder for row in rows}
    return [encoder for encoder in ENCODERS.values() if encoder.name in names]
