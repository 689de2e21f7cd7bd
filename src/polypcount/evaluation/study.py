"""What a leave-one-out study found: folds, their summaries, and how it was made."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Method
from polypcount.corpus import Embeddings, Provenance
from polypcount.evaluation.retrieval import ReidentificationScores, RetrievalScores
from polypcount.evaluation.scores import VideoScores
from polypcount.evaluation.summary import Mean

FORMAT = "polypcount-study"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class Fold:
    """One video, judged at the point that was chosen on the others.

    point: its number in the grid; parameters: what that point is.
    selected_fr, selected_fpr: means over the other videos at this point, on which it was chosen; NaN where nothing was.
    scores: of this video, which had no say. labels: int32[n], the group of each of its tracklets.
    """

    video: str
    point: int
    parameters: Mapping[str, float]
    selected_fr: float
    selected_fpr: float
    scores: VideoScores
    labels: NDArray[np.int32]
    converged: bool


@dataclass(frozen=True, eq=False)
class RuleStudy:
    """The folds of one method under one rule.

    rule: "closest", "budget", or "fixed" where there was nothing to choose.
    scores: mean of each score over the folds. parameters: mean of each chosen parameter over the folds.
    selected_fpr: mean over the folds of the FPR at which the point was chosen, to be held against `scores["fpr"]`.
    """

    rule: str
    folds: tuple[Fold, ...]
    scores: Mapping[str, Mean]
    parameters: Mapping[str, Mean]
    selected_fpr: Mean


@dataclass(frozen=True, eq=False)
class MethodStudy:
    """One method over all videos.

    estimator: the method itself. settings: its parameters that were not searched. grid: the values of those that were.
    trade_off: float64[m, 2], FPR and FR over all videos of the grid points that no other beats in both, by rising FPR.
    unconverged: share of all (video, point) at which affinity propagation did not come to rest.
    """

    method: str
    estimator: Method
    settings: Mapping[str, Any]
    grid: Mapping[str, tuple[float, ...]]
    points: int
    rules: tuple[RuleStudy, ...]
    trade_off: NDArray[np.float64]
    unconverged: float


@dataclass(frozen=True, eq=False)
class Study:
    """A leave-one-out study of one set of embeddings.

    settings: target FPR, how FPR is averaged for selection, shortest tracklet, constraints, grid preset.
    videos: id, tracklets, polyps that own one, annotated polyps; one entry for each video.
    tracklets: for each video, start frame, stop frame and polyp id of its tracklets, in the order of all labels.
    retrieval, reidentification, reidentification_within: how well the vectors tell polyps apart before any grouping,
        over all videos and over pairs of one video.
    """

    settings: Mapping[str, Any]
    videos: tuple[Mapping[str, Any], ...]
    tracklets: tuple[tuple[tuple[int, int, str], ...], ...]
    methods: tuple[MethodStudy, ...]
    retrieval: RetrievalScores
    reidentification: ReidentificationScores
    reidentification_within: ReidentificationScores
    embeddings_hash: str
    encoder: str
    provenance: Provenance

    def __getitem__(self, method: str) -> MethodStudy:
        """The study of one method, by name."""
        for study in self.methods:
            if study.method == method:
                return study
        raise KeyError(method)

    def save(self, out: str | Path, embeddings: Embeddings | None = None) -> Path:
        """Write tables, figures and `study.json`, see `study_folder.py`. embeddings: for the figures of each video."""
        from polypcount.evaluation.study_folder import save_study

        return save_study(self, out, embeddings)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; undefined is None."""
        plain = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "settings": self.settings,
            "embeddings": {"content_hash": self.embeddings_hash, "encoder": self.encoder},
            "videos": [
                {
                    **video,
                    "tracklet_spans": [
                        {"start_frame": start, "stop_frame": stop, "polyp": polyp} for start, stop, polyp in spans
                    ],
                }
                for video, spans in zip(self.videos, self.tracklets, strict=True)
            ],
            "vectors": {
                "retrieval": asdict(self.retrieval),
                "reidentification": asdict(self.reidentification),
                "reidentification_within_videos": asdict(self.reidentification_within),
            },
            "methods": [_method(study) for study in self.methods],
            "provenance": self.provenance.to_dict(),
        }
        return defined(plain)  # type: ignore[no-any-return]


def _method(study: MethodStudy) -> dict[str, Any]:
    return {
        "method": study.method,
        "settings": study.settings,
        "grid": study.grid,
        "points": study.points,
        "unconverged": study.unconverged,
        "trade_off": [{"fpr": fpr, "fr": fr} for fpr, fr in study.trade_off.tolist()],
        "rules": [
            {
                "rule": rule.rule,
                "scores": {name: asdict(mean) for name, mean in rule.scores.items()},
                "parameters": {name: asdict(mean) for name, mean in rule.parameters.items()},
                "selected_fpr": asdict(rule.selected_fpr),
                "folds": [fold_values(fold) for fold in rule.folds],
            }
            for rule in study.rules
        ],
    }


def fold_values(fold: Fold) -> dict[str, Any]:
    """A fold as JSON values, with NaN for what is undefined."""
    return {
        "video": fold.video,
        "point": fold.point,
        "parameters": fold.parameters,
        "selected_fr": fold.selected_fr,
        "selected_fpr": fold.selected_fpr,
        "converged": fold.converged,
        "scores": fold.scores.to_dict(),
        "labels": fold.labels.tolist(),
    }


def defined(value: Any) -> Any:
    """The same with None for NaN, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: defined(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [defined(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
