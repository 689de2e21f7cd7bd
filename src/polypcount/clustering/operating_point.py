"""The point at which the tracklets of a recording are grouped, and how it varies between recordings."""

from inspect import signature
from typing import Annotated, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from polypcount.clustering.base import Method, completed
from polypcount.clustering.bounds import NoClustering, Oracle
from polypcount.clustering.grid import Grid
from polypcount.clustering.grouping import Labels, renumber
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.clustering.methods import (
    AffinityPropagation,
    Agglomerative,
    TemporalAffinityPropagation,
    TemporalAgglomerative,
    Threshold,
    TimeOnly,
)
from polypcount.clustering.probability import ProbabilityLinkage
from polypcount.storage import Schema

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        NoClustering,
        Threshold,
        Agglomerative,
        TemporalAgglomerative,
        AffinityPropagation,
        TemporalAffinityPropagation,
        TimeOnly,
        Oracle,
    )
}
_LARGEST = 10**9
COUNTING_METHODS: dict[str, type[Method]] = {**METHODS, ProbabilityLinkage.name: ProbabilityLinkage}


class Scope(Schema):
    """Which recordings an operating point was chosen on. Of other recordings its interval claims nothing.

    Attributes:
        tracklets: The fewest and the most tracklets of a recording.
        seconds: Duration of the shortest and the longest recording; None where it is not known.
    """

    tracklets: tuple[int, int]
    seconds: tuple[float, float] | None


class Band(Schema):
    """Between which values of the varied parameter the count of a recording lies, for recordings of one kind.

    Attributes:
        tracked: Whether our tracker made the tracks, as for the boxes of a detector, which has false alarms.
        tracklets: The most tracklets of such a recording.
        low: Value of `varied` whose number of groups is the lower end of the interval.
        high: Value of `varied` whose number of groups is the upper end.
        seconds: Groups that are seen for less than this, all in all, are not counted at the lower end.
        procedures: How many recordings the values were found on.
    """

    tracked: bool
    tracklets: Annotated[int, Field(ge=1)]
    low: float
    high: float
    seconds: Annotated[float, Field(ge=0)] = 0.0
    procedures: Annotated[int, Field(ge=1)]


class OperatingPoint(Schema):
    """A method with its parameters, and the values of one of them that were right for other recordings.

    Attributes:
        method: Name of one of `COUNTING_METHODS`.
        parameters: Parameters of its constructor.
        cannot_link: Whether tracklets with boxes in one frame are kept apart.
        varied: Name of the searched parameter that decides how much is joined.
        values: For each of a set of recordings with known polyps, the value of `varied` that gave the count nearest to
            the true number; in rising order. For a new recording all values are equally good, so their spread says how
            certain a count is.
        level: Share of recordings whose count an interval should hold.
        selected_on: The recordings that the values were found on, in words.
        measured: Results by name; empty where nothing was measured.
        scope: Which recordings these were, in numbers; None where that was not kept.
        bands: Where the interval of a count comes from, by kind of recording, in rising order of tracklets. Without
            them, it comes from `values` alone.
    """

    method: str
    parameters: dict[str, int | float | str]
    cannot_link: bool
    varied: str
    values: Annotated[tuple[float, ...], Field(min_length=1, max_length=1000)]
    level: Annotated[float, Field(gt=0, lt=1)]
    selected_on: Annotated[str, Field(min_length=1)]
    measured: dict[str, float] = Field(default_factory=dict)
    scope: Scope | None = None
    bands: tuple[Band, ...] = ()

    @model_validator(mode="after")
    def _refuse_unknown_names(self) -> Self:
        if self.method not in COUNTING_METHODS:
            raise ValueError(f"method must be one of {', '.join(COUNTING_METHODS)}, found {self.method!r}")
        kind = COUNTING_METHODS[self.method]
        if unknown := set(self.parameters) - set(signature(kind).parameters):
            raise ValueError(f"parameters: {self.method} has no parameter {min(unknown)!r}")
        if self.varied not in kind.presets["paper"]:
            raise ValueError(f"varied must be one of {', '.join(kind.presets['paper'])}, found {self.varied!r}")
        if list(self.values) != sorted(self.values):
            raise ValueError("values must be in rising order")
        required = [entry.name for entry in signature(kind).parameters.values() if entry.default is entry.empty]
        for name in required:
            if isinstance(self.parameters.get(name, ""), str):
                raise ValueError(f"parameters: {self.method} needs a number {name}")
        if any(isinstance(value, int) and abs(value) > _LARGEST for value in self.parameters.values()):
            raise ValueError(f"parameters: whole numbers may be up to {_LARGEST}")
        method = self.build()
        ends = [end for band in self.bands for end in (band.low, band.high)]
        values = dict.fromkeys([getattr(method, self.varied), *self.values, *ends])
        completed(method, Grid({self.varied: tuple(values)}))
        return self

    def build(self) -> Method:
        """The method with its parameters."""
        return COUNTING_METHODS[self.method](**self.parameters)

    def labels_at(self, tracklets: GroupingInput, values: ArrayLike) -> Labels:
        """The groups at each value of the varied parameter, int32[len(values), n]; see `Sweep.labels`."""
        distinct, row = np.unique(np.asarray(values, np.float64), return_inverse=True)
        sweep, tasks = self.build().prepare(tracklets, Grid({self.varied: tuple(distinct.tolist())}))
        for task in tasks:
            task()
        return np.asarray(sweep.labels[row])

    def band(self, tracklets: int, *, tracked: bool) -> Band | None:
        """The band of a recording; that of the most tracklets where it has more; None where there are no bands.

        Recordings of both kinds share the bands of one kind where there are no others.
        """
        own = [band for band in self.bands if band.tracked == tracked] or list(self.bands)
        return next((band for band in own if tracklets <= band.tracklets), own[-1] if own else None)

    def repeated_values(self, repetitions: int) -> NDArray[np.float64]:
        """Quantiles of `values` at even distances, float64[repetitions]."""
        return np.asarray(np.quantile(np.array(self.values), (np.arange(repetitions) + 0.5) / repetitions))


def group_into(point: OperatingPoint, tracklets: GroupingInput, fewest: int, most: int | None) -> tuple[Labels, float]:
    """Group tracklets so that the number of groups lies in a range, or as near to it as the method can come.

    The point's own value of its varied parameter is used if its number of groups lies in the range. Otherwise, all
    values of `Method.cut_values` are tried. The number nearest to the range wins, then the value nearest to the
    point's own. Constraints always hold, so they may keep the number out of the range.

    Args:
        point: The method, its parameters and which of them is varied.
        tracklets: The tracklets of one recording.
        fewest: Smallest number of groups in the range.
        most: Largest number of groups in the range; None for no limit.

    Returns:
        Groups int32[n], numbered from 0 in the order of their first tracklets, and the value that gave them.
    """
    method = point.build()
    own = float(getattr(method, point.varied))
    values = np.concatenate([[own], method.cut_values(tracklets, point.varied)])
    labels = point.labels_at(tracklets, values)
    counts = np.array([len(np.unique(row)) for row in labels])
    outside = np.maximum(fewest - counts, 0) + (0 if most is None else np.maximum(counts - most, 0))
    best = np.lexsort((np.abs(values - own), outside))[0]
    return renumber(labels[best]), float(values[best])
