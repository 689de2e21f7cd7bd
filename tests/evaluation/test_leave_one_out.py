"""The study, against a plain and slow calculation over exact numbers."""

import statistics
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from polypcount.clustering import METHODS, Grid, GroupingInput, Sweep, Threshold
from polypcount.corpus import Embeddings, Polyp, Video
from polypcount.errors import DataError
from polypcount.evaluation import Study, leave_one_out
from polypcount.evaluation.videos import study_videos
from tests.evaluation.embedded import embedded
from tests.evaluation.test_selection import plain_choice

COUNTS = [[4, 3], [5], [2, 3, 2], [6, 1], [1, 1], [7]]


def plain_rates(labels: list[int], truth: list[int]) -> tuple[Fraction, Fraction | None, int, int]:
    """FR, FPR, FP and FP + TN of one video, pair by pair."""
    pairs = [(i, j) for i, j in combinations(range(len(truth)), 2) if truth[i] != truth[j]]
    false = sum(labels[i] == labels[j] for i, j in pairs)
    fpr = Fraction(false, len(pairs)) if pairs else None
    return Fraction(len(set(labels)), len(set(truth))), fpr, false, len(pairs)


def plain_study(
    embeddings: Embeddings, name: str, similarity: str, target: Fraction, rule: str, average: str
) -> list[tuple[int, Fraction, Fraction | None, Fraction, Fraction]]:
    """Point, held-out FR and FPR, FR and FPR on the others, for each video; every step written out."""
    kind = METHODS[name]
    fixed = {"similarity": similarity} if "similarity" in kind().get_params() else {}
    grid = kind(**fixed).grid("coarse")
    rates: list[list[tuple[Fraction, Fraction | None, int, int]]] = []
    for video in range(len(embeddings.videos)):
        rows = [row for row in range(len(embeddings)) if embeddings.video[row] == video]
        tracklets = GroupingInput.of(embeddings.vectors[rows], embeddings.start_frame[rows], duration=100_000)
        truth = [int(embeddings.polyp[row]) for row in rows]
        rates.append(
            [
                plain_rates(kind(**fixed, **grid.point(point)).group(tracklets).labels.tolist(), truth)
                for point in range(len(grid))
            ]
        )
    found = []
    for video in range(len(rates)):
        others = [rates[other] for other in range(len(rates)) if other != video]
        fr = [statistics.mean(one[point][0] for one in others) for point in range(len(grid))]
        fpr = []
        for point in range(len(grid)):
            values = [one[point][1] for one in others]
            if average == "pooled":
                counted = [one[point][2:] for one in others]
                fpr.append(Fraction(sum(false for false, _ in counted), sum(negative for _, negative in counted)))
            elif average == "defined":
                fpr.append(statistics.mean(value for value in values if value is not None))
            else:
                fpr.append(statistics.mean(value or Fraction(0) for value in values))
        point = plain_choice(fr, fpr, target, rule)
        found.append((point, *rates[video][point][:2], fr[point], fpr[point]))
    return found


@pytest.mark.parametrize(
    ("name", "average"),
    [("threshold", "defined"), ("ap", "zero-filled"), ("agglomerative", "pooled"), ("temporal-ap", "defined")],
)
def test_folds_equal_the_plain_calculation(name: str, average: str) -> None:
    embeddings = embedded(COUNTS, seed=3)
    study = leave_one_out(embeddings, name, grid="coarse", target_fpr=0.1, fpr_average=average)  # type: ignore[arg-type]
    for rule in study[name].rules:
        expected = plain_study(embeddings, name, "minmax-euclidean", Fraction(1, 10), rule.rule, average)
        for fold, (point, fr, fpr, selected_fr, selected_fpr) in zip(rule.folds, expected, strict=True):
            assert fold.point == point
            assert fold.scores.fr == pytest.approx(float(fr))
            assert fold.scores.fpr == pytest.approx(float("nan") if fpr is None else float(fpr), nan_ok=True)
            assert fold.selected_fr == pytest.approx(float(selected_fr))
            assert fold.selected_fpr == pytest.approx(float(selected_fpr))
        frs = [float(one[1]) for one in expected]
        fprs = [float(one[2]) for one in expected if one[2] is not None]
        assert rule.scores["fr"].mean == pytest.approx(statistics.mean(frs))
        assert rule.scores["fr"].std == pytest.approx(statistics.stdev(frs))
        assert rule.scores["fpr"].mean == pytest.approx(statistics.mean(fprs))
        assert (rule.scores["fpr"].count, rule.scores["fpr"].total) == (4, 6)
        assert rule.scores["fpr_zero_filled"].mean == pytest.approx(sum(fprs) / 6)
        for parameter, mean in rule.parameters.items():
            chosen = [fold.parameters[parameter] for fold in rule.folds]
            assert mean.mean == pytest.approx(statistics.mean(chosen))
            assert mean.std == pytest.approx(statistics.stdev(chosen))


