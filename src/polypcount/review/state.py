"""The state of a review: what the log of decisions says about every tracklet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from polypcount.errors import DataError
from polypcount.review.decisions import AddedBox, Details, Effect, Link, Merged

UNDO, REDO = "undo", "redo"


@dataclass(frozen=True)
class Decided:
    """A decision in the log.

    Attributes:
        number: 1, 2, ... in the order of the log.
        time: When it was taken, ISO 8601 in UTC.
        author: Who took it; empty if that was not said.
        effect: What it changes.
    """

    number: int
    time: str
    author: str
    effect: Effect


@dataclass
class State:
    """Which tracklet belongs to which polyp, and what is known.

    Attributes:
        polyp_of: The polyp of each item, 0 for none.
        details: What a person said about polyps.
        links: What grouping must respect; later ones win.
        hint: The fewest and the most polyps; None for no limit.
        added: Polyps that were added by hand, by item.
        merges: Merges by the number of their decision.
        done: Decisions that hold.
        undone: Decisions that were taken back and can be taken again, the next one last.
        largest: Largest number that any polyp has ever had.
    """

    polyp_of: dict[str, int]
    details: dict[int, Details] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    hint: tuple[int | None, int | None] = (None, None)
    added: dict[str, AddedBox] = field(default_factory=dict)
    merges: dict[int, Merged] = field(default_factory=dict)
    done: list[Decided] = field(default_factory=list)
    undone: list[Decided] = field(default_factory=list)
    largest: int = 0

    def items_of(self, polyp: int) -> list[str]:
        """The items of a polyp."""
        return [item for item, number in self.polyp_of.items() if number == polyp]

    def members(self) -> dict[int, list[str]]:
        """The items of each polyp, by rising number."""
        members: dict[int, list[str]] = {polyp: [] for polyp in self.polyps}
        for item, polyp in self.polyp_of.items():
            if polyp:
                members[polyp].append(item)
        return members

    @property
    def polyps(self) -> list[int]:
        """Numbers of the polyps that have an item, rising."""
        return sorted(set(self.polyp_of.values()) - {0})

    def copy(self) -> "State":
        """A state that can change on its own."""
        return State(
            dict(self.polyp_of),
            dict(self.details),
            list(self.links),
            self.hint,
            dict(self.added),
            dict(self.merges),
            list(self.done),
            list(self.undone),
            self.largest,
        )

    def apply(self, decided: Decided) -> None:
        """Change the state as a decision says.

        Raises:
            DataError: It is about something that is not there; the log is damaged.
        """
        effect = decided.effect
        if effect.added is not None:
            self.added[effect.added.item] = effect.added
            self.polyp_of[effect.added.item] = 0
        unknown = effect.moves.keys() - self.polyp_of.keys()
        if unknown:
            raise DataError(f"decision {decided.number} moves {min(unknown)}, which the count does not have")
        self.polyp_of |= effect.moves
        self.details |= effect.details
        self.links += effect.links
        if effect.hint is not None:
            self.hint = effect.hint
        if effect.merged is not None:
            self.merges[decided.number] = effect.merged
        if effect.unmerged is not None:
            self.merges.pop(effect.unmerged, None)


def replay(base: Mapping[str, int], log: Iterable[Decided]) -> State:
    """The state after all decisions of a log.

    Undo takes back the last decision that holds; redo takes the last one again that was taken back. A new decision
    ends what could be taken again.

    Args:
        base: The polyp of each item as counted, 0 for none.
        log: The decisions, in order.
    """
    done, undone, largest = list[Decided](), list[Decided](), max(base.values(), default=0)
    for decided in log:
        if decided.effect.kind == UNDO:
            if done:
                undone.append(done.pop())
        elif decided.effect.kind == REDO:
            if undone:
                done.append(undone.pop())
        else:
            done.append(decided)
            undone = []
            largest = max(largest, *decided.effect.moves.values(), 0)
    state = State(dict(base), done=done, undone=undone, largest=largest)
    for decided in done:
        state.apply(decided)
    return state
