"""A study on disk.

study.json                      all results, with settings, provenance and hashes; written last
summary.md  .csv  .tex          one row for each method and selection rule
videos.md  .csv  .tex           one row for each video
vectors.md                      how well the vectors alone separate polyps
figures/                        FR against FPR, FR of each video; similarities and timeline of each video
sweeps/                         counts of every video at every point of each grid, used again by later runs
"""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from polypcount.clustering.similarity import Matrix
from polypcount.corpus import Embeddings
from polypcount.errors import DataError, FileError
from polypcount.evaluation.figures import draw_fr_per_video, draw_trade_off, save_figure
from polypcount.evaluation.figures_video import draw_similarities, draw_timeline
from polypcount.evaluation.study import Fold, Study
from polypcount.evaluation.tables import detail_table, summary_csv, summary_table, vector_table, video_csv, video_table
from polypcount.evaluation.videos import StudyVideo, kept_in_study, study_videos
from polypcount.progress import Progress, no_progress
from polypcount.storage import write_json, write_text

MANIFEST, SWEEPS, FIGURES = "study.json", "sweeps", "figures"


def refuse_unsuitable_study(out: Path, force: bool) -> None:
    """Raise `FileError`, before any work, where a study cannot be written, or would replace one without `force`."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file; a study is written to a folder")
    if (out / MANIFEST).exists() and not force:
        raise FileError(f"{out} already holds a study; choose another folder, or replace it", mend="force")
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
    """Write tables, figures and `study.json`.

    Args:
        study: The study.
        out: Folder; made where it is missing.
        embeddings: Those that were studied, for the figures of single videos; without them there are none.
        videos: Ids of the videos to draw; all by default.
        progress: Called with videos drawn.

    Returns:
        The folder.
    """
    folder = Path(out)
    to_draw = _videos_to_draw(study, embeddings, videos)
    summary, details, by_video = summary_table(study), detail_table(study), video_table(study)
    texts = {
        "vectors.md": vector_table(study).to_markdown(),
        "videos.csv": video_csv(study),
        "videos.tex": by_video.to_latex(),
        "videos.md": by_video.to_markdown(),
        "summary.csv": summary_csv(study),
        "summary.tex": f"{summary.to_latex()}\n{details.to_latex()}",
        "summary.md": f"{summary.to_markdown()}\n{details.to_markdown()}",
    }
    # A folder with the manifest is complete. What takes long, and may be stopped, comes before the tables.
    for name in (MANIFEST, *reversed(texts)):
        (folder / name).unlink(missing_ok=True)
    for old in (folder / FIGURES).glob("*.png"):
        old.unlink()
    for done, video in enumerate(to_draw):
        progress(done, len(to_draw))
        _draw_video(study, video, folder / FIGURES)
    _draw_summary(study, folder / FIGURES)
    for name, text in texts.items():
        write_text(folder / name, text)
    write_json(folder / MANIFEST, study.to_dict())
    return folder


def _videos_to_draw(study: Study, embeddings: Embeddings | None, names: Iterable[str] | None) -> list[StudyVideo]:
    if embeddings is None:
        return []
    if embeddings.content_hash != study.embeddings_hash:
        raise DataError("the study is of other embeddings than those given for its figures")
    settings = study.settings
    studied = kept_in_study(embeddings, min_frames=settings["min_frames"], drop_unlabelled=settings["drop_unlabelled"])
    videos = {video.video.id: video for video in study_videos(studied, cannot_link=settings["cannot_link"])}
    for name in names or ():
        if name not in videos:
            raise DataError(f"the study has no video {name}; it has: {', '.join(list(videos)[:20])}", mend="draw")
    return list(videos.values()) if names is None else [videos[name] for name in names]


def _draw_summary(study: Study, folder: Path) -> None:
    curves = {one.method: (one.trade_off[:, 0], one.trade_off[:, 1]) for one in study.methods if one.points > 1}
    points = [
        (one.method, rule.rule, rule.scores["fpr"].mean, rule.scores["fr"].mean)
        for one in study.methods
        for rule in one.rules
    ]
    save_figure(draw_trade_off(curves, points, study.settings["target_fpr"]), folder / "fr-against-fpr.png")
    fr = {one.method: [fold.scores.fr for fold in one.rules[0].folds] for one in study.methods}
    names = [video["video"] for video in study.videos]
    per_video = draw_fr_per_video(names, fr, [video["polyps"] for video in study.videos])
    save_figure(per_video, folder / "fr-per-video.png")


def _draw_video(study: Study, video: StudyVideo, folder: Path) -> None:
    row = [entry["video"] for entry in study.videos].index(video.video.id)
    name = f"{row:03d}-{re.sub(r'[^A-Za-z0-9.-]+', '_', video.video.id)[:60]}"
    polyp = np.unique(video.truth, return_inverse=True)[1]
    folds = {one.method: one.rules[0].folds[row] for one in study.methods}
    groups = {method: fold.labels for method, fold in folds.items() if method not in ("oracle", "none")}
    spans = video.start_frame, video.stop_frame, video.video.frame_count, video.video.fps
    save_figure(draw_timeline(*spans, polyp, groups, video.video.id), folder / f"{name}-timeline.png")
    matrices, title = _matrices(study, folds, video)
    if matrices:
        figure = draw_similarities(matrices, polyp, f"{video.video.id}, {title}")
        save_figure(figure, folder / f"{name}-similarities.png")


def _matrices(study: Study, folds: dict[str, Fold], video: StudyVideo) -> tuple[dict[str, Matrix], str]:
    """Similarities of the last method that uses images, at the parameters chosen for the video; or no similarities."""
    visual = [one for one in study.methods if "similarity" in one.settings]
    if not visual:
        return {}, ""
    method, tracklets = visual[-1], video.tracklets
    parameters = folds[method.method].parameters
    settings = {**method.settings, **parameters}
    matrices = {"V: visual": tracklets.visual(settings["similarity"])}
    if method.estimator.needs_positions:
        matrices["T: time"] = tracklets.temporal(settings["gamma"])
        matrices["S: fused"] = type(method.estimator)(**settings).similarity_of(tracklets)
    return matrices, f"{method.method} ({', '.join(f'{name} {value:g}' for name, value in parameters.items())})"
