"""One row, run once: from vectors to the scores of a leave-one-out study, saved as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.clustering import Preset
from polypcount.corpus import Corpus, Embeddings
from polypcount.errors import FileError
from polypcount.evaluation import (
    Mean,
    RuleStudy,
    default_candidates,
    leave_one_out,
    mean_of,
    nested_leave_one_out,
    pair_auc_by_video,
    reidentification_scores,
)
from polypcount.evaluation.study import defined
from polypcount.evaluation.videos import kept_in_study
from polypcount.progress import Progress, no_progress
from polypcount.reproduce.rows import NESTED, Row
from polypcount.storage import read_json
from polypcount.tracking import link_tracklets

FORMAT = "polypcount-reproduction-row"
MIN_FRAMES = 30


@dataclass(frozen=True)
class StudySettings:
    """How rows are evaluated.

    Attributes:
        grid: Preset of points to search.
        target_fpr: False positive rate that points are selected for.
    """

    grid: Preset = "paper"
    target_fpr: float = 0.05

    def grid_for(self, row: Row) -> Preset:
        """The grid of a row: `fine` for an absolute similarity, for which the paper's preferences are too far apart."""
        return "fine" if row.similarity == "cosine" and self.grid == "paper" else self.grid

    def about(self, row: Row) -> list[Any]:
        """Everything that decides the results of vectors, as JSON values."""
        if row.method == NESTED:  # its candidates have their own grids
            candidates = [candidate.to_dict() for candidate in default_candidates()]
            return [NESTED, candidates, self.target_fpr, MIN_FRAMES]
        return [row.method, row.similarity, self.grid_for(row), self.target_fpr, MIN_FRAMES]


@dataclass(frozen=True)
class Run:
    """The result of one row, for one seed, on one benchmark.

    Attributes:
        seed: None for rows that do not depend on it.
        rules: By rule, the mean over videos of each score of `evaluation.summarise`, and of `selected_fpr`, the FPR at
            which points were chosen.
        pair_auroc: AUROC of telling pairs of one polyp from pairs of two by cosine, in each video that has both; mean
            over these videos.
        steps: Steps of the training; None if there was none.
        images: Images that the training has seen, counted again when they are seen again.
    """

    row: str
    benchmark: str
    seed: int | None
    rules: Mapping[str, Mapping[str, Mean]]
    pair_auroc: Mean
    steps: int | None = None
    images: int | None = None


def study_row(
    row: Row,
    vectors: Embeddings,
    settings: StudySettings,
    *,
    sweeps: Path,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Study a row.

    Args:
        row: The row.
        vectors: Vectors by the encoder of the row.
        settings: How to evaluate it.
        sweeps: Folder that caches the counts at each grid point.
        threads: Threads of the study; None for all cores.
        progress: Counts grid points.

    Returns:
        What `load_run` reads, as JSON values.
    """
    options: dict[str, Any] = {"target_fpr": settings.target_fpr, "min_frames": MIN_FRAMES, "folder": sweeps}
    options |= {"threads": threads, "progress": progress}
    chosen: dict[str, Any] = {}
    if row.method == NESTED:
        nested = nested_leave_one_out(vectors, default_candidates(), **options)
        rules, chosen = nested.rules, {"chosen": dict(nested.chosen)}
    else:
        grid = settings.grid_for(row)
        study = leave_one_out(vectors, row.method, grid=grid, similarity=row.similarity, **options)
        rules = study.methods[0].rules
    return {
        "format": FORMAT,
        "format_version": 1,
        "row": asdict(row),
        "settings": {**asdict(settings), "min_frames": MIN_FRAMES},
        "embeddings": vectors.content_hash,
        "encoder": vectors.encoder,
        "pairs": {"auroc_of_videos": defined(asdict(mean_of([])))} if row.method == "none" else _pairs(vectors),
        "rules": [_rule(rule) for rule in rules],
        **chosen,
    }


def position_vectors(corpus: Corpus) -> Embeddings:
    """Vectors float32[n, 2] of when each tracklet begins, without its appearance.

    Start frame / frame count becomes an angle from 0 to pi, so that cosines order pairs by their distance in time.
    """
    tracklets = link_tracklets(corpus.boxes)
    length = np.array([max(video.frame_count, 1) for video in corpus.videos], np.float64)
    angle = np.pi * tracklets.start_frame / length[tracklets.video]
    return Embeddings.gather(corpus, tracklets, np.stack([np.cos(angle), np.sin(angle)], axis=1), "time of start")


def load_run(path: Path, benchmark: str, seed: int | None) -> Run:
    """Read a saved result of `study_row`."""
    values = read_json(path)
    try:
        rules = {
            rule["rule"]: {
                name: _mean(mean) for name, mean in {**rule["scores"], "selected_fpr": rule["selected_fpr"]}.items()
            }
            for rule in values["rules"]
        }
        auroc, training = _mean(values["pairs"]["auroc_of_videos"]), values.get("training") or {}
        return Run(values["row"]["name"], benchmark, seed, rules, auroc, training.get("steps"), training.get("images"))
    except (KeyError, TypeError, ValueError) as problem:
        raise FileError(f"{path} is damaged ({problem!r}); remove it, and it is made again") from None


def _mean(values: Mapping[str, Any]) -> Mean:
    numbers: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
    return Mean(**numbers)


def _pairs(vectors: Embeddings) -> dict[str, Any]:
    """How well the vectors tell polyps apart within videos: over all pairs, and in each video."""
    studied = kept_in_study(vectors, min_frames=MIN_FRAMES, drop_unlabelled=False)
    scores = reidentification_scores(studied.vectors, studied.polyp, studied.video)
    auroc = pair_auc_by_video(studied)
    mean = mean_of(list(auroc.values()))
    return {**defined(asdict(scores)), "auroc_of_videos": defined(asdict(mean)), "videos": defined(auroc)}


def _rule(rule: RuleStudy) -> dict[str, Any]:
    return {
        "rule": rule.rule,
        "scores": {name: defined(asdict(mean)) for name, mean in rule.scores.items()},
        "selected_fpr": defined(asdict(rule.selected_fpr)),
        "parameters": {name: defined(asdict(mean)) for name, mean in rule.parameters.items()},
        "videos": [
            {"video": fold.video, "parameters": dict(fold.parameters), **fold.scores.to_dict()} for fold in rule.folds
        ],
    }
