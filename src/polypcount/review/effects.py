"""What a decision changes, given the state in which it is taken."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatchmethod

from polypcount.errors import DataError
from polypcount.review import decisions as d
from polypcount.review.decisions import AddedBox, Details, Effect, Link, Merged
from polypcount.review.kept import ReviewData
from polypcount.review.regroup import Regrouping, followed
from polypcount.review.state import State


class Effects:
    """What decisions change.

    Args:
        data: What is reviewed.
        state: The state in which they are taken.
    """

    def __init__(self, data: ReviewData, state: State) -> None:
        self._data = data
        self._state = state

    def of(self, decision: object) -> Effect:
        """The effect of a decision, one of `decisions.Decision`.

        Raises:
            DataError: It is not possible: a sentence for the person.
        """
        effect = self._decided(decision)
        return effect.model_copy(update={"details": self._passed_on(effect.moves) | effect.details})

    def _passed_on(self, moves: Mapping[str, int]) -> dict[int, Details]:
        """What was said about polyps that end is said about those that take most of their tracklets."""
        passed, left = dict[int, Details](), {**self._state.polyp_of, **moves}
        for polyp in sorted(self._state.details.keys() - set(left.values())):
            own, items = self._state.details[polyp], self._state.items_of(polyp)
            heirs = Counter(left[item] for item in items if left[item])
            if own != Details() and heirs:
                heir = max(heirs, key=lambda one: (heirs[one], -one))
                passed[heir] = _joined(passed.get(heir, self._state.details.get(heir, Details())), own, polyp)
        return passed

    @singledispatchmethod
    def _decided(self, decision: object) -> Effect:
        raise TypeError(f"{type(decision).__name__} is no decision")

    @_decided.register
    def _(self, _: d.Undo) -> Effect:
        if not self._state.done:
            raise DataError("there is nothing to undo")
        return Effect(kind="undo", text=f"undo: {self._state.done[-1].effect.text}")

    @_decided.register
    def _(self, _: d.Redo) -> Effect:
        if not self._state.undone:
            raise DataError("there is nothing to redo")
        return Effect(kind="redo", text=f"redo: {self._state.undone[-1].effect.text}")

    @_decided.register
    def _(self, decision: d.Answer) -> Effect:
        first, second = (_existing(items, self._state) for items in (decision.first, decision.second))
        if set(first) & set(second):
            raise DataError("the two sides of a question share a tracklet")
        if any(not item.startswith("t") or not self._state.polyp_of[item] for item in (*first, *second)):
            raise DataError("only tracklets that are counted can be asked about")
        if not second:
            return self._shows_a_polyp(first, sure=decision.same)
        if decision.same:
            _refuse_together([*first, *second], self._data)
            links = [Link(first=[*first, *second])]
        else:
            links = [Link(first=first, second=second)]
        touched = {self._state.polyp_of[item] for item in (*first, *second)}
        after = self._state.copy()
        after.links += links
        regrouping = Regrouping.of(self._data, after)
        among = [row for row, item in enumerate(regrouping.items) if self._state.polyp_of[item] in touched]
        polyp_of = regrouping.numbers(regrouping.labels(), after, among)
        others, alone = followed(polyp_of, self._data, self._state)
        if decision.same:
            for item in alone:
                _refuse_together([item, *first, *second], self._data)
        polyp_of |= others
        numbers = _listed(touched)
        text = f"{numbers} {'are one polyp' if len(touched) > 1 else 'is one polyp'}"
        if not decision.same:
            text = f"{numbers} {'are not one polyp' if len(touched) > 1 else 'is more than one polyp'}"
        return Effect(kind="answer", text=f"answer: {text}", moves=_changes(polyp_of, self._state), links=links)

    def _shows_a_polyp(self, items: Sequence[str], *, sure: bool) -> Effect:
        numbers = _listed({self._state.polyp_of[item] for item in items})
        if not sure:
            return Effect(kind="answer", text=f"answer: {numbers} shows no polyp", moves=dict.fromkeys(items, 0))
        # A link of its own for each: that they are of one polyp was not asked.
        return Effect(
            kind="answer", text=f"answer: {numbers} shows a polyp", links=[Link(first=[item]) for item in items]
        )

    @_decided.register
    def _(self, decision: d.Move) -> Effect:
        named = _existing(decision.items, self._state)
        if decision.polyp is None:
            target, members, where = self._state.largest + 1, [], "a new polyp"
        else:
            target, members, where = decision.polyp, _members(decision.polyp, self._state), f"polyp {decision.polyp}"
        items = [item for item in named if self._state.polyp_of[item] != target]
        if not items:
            raise DataError(f"{_named(named)} is already in {where}")
        _refuse_together([*members, *items], self._data)
        old = {self._state.polyp_of[item] for item in items} - {0}
        left = [item for item, polyp in self._state.polyp_of.items() if polyp in old and item not in items]
        links = [Link(first=[*_anchor(members, self._data), *items])]
        if left:
            links.append(Link(first=items, second=left))
        return Effect(
            kind="move", text=f"move {_named(items)} to {where}", moves=dict.fromkeys(items, target), links=links
        )

    @_decided.register
    def _(self, decision: d.Merge) -> Effect:
        if decision.polyp == decision.other:
            raise DataError("a polyp cannot be merged with itself")
        members, others = _members(decision.polyp, self._state), _members(decision.other, self._state)
        _refuse_together([*members, *others], self._data)
        return Effect(
            kind="merge",
            text=f"merge polyps {decision.polyp} and {decision.other}",
            moves=dict.fromkeys(others, decision.polyp),
            links=[Link(first=[*members, *others])],
            merged=Merged(into=decision.polyp, source=decision.other, items=others),
        )

    @_decided.register
    def _(self, decision: d.Unmerge) -> Effect:
        merged = self._state.merges.get(decision.decision)
        if merged is None:
            raise DataError(f"decision {decision.decision} is no merge that can be taken back")
        back = [item for item in merged.items if self._state.polyp_of.get(item) == merged.into]
        left = [item for item in self._state.items_of(merged.into) if item not in back]
        if not back or not left:
            raise DataError(f"polyps {merged.into} and {merged.source} are not one any more")
        return Effect(
            kind="unmerge",
            text=f"take back the merge of polyps {merged.into} and {merged.source}",
            moves=dict.fromkeys(back, merged.source),
            links=[Link(first=back, second=left)],
            details=self._before_merge(decision.decision, merged.into),
            unmerged=decision.decision,
        )

    def _before_merge(self, decision: int, polyp: int) -> dict[int, Details]:
        """What was said about a polyp before a merge passed something on to it, unless it was changed since."""
        details = Details()
        for decided in self._state.done:
            if decided.number == decision:
                given = decided.effect.details.get(polyp)
                return {polyp: details} if given is not None and given == self._state.details.get(polyp) else {}
            details = decided.effect.details.get(polyp, details)
        return {}

    @_decided.register
    def _(self, decision: d.Split) -> Effect:
        members = _members(decision.polyp, self._state)
        later = [item for item in members if span_of(item, self._data, self._state)[0] >= decision.frame]
        before = [item for item in members if item not in later]
        if not later or not before:
            raise DataError(f"polyp {decision.polyp} has no tracklets on both sides of frame {decision.frame}")
        return Effect(
            kind="split",
            text=f"split polyp {decision.polyp}",
            moves=dict.fromkeys(later, self._state.largest + 1),
            links=[Link(first=later, second=before)],
        )

    @_decided.register
    def _(self, decision: d.NotAPolyp) -> Effect:
        items = [item for item in _existing(decision.items, self._state) if self._state.polyp_of[item]]
        if not items:
            raise DataError(f"{_named(decision.items)} is not counted already")
        return Effect(kind="not a polyp", text=f"{_named(items)} shows no polyp", moves=dict.fromkeys(items, 0))

    @_decided.register
    def _(self, decision: d.Describe) -> Effect:
        _members(decision.polyp, self._state)
        details = Details(**decision.model_dump(exclude={"kind", "polyp"}))
        if details == self._state.details.get(decision.polyp, Details()):
            raise DataError(f"that is already said about polyp {decision.polyp}")
        return Effect(kind="describe", text=f"describe polyp {decision.polyp}", details={decision.polyp: details})

    @_decided.register
    def _(self, decision: d.Add) -> Effect:
        left, top, right, bottom = decision.box
        width, height = self._data.size or (100_000, 100_000)
        if decision.frame >= self._data.frame_count:
            raise DataError(
                f"the recording has no frame {decision.frame}; its last one is {self._data.frame_count - 1}"
            )
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            raise DataError(f"the box must lie inside the frame of {width} x {height} pixels")
        number = 1 + max((int(item[1:]) for item in self._state.added), default=0)
        used = [decided.effect.added for decided in (*self._state.done, *self._state.undone)]
        number = max([number, *(1 + int(one.item[1:]) for one in used if one is not None)])
        added = AddedBox(item=f"h{number}", frame=decision.frame, box=decision.box)
        return Effect(kind="add", text="add a polyp by hand", moves={added.item: self._state.largest + 1}, added=added)

    @_decided.register
    def _(self, decision: d.Hint) -> Effect:
        fewest, most = decision.fewest, decision.most
        if fewest is not None and most is not None and fewest > most:
            raise DataError(f"the fewest polyps, {fewest}, are more than the most, {most}")
        words = "not known" if fewest is None and most is None else _range_words(fewest, most)
        return Effect(kind="hint", text=f"number of polyps: {words}", hint=(fewest, most))

    @_decided.register
    def _(self, decision: d.Regroup) -> Effect:
        shown = preview(self._data, self._state)
        if decision.polyp_of != shown:
            raise DataError("this is not the grouping that was shown; look at it again")
        moves = _changes(shown, self._state)
        if not moves:
            raise DataError("regrouping changes nothing")
        return Effect(kind="regroup", text="regroup", moves=moves)


def preview(data: ReviewData, state: State) -> dict[str, int]:
    """The polyp of each tracklet that can be grouped, if it were grouped again."""
    regrouping = Regrouping.of(data, state)
    polyp_of = regrouping.numbers(regrouping.labels(), state)
    return polyp_of | followed(polyp_of, data, state)[0]


def span_of(item: str, data: ReviewData, state: State) -> tuple[int, int]:
    """First frame of an item, and the frame after its last one."""
    row = int(item[1:])
    if item[0] == "t":
        return data.tracklets[row].start_frame, data.tracklets[row].stop_frame
    if item[0] == "a":
        return data.set_aside[row].start_frame, data.set_aside[row].stop_frame
    if item[0] == "h":
        return state.added[item].frame, state.added[item].frame + 1
    span = data.short[row]
    return span.start_frame, span.stop_frame


def _joined(kept: Details, other: Details, polyp: int) -> Details:
    """What is said about one polyp that was two. Where both say something, the other goes into the note."""
    if kept == Details():
        return other
    said = [other.name, other.site, f"{other.size_mm:g} mm" if other.size_mm is not None else "", other.histology]
    words = ", ".join(part for part in (*said, other.note) if part)
    note = f"{kept.note}\n" if kept.note else ""
    return kept.model_copy(update={"note": f"{note}Was polyp {polyp}: {words}."})


def _existing(items: Iterable[str], state: State) -> list[str]:
    """The items, each once."""
    listed = list(dict.fromkeys(items))
    for item in listed:
        if item not in state.polyp_of:
            raise DataError(f"there is no tracklet {item}")
    return listed


def _members(polyp: int, state: State) -> list[str]:
    members = state.items_of(polyp)
    if not members:
        raise DataError(f"there is no polyp {polyp}")
    return members


def _anchor(members: Sequence[str], data: ReviewData) -> list[str]:
    """The longest counted tracklet of a polyp, which stands for it; none if it has none."""
    counted = [item for item in members if item.startswith("t")]
    return [max(counted, key=lambda item: data.tracklets[int(item[1:])].box_count)] if counted else []


def _refuse_together(items: Sequence[str], data: ReviewData) -> None:
    """Raise where two of the items have boxes in one frame."""
    wanted = set(items)
    for first, second in sorted(data.together):
        if first in wanted and second in wanted:
            raise DataError(
                f"{_named([first])} and {_named([second])} are seen in one frame together, so they cannot be one "
                "polyp; if one of them is a double box, mark it as not a polyp"
            )


def _changes(polyp_of: dict[str, int], state: State) -> dict[str, int]:
    return {item: polyp for item, polyp in polyp_of.items() if state.polyp_of[item] != polyp}


def _named(items: Sequence[str]) -> str:
    """Items in words: "tracklet 5", "3 tracklets". The words of the page."""
    return name_of(items[0]) if len(items) == 1 else f"{len(items)} tracklets"


def name_of(item: str) -> str:
    """An item in words, numbered from 1."""
    number = int(item[1:])
    kinds = {
        "t": f"tracklet {number + 1}",
        "a": f"set-aside tracklet {number + 1}",
        "s": f"short tracklet {number + 1}",
    }
    return kinds.get(item[0], f"polyp by hand {number}")


def _listed(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in sorted(numbers)]
    if len(listed) == 1:
        return f"polyp {listed[0]}"
    return f"polyps {', '.join(listed[:-1])} and {listed[-1]}"


def _range_words(fewest: int | None, most: int | None) -> str:
    if most is None:
        return f"at least {fewest}"
    return f"{most}" if fewest == most else f"at most {most}" if not fewest else f"{fewest} to {most}"
