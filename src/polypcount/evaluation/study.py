"""The result of a leave-one-out study: folds, their summaries, and how it was made."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from polypcount.clustering import Method
from polypcount.corpus import Embeddings, Provenance
from polypcount.evaluation.retrieval import ReidentificationScores, RetrievalScores
from polypcount.evaluation.scores import VideoScores
from polypcount.evaluation.summary import Mean

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Fold:
    """One video, judged at the point that was chosen on the others.

    Attributes:
        video: Its id.
        point: Number of the point in the grid.
        parameters: The parameters at that point.
        selected_fr: Mean FR over the other videos at this point, on which it was chosen; NaN where nothing was chosen.
        selected_fpr: Mean FPR over the other videos, likewise.
        scores: Scores of this video.
        labels: int32[n], the group of each of its tracklets.
        converged: Whether the method converged.
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

    Attributes:
        rule: "closest", "budget", or "fixed" where there was nothing to choose.
        folds: One for each video.
        scores: Mean of each score over the folds.
        parameters: Mean of each chosen parameter over the folds.
        selected_fpr: Mean over the folds of the FPR at which the point was chosen, to compare with `scores["fpr"]`.
    """

    rule: str
    folds: tuple[Fold, ...]
    scores: Mapping[str, Mean]
    parameters: Mapping[str, Mean]
    selected_fpr: Mean


@dataclass(frozen=True, eq=False)
class MethodStudy:
    """One method over all videos.

    Attributes:
        method: Its name.
        estimator: The method itself.
        settings: Parameters that were not searched.
        grid: Values of the parameters that were searched.
        points: Number of points of the grid.
        rules: The folds under each rule.
        trade_off: float64[m, 2], FPR and FR over all videos at the grid points that no other point beats in both, by
            rising FPR.
        unconverged: Share of all (video, point) at which affinity propagation did not converge.
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

    Attributes:
        settings: Target FPR, how FPR is averaged for selection, shortest tracklet, constraints, grid preset.
        videos: For each video its id, and the numbers of tracklets, of polyps that have one, and of annotated polyps.
            Also the start frame, stop frame and polyp id of each tracklet, in the order of all labels.
        methods: The methods, in the order given.
        retrieval: How well the vectors alone find tracklets of the same polyp in all videos.
        reidentification: How well the vectors alone separate pairs of one polyp from pairs of two, in all videos.
        reidentification_within: The same over pairs within a video.
        embeddings_hash: Content hash of the embeddings.
        encoder: Fingerprint of the encoder that made them.
        provenance: How the study was made.
    """

    settings: Mapping[str, Any]
    videos: tuple[Mapping[str, Any], ...]
    methods: tuple[MethodStudy, ...]
    retrieval: RetrievalScores
    reidentification: ReidentificationScores
    reidentification_within: ReidentificationScores
    embeddings_hash: str
    encoder: str
    provenance: Provenance

    def __getitem__(self, method: str) -> MethodStudy:
        """The study of one method, by name."""
        return {study.method: study for study in self.methods}[method]

    def save(self, out: str | Path, embeddings: Embeddings | None = None) -> Path:
        """Write tables, figures and `study.json` to a folder; embeddings are needed for the figures of each video."""
        from polypcount.evaluation.study_folder import save_study

        return save_study(self, out, embeddings)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values; undefined is None."""
        return defined(
            {
                "format": "polypcount-study",
                "format_version": 1,
                "settings": self.settings,
                "embeddings": {"content_hash": self.embeddings_hash, "encoder": self.encoder},
                "videos": self.videos,
                "vectors": {
                    "retrieval": asdict(self.retrieval),
                    "reidentification": asdict(self.reidentification),
                    "reidentification_within_videos": asdict(self.reidentification_within),
                },
                "methods": [_method(study) for study in self.methods],
                "provenance": self.provenance.to_dict(),
            }
        )


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


def defined(value: T) -> T:
    """The same JSON values with None for NaN."""
    if isinstance(value, Mapping):
        return {name: defined(part) for name, part in value.items()}  # type: ignore[return-value]
    if isinstance(value, (list, tuple)):
        return [defined(part) for part in value]  # type: ignore[return-value]
    return None if isinstance(value, float) and math.isnan(value) else value  # type: ignore[return-value]
