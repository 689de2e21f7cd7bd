"""The operating point at which tracklets are grouped, and how it varies between procedures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import METHODS, Grid, Method, ProbabilityLinkage, Scene
from polypcount.encoder import Encoder, operating_points
from polypcount.errors import DataError, FileError

REPETITIONS = 60
_METHODS: dict[str, type[Method]] = {**METHODS, ProbabilityLinkage.name: ProbabilityLinkage}


@dataclass(frozen=True)
class CountingPoint:
    """A method with its parameters, and the values of one of them that were right for other procedures.

    method: one of `METHODS`, or probability-linkage. parameters: of its constructor.
    cannot_link: whether tracklets with boxes in one frame are kept apart.
    varied: name of the parameter that decides how much is joined.
    values: rising; of procedures with known polyps, the value that counted each of them right, or as nearly as any.
        One of them as good as another for a new procedure, so they say how sure a count is.
    level: share of procedures that an interval should hold.
    selected_on: what the values were found on, in words.
    measured: what came out on procedures that nothing was chosen on, by name; empty where nobody has measured.
    """

    method: str
    parameters: Mapping[str, Any]
    cannot_link: bool
    varied: str
    values: tuple[float, ...]
    level: float
    selected_on: str
    measured: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise DataError(f"there is no method {self.method!r}; there are: {', '.join(_METHODS)}")
        known = list(signature(_METHODS[self.method]).parameters)
        for name in (*self.parameters, self.varied):
            if name not in known:
                raise DataError(f"{self.method} has no parameter {name!r}; it has: {', '.join(known)}")
        if not self.values or list(self.values) != sorted(self.values):
            raise DataError("an operating point needs at least one value of what is varied, in rising order")

    @classmethod
    def of(cls, encoder: Encoder) -> "CountingPoint":
        """The one that is kept beside an encoder."""
        found = operating_points(encoder.folder).get("counting")
        if found is None:
            raise FileError(
                f"{encoder.folder} has no operating point for counting; make one from procedures with known polyps: "
                "polypcount study EMBEDDINGS --out DIR --for-counting ENCODER"
            )
        try:
            return cls(**{**found, "values": tuple(found["values"])})
        except DataError as problem:
            raise FileError(f"{encoder.folder}: {problem}") from None

    def build(self) -> Method:
        """The method with its parameters."""
        return _METHODS[self.method](**self.parameters)

    def repeated_values(self) -> NDArray[np.float64]:
        """float64[REPETITIONS], quantiles of `values` at even distances."""
        at = (np.arange(REPETITIONS) + 0.5) / REPETITIONS
        return np.asarray(np.quantile(np.array(self.values), at))

    def labels_at(self, scene: Scene, values: NDArray[np.float64]) -> NDArray[np.int32]:
        """int32[len(values), n], the groups of one procedure at each value of what is varied."""
        method = self.build()
        distinct, where = np.unique(values, return_inverse=True)
        sweep, tasks = method.prepare(scene, Grid({self.varied: tuple(distinct.tolist())}))
        for task in tasks:
            task()
        return np.asarray(sweep.labels[where])
