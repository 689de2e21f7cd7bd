"""What a person decides, and what follows from it, without a browser or a server."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from polypcount.errors import DataError
from polypcount.review import Review, Snapshot
from polypcount.review import decisions as d
from polypcount.review.effects import preview
from polypcount.review.log import Stale
from polypcount.review.values import box_values, preview_values, similar_values, state_values

TRUTH = {"t0": "a", "t2": "a", "t5": "a", "t1": "b", "t3": "b", "t4": "c"}


class Person:
    """Takes decisions one after the other, each on the newest state."""

    def __init__(self, folder: Path) -> None:
        self.review = Review(folder)

    def __call__(self, decision: object) -> Snapshot:
        return self.review.decide(decision, self.review.moment.version)

    def answer(self, first: Sequence[str], second: Sequence[str], *, same: bool) -> Snapshot:
        return self(d.Answer(kind="answer", first=list(first), second=list(second), same=same))

    def move(self, *items: str, to: int | None) -> Snapshot:
        return self(d.Move(kind="move", items=list(items), polyp=to))

    def merge(self, polyp: int, other: int) -> Snapshot:
        return self(d.Merge(kind="merge", polyp=polyp, other=other))

    def unmerge(self, decision: int) -> Snapshot:
        return self(d.Unmerge(kind="unmerge", decision=decision))

    def split(self, polyp: int, frame: int) -> Snapshot:
        return self(d.Split(kind="split", polyp=polyp, frame=frame))

    def no_polyp(self, *items: str) -> Snapshot:
        return self(d.NotAPolyp(kind="not a polyp", items=list(items)))

    def describe(self, polyp: int, **details: object) -> Snapshot:
        return self(d.Describe.model_validate({"kind": "describe", "polyp": polyp, **details}))

    def add(self, frame: int, *box: float) -> Snapshot:
        return self(d.Add.model_validate({"kind": "add", "frame": frame, "box": box}))

    def hint(self, fewest: int | None, most: int | None) -> Snapshot:
        return self(d.Hint(kind="hint", fewest=fewest, most=most))

    def regroup(self) -> Snapshot:
        return self(d.Regroup(kind="regroup", polyp_of=preview(self.review.data, self.review.moment.state)))

    def undo(self) -> Snapshot:
        return self(d.Undo(kind="undo"))

    def redo(self) -> Snapshot:
        return self(d.Redo(kind="redo"))


@pytest.fixture
def person(result: Path) -> Person:
    return Person(result)


def polyps(moment: Snapshot) -> dict[int, list[str]]:
    return moment.state.members()


AS_COUNTED = {1: ["t0", "t2"], 2: ["t1", "t3"], 3: ["t4"], 4: ["t5"]}


def test_it_begins_as_counted(person: Person) -> None:
    moment = person.review.moment
    assert (polyps(moment), moment.version, moment.count, moment.interval) == (AS_COUNTED, 0, 4, (2, 6))
    assert {item: moment.state.polyp_of[item] for item in ("a0", "s0")} == {"a0": 0, "s0": 0}
    values = state_values(person.review, moment, recording=True)
    assert (values["undo"], values["redo"], values["settled"], values["questions_left"] > 3) == (
        None,
        None,
        False,
        True,
    )
    assert [polyp["certainty"] is None for polyp in values["polyps"]] == [False] * 4
    assert [polyp["visible_seconds"] for polyp in values["polyps"]] == pytest.approx([3.2, 3.2, 1.6, 1.6])


def test_answers_settle_the_count(person: Person) -> None:
    """True answers lead to the true count; each takes its question away, and then there is nothing more to ask."""
    moment, widths = person.review.moment, []
    while moment.questions:
        question = moment.questions[0]
        seen = {TRUTH[item] for item in (*question.first, *question.second)}
        asked = {(one.first, one.second) for one in moment.questions}
        before = moment
        moment = person.answer(question.first, question.second, same=len(seen) == 1)
        assert (question.first, question.second) not in {(one.first, one.second) for one in moment.questions}
        widths.append(moment.interval[1] - moment.interval[0] if moment.interval else 0)
        undone = person.undo()
        assert {(one.first, one.second) for one in undone.questions} == asked
        assert (undone.interval, undone.count) == (before.interval, before.count)
        moment = person.redo()
        assert len(widths) < 16
    assert widths == sorted(widths, reverse=True)
    assert (moment.count, moment.interval) == (3, (3, 3))
    assert polyps(moment) == {1: ["t0", "t2", "t5"], 2: ["t1", "t3"], 3: ["t4"]}
    values = state_values(person.review, moment, recording=False)
    assert (values["settled"], values["certain"]) == (True, "More answers would not change the count.")
    again = Review(person.review.folder).moment
    assert (polyps(again), again.questions, again.interval) == (polyps(moment), [], (3, 3))


def test_later_answers_win(person: Person) -> None:
    assert polyps(person.answer(["t0"], ["t5"], same=True))[1] == ["t0", "t2", "t5"]
    assert person.review.moment.state.polyp_of["t5"] == 1
    moment = person.answer(["t0"], ["t5"], same=False)
    assert moment.state.polyp_of["t5"] != moment.state.polyp_of["t0"]
    moment = person.answer(["t0", "t2"], ["t5"], same=True)
    assert len({moment.state.polyp_of[item] for item in ("t0", "t2", "t5")}) == 1
    shown = {one["item"]: one for one in similar_values(person.review, moment, "t2")["similar"]}
    assert shown["t1"]["impossible"] == "seen in one frame together"
    assert shown["t0"]["impossible"] == ""
    assert 0 <= shown["t4"]["probability"] < shown["t0"]["probability"] <= 1
    aside = similar_values(person.review, moment, "a0")
    assert (aside["similar"], aside["reason"][:33]) == ([], "Only tracklets that are counted, ")
    alike = similar_values(person.review, moment, "t0", whole=True)["similar"]
    assert {one["item"] for one in alike} == {"t1", "t3", "t4"}
    alone = [
        {one["item"]: one["probability"] for one in similar_values(person.review, moment, item)["similar"]}
        for item in ("t0", "t2", "t5")
    ]
    for one in alike:
        assert one["probability"] == pytest.approx(np.mean([each[one["item"]] for each in alone]), abs=2e-4)
    assert next(one for one in alike if one["item"] == "t1")["impossible"] == "seen in one frame together"


def test_move_to_a_new_polyp_and_back(person: Person) -> None:
    moment = person.move("t2", to=None)
    assert polyps(moment) == {1: ["t0"], 2: ["t1", "t3"], 3: ["t4"], 4: ["t5"], 5: ["t2"]}
    assert preview(person.review.data, moment.state)["t2"] != preview(person.review.data, moment.state)["t0"]
    moment = person.move("t2", to=1)
    assert polyps(moment) == AS_COUNTED
    assert preview(person.review.data, moment.state)["t2"] == preview(person.review.data, moment.state)["t0"]
    with pytest.raises(DataError, match="tracklet 3 is already in polyp 1"):
        person.move("t2", to=1)
    moment = person.move("t0", "s0", to=1)  # only one of them is elsewhere
    assert polyps(moment)[1] == ["t0", "t2", "s0"]
    assert preview(person.review.data, moment.state)["t0"] == preview(person.review.data, moment.state)["t2"]
    person.no_polyp("s0")
    assert polyps(person.move("t0", "t2", to=None)) == {2: ["t1", "t3"], 3: ["t4"], 4: ["t5"], 6: ["t0", "t2"]}


def test_merging_and_taking_it_back(person: Person) -> None:
    person.describe(4, name="the last one", size_mm=4)
    merged = person.merge(1, 4)
    assert polyps(merged) == {1: ["t0", "t2", "t5"], 2: ["t1", "t3"], 3: ["t4"]}
    person.describe(2, site="caecum")
    back = person.unmerge(merged.version)
    assert polyps(back) == AS_COUNTED
    assert back.state.details[4].name == "the last one"
    with pytest.raises(DataError, match=f"decision {merged.version} is no merge that can be taken back"):
        person.unmerge(merged.version)
    again = person.merge(1, 4)
    assert [one["decision"] for one in state_values(person.review, again, recording=True)["merges"]] == [again.version]
    person.move("t5", to=3)
    with pytest.raises(DataError, match="polyps 1 and 4 are not one any more"):
        person.unmerge(again.version)
    assert state_values(person.review, person.review.moment, recording=True)["merges"] == []


def test_unmerge_leaves_what_came_later(person: Person) -> None:
    merged = person.merge(4, 3)
    person.move("s0", "a0", to=4)
    assert polyps(person.unmerge(merged.version)) == {
        1: ["t0", "t2"],
        2: ["t1", "t3"],
        3: ["t4"],
        4: ["t5", "a0", "s0"],
    }


def test_split_gives_new_numbers_and_no_number_twice(person: Person) -> None:
    assert polyps(person.split(1, 80)) == {1: ["t0"], 2: ["t1", "t3"], 3: ["t4"], 4: ["t5"], 5: ["t2"]}
    person.undo()
    moment = person.split(2, 101)
    assert polyps(moment) == {1: ["t0", "t2"], 2: ["t1"], 3: ["t4"], 4: ["t5"], 6: ["t3"]}
    for polyp, frame in ((1, 5), (1, 81), (4, 270)):
        with pytest.raises(DataError, match=f"polyp {polyp} has no tracklets on both sides of frame {frame}"):
            person.split(polyp, frame)


def test_what_is_no_polyp_and_what_is_one_after_all(person: Person) -> None:
    moment = person.no_polyp("t4", "t5")
    assert (moment.count, polyps(moment)) == (2, {1: ["t0", "t2"], 2: ["t1", "t3"]})
    assert not {"t4", "t5"} & set(moment.regrouping.items)
    with pytest.raises(DataError, match="2 tracklets is not counted already"):
        person.no_polyp("t4", "a0")
    with pytest.raises(DataError, match="only tracklets that are counted can be asked about"):
        person.answer(["t4"], ["t0"], same=True)
    moment = person.move("a0", "s0", to=None)
    assert (moment.count, moment.interval is not None, moment.state.items_of(5)) == (3, True, ["a0", "s0"])
    assert polyps(person.move("t4", to=1))[1] == ["t0", "t2", "t4"]
    values = {item["id"]: item for item in state_values(person.review, person.review.moment, recording=True)["items"]}
    assert [values[item]["kind"] for item in ("t0", "a0", "s0")] == ["counted", "perhaps no polyp", "too short"]
    assert (values["t5"]["polyp"], values["a0"]["polyp"], values["a0"]["probability"]) == (None, 5, 0.25)


def test_polyps_added_by_hand(person: Person) -> None:
    moment = person.add(250, 40, 30, 80, 70)
    assert (moment.count, polyps(moment)[5], moment.state.added["h1"].box) == (5, ["h1"], (40, 30, 80, 70))
    assert moment.interval == (3, 7)
    assert box_values(person.review.data, moment.state, 250, 251) == [[250, 40, 30, 80, 70, "h1"]]
    assert box_values(person.review.data, moment.state, 240, 250) == []
    assert len(box_values(person.review.data, moment.state, 90, 91)) == 2
    person.undo()
    moment = person.add(251, 0, 0, 160, 128)
    assert polyps(moment)[6] == ["h2"]
    assert polyps(person.merge(3, 6))[3] == ["t4", "h2"]
    for box in ((0, 0, 161, 128), (40, 30, 40, 70), (-1, 0, 10, 10)):
        with pytest.raises(DataError, match="the box must lie inside the frame of 160 x 128 pixels"):
            person.add(10, *box)
    with pytest.raises(DataError, match="the recording has no frame 360; its last one is 359"):
        person.add(360, 1, 1, 20, 20)


def test_a_known_number_of_polyps(person: Person) -> None:
    for number in (2, 3, 6):
        moment = person.hint(number, number)
        shown = preview_values(person.review, moment)
        assert (shown["count"], shown["note"]) == (number, "")
        assert moment.interval == (min(4, number), max(4, number))
    assert person.regroup().count == 6
    shown = preview_values(person.review, person.hint(0, 1))  # t1 and t2 are seen together
    assert shown["count"] == 2
    assert shown["note"] == "The number should be at most 1; with everything decided so far, 2 is the nearest."
    moment = person.hint(None, None)
    assert preview_values(person.review, moment)["count"] == 4
    moment = person.add(250, 40, 30, 80, 70)
    assert preview_values(person.review, person.hint(4, 4))["count"] == 4  # one of them by hand
    with pytest.raises(DataError, match="the fewest polyps, 5, are more than the most, 4"):
        person.hint(5, 4)


def test_regroup_is_what_was_shown(person: Person) -> None:
    person.split(1, 80)
    person.undo()
    with pytest.raises(DataError, match="regrouping changes nothing"):
        person.regroup()
    person.hint(3, 3)
    shown = preview_values(person.review, person.review.moment)
    assert shown["changes"] == [{"item": "t5", "from": 4, "to": 1}]
    with pytest.raises(DataError, match="this is not the grouping that was shown"):
        person(d.Regroup(kind="regroup", polyp_of={**shown["polyp_of"], "t4": 1}))
    assert polyps(person.regroup()) == {1: ["t0", "t2", "t5"], 2: ["t1", "t3"], 3: ["t4"]}
    assert polyps(person.undo()) == AS_COUNTED


def test_what_is_seen_together_is_never_joined(person: Person) -> None:
    refused: list[tuple[object, str]] = [
        (d.Answer(kind="answer", first=["t1"], second=["t2"], same=True), "tracklet 2 and tracklet 3 are seen in one"),
        (d.Merge(kind="merge", polyp=1, other=2), "are seen in one frame together, so they cannot be one polyp"),
        (d.Move(kind="move", items=["t1"], polyp=1), "if one of them is a double box, mark it as not a polyp"),
        (d.Move(kind="move", items=["t1", "t2"], polyp=None), "are seen in one frame together"),
    ]
    for decision, sentence in refused:
        with pytest.raises(DataError, match=sentence):
            person(decision)
    person.no_polyp("t1")
    assert polyps(person.merge(1, 2))[1] == ["t0", "t2", "t3"]


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (d.Undo(kind="undo"), "there is nothing to undo"),
        (d.Redo(kind="redo"), "there is nothing to redo"),
        (
            d.Answer(kind="answer", first=["t0"], second=["t0"], same=True),
            "the two sides of a question share a tracklet",
        ),
        (d.Answer(kind="answer", first=["t0"], second=["t9"], same=True), "there is no tracklet t9"),
        (d.Answer(kind="answer", first=["t0"], second=["a0"], same=True), "only tracklets that are counted"),
        (d.Move(kind="move", items=["h1"], polyp=None), "there is no tracklet h1"),
        (d.Move(kind="move", items=["t0"], polyp=9), "there is no polyp 9"),
        (d.Merge(kind="merge", polyp=1, other=1), "a polyp cannot be merged with itself"),
        (d.Merge(kind="merge", polyp=1, other=7), "there is no polyp 7"),
        (d.Unmerge(kind="unmerge", decision=1), "decision 1 is no merge that can be taken back"),
        (d.Split(kind="split", polyp=7, frame=9), "there is no polyp 7"),
        (d.NotAPolyp(kind="not a polyp", items=["a0"]), "set-aside tracklet 1 is not counted already"),
        (d.NotAPolyp(kind="not a polyp", items=["s0"]), "short tracklet 1 is not counted already"),
        (d.Describe(kind="describe", polyp=7), "there is no polyp 7"),
        (d.Describe(kind="describe", polyp=1), "that is already said about polyp 1"),
    ],
)
def test_what_is_not_possible(result: Path, decision: object, sentence: str) -> None:
    review = Review(result)
    with pytest.raises(DataError) as problem:
        review.decide(decision, 0)
    assert sentence in str(problem.value)
    assert review.moment.version == 0
    assert not (result / "decisions.sqlite").exists()


def test_undo_and_redo_without_limit_and_after_a_restart(result: Path) -> None:
    person, seen = Person(result), []
    takes: list[Callable[[], Snapshot]] = [
        lambda: person.split(1, 80),
        lambda: person.merge(2, 3),
        lambda: person.describe(2, name="flat", size_mm=3.5),
        lambda: person.no_polyp("t5"),
        lambda: person.add(250, 40, 30, 80, 70),
        lambda: person.hint(2, None),
        lambda: person.move("a0", to=2),
    ]
    for take in takes:
        seen.append(polyps(person.review.moment))
        take()
    last = polyps(person.review.moment)
    for expected in reversed(seen):
        person = Person(result)
        words = state_values(person.review, person.review.moment, recording=True)["undo"]
        assert polyps(person.undo()) == expected
        assert state_values(person.review, person.review.moment, recording=True)["redo"] == words
    assert person.review.moment.state.hint == (None, None)
    assert not person.review.moment.state.details
    for expected in [*seen[1:], last]:
        person = Person(result)
        assert polyps(person.redo()) == expected
    assert person.review.moment.state.details[2].size_mm == 3.5
    person.undo()
    person.merge(1, 5)
    with pytest.raises(DataError, match="there is nothing to redo"):
        person.redo()
    listed = state_values(person.review, person.review.moment, recording=True)["decisions"]
    assert [one["undone"] for one in listed] == [False] * 7
    assert [one["text"] for one in listed][-2:] == ["number of polyps: at least 2", "merge polyps 1 and 5"]


def test_two_windows_see_each_other(result: Path) -> None:
    one, other = Review(result), Review(result)
    one.decide(d.Split(kind="split", polyp=1, frame=80), 0, "Ada")
    assert polyps(other.moment) == polyps(one.moment)
    with pytest.raises(Stale, match="another decision was taken meanwhile, so this one was not"):
        other.decide(d.Merge(kind="merge", polyp=2, other=3), 0)
    other.decide(d.Merge(kind="merge", polyp=2, other=3), 1, "Grace")
    assert [(decided.number, decided.author) for decided in one.moment.state.done] == [(1, "Ada"), (2, "Grace")]
    with pytest.raises(Stale):
        one.decide(d.Undo(kind="undo"), 7)
