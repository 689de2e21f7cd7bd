"""The point to work at with recordings that nobody has labelled: chosen on all videos that somebody has."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from polypcount.clustering import Grid, Method, Preset
from polypcount.clustering.base import completed
from polypcount.corpus import Embeddings
from polypcount.errors import DataError
from polypcount.evaluation.folds import FprAverage, Swept, check_average
from polypcount.evaluation.scenes import StudyVideo, kept_in_study, study_videos
from polypcount.evaluation.selection import Rule, check_target, choose
from polypcount.evaluation.sweeps import sweep_videos


@dataclass(frozen=True)
class OperatingPoint:
    """Parameters of a method, and what they gave on the videos that they were chosen on.

    fr, fpr: means over these videos; a new recording will mostly do worse. `leave_one_out` tells by how much.
    """

    method: str
    similarity: str | None
    cannot_link: bool
    target_fpr: float
    rule: str
    parameters: dict[str, float]
    fr: float
    fpr: float
    videos: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def operating_point(
    embeddings: Embeddings | Sequence[Embeddings],
    method: Method,
    *,
    target_fpr: float = 0.05,
    rule: Rule = "closest",
    grid: Preset | Grid = "fine",
    cannot_link: bool = True,
    min_frames: int = 30,
    fpr_average: FprAverage = "defined",
    threads: int | None = None,
) -> OperatingPoint:
    """Choose the parameters of a method on all videos of one or several sets of embeddings; see `selection.choose`."""
    check_target(target_fpr)
    check_average(fpr_average)
    sets = [embeddings] if isinstance(embeddings, Embeddings) else list(embeddings)
    videos: list[StudyVideo] = []
    for one in sets:
        kept = kept_in_study(one, min_frames=min_frames, drop_unlabelled=False)
        videos += study_videos(kept, cannot_link=cannot_link)
    if not videos:
        raise DataError("an operating point is chosen on videos, and there are none with a tracklet")
    if len({one.encoder for one in sets}) > 1:
        raise DataError("vectors of different encoders cannot share an operating point; embed all with the same one")
    points = method.grid(grid) if isinstance(grid, str) else completed(method, grid)
    swept = Swept(method, points, videos, sweep_videos(method, videos, points, threads=threads), fpr_average)
    fr, fpr = swept.means.without()
    chosen = choose(fr, fpr, target_fpr, rule)
    return OperatingPoint(
        method=method.name,
        similarity=method.get_params().get("similarity"),
        cannot_link=cannot_link,
        target_fpr=target_fpr,
        rule=rule,
        parameters=points.point(chosen),
        fr=float(fr[chosen]),
        fpr=float(fpr[chosen]),
        videos=len(videos),
    )
