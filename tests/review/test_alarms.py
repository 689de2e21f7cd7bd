"""Polyps of a detector that are seen for a short time only: "is this a polyp?"."""

from dataclasses import replace
from pathlib import Path

import pytest

from polypcount.clustering import Band
from polypcount.errors import DataError
from polypcount.review import Review, Snapshot
from polypcount.review.decisions import Answer
from polypcount.review.effects import Effects
from polypcount.review.state import Decided, replay


@pytest.fixture
def detected(result: Path) -> Snapshot:
    """The count as if a detector had found the boxes: at the lower end, polyps count from 1.8 s on. Each is seen 1.6 s.

    Polyp 1 is seen in two tracklets of 1.6 s each, and so is polyp 2.
    """
    review = Review(result)
    data = review.data
    band = Band(tracked=True, tracklets=100, low=0.1, high=0.9, seconds=1.8, procedures=10)
    point = data.basis.point.model_copy(update={"bands": (band,)})
    data = replace(data, basis=replace(data.basis, tracked=True, point=point))
    return Snapshot(data, review.moment.state, 0, claimed=True)


def after(moment: Snapshot, *answers: Answer) -> Snapshot:
    log = list[Decided]()
    for number, answer in enumerate(answers, 1):
        state = replay(moment.state.polyp_of, log)
        log.append(Decided(number, "", "", Effects(moment.data, state).of(answer)))
    return Snapshot(moment.data, replay(moment.state.polyp_of, log), len(log), claimed=True)


def says(polyp: str, *, sure: bool) -> Answer:
    return Answer(kind="answer", first=[polyp], second=[], same=sure)


def alarms(moment: Snapshot) -> set[tuple[str, ...]]:
    return {question.first for question in moment.questions if not question.second}


def test_only_polyps_seen_for_a_short_time_are_asked_about(detected: Snapshot) -> None:
    assert alarms(detected) == {("t4",), ("t5",)}
    doubts = [question.doubt for question in detected.questions]
    assert doubts == sorted(doubts, reverse=True)
    assert all(question.likeness is None for question in detected.questions if not question.second)


def test_a_false_alarm_is_counted_no_more(detected: Snapshot) -> None:
    moment = after(detected, says("t4", sure=False))
    assert (moment.count, moment.state.polyp_of["t4"]) == (detected.count - 1, 0)
    assert alarms(moment) == {("t5",)}
    assert moment.state.done[-1].effect.text == "answer: polyp 3 shows no polyp"
    with pytest.raises(DataError, match="only tracklets that are counted"):
        after(moment, says("t4", sure=False), says("t4", sure=True))


def test_a_polyp_that_somebody_has_seen_counts_at_the_lower_end(detected: Snapshot) -> None:
    moment = after(detected, says("t4", sure=True))
    assert moment.count == detected.count
    assert alarms(moment) == {("t5",)}
    least = replace(moment.regrouping, confirmed=detected.regrouping.confirmed)
    assert moment.regrouping.ends(moment.count)[0] >= least.ends(moment.count)[0]
    assert moment.regrouping.confirmed.tolist() == [item == "t4" for item in moment.regrouping.items]


def test_when_nothing_is_asked_both_ends_agree(detected: Snapshot) -> None:
    moment = detected
    for _ in range(30):
        if not moment.questions:
            break
        question = moment.questions[0]
        answer = Answer(kind="answer", first=[*question.first], second=[*question.second], same=not question.second)
        effect = Effects(moment.data, moment.state).of(answer)
        log = [*moment.state.done, Decided(len(moment.state.done) + 1, "", "", effect)]
        moment = Snapshot(moment.data, replay(detected.state.polyp_of, log), len(log), claimed=True)
    assert moment.questions == []
    assert moment.interval == (moment.count, moment.count)