def test_the_two_ends() -> None:
    embeddings = embedded(COUNTS, seed=1, unseen=1)
    study = leave_one_out(embeddings, ["none", "oracle"])
    none, oracle = study["none"].rules[0], study["oracle"].rules[0]
    assert (none.rule, oracle.rule) == ("fixed", "fixed")
    assert oracle.scores["fr"].mean == 1
    assert oracle.scores["fpr"].mean == 0
    assert none.scores["fpr"].mean == 0
    assert [fold.scores.fr for fold in none.folds] == [sum(sizes) / len(sizes) for sizes in COUNTS]
    assert [fold.scores.fr_all for fold in none.folds] == [sum(sizes) / (len(sizes) + 1) for sizes in COUNTS]
    assert numbers(study.videos[2]) == ("v2", 7, 3, 4)


def numbers(video: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(video[name] for name in ("video", "tracklets", "polyps", "annotated_polyps"))


def results(study: Study) -> list[tuple[str, str, list[object]]]:
    """What must not depend on how things are named, ordered or placed."""
    return [
        (
            one.method,
            rule.rule,
            [(fold.video, fold.point, fold.scores.groups, fold.scores.pairs) for fold in rule.folds],
        )
        for one in study.methods
        for rule in one.rules
    ]


@settings(max_examples=4)
@given(seed=st.integers(0, 500), shift=st.integers(1, 3000))
def test_order_names_and_time_shifts_do_not_matter(seed: int, shift: int) -> None:
    given_ = embedded(COUNTS, seed=seed)
    methods = ["threshold", "agglomerative", "temporal-ap"]
    expected = results(leave_one_out(given_, methods, grid="coarse"))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(given_))
    names = rng.permutation(len(given_.polyps))
    # Polyps under other names in another order, tracklets in another order, and the whole recording later.
    changed = Embeddings(
        given_.videos,
        [Polyp(f"p{k}", given_.polyps[k].video) for k in names],
        given_.video[order],
        given_.start_frame[order] + shift,
        given_.stop_frame[order] + shift,
        given_.box_count[order],
        np.argsort(names)[given_.polyp[order]],
        given_.vectors[order],
    )
    assert results(leave_one_out(changed, methods, grid="coarse")) == expected


def test_same_input_same_study_whatever_the_threads() -> None:
    embeddings = embedded(COUNTS, seed=8)
    one = leave_one_out(embeddings, "temporal-ap", grid="coarse", threads=1).to_dict()
    two = leave_one_out(embeddings, "temporal-ap", grid="coarse", threads=3).to_dict()
    for study in (one, two):
        study["provenance"].pop("created")
    assert one == two


def test_fixed_parameters_judge_without_choosing() -> None:
    embeddings = embedded([[3, 2]], seed=2)
    study = leave_one_out(embeddings, ["ap", "temporal-ap"], parameters={"alpha": 0.3, "gamma": 2, "preference": 0.4})
    for name, parameters in (
        ("ap", {"preference": 0.4}),
        ("temporal-ap", {"gamma": 2, "alpha": 0.3, "preference": 0.4}),
    ):
        (rule,) = study[name].rules
        assert rule.rule == "fixed"
        assert rule.folds[0].parameters == parameters
        expected = METHODS[name](similarity="minmax-euclidean", **parameters).group(
            GroupingInput.of(embeddings.vectors, embeddings.start_frame, duration=100_000)
        )
        assert rule.folds[0].labels.tolist() == expected.labels.tolist()


