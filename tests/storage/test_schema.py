"""The checker of plain values: one line for each bad key, which names it."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, model_validator

from polypcount.errors import DataErrors
from polypcount.storage import Schema, check


class Near(Schema):
    kind: Literal["near"]
    frames: int


class Far(Schema):
    kind: Literal["far"]
    seconds: float


@dataclass(frozen=True)
class Size:
    width: int
    height: int = 0


class Settings(Schema):
    method: Literal["ap", "threshold"] = "ap"
    share: float = Field(0.5, gt=0, le=1)
    frames: int = Field(30, ge=0)
    name: str = Field("a", min_length=1)
    active: bool = True
    ids: tuple[str, ...] = ()
    rules: tuple[Annotated[Near | Far, Field(discriminator="kind")], ...] = ()
    nothing: None = None
    sizes: tuple[Size, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "Settings":
        if self.name in self.ids:
            raise ValueError("ids must not hold the name")
        return self


def test_values_of_the_right_kind() -> None:
    settings = check(Settings, {"ids": ["b"], "share": 1, "rules": [{"kind": "far", "seconds": 2}]}, "here")
    assert settings.ids == ("b",)
    assert settings.share == 1.0
    assert settings.rules == (Far(kind="far", seconds=2.0),)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"metod": "ap"}, "metod is unknown; did you mean method?"),
        ({"xyz": 1}, "xyz is unknown; known are method, share, frames, name, active, ids, rules, nothing, sizes"),
        ({"method": "k-means"}, "method must be 'ap' or 'threshold', found 'k-means'"),
        ({"share": 0}, "share must be above 0, found 0"),
        ({"share": 1.5}, "share must be at most 1, found 1.5"),
        ({"share": "1"}, "share must be a number, found '1'"),
        ({"share": float("nan")}, "share must be a finite number, found nan"),
        ({"frames": -1}, "frames must be at least 0, found -1"),
        ({"frames": 1.5}, "frames must be a whole number, found 1.5"),
        ({"frames": True}, "frames must be a whole number, found True"),
        ({"name": 3}, "name must be text, found 3"),
        ({"name": ""}, "name must be of length at least 1, found ''"),
        ({"active": 1}, "active must be true or false, found 1"),
        ({"ids": "b"}, "ids must be a list, found 'b'"),
        ({"ids": ["b", 3]}, "ids[1] must be text, found 3"),
        ({"sizes": [{"width": 1, "colour": 2}]}, "sizes[0].colour is unknown; known are width, height"),
        ({"sizes": [{}]}, "sizes[0].width is missing"),
        ({"nothing": 0}, "nothing must be null, found 0"),
        ({"name": "b", "ids": ["b"]}, "ids must not hold the name"),
        ({"rules": [{"kind": "near"}]}, "rules[0].near.frames is missing"),
        ({"rules": [{"frames": 3}]}, "rules[0].kind is missing"),
        ({"rules": [{"kind": "big"}]}, "rules[0].kind must be one of 'near', 'far', found {'kind': 'big'}"),
        ({"name": object}, "must be plain JSON values: Object of type type is not JSON serializable"),
        ([], "it must be a group of keys, found []"),
        (None, "it must be a group of keys, found None"),
    ],
)
def test_each_bad_key_has_its_line(values: Any, line: str) -> None:
    with pytest.raises(DataErrors) as caught:
        check(Settings, values, "a.yaml")
    assert caught.value.lines == (f"a.yaml: {line}",)


def test_text_that_no_file_can_keep() -> None:
    with pytest.raises(DataErrors, match=r"a\.yaml: it is not valid JSON"):
        check(Settings, {"name": "\udcff"}, "a.yaml")


def test_all_bad_keys_are_reported_at_once() -> None:
    with pytest.raises(DataErrors) as caught:
        check(Settings, {"share": 2, "frames": -1, "ids": [1, 2]}, "a.yaml")
    assert [line.split()[1] for line in caught.value.lines] == ["share", "frames", "ids[0]", "ids[1]"]


def test_a_long_value_is_cut_short() -> None:
    with pytest.raises(DataErrors) as caught:
        check(Settings, {"frames": "x" * 10_000}, "a.yaml")
    assert len(str(caught.value)) < 200
