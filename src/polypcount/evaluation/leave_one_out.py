"""Leave one video out: choose the parameters on the others, judge them on it, and repeat for each video."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from polypcount.clustering import METHODS, Grid, Method, Preset, VisualSimilarity
from polypcount.clustering.base import completed
from polypcount.corpus import Embeddings, Provenance
from polypcount.errors import DataError
from polypcount.evaluation.folds import Swept, study_method
from polypcount.evaluation.retrieval import reidentification_scores, retrieval_scores
from polypcount.evaluation.selection import FprAverage, check_target
from polypcount.evaluation.study import Study
from polypcount.evaluation.sweeps import sweep_videos
from polypcount.evaluation.videos import kept_in_study, refuse_too_few, study_videos
from polypcount.progress import Progress, no_progress


def leave_one_out(
    embeddings: Embeddings,
    method: str | Method | Sequence[str | Method] = "temporal-ap",
    *,
    target_fpr: float = 0.05,
    grid: Preset | Grid = "paper",
    similarity: VisualSimilarity = "minmax-euclidean",
    parameters: Mapping[str, float] | None = None,
    min_frames: int = 30,
    drop_unlabelled: bool = False,
    cannot_link: bool = False,
    fpr_average: FprAverage = "defined",
    folder: Path | str | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Study:
    """Study how well methods group these embeddings, with parameters chosen on other videos.

    Args:
        embeddings: Tracklets with known polyps.
        method: One or several methods, by name (`METHODS`) or as estimators.
        target_fpr: False positive rate to work at. Both selection rules are applied; see `selection.choose`.
        grid: Preset or points to search. Each method takes the parameters that it has.
        similarity: Visual similarity of methods given by name.
        parameters: Fixed parameters for all videos instead of a search. They must name all searched parameters of a
            method given by name; an estimator uses its own value for one that is missing.
        min_frames: Tracklets with fewer boxes are left out; 0 keeps all.
        drop_unlabelled: Leave out tracklets without a known polyp.
        cannot_link: Keep tracklets with boxes in one frame apart.
        fpr_average: How the FPR of several videos becomes the one that is compared with the target: the mean over
            videos with two polyps ("defined"), the mean with 0 for the others ("zero-filled"), or over all pairs
            ("pooled").
        folder: Where sweeps are kept, so that an interrupted study continues and another target FPR is quick.
        threads: One for each core by default.
        progress: Called with grid points over all videos and methods.
    """
    requested = [method] if isinstance(method, (str, Method)) else list(method)
    if not requested:
        raise DataError("name at least one method to study")
    check_target(target_fpr, fpr_average)
    methods = [one if isinstance(one, Method) else named_method(one, similarity) for one in requested]
    if len({one.name for one in methods}) < len(methods):
        raise DataError(f"each method can be studied once, found {', '.join(one.name for one in methods)}")
    _refuse_unknown(methods, parameters if parameters is not None else grid)
    grids = [
        _grid_of(one, grid, parameters, by_name=isinstance(name, str))
        for one, name in zip(methods, requested, strict=True)
    ]
    studied = kept_in_study(embeddings, min_frames=min_frames, drop_unlabelled=drop_unlabelled)
    videos = study_videos(studied, cannot_link=cannot_link)
    if not any(len(video.tracklets) for video in videos):
        raise DataError(f"no tracklet of a known polyp has {min_frames} boxes", mend="min_frames")
    if any(len(points) > 1 for points in grids):
        refuse_too_few(videos, 2, fpr_average)
    results = []
    work = [len(points) * len(videos) * one.point_cost for one, points in zip(methods, grids, strict=True)]
    parts = parts_of(progress, work, sum(map(len, grids)) * len(videos))
    for one, points, part in zip(methods, grids, parts, strict=True):
        sweeps = sweep_videos(
            one, videos, points, folder=Path(folder) if folder else None, threads=threads, progress=part
        )
        results.append(study_method(Swept(one, points, videos, sweeps, fpr_average), target_fpr))
    settings = {
        "target_fpr": target_fpr,
        "grid": grid if isinstance(grid, str) else "own",
        "similarity": similarity if any(isinstance(one, str) for one in requested) else None,
        "parameters": dict(parameters) if parameters is not None else None,
        "min_frames": min_frames,
        "drop_unlabelled": drop_unlabelled,
        "cannot_link": cannot_link,
        "fpr_average": fpr_average,
    }
    return Study(
        settings=settings,
        videos=tuple(
            {
                "video": video.video.id,
                "tracklets": len(video.tracklets),
                "polyps": video.polyps,
                "annotated_polyps": video.annotated_polyps,
                "tracklet_spans": [
                    {"start_frame": int(start), "stop_frame": int(stop), "polyp": embeddings.polyps[polyp].id}
                    for start, stop, polyp in zip(video.start_frame, video.stop_frame, video.truth, strict=True)
                ],
            }
            for video in videos
        ),
        methods=tuple(results),
        retrieval=retrieval_scores(studied.vectors, studied.polyp),
        reidentification=reidentification_scores(studied.vectors, studied.polyp),
        reidentification_within=reidentification_scores(studied.vectors, studied.polyp, studied.video),
        embeddings_hash=embeddings.content_hash,
        encoder=embeddings.encoder,
        provenance=Provenance.now(
            "study",
            parameters={**settings, "methods": [one.name for one in methods]},
            parents=(embeddings.provenance,),
        ),
    )


def named_method(name: str, similarity: VisualSimilarity) -> Method:
    """A method by its name, with this visual similarity if it uses any."""
    if name not in METHODS:
        raise DataError(f"there is no method {name!r}; there are: {', '.join(METHODS)}")
    method = METHODS[name]()
    return method.set_params(similarity=similarity) if "similarity" in method.get_params() else method


def _grid_of(method: Method, grid: Preset | Grid, parameters: Mapping[str, float] | None, *, by_name: bool) -> Grid:
    """The points to try. Several methods may share a grid or parameters, so each takes those it has."""
    searched = list(method.grid().axes)
    if parameters is not None:
        lacking = [name for name in searched if name not in parameters]
        if lacking and by_name:
            raise DataError(
                f"{method.name} takes {', '.join(searched)}: fix {lacking[0]} as well, or none of them",
                mend="parameters",
            )
        return completed(method, Grid({name: (value,) for name, value in parameters.items() if name in searched}))
    if isinstance(grid, str):
        return method.grid(grid)
    axes = {name: values for name, values in grid.axes.items() if name in searched}
    if searched and not axes:
        raise DataError(f"the grid has no parameter of {method.name}, which has: {', '.join(searched)}")
    return completed(method, Grid(axes))


def _refuse_unknown(methods: Sequence[Method], searched: Mapping[str, float] | Preset | Grid) -> None:
    """Raise where no method has a parameter, such as a misspelt one."""
    allowed = {name for method in methods for name in method.presets["paper"]}
    names: Mapping[str, object] = searched.axes if isinstance(searched, Grid) else searched  # type: ignore[assignment]
    for name in () if isinstance(searched, str) else names:
        if name not in allowed:
            raise DataError(
                f"no parameter {name} of {', '.join(one.name for one in methods)}; "
                f"there are: {', '.join(sorted(allowed)) or 'none'}"
            )


def parts_of(progress: Progress, work: Sequence[float], points: int) -> list[Progress]:
    """A progress function for each part of the work, which has `points` grid points in all. work: Cost of each part."""

    def part(row: int) -> Progress:
        def tell(done: int, total: int) -> None:
            share = (sum(work[:row]) + work[row] * done / max(total, 1)) / max(sum(work), 1e-9)
            progress(round(share * points), points)

        return tell

    return [part(row) for row in range(len(work))]