def test_cannot_link_and_short_tracklets() -> None:
    base = embedded([[3, 3], [4, 2], [2, 2]], seed=4)
    stop = base.stop_frame.copy()
    stop[0] = base.start_frame[1] + 10
    embeddings = Embeddings(
        base.videos, base.polyps, base.video, base.start_frame, stop, base.box_count, base.polyp, base.vectors, [[0, 1]]
    )
    for linked in (False, True):
        study = leave_one_out(
            embeddings, "threshold", parameters={"threshold": 0}, cannot_link=linked, similarity="cosine"
        )
        labels = study["threshold"].rules[0].folds[0].labels
        assert (labels[0] != labels[1]) == linked
    counts = base.box_count.copy()
    counts[:6] = 10
    short = Embeddings(
        base.videos, base.polyps, base.video, base.start_frame, base.stop_frame, counts, base.polyp, base.vectors
    )
    study = leave_one_out(short, "none", min_frames=30)
    assert numbers(study.videos[0]) == ("v0", 0, 0, 2)
    assert study["none"].rules[0].scores["fr"].count == 2
    assert study["none"].rules[0].scores["exact_count"].count == 2, "a video without a tracklet is no exact count"
    assert study.to_dict()["videos"][1]["tracklet_spans"][0] == {
        "start_frame": int(base.start_frame[6]),
        "stop_frame": int(base.stop_frame[6]),
        "polyp": base.polyps[base.polyp[6]].id,
    }
    assert leave_one_out(short, "none", min_frames=0).videos[0]["tracklets"] == 6


def test_sweeps_are_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = embedded(COUNTS, seed=5)
    first = leave_one_out(embeddings, "temporal-ap", grid="coarse", folder=tmp_path)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 6
    kept[0].write_bytes(kept[0].read_bytes()[:100])
    kept[1].unlink()
    ran: list[int] = []
    kind = METHODS["temporal-ap"]
    prepare = kind.prepare

    def counting(self: object, tracklets: GroupingInput, grid: Grid) -> object:
        if len(grid) > 1:
            ran.append(len(tracklets))
        return prepare(self, tracklets, grid)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "prepare", counting)
    again = leave_one_out(embeddings, "temporal-ap", grid="coarse", folder=tmp_path)
    assert len(ran) == 2, "only what was damaged or missing"
    assert results(again) == results(first)
    leave_one_out(embeddings, "temporal-ap", grid="coarse", folder=tmp_path, target_fpr=0.2)
    assert len(ran) == 2, "another target needs no new sweep"
    leave_one_out(embeddings, "temporal-ap", grid="coarse", folder=tmp_path, similarity="cosine")
    assert len(ran) == 8, "another similarity does"
    base = embeddings
    other = np.where(np.arange(len(base)) == 0, 1 - base.polyp, base.polyp)  # of the two polyps of the first video
    changes: list[dict[str, Any]] = [
        {"start_frame": base.start_frame + np.arange(len(base)) % 2},
        {"polyp": other},
        {"videos": [Video(video.id, 200_000) for video in base.videos]},
        {"vectors": base.vectors * np.linspace(1, 2, len(base))[:, None]},
    ]
    columns = {name: getattr(base, name) for name in ("videos", "polyps", "video", "start_frame", "stop_frame")}
    columns |= {name: getattr(base, name) for name in ("box_count", "polyp", "vectors")}
    for changed in changes:
        before = len(ran)
        leave_one_out(Embeddings(**{**columns, **changed}), "temporal-ap", grid="coarse", folder=tmp_path)
        assert len(ran) > before, f"{next(iter(changed))} does"


def test_time_is_a_share_of_the_video_or_of_a_minute_where_that_is_longer() -> None:
    base = embedded([[2, 2], [2, 1], [2, 2]])
    lengths = [Video("v0", 100_000, fps=25.0), Video("v1", 95_000), Video("v2", 100_000, fps=2000.0)]
    columns = {name: getattr(base, name) for name in ("polyps", "video", "start_frame", "stop_frame", "box_count")}
    videos = study_videos(
        Embeddings(videos=lengths, polyp=base.polyp, vectors=base.vectors, **columns), cannot_link=False
    )
    assert [video.tracklets.duration for video in videos] == [100_000, 95_000, 120_000]


