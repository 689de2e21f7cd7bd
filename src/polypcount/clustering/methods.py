"""The methods that group by similarities: thresholds, affinity propagation with and without time, linkage."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from polypcount.clustering.affinity import affinity_propagation
from polypcount.clustering.average_linkage import average_linkage
from polypcount.clustering.base import Method, SweepTask, completed
from polypcount.clustering.grid import ALPHAS, GAMMAS, PREFERENCES, THRESHOLDS, Grid, Preset
from polypcount.clustering.grouping import Labels, Sweep, medoids
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.similarity import (
    Block,
    Fusion,
    Matrix,
    VisualSimilarity,
    change_symmetric,
    fuse,
    pair_values,
)

_PRESETS: tuple[Preset, ...] = ("paper", "coarse", "fine")
_FEWEST_TASKS = 16  # enough to keep a few cores busy to the end


class SimilarityMethod(Method):
    """Groups by one matrix: visual similarity, nearness in time, or both fused.

    A subclass groups one matrix at many values of its last parameter. This class builds each matrix once, applies the
    constraints, and cuts the work into tasks.
    """

    similarity: VisualSimilarity = "cosine"
    fusion: Fusion = "sum"
    alpha: float = 1.0
    gamma: float = 0.0

    def grid(self, preset: Preset = "paper") -> Grid:
        """The points to try. In a product alpha plays no part, so it is not searched."""
        axes = super().grid(preset).axes
        return Grid({name: axes[name] for name in axes if name != "alpha" or self.fusion == "sum"})

    @abstractmethod
    def _split(self, similarity: Matrix, values: NDArray[np.float64]) -> Sweep:
        """Group the units of one matrix at each value of the last parameter."""

    def _visual(self, tracklets: GroupingInput) -> Matrix:
        """A new matrix [units, units] that the method uses where alpha is 1."""
        return tracklets.visual(self.similarity)

    def _floor(self, values: NDArray[np.float64]) -> ArrayLike:  # noqa: ARG002
        """Similarity below which the units of a broken group do not join again; see `Constraints.part`."""
        return -np.inf

    def prepare(self, tracklets: GroupingInput, grid: Grid) -> tuple[Sweep, list[SweepTask]]:
        """A sweep over the grid, and the tasks that fill it in; points with the same matrix are computed once."""
        grid = completed(self, grid)
        sweep = Sweep.unfilled(len(grid), len(tracklets))
        if len(tracklets) == 0:
            return sweep, []
        blocks: dict[tuple[float, float], list[int]] = {}
        for point, block in grid.blocks():
            blocks.setdefault(self._matrix_of(point), []).append(block.start)
        visual = tracklets.constraints.lower(self._visual(tracklets))
        values = np.array(list(grid.axes.values())[-1])

        def task(matrix: tuple[float, float], first: int, stop: int) -> SweepTask:
            """Fill in values[first:stop] in all blocks that have this matrix."""

            def run() -> int:
                similarity = self._fused(tracklets, visual, *matrix)
                split = self._split(similarity, values[first:stop])
                parted = tracklets.constraints.part(split.labels, similarity, self._floor(values[first:stop]))
                labels = tracklets.constraints.spread(parted)
                for start in blocks[matrix]:
                    rows = slice(start + first, start + stop)
                    sweep.labels[rows], sweep.iterations[rows] = labels, split.iterations
                    sweep.converged[rows] = split.converged
                return len(blocks[matrix]) * (stop - first)

            return run

        size = len(values)
        if self.point_cost == 1:  # other methods group a matrix at all values at little more than the cost of one
            size = min(size, -(-size * len(blocks) // _FEWEST_TASKS))
        parts = [(first, min(first + size, len(values))) for first in range(0, len(values), size)]
        return sweep, [task(matrix, *part) for matrix in blocks for part in parts]

    def similarity_of(self, tracklets: GroupingInput) -> Matrix:
        """Similarities [units, units] that the method uses with its own parameters."""
        visual = tracklets.constraints.lower(self._visual(tracklets))
        return self._fused(tracklets, visual, *self._matrix_of({}))

    def _matrix_of(self, point: dict[str, float]) -> tuple[float, float]:
        """(gamma, alpha) of the matrix at a point of the grid, equal for points that have the same matrix."""
        alpha, gamma = point.get("alpha", self.alpha), point.get("gamma", self.gamma)
        if self.fusion == "product":
            return gamma, 0.5
        return (0.0, alpha) if alpha == 1 else (gamma, alpha)

    def _fused(self, tracklets: GroupingInput, visual: Matrix, gamma: float, alpha: float) -> Matrix:
        """The matrix at one (gamma, alpha). visual: With the constraints applied, as the result has them."""
        if alpha == 1:
            return visual
        return tracklets.constraints.lower(fuse(visual, tracklets.temporal(gamma), alpha, self.fusion))

    def _exemplars(self, tracklets: GroupingInput, swept: Labels, labels: Labels) -> Labels:  # noqa: ARG002
        unit = tracklets.constraints.unit
        return medoids(labels, self.similarity_of(tracklets)[np.ix_(unit, unit)])


class Threshold(SimilarityMethod):
    """Tracklets with a similarity of at least `threshold` are linked; groups are the connected components."""

    name = "threshold"
    presets: ClassVar = {preset: {"threshold": THRESHOLDS[preset]} for preset in _PRESETS}

    def __init__(self, threshold: float = 0.5, *, similarity: VisualSimilarity = "cosine") -> None:
        self.threshold = threshold
        self.similarity = similarity

    def _split(self, similarity: Matrix, values: NDArray[np.float64]) -> Sweep:
        return Sweep.of(np.array([connected_components(similarity >= value, directed=False)[1] for value in values]))

    def _floor(self, values: NDArray[np.float64]) -> ArrayLike:
        return values

    def cut_values(self, tracklets: GroupingInput, parameter: str) -> NDArray[np.float64]:  # noqa: ARG002
        """Thresholds between the similarities at which groups join, and both ends."""
        return _between(tracklets.constraints.join_similarities(self.similarity_of(tracklets)))


class AffinityPropagation(SimilarityMethod):
    """Affinity propagation on visual similarity; the higher the preference, the more groups.

    In a group of two, both tracklets represent the group equally well. As in scikit-learn, their order then decides. So
    give tracklets in order of time, as `Embeddings` does.
    """

    name = "ap"
    point_cost = 1.0
    presets: ClassVar = {preset: {"preference": PREFERENCES[preset]} for preset in _PRESETS}

    def __init__(
        self,
        preference: float = 0.5,
        *,
        similarity: VisualSimilarity = "cosine",
        damping: float = 0.9,
        max_iter: int = 500,
        convergence_iter: int = 50,
        random_state: int = 42,
    ) -> None:
        self.preference = preference
        self.similarity = similarity
        self.damping = damping
        self.max_iter = max_iter
        self.convergence_iter = convergence_iter
        self.random_state = random_state

    def _split(self, similarity: Matrix, values: NDArray[np.float64]) -> Sweep:
        return affinity_propagation(
            similarity,
            values,
            damping=self.damping,
            max_iter=self.max_iter,
            convergence_iter=self.convergence_iter,
            random_state=self.random_state,
        )

    def _exemplars(self, tracklets: GroupingInput, swept: Labels, labels: Labels) -> Labels:
        if len(tracklets.constraints.cannot_link) or len(tracklets.constraints.must_link):
            return super()._exemplars(tracklets, swept, labels)
        return swept[np.unique(labels, return_index=True)[1]]


class TemporalAffinityPropagation(AffinityPropagation):
    """The paper's method: affinity propagation on alpha * visual similarity + (1 - alpha) * nearness in time."""

    name = "temporal-ap"
    needs_positions = True
    presets: ClassVar = {
        preset: {"gamma": GAMMAS[preset], "alpha": ALPHAS[preset], "preference": PREFERENCES[preset]}
        for preset in _PRESETS
    }

    def __init__(
        self,
        preference: float = 0.5,
        *,
        alpha: float = 0.5,
        gamma: float = 5.0,
        similarity: VisualSimilarity = "cosine",
        fusion: Fusion = "sum",
        damping: float = 0.9,
        max_iter: int = 500,
        convergence_iter: int = 50,
        random_state: int = 42,
    ) -> None:
        super().__init__(
            preference,
            similarity=similarity,
            damping=damping,
            max_iter=max_iter,
            convergence_iter=convergence_iter,
            random_state=random_state,
        )
        self.alpha = alpha
        self.gamma = gamma
        self.fusion = fusion


