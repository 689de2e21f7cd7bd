"""The methods that group by similarities: thresholds, affinity propagation with and without time, linkage."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from polypcount.clustering.affinity import propagate
from polypcount.clustering.base import Labels, Method, Sweep, Task, chunks, completed
from polypcount.clustering.grid import ALPHAS, GAMMAS, PREFERENCES, THRESHOLDS, Grid, Preset
from polypcount.clustering.grouping import medoids
from polypcount.clustering.messages import workspace
from polypcount.clustering.scene import Scene
from polypcount.clustering.similarity import Fusion, Matrix, VisualSimilarity, fuse

_PRESETS: tuple[Preset, ...] = ("paper", "coarse", "fine")
_TASKS_WANTED = 16  # enough to keep a few cores busy to the end


class SimilarityMethod(Method):
    """Groups by one matrix: similarity of looks, nearness in time, or both fused.

    A subclass says how one matrix is grouped at many values of its last parameter. This class builds each matrix once,
    applies the constraints, and cuts the work into tasks.
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
    def _split(self, similarity: Matrix, values: list[float], work: list[Matrix]) -> Sweep:
        """Group the units of one matrix at each value of the last parameter. work: empty, or left by the last call."""

    def _looks(self, scene: Scene) -> Matrix:
        """The matrix [units, units] that the method goes by where alpha is 1."""
        return scene.visual(self.similarity)

    def _floor(self, values: list[float]) -> NDArray[np.float64]:  # noqa: ARG002
        """Similarity below which a broken group does not join again; see `Constraints.part`."""
        return np.float64(-np.inf)  # type: ignore[return-value]

    def prepare(self, scene: Scene, grid: Grid) -> tuple[Sweep, list[Task]]:
        """A sweep over the grid, and the tasks that fill it; points that come to the same matrix are run once."""
        grid = completed(self, grid)
        sweep = Sweep.unfilled(len(grid), len(scene))
        if len(scene) == 0:
            return sweep, []
        matrices: dict[tuple[float, float], list[slice]] = {}
        for point, where in grid.blocks():
            matrices.setdefault(self._matrix_of(point), []).append(where)
        visual = self._looks(scene) if any(alpha > 0 for _, alpha in matrices) else None
        by_gamma: dict[float, list[tuple[float, list[slice]]]] = {}
        for (gamma, alpha), places in matrices.items():
            by_gamma.setdefault(gamma, []).append((alpha, places))
        if len(by_gamma) >= _TASKS_WANTED:
            return sweep, [self._task(scene, visual, grid, sweep, gamma, parts) for gamma, parts in by_gamma.items()]
        size = len(list(grid.axes.values())[-1])
        if self.point_cost == 1:  # else one matrix serves all points at little more than the cost of one
            size = -(-size * len(matrices) // _TASKS_WANTED)
        return sweep, [
            self._task(scene, visual, grid, sweep, gamma, [(alpha, list(pieces))])
            for (gamma, alpha), places in matrices.items()
            for pieces in zip(*(chunks(place, size) for place in places), strict=True)
        ]

    def _task(
        self,
        scene: Scene,
        visual: Matrix | None,
        grid: Grid,
        sweep: Sweep,
        gamma: float,
        parts: list[tuple[float, list[slice]]],
    ) -> Task:
        """Fill in the points of some matrices with one gamma. parts: alpha, and where in the grid it holds."""
        values = list(grid.axes.values())[-1]
        constraints = scene.constraints

        def run() -> int:
            temporal = scene.temporal(gamma) if any(alpha < 1 for alpha, _ in parts) else None
            work: list[Matrix] = []
            for alpha, places in parts:
                similarity = constraints.lower(self._fused(visual, temporal, alpha))
                first = places[0].start % len(values)
                wanted = list(values[first : first + places[0].stop - places[0].start])
                found = self._split(similarity, wanted, work)
                labels = constraints.spread(constraints.part(found.labels, similarity, self._floor(wanted)))
                for place in places:
                    sweep.labels[place], sweep.iterations[place] = labels, found.iterations
                    sweep.converged[place] = found.converged
            return sum(place.stop - place.start for _, places in parts for place in places)

        return run

    def _matrix_of(self, point: dict[str, float]) -> tuple[float, float]:
        """(gamma, alpha) of the matrix at a point of the grid, the same for points that come to the same matrix."""
        alpha, gamma = point.get("alpha", self.alpha), point.get("gamma", self.gamma)
        if self.fusion == "product":
            return gamma, 0.5
        return (0.0, alpha) if alpha == 1 else (gamma, alpha)

    def _fused(self, visual: Matrix | None, temporal: Matrix | None, alpha: float) -> Matrix:
        if visual is not None and temporal is not None:
            return fuse(visual, temporal, alpha, self.fusion)
        only = visual if temporal is None else temporal
        assert only is not None
        return only

    def similarity_of(self, scene: Scene) -> Matrix:
        """Similarities [units, units] that the method goes by with the parameters it has."""
        gamma, alpha = self._matrix_of({})
        visual = self._looks(scene) if alpha > 0 else None
        temporal = scene.temporal(gamma) if alpha < 1 else None
        return scene.constraints.lower(self._fused(visual, temporal, alpha))

    def _exemplars(self, scene: Scene, found: Labels, labels: Labels) -> Labels:  # noqa: ARG002
        unit = scene.constraints.unit
        return medoids(labels, self.similarity_of(scene)[np.ix_(unit, unit)])


class Threshold(SimilarityMethod):
    """Tracklets at least `threshold` alike are linked, and so is what they are linked to: connected components."""

    name = "threshold"
    presets: ClassVar = {preset: {"threshold": THRESHOLDS[preset]} for preset in _PRESETS}

    def __init__(self, threshold: float = 0.5, *, similarity: VisualSimilarity = "cosine") -> None:
        self.threshold = threshold
        self.similarity = similarity

    def _split(self, similarity: Matrix, values: list[float], work: list[Matrix]) -> Sweep:  # noqa: ARG002
        sweep = Sweep.unfilled(len(values), len(similarity))
        for point, threshold in enumerate(values):
            sweep.labels[point] = connected_components(similarity >= threshold, directed=False)[1]
        return sweep

    def _floor(self, values: list[float]) -> NDArray[np.float64]:
        return np.array(values)


class AffinityPropagation(SimilarityMethod):
    """Affinity propagation on the similarity of looks; the higher the preference, the more groups.

    Either of two tracklets could stand for the pair of them equally well. That is decided by their order, as in
    scikit-learn, so give them in order of time, as `Embeddings` does.
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

    def _split(self, similarity: Matrix, values: list[float], work: list[Matrix]) -> Sweep:
        if not work:
            work.append(workspace(len(similarity)))
        found = propagate(
            similarity,
            values,
            damping=self.damping,
            max_iter=self.max_iter,
            convergence_iter=self.convergence_iter,
            random_state=self.random_state,
            work=work[0],
        )
        return Sweep(found.owner, found.iterations, found.converged)

    def _exemplars(self, scene: Scene, found: Labels, labels: Labels) -> Labels:
        if len(scene.constraints.cannot_link) or len(scene.constraints.must_link):
            return super()._exemplars(scene, found, labels)
        return found[np.unique(labels, return_index=True)[1]]


class TemporalAffinityPropagation(AffinityPropagation):
    """The paper's method: affinity propagation on looks and nearness in time, alpha * V + (1 - alpha) * T."""

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
    """Affinity propagation on nearness in time alone: what a method gains on it is what the images add."""

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
    """scikit-learn's agglomerative clustering: groups join while they are more than `threshold` alike.

    On the similarity of looks with alpha 1, on the fused one below.
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

    def _split(self, similarity: Matrix, values: list[float], work: list[Matrix]) -> Sweep:  # noqa: ARG002
        from sklearn.cluster import AgglomerativeClustering

        sweep = Sweep.unfilled(len(values), len(similarity))
        if len(similarity) < 2:
            return sweep
        distance = 1 - (similarity + similarity.T) / 2
        tree = AgglomerativeClustering(
            n_clusters=None, distance_threshold=0, metric="precomputed", linkage=self.linkage
        ).fit(distance)
        for point, threshold in enumerate(values):
            # One tree serves all thresholds: of its joins, which come nearest first, some are done and the rest not.
            home = list(range(len(similarity)))
            for left, right in tree.children_[: np.searchsorted(tree.distances_, 1 - threshold)]:
                home.append(len(home))
                home[left] = home[right] = len(home) - 1
            for node in range(len(home) - 1, -1, -1):
                home[node] = home[home[node]]
            sweep.labels[point] = np.unique(home[: len(similarity)], return_inverse=True)[1]
        return sweep


class TemporalAgglomerative(Agglomerative):
    """The same on looks and nearness in time, with both weights searched."""

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
