"""Plain values from files and users, checked against a schema: one line for each bad key."""

import difflib
import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from polypcount.errors import DataErrors, FileError
from polypcount.storage.files import LARGEST_JSON_BYTES, read_json

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "none_required": "null",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a group of keys",
    "model_type": "a group of keys",
    "dataclass_type": "a group of keys",
}
_BOUNDS = {
    "ge": "at least",
    "gt": "above",
    "le": "at most",
    "lt": "below",
    "min_length": "of length at least",
    "max_length": "of length at most",
}


class Schema(BaseModel):
    """Parent of all schemas: unknown keys are errors, values are never converted, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Manifest(Schema):
    """The description of something that polypcount keeps on disk. Its format and version say what can read it.

    A subclass sets FORMAT, VERSION (the newest that this polypcount reads) and KIND (for messages).
    """

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int] = 1
    KIND: ClassVar[str]

    format: str
    format_version: int

    @classmethod
    def described(cls, **values: Any) -> Self:
        """A manifest of the newest version."""
        return check(cls, {"format": cls.FORMAT, "format_version": cls.VERSION, **values}, cls.KIND)


class SettingsSchema(Schema):
    """Settings that are built in code as well, such as `DetectorSettings(confidence=0.3)`.

    A bad keyword raises `DataErrors`, as `check` does. A subclass sets KIND (for messages). Fields that hold a tuple
    need `Field(strict=False)`, so that they take a list as well.
    """

    KIND: ClassVar[str]

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as problem:
            raise DataErrors(_lines(type(self), problem, self.KIND)) from None


S = TypeVar("S", bound=BaseModel)
M = TypeVar("M", bound=Manifest)


def check(model: type[S], values: Any, where: str) -> S:
    """Check JSON values against a schema.

    Args:
        model: The schema.
        values: What was read, as `json.loads` or a YAML reader gives it.
        where: What the values are, such as a file name; begins each line of the error.

    Raises:
        DataErrors: One line for each key that is unknown, missing or of another kind.
    """
    try:
        # As JSON text, since strict checking takes lists for tuples only there.
        return model.model_validate_json(json.dumps(values))
    except ValidationError as problem:
        lines = _lines(model, problem, where)
    except (TypeError, ValueError, RecursionError) as problem:
        lines = [f"{where}: must be plain JSON values: {problem}"]
    raise DataErrors(lines)


def read_manifest(path: Path, model: type[M], largest: int = LARGEST_JSON_BYTES) -> M:
    """Read and check a manifest.

    Raises:
        FileError: The file is missing, damaged, of another format, of a newer version, or has a bad key.
    """
    return check_manifest(model, read_json(path, largest), str(path))


def check_manifest(model: type[M], values: Any, where: str) -> M:
    """Check a manifest that was read from `where`.

    Raises:
        FileError: It is of another format, of a newer version, or has a bad key.
    """
    if not isinstance(values, dict) or values.get("format") != model.FORMAT:
        raise FileError(f'{where} is not {model.KIND}: "format" must be "{model.FORMAT}"')
    version = values.get("format_version")
    if type(version) is not int or version < 1:
        raise FileError(f"{where}: format_version must be a whole number from 1, found {shown(version)}")
    if version > model.VERSION:
        raise FileError(
            f"{where} has format version {version}, this polypcount reads up to {model.VERSION}: upgrade polypcount"
        )
    try:
        return check(model, values, where)
    except DataErrors as problem:
        raise FileError(problem.lines[0]) from None


def shown(value: object) -> str:
    """A value of any size and depth for a message, cut short."""
    return reprlib.repr(value)


def _lines(model: type[BaseModel], problem: ValidationError, where: str) -> list[str]:
    lines: dict[str, str] = {}  # one for each key: a union has an error for each of its members
    for error in problem.errors(include_url=False):
        name, group = _follow(model, error["loc"])
        lines.setdefault(name, _line(name or "it", group, error))
    return [f"{where}: {line}" for line in lines.values()]


def _line(name: str, group: Any, error: Any) -> str:
    """What is wrong with one key, in words."""
    kind, context = error["type"], error.get("ctx", {})
    value = shown(error["input"])
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        keys = list(_fields(group))
        near = difflib.get_close_matches(str(error["loc"][-1]), keys, 1)
        return f"{name} is unknown; " + (f"did you mean {near[0]}?" if near else f"known are {', '.join(keys)}")
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return f"{name} is missing"
    if kind.startswith("union_tag"):
        key = f"{name}.{context['discriminator'].strip(chr(39))}"
        missing = kind == "union_tag_not_found"
        return f"{key} is missing" if missing else f"{key} must be one of {context['expected_tags']}, found {value}"
    if kind == "literal_error":
        return f"{name} must be {context['expected']}, found {value}"
    if kind == "value_error":  # raised by a rule of the schema, which names the key
        text = str(context["error"]).removeprefix(f"{name}: ")
        return f"{name}: {text}" if error["loc"] else text
    if kind == "json_invalid":  # too deep, or text with half characters, as in file names that are not valid text
        return f"it is not valid JSON: {context['error']}"
    for bound, words in _BOUNDS.items():
        if bound in context:
            return f"{name} must be {words} {context[bound]:.12g}, found {value}"
    expected = f" must be {_EXPECTED[kind]}" if kind in _EXPECTED else f": {error['msg']}"
    return f"{name}{expected}, found {value}"


def _follow(model: Any, location: tuple[Any, ...]) -> tuple[str, Any]:
    """A path such as polyps[0].number, and the schema of the group that its last key belongs to."""
    name, group, kind = "", model, model
    for key in location:
        members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
        members = tuple(member for member in members if member is not NoneType)
        if len(members) > 1:  # this key is not in the data: it says which member of the union the error is about
            kind = next((each for each in members if key in [field.default for field in _fields(each).values()]), None)
            continue
        group = members[0]
        if isinstance(key, int):
            name, kind = f"{name}[{key}]", next(iter(get_args(group)), None)
        else:
            name = f"{name}.{key}" if name else str(key)
            field = _fields(group).get(key)
            kind = (
                getattr(field, "annotation", None)
                or getattr(field, "type", None)
                or next(reversed(get_args(group)), None)
            )
    return name, group


def _fields(kind: Any) -> Mapping[str, Any]:
    """The fields of a schema or a dataclass by name; empty for any other type."""
    return getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", {})