class TimeOnly(AffinityPropagation):
    """Affinity propagation on nearness in time alone. The gain of another method over it shows what the images add."""

    name = "time-only"
    needs_positions = True
    alpha = 0.0
    presets: ClassVar = {preset: {"gamma": GAMMAS[preset], "preference": PREFERENCES[preset]} for preset in _PRESETS}

    def __init__(
        self,
        preference: float = 0.5,
        *,
        gamma: float = 5.0,
        damping: float = 0.9,
        max_iter: int = 500,
        convergence_iter: int = 50,
        random_state: int = 42,
    ) -> None:
        super().__init__(
            preference,
            damping=damping,
            max_iter=max_iter,
            convergence_iter=convergence_iter,
            random_state=random_state,
        )
        self.gamma = gamma


class Agglomerative(SimilarityMethod):
    """scikit-learn's agglomerative clustering: groups join while their similarity is above `threshold`.

    With alpha 1 it uses visual similarity, with a lower alpha the fused similarity.
    """

    name = "agglomerative"
    presets: ClassVar = {preset: {"threshold": THRESHOLDS[preset]} for preset in _PRESETS}

    def __init__(
        self,
        threshold: float = 0.5,
        *,
        linkage: Literal["average", "complete", "single"] = "average",
        alpha: float = 1.0,
        gamma: float = 5.0,
        similarity: VisualSimilarity = "cosine",
        fusion: Fusion = "sum",
    ) -> None:
        self.threshold = threshold
        self.linkage = linkage
        self.alpha = alpha
        self.gamma = gamma
        self.similarity = similarity
        self.fusion = fusion

    def _split(self, similarity: Matrix, values: NDArray[np.float64]) -> Sweep:
        sweep = Sweep.unfilled(len(values), len(similarity))
        if len(similarity) < 2:
            return sweep
        tree = self._tree(similarity)
        joined, distances = tree[:, :2].astype(np.int64), tree[:, 2]
        for point, threshold in enumerate(values):
            # One tree serves all thresholds. Its joins come nearest first; those below the distance are done.
            joins = int(np.searchsorted(distances, 1 - threshold))
            parent = np.arange(len(similarity) + joins)
            parent[joined[:joins]] = np.arange(len(similarity), len(parent))[:, None]
            while (parent[parent] != parent).any():  # each turn doubles the steps up the tree
                parent = parent[parent]
            sweep.labels[point] = np.unique(parent[: len(similarity)], return_inverse=True)[1]
        return sweep

    def cut_values(self, tracklets: GroupingInput, parameter: str) -> NDArray[np.float64]:
        """For the threshold: values between the similarities at which the tree joins groups, and both ends."""
        if parameter != "threshold":
            return super().cut_values(tracklets, parameter)
        similarity = self.similarity_of(tracklets)
        return _between(1 - self._tree(similarity)[:, 2] if len(similarity) > 1 else np.empty(0))

    def _tree(self, similarity: Matrix) -> NDArray[np.float64]:
        """The tree over [units, units], of two units at least: two nodes and a distance for each join, nearest first.

        It is the tree of scikit-learn, which calls scipy.
        """
        if self.linkage == "average":
            return average_linkage(_distances(similarity))
        from scipy.cluster.hierarchy import linkage

        distance = pair_values(similarity)
        np.subtract(1, distance, out=distance)
        return np.asarray(linkage(distance, self.linkage))


