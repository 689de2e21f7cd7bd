"""What a count was made from, so that the tracklets can be grouped again without the recording."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import OperatingPoint
from polypcount.clustering.grouping_input import GroupingInput
from polypcount.counting.decide import Decision, PolypRange, decide, grouping_input
from polypcount.counting.evidence import Evidence
from polypcount.counting.known_pairs import KnownPairs


@dataclass(frozen=True, eq=False)
class CountBasis:
    """All that decides the groups of n tracklets.

    Attributes:
        point: The operating point.
        evidence: Evidence of the tracklets, in time order. Only spans and vectors are needed.
        together: int64[m, 2], rows of tracklets with boxes in one frame.
        duration: Duration of the recording in frames; see `duration_frames`.
        fps: Frames per second; None where it is not known.
        tracked: Whether our tracker made the tracks.
        polyp_range: The fewest and the most polyps that the user allows.
        known: Pairs that are known to be one polyp, or two.
        linked: int32[boxes], the tracklet of each box of the recording, also where it was not counted; -1 for none.
        source: Path of the recording; None if it must not be kept.
        video: Id of the video, where the recording is a corpus of several.
    """

    point: OperatingPoint
    evidence: Sequence[Evidence]
    together: NDArray[np.int64]
    duration: float
    fps: float | None = None
    tracked: bool = False
    polyp_range: PolypRange | None = None
    known: KnownPairs = field(default_factory=KnownPairs)
    linked: NDArray[np.int32] | None = None
    source: str | None = None
    video: str | None = None

    def decide(self) -> Decision:
        """Group the tracklets."""
        return decide(
            self.evidence,
            self.together,
            self.duration,
            self.point,
            self.polyp_range,
            self.known,
            fps=self.fps,
            tracked=self.tracked,
        )

    def grouping_input(self) -> GroupingInput:
        """The tracklets as a grouping method takes them."""
        return grouping_input(self.evidence, self.together, self.duration, self.point, self.known)
