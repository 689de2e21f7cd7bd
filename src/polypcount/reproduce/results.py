"""One row, run once: from vectors to the scores of a leave-one-out study, kept as JSON."""

import math
from collections.abc import Mapping, Sequence
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
    reidentification_scores,
)
from polypcount.evaluation.candidates import checked_grids
from polypcount.evaluation.candidates import told as candidate_told
from polypcount.evaluation.scenes import kept_in_study
from polypcount.evaluation.study import defined
from polypcount.progress import Progress, no_progress
from polypcount.reproduce.kept import read_json
from polypcount.reproduce.rows import NESTED, Row
from polypcount.tracking import link_tracklets

FORMAT = "polypcount-reproduction-row"
MIN_FRAMES = 30


@dataclass(frozen=True)
class StudySettings:
    """How rows are judged. grid: preset of points to search."""

    grid: Preset = "paper"
    target_fpr: float = 0.05

    def grid_for(self, row: Row) -> Preset:
        """The paper's preferences lie too far apart for an absolute similarity, so that `fine` stands in for them."""
        return "fine" if row.similarity == "cosine" and self.grid == "paper" else self.grid

    def about(self, row: Row) -> list[Any]:
        """All that decides what becomes of vectors, as JSON values."""
        if row.method == NESTED:  # its candidates bring grids of their own
            candidates = default_candidates()
            searched = map(candidate_told, candidates, checked_grids(candidates))
            return [NESTED, list(searched), self.target_fpr, MIN_FRAMES]
        return [row.method, row.similarity, self.grid_for(row), self.target_fpr, MIN_FRAMES]


@dataclass(frozen=True)
class Run:
    """What came out of one row, for one seed, on one benchmark.

    seed: None for rows that do not depend on it. rules: by rule, the mean over videos of each score of
    `evaluation.summarise`, and of `selected_fpr`, the FPR at which points were chosen.
    pair_auroc: of telling pairs of one polyp from pairs of two by cosine, in each video that has both; mean over these.
    """

    row: str
    benchmark: str
    seed: int | None
    rules: Mapping[str, Mapping[str, Mean]]
    pair_auroc: Mean


def study_row(
    row: Row,
    vectors: Embeddings,
    settings: StudySettings,
    *,
    sweeps: Path,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """All that is kept of a row, as JSON values. sweeps: folder in which counts of each grid point are kept."""
    told: dict[str, Any] = {}
    rules: Sequence[RuleStudy]
    if row.method == NESTED:
        nested = nested_leave_one_out(
            vectors,
            default_candidates(),
            target_fpr=settings.target_fpr,
            min_frames=MIN_FRAMES,
            folder=sweeps,
            threads=threads,
            progress=progress,
        )
        rules, told["chosen"] = nested.rules, dict(nested.chosen)
    else:
        study = leave_one_out(
            vectors,
            row.method,
            target_fpr=settings.target_fpr,
            grid=settings.grid_for(row),
            similarity=row.similarity,
            min_frames=MIN_FRAMES,
            folder=sweeps,
            threads=threads,
            progress=progress,
        )
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
        **told,
    }


def position_vectors(corpus: Corpus) -> Embeddings:
    """Vectors float32[n, 2] that say when each tracklet begins, and nothing of what it looks like.

    Start frame / frame count becomes an angle from 0 to pi, so that cosines order pairs by their distance in time.
    """
    tracklets = link_tracklets(corpus.boxes)
    length = np.array([max(video.frame_count, 1) for video in corpus.videos], np.float64)
    angle = np.pi * tracklets.start_frame / length[tracklets.video]
    return Embeddings.gather(corpus, tracklets, np.stack([np.cos(angle), np.sin(angle)], axis=1), "time of start")


def load_run(path: Path, benchmark: str, seed: int | None) -> Run:
    """Read what was kept of `study_row`."""
    values = read_json(path)
    try:
        rules = {
            rule["rule"]: {
                name: _mean(mean) for name, mean in {**rule["scores"], "selected_fpr": rule["selected_fpr"]}.items()
            }
            for rule in values["rules"]
        }
        return Run(values["row"]["name"], benchmark, seed, rules, _mean(values["pairs"]["auroc_of_videos"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise FileError(f"{path} is not as it was written ({problem!r}); remove it, and it is made again") from None


def _mean(values: Mapping[str, Any]) -> Mean:
    known: dict[str, Any] = {part: math.nan if value is None else value for part, value in values.items()}
    return Mean(**known)


def _pairs(vectors: Embeddings) -> dict[str, Any]:
    """How well the vectors tell polyps apart within videos: over all pairs, and in each video."""
    kept = kept_in_study(vectors, min_frames=MIN_FRAMES, drop_unlabelled=False)
    found = reidentification_scores(kept.vectors, kept.polyp, kept.video)
    each = {}
    for place, video in enumerate(kept.videos):
        rows = kept.of_video(place)
        each[video.id] = reidentification_scores(kept.vectors[rows], kept.polyp[rows]).auroc
    return {
        **defined(asdict(found)),
        "auroc_of_videos": defined(asdict(mean_of(list(each.values())))),
        "videos": defined(each),
    }


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
