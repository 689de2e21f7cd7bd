"""A study on disk.

study.json                      everything that was found, with settings, provenance and hashes; written last
summary.md  .csv  .tex          one row for each method and selection rule
videos.md  .csv  .tex           one row for each video
vectors.md                      how well the vectors alone tell polyps apart
figures/                        FR against FPR, FR of each video; of each video its similarities and its timeline
sweeps/                         counts of every video at every point of each grid, used again by another run
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from polypcount.clustering.similarity import Matrix
from polypcount.corpus import Embeddings
from polypcount.errors import DataError, FileError
from polypcount.evaluation.figures import draw_fr_per_video, draw_trade_off, save_figure
from polypcount.evaluation.figures_video import draw_similarities, draw_timeline
from polypcount.evaluation.scenes import StudyVideo, kept_in_study, study_videos
from polypcount.evaluation.study import Fold, Study
from polypcount.evaluation.tables import detail_table, summary_csv, summary_table, vector_table, video_csv, video_table
from polypcount.progress import Progress, no_progress
from polypcount.whole import whole_file

MANIFEST, SWEEPS, FIGURES = "study.json", "sweeps", "figures"


def refuse_unsuitable_study(out: Path, force: bool) -> None:
    """Raise, before any work, where a study cannot be written or would replace another without being told to."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file; a study is written to a folder")
    if (out / MANIFEST).exists() and not force:
        raise FileError(f"{out} holds a study already; choose another folder, or replace it with --force")
    if out.exists() and not (out / MANIFEST).exists() and not (out / SWEEPS).is_dir() and any(out.iterdir()):
        raise FileError(f"{out} is not empty and not a study; choose a new folder")


def save_study(
    study: Study,
    out: Path | str,
    embeddings: Embeddings | None = None,
    *,
    videos: Iterable[str] | None = None,
    progress: Progress = no_progress,
) -> Path:
    """Write tables, figures and `study.json`; returns the folder.

    embeddings: those that were studied, for the figures of single videos; without them there are none.
    videos: ids of those to draw; all, if not given.
    """
    folder = Path(out)
    drawn, texts = _videos_to_draw(study, embeddings, videos), _texts(study)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)  # what is half written must not look whole
    for old in (folder / FIGURES).glob("*.png"):  # of a study that is being replaced
        old.unlink()
    for name, text in texts.items():
        _write(folder / name, text)
    for done, video in enumerate(drawn):
        progress(done, len(drawn))
        _draw_video(study, video, folder / FIGURES)
    _draw_summary(study, folder / FIGURES)
    _write(folder / MANIFEST, json.dumps(study.to_dict(), indent=1, allow_nan=False) + "\n")
    return folder


def _write(path: Path, text: str) -> None:
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _texts(study: Study) -> dict[str, str]:
    summary, details, videos = summary_table(study), detail_table(study), video_table(study)
    return {
        "summary.md": f"{summary.to_markdown()}\n{details.to_markdown()}",
        "summary.tex": f"{summary.to_latex()}\n{details.to_latex()}",
        "summary.csv": summary_csv(study),
        "videos.md": videos.to_markdown(),
        "videos.tex": videos.to_latex(),
        "videos.csv": video_csv(study),
        "vectors.md": vector_table(study).to_markdown(),
    }


def _videos_to_draw(study: Study, embeddings: Embeddings | None, wanted: Iterable[str] | None) -> list[StudyVideo]:
    if embeddings is None:
        return []
    if embeddings.content_hash != study.embeddings_hash:
        raise DataError("the study is of other embeddings than those given for its figures")
    chosen = {name: study.settings[name] for name in ("min_frames", "drop_unlabelled")}
    kept = kept_in_study(embeddings, **chosen)
    videos = {video.video.id: video for video in study_videos(kept, cannot_link=study.settings["cannot_link"])}
    names = list(videos) if wanted is None else list(wanted)
    for name in names:
        if name not in videos:
            raise DataError(f"the study has no video {name}; it has: {', '.join(list(videos)[:20])}")
    return [videos[name] for name in names]


def _draw_summary(study: Study, folder: Path) -> None:
    curves = {one.method: (one.trade_off[:, 0], one.trade_off[:, 1]) for one in study.methods if one.points > 1}
    points = [
        (one.method, rule.rule, rule.scores["fpr"].mean, rule.scores["fr"].mean)
        for one in study.methods
        for rule in one.rules
    ]
    save_figure(draw_trade_off(curves, points, study.settings["target_fpr"]), folder / "fr-against-fpr.png")
    fr = {one.method: np.array([fold.scores.fr for fold in one.rules[0].folds]) for one in study.methods}
    polyps = np.array([video["polyps"] for video in study.videos])
    names = [video["video"] for video in study.videos]
    save_figure(draw_fr_per_video(names, fr, polyps), folder / "fr-per-video.png")


def _draw_video(study: Study, video: StudyVideo, folder: Path) -> None:
    place = [known["video"] for known in study.videos].index(video.video.id)
    name = f"{place:03d}-{re.sub(r'[^A-Za-z0-9.-]+', '_', video.video.id)[:60]}"
    names = [f"polyp {row + 1}" for row in range(video.polyps)]
    polyp = np.unique(video.truth, return_inverse=True)[1]
    folds = {one.method: one.rules[0].folds[place] for one in study.methods}
    spans = video.start_frame, video.stop_frame
    groups = {method: fold.labels for method, fold in folds.items() if method not in ("oracle", "none")}
    timeline = draw_timeline(
        *spans, video.video.frame_count, video.video.fps, polyp, names, groups, title=video.video.id
    )
    save_figure(timeline, folder / f"{name}-timeline.png")
    matrices = _matrices(study, folds, video)
    if matrices:
        visual, temporal, fused, told = matrices
        figure = draw_similarities(visual, temporal, fused, polyp, names, f"{video.video.id}, {told}")
        save_figure(figure, folder / f"{name}-similarities.png")


def _matrices(
    study: Study, folds: dict[str, Fold], video: StudyVideo
) -> tuple[Matrix, Matrix | None, Matrix | None, str] | None:
    """V, T and S of the last method that goes by looks, and with what parameters, those chosen for the video."""
    for one in reversed(study.methods):
        settings = {**one.settings, **folds[one.method].parameters}
        if "similarity" not in settings:
            continue
        told = ", ".join(f"{name} {value:g}" for name, value in folds[one.method].parameters.items())
        visual = video.scene.visual(settings["similarity"])
        if not one.estimator.needs_positions:
            return visual, None, None, f"{one.method} ({told})"
        fused = type(one.estimator)(**settings).similarity_of(video.scene)
        return visual, video.scene.temporal(settings["gamma"]), fused, f"{one.method} ({told})"
    return None
