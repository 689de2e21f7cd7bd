"""Selecting from corpora, putting them together, and their content hash."""

import dataclasses
import json
from collections.abc import Sequence

import numpy as np
import pytest

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Provenance, Video, concatenate
from polypcount.errors import DataError

UNIT = [0.0, 0.0, 1.0, 1.0]


def small(prefix: str = "") -> Corpus:
    """Two videos of two datasets; polyps p and q in the first, r in the second; one box of nobody."""
    a, b, p, q, r = (prefix + name for name in "abpqr")
    return Corpus(
        videos=(Video(a, 10, dataset="one", split="train"), Video(b, 10, dataset="two", split="val")),
        boxes=Boxes([0, 0, 0, 1, 1], [0, 1, 2, 0, 3], [UNIT] * 5, polyp=[0, 1, 0, 2, -1]),
        polyps=(Polyp(p, a), Polyp(q, a), Polyp(r, b)),
        files=FrameFiles([1, 1], [0, 1], ["0.png", "1.png"]),
    )


def described(corpus: Corpus) -> list[tuple[str, int, str | None]]:
    """(video id, frame, polyp id) of each box."""
    names: Sequence[str | None] = [*(polyp.id for polyp in corpus.polyps), None]
    boxes = corpus.boxes
    return [
        (corpus.videos[v].id, int(f), names[p]) for v, f, p in zip(boxes.video, boxes.frame, boxes.polyp, strict=True)
    ]


def test_select_by_video_dataset_split_and_polyp() -> None:
    corpus = small()
    second = corpus.select(videos="b")
    assert described(second) == [("b", 0, "r"), ("b", 3, None)]
    assert second.files.video.tolist() == [0, 0]
    assert [polyp.id for polyp in second.polyps] == ["r"]
    assert corpus.select(dataset="two") == dataclasses.replace(
        second, provenance=corpus.select(dataset="two").provenance
    )
    assert described(corpus.select(split="val")) == described(second)
    only_p = corpus.select(polyps=["p"])
    assert described(only_p) == [("a", 0, "p"), ("a", 2, "p")]
    assert [video.id for video in only_p.videos] == ["a"]
    assert described(corpus.select(polyps=["q", "r"], dataset="one")) == [("a", 1, "q")]
    assert described(corpus.select(videos=[])) == []


def test_selection_remembers_where_it_came_from() -> None:
    chosen = small().select(videos=["a"])
    assert chosen.provenance.made_by == "select"
    assert chosen.provenance.parameters == {"videos": ["a"]}
    assert chosen.provenance.parents[0].made_by == "python"


def test_selecting_from_a_corpus_that_needs_repair() -> None:
    videos = (Video("a", 9), Video("b", 9))
    both = Corpus(videos, Boxes([0, 1], [3, 4], [UNIT, UNIT], polyp=[0, 0]), (Polyp("p", "a"), Polyp("nowhere")))
    second = both.select(videos="b")
    assert [(polyp.id, polyp.video) for polyp in second.polyps] == [("p", None)]
    assert both.select().content_hash == both.content_hash
    assert [polyp.id for polyp in both.select(polyps="nowhere").polyps] == []
    with pytest.raises(DataError, match="ids must be texts"):
        both.select(videos=[None])  # type: ignore[list-item]


def test_provenance_is_plain_and_does_not_grow_for_ever() -> None:
    corpus = small()
    for _ in range(20):
        corpus = corpus.select(videos=["a", "b"])
    assert json.dumps(corpus.provenance.to_dict()).count("select") == 10
    made = Provenance.now("x", parameters={"a": (1, 2)}, sources=["s"])
    assert json.loads(json.dumps(made.to_dict())) == made.to_dict()
    assert made.parameters == {"a": [1, 2]}
    for value in (np.float32(1), float("nan")):
        with pytest.raises(DataError, match="parameters must be JSON values"):
            Provenance.now("x", parameters={"a": value})
    assert Provenance.now("x", sources=["case\udcff.mp4"]).sources == ("case?.mp4",)


def test_selecting_what_is_not_there_is_an_error() -> None:
    with pytest.raises(DataError, match="the corpus has no video c; it has a, b"):
        small().select(videos=["a", "c"])
    with pytest.raises(DataError, match="has no polyp x; it has p, q, r"):
        small().select(polyps="x")
    with pytest.raises(DataError, match="has no dataset three; it has one, two"):
        small().select(dataset="three")


def test_concatenation_keeps_every_box_and_refuses_equal_ids() -> None:
    first, second = small("x"), small("y")
    both = concatenate([first, second])
    assert described(both) == described(first) + described(second)
    assert both.files.video.tolist() == [1, 1, 3, 3]
    assert len(both.provenance.parents) == 2
    with pytest.raises(DataError, match="video ids must differ; more than once there is xa, xb"):
        concatenate([first, first])
    renamed = dataclasses.replace(
        first,
        videos=tuple(dataclasses.replace(v, id=v.id + "2") for v in first.videos),
        polyps=tuple(dataclasses.replace(p, video=f"{p.video}2") for p in first.polyps),
    )
    with pytest.raises(DataError, match="polyp ids must differ; more than once there is xp, xq, xr"):
        concatenate([first, renamed])
    assert concatenate([]).videos == ()


def test_select_undoes_concatenation() -> None:
    first, second = small("x"), small("y")
    both = concatenate([first, second])
    assert both.select(videos=["ya", "yb"]).content_hash == second.content_hash


def test_the_content_hash_tells_content_not_place_or_time() -> None:
    corpus = small()
    moved = dataclasses.replace(corpus, videos=tuple(dataclasses.replace(v, source="/x") for v in corpus.videos))
    assert moved.content_hash == corpus.content_hash == small().content_hash
    boxes = corpus.boxes.columns()
    for name, change in (("score", 0.5), ("polyp", -1), ("track", 3), ("xyxy", [0, 0, 2, 1]), ("frame", 9)):
        column = np.array(boxes[name])
        column[-1 if name != "polyp" else 0] = change
        changed = dataclasses.replace(corpus, boxes=Boxes(**{**boxes, name: column}))
        assert changed.content_hash != corpus.content_hash, name
    others = (
        dataclasses.replace(corpus, polyps=(Polyp("p", "a", 3.0), *corpus.polyps[1:])),
        dataclasses.replace(corpus, videos=(dataclasses.replace(corpus.videos[0], fps=25), corpus.videos[1])),
        dataclasses.replace(corpus, files=FrameFiles([1, 1], [0, 1], ["0.png", "2.png"])),
        dataclasses.replace(corpus, files=FrameFiles([1, 1], [0, 2], ["0.png", "1.png"])),
        dataclasses.replace(corpus, files=FrameFiles([0, 1], [0, 1], ["0.png", "1.png"])),
    )
    assert len({other.content_hash for other in (*others, corpus)}) == 6
