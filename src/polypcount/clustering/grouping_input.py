"""The tracklets of one video, as input of the methods."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polypcount.clustering.constraints import Constraints
from polypcount.clustering.similarity import (
    Block,
    Matrix,
    VisualSimilarity,
    change_symmetric,
    checked_positions,
    finite_rows,
    temporal_adjacency,
    visual_similarity,
)
from polypcount.errors import DataError


@dataclass(frozen=True, eq=False)
class GroupingInput:
    """The n tracklets of one video.

    Attributes:
        vectors: float64[n, d], their embeddings.
        positions: float64[n], where in the video each lies; None where no method needs it.
        duration: Length of the video in the unit of the positions.
        constraints: Pairs that cannot or must be one polyp.
        truth: int[n], the polyp of each, for the oracle only; None where it is unknown.
    """

    vectors: Matrix
    positions: NDArray[np.float64] | None = None
    duration: float = 1.0
    constraints: Constraints = field(default_factory=lambda: Constraints(0))
    truth: NDArray[np.integer] | None = None
    _made: dict[str, Matrix] = field(default_factory=dict, repr=False)  # does not depend on the vectors

    @classmethod
    def of(
        cls,
        vectors: ArrayLike,
        positions: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        must_link: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        *,
        duration: float = 1.0,
    ) -> "GroupingInput":
        """Check and convert; `cannot_link` and `must_link` are pairs of rows, int[m, 2]."""
        rows = finite_rows(vectors)
        try:
            starts = None if positions is None else np.asarray(positions, np.float64)
        except ValueError:
            raise DataError("positions must be numbers, one for each tracklet") from None
        polyps = None if truth is None else np.asarray(truth)
        for name, column in (("positions", starts), ("truth", polyps)):
            if column is not None and column.shape != rows.shape[:1]:
                raise DataError(
                    f"{name} must have one value for each of the {len(rows)} tracklets, found {list(column.shape)}"
                )
        none = np.empty((0, 2), np.int32)
        constraints = Constraints(
            len(rows),
            np.asarray(none if cannot_link is None else cannot_link),
            np.asarray(none if must_link is None else must_link),
        )
        return cls(rows, starts, duration, constraints, polyps)

    def __len__(self) -> int:
        return len(self.vectors)

    def with_vectors(self, vectors: ArrayLike) -> "GroupingInput":
        """The same tracklets with other vectors, float[n, d]; what depends on time and constraints is shared."""
        return replace(self, vectors=finite_rows(vectors))

    def log_gaps(self) -> Matrix:
        """log1p(100 * abs(position - position) / duration) of every pair of tracklets, float64[n, n]."""
        if "log_gaps" not in self._made:
            position = self._positions()
            gaps = np.empty((len(position), len(position)))

            def fill(block: Matrix, where: Block) -> None:
                rows, columns = where
                np.abs(position[rows, None] - position[columns], out=block)
                block /= self.duration
                block *= 100
                np.log1p(block, out=block)

            change_symmetric(gaps, fill)
            self._made["log_gaps"] = gaps
        return self._made["log_gaps"]

    def visual(self, kind: VisualSimilarity) -> Matrix:
        """Visual similarity, float64[units, units]."""
        return self.constraints.unite(visual_similarity(self.vectors, kind))

    def temporal(self, gamma: float) -> Matrix:
        """Nearness in time, float64[units, units]."""
        return self.constraints.unite(temporal_adjacency(self._positions(), gamma, self.duration))

    def _positions(self) -> NDArray[np.float64]:
        if self.positions is None:
            raise DataError("this method uses time: give the positions of the tracklets")
        return checked_positions(self.positions, self.duration)