class TemporalAgglomerative(Agglomerative):
    """The same on visual similarity and nearness in time, with both weights searched."""

    name = "temporal-agglomerative"
    needs_positions = True
    presets: ClassVar = {
        preset: {
            "gamma": GAMMAS[preset],
            "alpha": ALPHAS[preset],
            "threshold": THRESHOLDS["coarse" if preset == "coarse" else "paper"],
        }
        for preset in _PRESETS
    }

    def __init__(
        self,
        threshold: float = 0.5,
        *,
        linkage: Literal["average", "complete", "single"] = "average",
        alpha: float = 0.5,
        gamma: float = 5.0,
        similarity: VisualSimilarity = "cosine",
        fusion: Fusion = "sum",
    ) -> None:
        super().__init__(threshold, linkage=linkage, alpha=alpha, gamma=gamma, similarity=similarity, fusion=fusion)


def _distances(similarity: Matrix) -> Matrix:
    """1 - the mean similarity of both directions, as a new symmetric matrix."""

    def fill(block: Matrix, where: Block) -> None:
        rows, columns = where
        block += similarity[columns, rows].T
        block /= 2
        np.subtract(1, block, out=block)

    distance = similarity.copy()
    change_symmetric(distance, fill)
    return distance


def _between(similarities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points between the distinct values, and both ends of [0, 1]; rising."""
    distinct = np.unique(np.clip(similarities, 0, 1))
    return np.unique(np.concatenate([[0.0], (distinct[1:] + distinct[:-1]) / 2, [1.0]]))
