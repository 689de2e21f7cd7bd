"""Recipes on disk: YAML files, of which some come with the package; each may build on another and be overridden."""

import copy
import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from polypcount.errors import DataError, DataErrors, FileError
from polypcount.training.plain_yaml import read_yaml
from polypcount.training.recipe import Recipe

_LARGEST_BYTES = 1 << 16
_MOST_BASES = 8
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "model": "a group of keys",
    "dataclass": "a group of keys",
}


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package."""
    return sorted(Path(entry.name).stem for entry in _home().iterdir() if entry.name.endswith(".yaml"))


def load_recipe(recipe: str | Path | Mapping[str, Any] | Recipe = "temporal", changes: Sequence[str] = ()) -> Recipe:
    """A recipe by name, from a YAML file, or from its values.

    changes: such as `optimizer.lr=1e-4`, in turn, but a sampler's kind before its settings; values are read as YAML.
    A key that is unknown, missing or of another kind raises `DataError` with one line for each.
    """
    if isinstance(recipe, Recipe):
        values: dict[str, Any] = recipe.model_dump(mode="json")
        where = f"recipe {recipe.name}"
    elif isinstance(recipe, Mapping):
        values, where = _on_its_base(copy.deepcopy(dict(recipe)), "recipe", Path(), 0), "recipe"
    else:
        values, where = _read(str(recipe), Path(), 0), f"recipe {recipe}"
    for change in sorted(changes, key=lambda change: not change.partition("=")[0].strip().endswith(".kind")):
        _apply(values, change)
    try:
        found = Recipe.model_validate(values)
        lines = list(_bent(values, found.model_dump(mode="json")))
    except ValidationError as problem:
        lines = list(dict.fromkeys(_line(error) for error in problem.errors(include_url=False)))
    if lines:
        raise DataErrors([f"{where}: {line}" for line in lines])
    return found


def recipe_text(recipe: Recipe) -> str:
    """The whole recipe as YAML that `load_recipe` reads back."""
    text: str = yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, default_flow_style=None, width=100)
    return text


def _home() -> Any:
    return resources.files("polypcount.training") / "recipes"


def _read(name: str, beside: Path, depth: int) -> dict[str, Any]:
    """Values of a recipe, on those of its base. beside: folder from which the file of that name is sought."""
    path = beside / name
    try:
        if name in recipe_names():
            text = (_home() / f"{name}.yaml").read_text(encoding="utf-8")
        elif path.is_file():
            if path.stat().st_size > _LARGEST_BYTES:
                raise FileError(f"{path} is too large to be a recipe")
            text = path.read_text(encoding="utf-8")
        else:
            known = ", ".join(recipe_names())
            raise FileError(f"there is no recipe {str(path)!r}: give one of {known}, or a YAML file")
        values = read_yaml(text)
    except OSError as problem:
        raise FileError(f"{path}: the recipe cannot be read: {problem.strerror or problem}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: the recipe is not a text file in UTF-8") from None
    except DataError as problem:
        raise FileError(f"{path}: the recipe is not valid YAML, {problem}") from None
    if not isinstance(values, dict):
        raise FileError(f"{path}: a recipe must be keys and values, found {_shown(values)}")
    return _on_its_base(values, f"recipe {path}", path.parent, depth)


def _on_its_base(values: dict[str, Any], where: str, beside: Path, depth: int) -> dict[str, Any]:
    base = values.pop("base", None)
    if base is None:
        return values
    if depth == _MOST_BASES or not isinstance(base, str):
        found = _shown(base)
        raise DataError(f"{where}: base must be the name of a recipe that does not build on this one, found {found}")
    return _over(_read(base, beside, depth + 1), values)


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values of `above` in the place of those below; groups are joined, unless they are of different kinds."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        same = (
            isinstance(old, dict) and isinstance(value, dict) and value.get("kind", old.get("kind")) == old.get("kind")
        )
        joined[key] = _over(old, value) if same and isinstance(old, dict) else value
    return joined


def _apply(values: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise DataError(f"--set takes KEY=VALUE such as optimizer.lr=1e-4, found {change!r}")
    try:
        value = read_yaml(text)
    except DataError:
        raise DataError(f"--set {path}: the value {text[:50]!r} is not valid YAML") from None
    group = values
    for depth, key in enumerate(keys[:-1], 1):
        inner = group.setdefault(key, {})
        if not isinstance(inner, dict):
            raise DataError(f"--set {path}: {'.'.join(keys[:depth])} has no keys of its own")
        group = inner
    if keys[-1] == "kind" and group.get("kind") != value:
        group.clear()  # the settings of another kind of sampler mean nothing to this one
    group[keys[-1]] = value


def _line(error: Any) -> str:
    path = [str(key) for key in error["loc"]]
    kind, context = error["type"], error.get("ctx", {})
    if len(path) > 1 and path[0] == "sampler":  # the kind of sampler stands in the path
        path.pop(1)
    name, found = ".".join(path), _shown(error["input"])
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_at(Recipe, path[:-1], error["loc"])
        near = difflib.get_close_matches(path[-1], known, 1)
        return f"{name} is unknown; " + (f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}")
    if path[:2] == ["model", "weights"]:  # one line for both kinds that it may be
        return f"model.weights must be true, false or text, found {found}"
    if kind == "union_tag_not_found":
        return f"{name}.kind is missing"
    if kind == "union_tag_invalid":
        return f"{name}.kind must be one of {context['expected_tags']}, found {_shown(error['input']['kind'])}"
    if kind == "literal_error":
        return f"{name} must be {context['expected']}, found {found}"
    if kind == "value_error":  # of a group, whose rule names the key
        return f"{name + '.' if name else ''}{str(context['error']).removeprefix(f'{name}: ')}"
    bounds = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    for bound, words in bounds.items():
        if bound in context:
            return f"{name} must be {words} {context[bound]:.12g}, found {found}"
    if kind == "finite_number":
        return f"{name} must be a finite number, found {found}"
    expected = _KINDS.get(kind.partition("_")[0])
    return f"{name} must be {expected}, found {found}" if expected else f"{name}: {error['msg']}, found {found}"


def _bent(given: Any, taken: Any, name: str = "") -> Iterator[str]:
    """A line for each truth value that was taken for a number, or the other way round: `lr: true` is no 1."""
    if isinstance(given, dict) and isinstance(taken, dict):
        for key, value in given.items():
            yield from _bent(value, taken[key], f"{name}.{key}" if name else key)
    elif isinstance(given, (list, tuple)) and isinstance(taken, list):
        for place, value in enumerate(given):
            yield from _bent(value, taken[place], f"{name}.{place}")
    elif isinstance(given, bool) != isinstance(taken, bool):
        yield f"{name} must be {'true or false' if isinstance(taken, bool) else 'a number'}, found {_shown(given)}"


def _keys_at(kind: Any, path: Sequence[str], location: Sequence[Any]) -> list[str]:
    """Keys of the group at this path."""
    for key in path:
        kind = kind.model_fields[key].annotation
        if key == "sampler":
            kind = next(one for one in kind.__args__ if one.kind == location[1])
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return [field.name for field in fields(kind)] if is_dataclass(kind) else []


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or a value within itself
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