class Reversed(Threshold):
    """A method of one's own that inherits its name."""

    def _split(self, similarity: NDArray[np.float64], values: NDArray[np.float64]) -> Sweep:
        return super()._split(1 - similarity, values)


def test_a_method_of_ones_own_has_sweeps_of_its_own_and_can_be_saved(tmp_path: Path) -> None:
    embeddings = embedded(COUNTS, seed=5)
    leave_one_out(embeddings, Threshold(), grid="coarse", folder=tmp_path / "sweeps")
    expected = leave_one_out(embeddings, Reversed(), grid="coarse")
    found = leave_one_out(embeddings, Reversed(), grid="coarse", folder=tmp_path / "sweeps")
    assert results(found) == results(expected)
    Reversed.name = "reversed"
    small = embedded([[2, 2], [2, 1]])
    study = leave_one_out(small, Reversed(), grid="coarse")
    assert study.settings["similarity"] is None
    study.save(tmp_path / "study", small)
    assert (tmp_path / "study" / "study.json").exists()


def test_progress_reaches_the_end_and_never_goes_back() -> None:
    told: list[tuple[int, int]] = []
    leave_one_out(
        embedded(COUNTS), ["none", "ap", "temporal-ap"], grid="coarse", progress=lambda d, t: told.append((d, t))
    )
    assert told[-1][0] == told[-1][1] == 6 * (1 + 11 + 275)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def unlabelled() -> Embeddings:
    base = embedded([[2, 1], [2, 2]])
    polyp = base.polyp.copy()
    polyp[3] = -1
    return Embeddings(
        base.videos, base.polyps, base.video, base.start_frame, base.stop_frame, base.box_count, polyp, base.vectors
    )


@pytest.mark.parametrize(
    ("embeddings", "options", "message"),
    [
        (embedded([[3, 2]]), {}, "takes 2 videos with tracklets of two polyps, found 1 of 1"),
        (embedded([[3], [2]]), {}, "found 0 of 2"),
        (embedded([[3, 1], [2]]), {}, "found 1 of 2"),
        (embedded([[3, 1]]), {"fpr_average": "zero-filled"}, "takes 2 videos with tracklets of a polyp, found 1"),
        (unlabelled(), {}, "1 of 7 tracklets have no polyp, the first of them in video v1"),
        (embedded([[3, 1], [2, 2]]), {"min_frames": 1000}, "no tracklet of a known polyp has 1000 boxes"),
        (embedded([[3, 1], [2, 2]]), {"method": "kmeans"}, "there is no method 'kmeans'; there are: none, threshold"),
        (embedded([[3, 1], [2, 2]]), {"method": ["ap", "ap"]}, "each method can be studied once"),
        (embedded([[3, 1], [2, 2]]), {"method": []}, "name at least one method"),
        (embedded([[3, 1], [2, 2]]), {"target_fpr": -1}, "target FPR must be above 0"),
        (embedded([[3, 1], [2, 2]]), {"grid": "huge"}, "the grid must be one of paper, coarse, fine, found 'huge'"),
        (embedded([[3, 1], [2, 2]]), {"parameters": {"alhpa": 1}}, "no parameter alhpa of temporal-ap"),
        (embedded([[3, 1], [2, 2]]), {"fpr_average": "all"}, "fpr_average must be one of"),
        (
            embedded([[3, 1], [2, 2]]),
            {"parameters": {"alpha": 1}},
            "temporal-ap takes gamma, alpha, preference: fix gamma",
        ),
        (
            embedded([[3, 1], [2, 2]]),
            {"method": ["ap", "threshold"], "grid": Grid({"preference": (0.1, 0.2)})},
            "the grid has no parameter of threshold, which has: threshold",
        ),
        (
            embedded([[3, 1], [2, 2]]),
            {"parameters": {}, "method": "none", "target_fpr": 2},
            "target FPR must be above 0",
        ),
        (Embeddings([Video("v", 10)], [], [], [], [], [], [], np.empty((0, 3))), {}, "no tracklet of a known polyp"),
    ],
)
def test_bad_input_gives_one_clear_line(embeddings: Embeddings, options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message) as problem:
        leave_one_out(embeddings, **{"grid": "coarse", **options})  # type: ignore[arg-type]
    assert "\n" not in str(problem.value)
