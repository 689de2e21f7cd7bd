"""Random scripts of decisions: whatever is decided, the state stays sound and can be taken back."""

import functools
from collections.abc import Callable
from dataclasses import fields
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypcount.errors import DataError
from polypcount.review import decisions as d
from polypcount.review.effects import Effects, preview
from polypcount.review.kept import ReviewData, read_review_data
from polypcount.review.questions import questions
from polypcount.review.regroup import Regrouping
from polypcount.review.state import Decided, State, replay
from tests.review.results import counted

Draw = Callable[[int], int]


@functools.cache
def data() -> ReviewData:
    return read_review_data(counted())


@functools.cache
def base() -> dict[str, int]:
    counts = {f"t{row}": span.polyp for row, span in enumerate(data().tracklets)}
    return {item: counts.get(item, 0) for item in data().items}


def some(draw: Draw, listed: list[str]) -> list[str]:
    return sorted({listed[draw(len(listed))] for _ in range(1 + draw(3))})


def decision(draw: Draw, state: State) -> object:
    """A decision that a person could send in this state; some are not possible."""
    items, polyps = list(state.polyp_of), [*state.polyps, 99]
    polyp, other = polyps[draw(len(polyps))], polyps[draw(len(polyps))]
    merges = [*state.merges, 77]

    def answer() -> d.Answer:
        asked = [(list(one.first), list(one.second)) for one in questions(Regrouping.of(data(), state))]
        first, second = [*asked, (["t0"], ["t3"])][draw(len(asked) + 1)]
        return d.Answer(kind="answer", first=first, second=second, same=bool(draw(2)))

    kinds: list[Callable[[], object]] = [
        answer,
        lambda: d.Answer(kind="answer", first=some(draw, items), second=some(draw, items), same=bool(draw(2))),
        lambda: d.Move(kind="move", items=some(draw, items), polyp=None if draw(3) == 0 else polyp),
        lambda: d.Merge(kind="merge", polyp=polyp, other=other),
        lambda: d.Unmerge(kind="unmerge", decision=merges[draw(len(merges))]),
        lambda: d.Split(kind="split", polyp=polyp, frame=draw(360)),
        lambda: d.NotAPolyp(kind="not a polyp", items=some(draw, items)),
        lambda: d.Describe(kind="describe", polyp=polyp, name=f"name {draw(3)}"),
        lambda: d.Add(kind="add", frame=draw(400), box=(10, 20, 10 + draw(200), 60)),
        lambda: d.Hint(kind="hint", fewest=draw(4), most=draw(7)),
        lambda: d.Regroup(kind="regroup", polyp_of=preview(data(), state)),
        lambda: d.Undo(kind="undo"),
        lambda: d.Undo(kind="undo"),
        lambda: d.Redo(kind="redo"),
    ]
    return kinds[draw(len(kinds))]()


def values_of(state: State) -> dict[str, object]:
    """Everything in a state but what is done and undone, and the largest number, which only grows."""
    left_out = ("done", "undone", "largest")
    return {field.name: getattr(state, field.name) for field in fields(state) if field.name not in left_out}


def refuse_unsound(state: State, earlier: State, effect: d.Effect) -> None:
    assert set(state.polyp_of) == set(base()) | set(state.added)
    assert all(0 <= number <= state.largest for number in state.polyp_of.values())
    assert state.largest >= earlier.largest
    assert state.members() == {polyp: state.items_of(polyp) for polyp in state.polyps}
    for one, other in data().together:
        assert not state.polyp_of[one] or state.polyp_of[one] != state.polyp_of[other]
    for link in effect.links:  # what was decided last holds
        sides = [{state.polyp_of[item] for item in side} for side in (link.first, link.second)]
        assert len(sides[0]) == 1 or link.second or 0 in sides[0]
        assert not sides[0] & sides[1] - {0}


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 2**32), max_size=14))
def test_any_script_leaves_a_sound_state_that_can_be_taken_back(script: list[int]) -> None:
    log: list[Decided] = []

    def take(what: object) -> State:
        effect = Effects(data(), replay(base(), log)).of(what)
        kept = d.Effect.model_validate_json(effect.model_dump_json(exclude_defaults=True))  # as the log keeps it
        assert kept == effect
        log.append(Decided(len(log) + 1, "2026-01-01T00:00:00Z", "", kept))
        return replay(base(), log)

    state = replay(base(), log)
    for number in script:
        earlier = state
        try:
            state = take(decision(Random(number).randrange, earlier))
        except DataError:
            assert values_of(replay(base(), log)) == values_of(earlier)
            continue
        effect = log[-1].effect
        if effect.kind not in ("undo", "redo"):
            moved = earlier.copy()
            moved.apply(log[-1])
            assert values_of(moved) == values_of(state)
            new = set(effect.moves.values()) - set(earlier.polyps) - {0}
            if effect.kind != "unmerge":
                assert all(number > earlier.largest for number in new)  # a number is never given twice
            refuse_unsound(state, earlier, effect)
            assert values_of(take(d.Undo(kind="undo"))) == values_of(earlier)
            assert values_of(take(d.Redo(kind="redo"))) == values_of(state)
    done = len(state.done)
    last = replay(base(), log)
    for _ in range(done):
        state = take(d.Undo(kind="undo"))
    assert values_of(state) == values_of(State(dict(base())))
    for _ in range(done):
        state = take(d.Redo(kind="redo"))
    assert values_of(state) == values_of(last)
