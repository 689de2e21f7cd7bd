"""Leave one video out: choose the parameters on the others, judge them on it, and so for each."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from polypcount.clustering import METHODS, Grid, Method, Preset, VisualSimilarity
from polypcount.clustering.base import completed
from polypcount.corpus import Embeddings, Provenance
from polypcount.errors import DataError
from polypcount.evaluation.folds import FprAverage, check_average, study_method
from polypcount.evaluation.retrieval import reidentification_scores, retrieval_scores
from polypcount.evaluation.scenes import StudyVideo, kept_in_study, study_videos
from polypcount.evaluation.selection import check_target
from polypcount.evaluation.study import Study
from polypcount.evaluation.sweeps import sweep_videos
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

    method: one or several, by name (`METHODS`) or as estimators. similarity: for methods given by name.
    target_fpr: at which false positive rate to work; both selection rules are applied, see `selection.choose`.
    grid: preset or points to search. parameters: instead of searching, these for all videos. An estimator has its own
        value for a parameter that is not named; of a method given by name, `parameters` must name all.
    min_frames: tracklets with fewer boxes are left out; 0 keeps all. drop_unlabelled: those of no known polyp too.
    cannot_link: keep tracklets with boxes in one frame apart.
    fpr_average: how the FPR of several videos becomes the one that is held against the target: the mean over videos
        with two polyps ("defined"), the mean with 0 for the others ("zero-filled"), or over all pairs ("pooled").
    folder: where sweeps are kept, so that an interrupted study goes on and another target FPR costs nothing.
    """
    asked = [method] if isinstance(method, (str, Method)) else list(method)
    if not asked:
        raise DataError("name at least one method to study")
    check_target(target_fpr)
    check_average(fpr_average)
    methods = [one if isinstance(one, Method) else named_method(one, similarity) for one in asked]
    if len({one.name for one in methods}) < len(methods):
        raise DataError(f"each method can be studied once, found {', '.join(one.name for one in methods)}")
    _refuse_unknown(methods, parameters if parameters is not None else grid)
    grids = [
        _grid_of(one, grid, parameters, by_name=isinstance(name, str)) for one, name in zip(methods, asked, strict=True)
    ]
    kept = kept_in_study(embeddings, min_frames=min_frames, drop_unlabelled=drop_unlabelled)
    videos = study_videos(kept, cannot_link=cannot_link)
    _refuse_unsuitable(videos, grids, fpr_average)
    results = []
    work = [len(points) * len(videos) * one.point_cost for one, points in zip(methods, grids, strict=True)]
    parts = parts_of(progress, work, sum(map(len, grids)) * len(videos))
    for one, points, told in zip(methods, grids, parts, strict=True):
        keep = Path(folder) if folder is not None else None
        sweeps = sweep_videos(one, videos, points, folder=keep, threads=threads, progress=told)
        results.append(study_method(one, points, videos, sweeps, target_fpr, fpr_average))
    settings = {
        "target_fpr": target_fpr,
        "grid": grid if isinstance(grid, str) else "own",
        "similarity": similarity if any(isinstance(one, str) for one in asked) else None,
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
                "tracklets": len(video.scene),
                "polyps": video.polyps,
                "annotated_polyps": video.annotated_polyps,
            }
            for video in videos
        ),
        tracklets=tuple(
            tuple(
                (start, stop, embeddings.polyps[polyp].id)
                for start, stop, polyp in zip(
                    video.start_frame.tolist(), video.stop_frame.tolist(), video.truth.tolist(), strict=True
                )
            )
            for video in videos
        ),
        methods=tuple(results),
        retrieval=retrieval_scores(kept.vectors, kept.polyp),
        reidentification=reidentification_scores(kept.vectors, kept.polyp),
        reidentification_within=reidentification_scores(kept.vectors, kept.polyp, kept.video),
        embeddings_hash=embeddings.content_hash,
        encoder=embeddings.encoder,
        provenance=Provenance.now(
            "study",
            parameters={**settings, "methods": [one.name for one in methods]},
            parents=(embeddings.provenance,),
        ),
    )


def named_method(name: str, similarity: VisualSimilarity) -> Method:
    """A method by its name, with this visual similarity if it looks at any."""
    if name not in METHODS:
        raise DataError(f"there is no method {name!r}; there are: {', '.join(METHODS)}")
    method = METHODS[name]()
    return method.set_params(similarity=similarity) if "similarity" in method.get_params() else method


def _grid_of(method: Method, grid: Preset | Grid, parameters: Mapping[str, float] | None, *, by_name: bool) -> Grid:
    """The points to try. Several methods may share a grid or parameters, so each takes what it knows."""
    searched = list(method.grid().axes)
    if parameters is not None:
        lacking = [name for name in searched if name not in parameters]
        if lacking and by_name:
            told = ", ".join(searched)
            raise DataError(f"{method.name} takes {told}: add {lacking[0]} to the fixed parameters (--fix)")
        return completed(method, Grid({name: (value,) for name, value in parameters.items() if name in searched}))
    if isinstance(grid, Grid):
        known = {name: values for name, values in grid.axes.items() if name in searched}
        if searched and not known:
            raise DataError(f"the grid has no parameter of {method.name}, which has: {', '.join(searched)}")
        return completed(method, Grid(known))
    return method.grid(grid)


def _refuse_unknown(methods: Sequence[Method], given: Mapping[str, float] | Preset | Grid) -> None:
    """Raise where a parameter is of none of the methods, such as one that was misspelt."""
    known = {name for method in methods for name in method.presets["paper"]}
    named: Mapping[str, object] = {} if isinstance(given, str) else given.axes if isinstance(given, Grid) else given
    for name in named:
        if name not in known:
            told = ", ".join(method.name for method in methods)
            raise DataError(f"no parameter {name} of {told}; there are: {', '.join(sorted(known)) or 'none'}")


def _refuse_unsuitable(videos: Sequence[StudyVideo], grids: Sequence[Grid], fpr_average: FprAverage) -> None:
    if not any(len(video.scene) for video in videos):
        raise DataError("there is no tracklet of a known polyp to study that is long enough; see --min-frames")
    if all(len(grid) == 1 for grid in grids):
        return
    if len(videos) < 2:
        raise DataError(
            f"leaving one video out takes two or more, found {len(videos)}: "
            "add videos, or give fixed parameters (--fix) to judge without choosing"
        )
    several = [video.video.id for video in videos if video.polyps > 1]
    if len(several) < 2 and fpr_average != "zero-filled":
        what = f"only video {several[0]} has" if several else "no video has"
        raise DataError(
            f"{what} tracklets of two polyps, and FPR, by which to choose, takes two such videos: "
            "add videos, or give fixed parameters (--fix) to judge without choosing"
        )


def parts_of(progress: Progress, work: Sequence[float], points: int) -> list[Progress]:
    """Progress of each part, told as progress of the whole in grid points. work: what each part costs."""

    def part(place: int) -> Progress:
        def tell(done: int, total: int) -> None:
            share = (sum(work[:place]) + work[place] * done / max(total, 1)) / max(sum(work), 1e-9)
            progress(round(share * points), points)

        return tell

    return [part(place) for place in range(len(work))]
