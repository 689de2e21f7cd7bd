"""What a person can decide, as the page sends it, and what is kept of it."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from polypcount.storage import Schema

MOST_ITEMS, MOST_POLYPS = 20_000, 10_000
_Item = Annotated[str, Field(pattern=r"^[tash](0|[1-9][0-9]{0,8})$")]
_Items = Annotated[list[_Item], Field(min_length=1, max_length=MOST_ITEMS)]
_Number = Annotated[int, Field(ge=1, le=1_000_000)]
_Frame = Annotated[int, Field(ge=0, lt=2**31)]
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_Size = Annotated[float, Field(gt=0, le=300, strict=False)]
_Side = Annotated[float, Field(ge=-100_000, le=100_000, strict=False)]
_Hint = Annotated[int, Field(ge=0, le=MOST_POLYPS)]


def _without_control(text: str) -> str:
    """Lines without control characters, which formats such as XML cannot hold."""
    return _CONTROL.sub(" ", text)


OneLine = Annotated[str, Field(max_length=100), AfterValidator(lambda text: " ".join(_without_control(text).split()))]
_Lines = Annotated[str, Field(max_length=2000), AfterValidator(_without_control)]


class Answer(Schema):
    """Whether two groups of tracklets are one polyp; without a second one, whether the first shows a polyp."""

    kind: Literal["answer"]
    first: _Items
    second: Annotated[list[_Item], Field(max_length=MOST_ITEMS)]
    same: bool


class Move(Schema):
    """Tracklets belong to another polyp, or to a new one with None."""

    kind: Literal["move"]
    items: _Items
    polyp: _Number | None


class Merge(Schema):
    """Two polyps are one: `other` becomes part of `polyp`."""

    kind: Literal["merge"]
    polyp: _Number
    other: _Number


class Unmerge(Schema):
    """Take a merge back. decision: Its number."""

    kind: Literal["unmerge"]
    decision: _Number


class Split(Schema):
    """A polyp is two: what starts at this frame or later is a new one."""

    kind: Literal["split"]
    polyp: _Number
    frame: _Frame


class NotAPolyp(Schema):
    """Tracklets show no polyp."""

    kind: Literal["not a polyp"]
    items: _Items


class Describe(Schema):
    """What is known about a polyp."""

    kind: Literal["describe"]
    polyp: _Number
    name: OneLine = ""
    site: OneLine = ""
    size_mm: _Size | None = None
    histology: OneLine = ""
    note: _Lines = ""


class Add(Schema):
    """A polyp that no box showed. box: Left, top, right, bottom in pixels of the recording."""

    kind: Literal["add"]
    frame: _Frame
    box: Annotated[tuple[_Side, _Side, _Side, _Side], Field(strict=False)]


class Hint(Schema):
    """How many polyps there are; None for no limit."""

    kind: Literal["hint"]
    fewest: _Hint | None
    most: _Hint | None


class Regroup(Schema):
    """Accept a new grouping, exactly as it was shown."""

    kind: Literal["regroup"]
    polyp_of: Annotated[dict[_Item, _Number], Field(max_length=MOST_ITEMS)]


class Undo(Schema):
    """Take back the last decision."""

    kind: Literal["undo"]


class Redo(Schema):
    """Take the last decision again that was taken back."""

    kind: Literal["redo"]


Decision = Annotated[
    Answer | Move | Merge | Unmerge | Split | NotAPolyp | Describe | Add | Hint | Regroup | Undo | Redo,
    Field(discriminator="kind"),
]


class Details(Schema):
    """What a person said about a polyp."""

    name: str = ""
    site: str = ""
    size_mm: float | None = None
    histology: str = ""
    note: str = ""


class Link(Schema):
    """Tracklets that are one polyp, or two.

    Attributes:
        first: Items. They are one polyp if there are no others.
        second: Other items, none of which is of the polyp of an item in `first`.
    """

    first: list[str]
    second: list[str] = Field(default_factory=list)


class AddedBox(Schema):
    """A polyp that was added by hand."""

    item: str
    frame: int
    box: Annotated[tuple[float, float, float, float], Field(strict=False)]


class Merged(Schema):
    """Which items went from one polyp to another."""

    into: int
    source: int
    items: list[str]


class Effect(Schema):
    """What a decision changes. It is kept, so the state never depends on how a later version would group.

    Attributes:
        kind: Kind of the decision.
        text: What was decided, in words.
        moves: The polyp of each item that changes, 0 for none.
        links: What grouping must respect from now on.
        details: What is known about polyps, by number.
        hint: The fewest and the most polyps; None for no change.
        added: A polyp that was added by hand.
        merged: A merge, which can be taken back.
        unmerged: Number of the merge that is taken back.
    """

    kind: str
    text: str
    moves: dict[str, int] = Field(default_factory=dict)
    links: list[Link] = Field(default_factory=list)
    details: dict[int, Details] = Field(default_factory=dict, strict=False)
    hint: Annotated[tuple[int | None, int | None], Field(strict=False)] | None = None
    added: AddedBox | None = None
    merged: Merged | None = None
    unmerged: int | None = None
