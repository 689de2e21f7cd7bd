"""What is learnt from and what is judged on: videos, polyps, queries and crops."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polypcount.corpus import Boxes, Corpus
from polypcount.errors import DataError, FileError
from polypcount.tracking import evenly, fragments, link_tracklets
from polypcount.training.data import open_crops, split_videos, training_data
from polypcount.training.recipe import DataSettings, PolypViewSettings, Recipe
from polypcount.training.recipe_file import load_recipe
from polypcount.training.samplers import Sampler

VIDEOS = [f"video-{k}" for k in range(4)]
VALIDATED = {"leave_out": ("study", "test"), "validation": ("val", "validation"), "validation_share": 0.15}
_DATA = [f"data.{key}={list(v) if isinstance(v, tuple) else v}" for key, v in VALIDATED.items()]
SMALL = ("sampler.polyps=2", "sampler.views=2", "sampler.stride=1", "crop.size=16")


def recipe(*changes: str, name: str = "temporal") -> Recipe:
    return load_recipe(name, [*_DATA, *(SMALL if name == "temporal" else ()), *changes])


def in_splits(corpus: Corpus, *splits: str) -> Corpus:
    videos = (dataclasses.replace(video, split=split) for video, split in zip(corpus.videos, splits, strict=True))
    return dataclasses.replace(corpus, videos=tuple(videos))


def with_source(corpus: Corpus, row: int, source: str | None) -> Corpus:
    videos = list(corpus.videos)
    videos[row] = dataclasses.replace(videos[row], source=source)
    return dataclasses.replace(corpus, videos=tuple(videos))


def with_polyps(corpus: Corpus, polyp: Any) -> Corpus:
    columns = {**corpus.boxes.columns(), "polyp": polyp}
    named = tuple(dataclasses.replace(one, video=None) for one in corpus.polyps)
    return dataclasses.replace(corpus, boxes=Boxes(**columns), polyps=named)


def split(corpus: Corpus, seed: int = 0, **settings: Any) -> tuple[list[str], list[str]]:
    return split_videos(corpus, DataSettings(**{**VALIDATED, **settings}), seed)


def test_by_default_all_but_the_study_is_learnt_from(drawn: Corpus) -> None:
    corpus = in_splits(drawn, "train", "val", "study", "test")
    assert split_videos(corpus, DataSettings(), 0) == (["video-0", "video-1", "video-3"], [])
    learning, judging = training_data(corpus, load_recipe("temporal", SMALL))
    assert judging is None
    assert len(learning.corpus.videos) == 3


def test_splits_of_the_corpus_decide(drawn: Corpus) -> None:
    corpus = in_splits(drawn, "train", "val", "study", "validation")
    assert split(corpus) == (["video-0"], ["video-1", "video-3"])
    assert split(corpus, validation=("train",)) == (["video-1", "video-3"], ["video-0"])
    assert split(corpus, leave_out=("val",)) == (["video-0", "video-2"], ["video-3"])
    assert split(corpus, leave_out=(), validation=("val",), validation_share=0.9)[1] == ["video-1"], "not the share"


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), share=st.floats(0, 0.999))
def test_without_splits_a_share_is_drawn_by_the_seed(drawn: Corpus, seed: int, share: float) -> None:
    learnt, judged = split(drawn, seed, validation_share=share)
    assert len(judged) == (0 if share == 0 else min(max(1, round(4 * share)), 3))
    assert sorted(learnt + judged) == VIDEOS
    assert learnt == sorted(learnt), "in the order of the corpus"
    assert judged == sorted(judged), "in the order of the corpus"
    assert split(drawn, seed, validation_share=share) == (learnt, judged)


def test_another_seed_draws_others_whatever_is_left_out(drawn: Corpus) -> None:
    judged = [split(drawn, seed)[1] for seed in range(20)]
    assert {one for (one,) in judged} == set(VIDEOS)
    three = in_splits(drawn, "", "study", "", "")
    without = drawn.select(videos=["video-0", "video-2", "video-3"])
    assert [split(three, seed) for seed in range(20)] == [split(without, seed) for seed in range(20)]


def test_left_out_videos_are_in_neither_list(drawn: Corpus, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        learnt, judged = split(in_splits(drawn, "study", "", "test", ""))
    assert sorted(learnt + judged) == ["video-1", "video-3"]
    assert "left out: 2 videos of the splits study, test" in caplog.text


def test_videos_without_a_known_polyp_do_not_count(drawn: Corpus) -> None:
    unknown = np.where(drawn.boxes.video < 2, -1, drawn.boxes.polyp)
    learnt, judged = split(with_polyps(drawn, unknown))
    assert sorted(learnt + judged) == ["video-2", "video-3"]
    with pytest.raises(DataError, match=r"^there is nothing to learn from: 0 of 4 videos show a known polyp$"):
        split(with_polyps(drawn, np.full(len(drawn.boxes), -1)))


@pytest.mark.parametrize(
    ("splits", "settings", "message"),
    [
        (("study", "study", "test", "study"), {}, r"4 of 4 .* study, test, see data.leave_out"),
        (("val", "val", "val", "study"), {}, r"nothing to learn from: .*data.validation"),
        (("study", "study", "", "study"), {}, r"only video-2: .*data.validation_share=0"),
    ],
)
def test_too_few_videos_are_one_line(
    drawn: Corpus, splits: tuple[str, ...], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        split(in_splits(drawn, *splits), **settings)
    assert "\n" not in str(caught.value)


def test_one_video_is_learnt_from_without_validation(drawn: Corpus) -> None:
    one = drawn.select(videos="video-1")
    assert split(one, validation_share=0) == (["video-1"], [])
    learning, judging = training_data(one, recipe("data.validation_share=0"))
    assert judging is None
    assert not learning.queries
    assert len(learning.rows) == len(np.unique(np.concatenate([learning.sampler.rows])))


def test_a_polyp_of_both_sides_is_validated_on_only(drawn: Corpus) -> None:
    # Polyp 0 of video 0 is seen in video 3, too.
    polyp = np.where((drawn.boxes.video == 3) & (drawn.boxes.polyp == 6), 0, drawn.boxes.polyp)
    corpus = in_splits(with_polyps(drawn, polyp), "train", "train", "train", "val")
    learning, judging = training_data(corpus, recipe())
    assert judging is not None
    learnt, judged = ({one.id for one in side.corpus.polyps} for side in (learning, judging))
    assert "polyp-0-0" in judged
    assert "polyp-0-0" not in learnt
    assert learnt == {"polyp-0-1", *(f"polyp-{k}-{j}" for k in (1, 2) for j in (0, 1))}
    assert learning.corpus.boxes.polyp.min() >= 0
    everywhere = in_splits(with_polyps(drawn, drawn.boxes.polyp % 2), "train", "train", "train", "val")
    with pytest.raises(DataError, match=r"nothing to learn from: every polyp .*data.validation"):
        training_data(everywhere, recipe())


@settings(max_examples=40)
@given(count=st.integers(0, 3000), most=st.integers(1, 3000))
def test_evenly_takes_as_many_as_it_may_at_even_distances(count: int, most: int) -> None:
    taken = evenly(count, most)
    assert len(taken) == min(count, most)
    assert set(taken.tolist()) <= set(range(count))
    steps = np.diff(taken)
    assert len(steps) == 0 or (steps.min() >= 1 and steps.max() - steps.min() <= 1)
    assert most == 1 or count == 0 or (taken[0], taken[-1]) == (0, count - 1)


def queries(corpus: Corpus, *changes: str, name: str = "temporal") -> tuple[Corpus, list[list[int]], list[int]]:
    judging = training_data(in_splits(corpus, "", "", "", "val"), recipe(*changes, name=name))[1]
    assert judging is not None
    assert judging.query_polyp.dtype == np.int64
    for rows, polyp in zip(judging.queries, judging.query_polyp.tolist(), strict=True):
        assert (judging.corpus.boxes.polyp[rows] == polyp).all()
        assert np.isin(rows, judging.rows).all()
    return judging.corpus, [rows.tolist() for rows in judging.queries], judging.query_polyp.tolist()


def test_tracklets_look_for_others_of_their_polyp(drawn: Corpus) -> None:
    judged, rows, polyp = queries(drawn)
    tracklets = link_tracklets(judged.boxes)
    assert len(tracklets) == 4
    assert rows == [tracklets.rows(k)[np.linspace(0, 33, 8).round().astype(int)].tolist() for k in range(4)]
    assert polyp == tracklets.polyp.tolist()
    _, rows, _ = queries(drawn, "validation.frames=3", "validation.most=2", "sampler.stride=4")
    assert rows == [tracklets.rows(k)[[0, 16, 32]].tolist() for k in (0, 3)], "every 4th frame, of which 3"


def test_fragments_look_for_others_of_their_polyp(drawn: Corpus) -> None:
    judged, rows, _ = queries(drawn, "validation.of=fragments")
    pieces = fragments(link_tracklets(judged.boxes), 8, 1, 30, drop_last=False)
    assert rows == [pieces.rows_of(k).tolist() for k in range(len(pieces))]
    assert [len(one) for one in rows[:5]] == [8, 8, 8, 8, 2], "the last, shorter one is asked for too"
    _, capped, _ = queries(drawn, "validation.of=fragments", "validation.most=7", "validation.frames=2")
    assert len(capped) == 7
    assert max(map(len, capped)) == 2


def test_tracklets_of_no_known_polyp_ask_for_nothing(drawn: Corpus) -> None:
    unknown = np.where(drawn.boxes.polyp == 7, -1, drawn.boxes.polyp)
    tracked = Boxes(**{**drawn.boxes.columns(), "track": np.zeros(len(unknown), int)})
    judged, rows, polyp = queries(with_polyps(dataclasses.replace(drawn, boxes=tracked), unknown), "sampler.polyps=1")
    assert (link_tracklets(judged.boxes).polyp < 0).any()
    assert len(rows) == len(polyp) == 2
    assert set(polyp) == {0}


@pytest.mark.parametrize(("name", "count"), [("sfe", 8), ("mve", 8)])
def test_methods_of_pairs_have_queries_too(drawn: Corpus, name: str, count: int) -> None:
    changes = ("sampler.samples=2", "validation.batches=3", *(["sampler.strides=[1]"] if name == "mve" else []))
    _, rows, _ = queries(drawn, *changes, name=name)
    assert {len(one) for one in rows} == {count}
    judging = training_data(in_splits(drawn, "", "", "", "val"), recipe(*changes, name=name))[1]
    assert judging is not None
    assert len(list(judging.sampler.batches(0))) == 3


def settings_of(sampler: Sampler) -> PolypViewSettings:
    settings = getattr(sampler, "settings", None)
    assert isinstance(settings, PolypViewSettings)
    return settings


def test_validation_takes_the_polyps_that_there_are(drawn: Corpus) -> None:
    corpus = in_splits(drawn, "", "", "", "val")
    learning, judging = training_data(corpus, recipe("sampler.polyps=5"))
    assert judging is not None
    assert (settings_of(learning.sampler).polyps, settings_of(judging.sampler).polyps) == (5, 2)


@pytest.mark.parametrize("splits", [("", "", "", "val"), ("", "", "", "")])
def test_validation_that_is_too_small_says_how_to_go_on(drawn: Corpus, splits: tuple[str, ...]) -> None:
    unknown = np.where(drawn.boxes.polyp % 2, -1, drawn.boxes.polyp)  # one polyp a video
    corpus = in_splits(with_polyps(drawn, unknown), *splits)
    with pytest.raises(DataError, match=r"^validation: a batch takes 2 polyps.* 1 of 1 .* to train without$") as no:
        training_data(corpus, recipe())
    assert "\n" not in str(no.value)
    advice = [word.strip(",;") for word in str(no.value).split() if word.startswith("data.")]
    learning, judging = training_data(corpus, recipe(*advice))
    assert judging is None
    assert len(learning.corpus.videos) == 4


def test_videos_without_pixels_are_one_line(drawn: Corpus, tmp_path: Path) -> None:
    corpus = in_splits(drawn, "", "", "", "val")
    for k in (0, 3):  # learnt from, validated on
        with pytest.raises(DataError, match=rf"video-{k} has no pixels"):
            training_data(with_source(corpus, k, None), recipe())
        with pytest.raises(FileError, match=rf"video-{k}: .*gone does not exist"):
            training_data(with_source(corpus, k, str(tmp_path / "gone")), recipe())
    left_out = in_splits(with_source(drawn, 0, None), "study", "", "", "")
    assert len(training_data(left_out, recipe())[0].corpus.videos) == 2, "what is left out needs none"


def test_crops_are_cut_once(drawn: Corpus, tmp_path: Path) -> None:
    learning, judging = training_data(in_splits(drawn, "", "", "", "val"), recipe())
    assert judging is not None
    rule, told = recipe().crop, []
    store = open_crops(learning, rule, tmp_path, lambda done, total: told.append((done, total)))
    known = np.flatnonzero(learning.corpus.boxes.polyp >= 0)
    assert len(learning.rows) < len(known) < 2 * len(learning.rows)
    assert store.rows.tolist() == known.tolist(), "most are needed, so all are cut, for other recipes too"
    total = len(known)
    assert told[0] == (0, total)
    assert told[-1] == (total, total)
    before = store.path.stat().st_mtime_ns
    told.clear()
    again = open_crops(learning, rule, tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(total, total)], "nothing was left to cut"
    assert (again.path, again.path.stat().st_mtime_ns) == (store.path, before)
    others = [open_crops(judging, rule, tmp_path), open_crops(learning, dataclasses.replace(rule, size=24), tmp_path)]
    assert len({store.path, *(other.path for other in others)}) == 3, "each in a folder of its own"


def test_where_few_boxes_are_needed_only_those_are_cut(drawn: Corpus, tmp_path: Path) -> None:
    learning, _ = training_data(drawn, recipe())
    few = dataclasses.replace(learning, sampler=SimpleNamespace(rows=learning.rows[:9]))
    assert open_crops(few, recipe().crop, tmp_path).rows.tolist() == learning.rows[:9].tolist()


def test_a_cache_that_cannot_be_written_is_one_line(drawn: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    learning, _ = training_data(drawn, recipe())
    with pytest.raises(FileError, match=r"/file/.* crops cannot be written") as caught:
        open_crops(learning, recipe().crop, tmp_path / "file")
    assert "\n" not in str(caught.value)
