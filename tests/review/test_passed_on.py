"""What belongs to a polyp goes with it: tracklets that cannot be grouped, and what was said about it."""

from dataclasses import replace
from pathlib import Path

import pytest

from polypcount.errors import DataError
from polypcount.review.decisions import Answer, Details
from polypcount.review.effects import Effects, preview
from polypcount.review.regroup import followed
from polypcount.review.values import state_values
from tests.review.test_decisions import Person, polyps


@pytest.fixture
def person(result: Path) -> Person:
    return Person(result)


def test_what_cannot_be_grouped_follows_its_polyp(person: Person) -> None:
    """Polyp 3 has a polyp added by hand. When its tracklet goes to polyp 1, that one goes with it."""
    person.add(2, 30, 40, 60, 70)
    person.merge(3, 5)
    assert polyps(person.review.moment)[3] == ["t4", "h1"]
    moment = person.answer(["t0", "t2"], ["t4"], same=True)
    assert polyps(moment)[1] == ["t0", "t2", "t4", "h1"]
    assert (3 in polyps(moment), moment.count) == (False, 3)
    person.undo()
    state = person.review.moment.state
    assert followed({"t4": 1, "t0": 1}, person.review.data, state) == ({"h1": 1}, [])
    assert followed({"t4": 3, "t0": 3}, person.review.data, state) == ({}, [])
    assert followed({}, person.review.data, state) == ({}, [])


def test_nothing_joins_what_is_seen_in_one_frame_with_it(person: Person) -> None:
    """a0 was put into polyp 3 and is seen together with t5 here: t5 cannot come to it by an answer or a regrouping."""
    person.move("a0", to=3)
    data = replace(person.review.data, together=person.review.data.together | {("t5", "a0")})
    state = person.review.moment.state
    assert followed({"t5": 3}, data, state) == ({"a0": 5}, ["a0"])
    answer = {"kind": "answer", "first": ["t4"], "second": ["t5"], "same": True}
    with pytest.raises(DataError, match="tracklet 6 and set-aside tracklet 1 are seen in one frame"):
        Effects(data, state).of(Answer.model_validate(answer))
    shown = preview(data, state)
    merged = {item: shown.get(item, state.polyp_of[item]) for item in ("t5", "a0")}
    assert merged["t5"] != merged["a0"]


def test_what_was_said_about_a_polyp_is_passed_on(person: Person) -> None:
    person.describe(4, name="flat one", site="caecum", size_mm=3.5)
    moment = person.merge(1, 4)
    assert moment.state.details[1] == Details(name="flat one", site="caecum", size_mm=3.5)
    taken_back = person.unmerge(moment.version)
    values = {polyp["number"]: polyp for polyp in state_values(person.review, taken_back, recording=False)["polyps"]}
    assert (values[1]["name"], values[4]["name"], values[4]["size_mm"]) == ("", "flat one", 3.5)


def test_where_both_were_described_the_other_goes_into_the_note(person: Person) -> None:
    person.describe(1, name="round one", note="seen twice")
    person.describe(4, name="flat one", size_mm=3.5, note="near the valve")
    moment = person.merge(1, 4)
    assert moment.state.details[1] == Details(
        name="round one", note="seen twice\nWas polyp 4: flat one, 3.5 mm, near the valve."
    )
    person.describe(1, name="round and flat")
    moment = person.unmerge(moment.version)
    assert moment.state.details[1].name == "round and flat"  # it was changed since, and stays so


def test_an_answer_passes_on_as_well_and_what_is_no_polyp_does_not(person: Person) -> None:
    person.describe(3, name="flat one")
    moment = person.answer(["t0", "t2"], ["t4"], same=True)
    assert moment.state.details[1].name == "flat one"
    person.undo()
    moment = person.no_polyp("t4")
    assert 1 not in moment.state.details
