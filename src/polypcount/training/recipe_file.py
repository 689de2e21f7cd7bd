"""Recipes on disk: YAML files, some of them in the package. A recipe may build on another, and be changed by key."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any

from polypcount.errors import DataError, FileError, first_line
from polypcount.storage import Schema, check
from polypcount.training.plain_yaml import read_yaml, yaml_text
from polypcount.training.recipe import Recipe

_HOME = resources.files("polypcount.training") / "recipes"
_LARGEST_BYTES = 1 << 16
_MOST_BASES = 8


def recipe_names() -> list[str]:
    """Names of the recipes in the package."""
    return sorted(Path(entry.name).stem for entry in _HOME.iterdir() if entry.name.endswith(".yaml"))


def load_recipe(recipe: str | Path | Mapping[str, Any] | Recipe = "temporal", changes: Sequence[str] = ()) -> Recipe:
    """A recipe of an encoder by name, from a YAML file, or from its values.

    Args:
        recipe: Name, file or values.
        changes: Changes such as `optimizer.lr=1e-4`, applied in order, except that a sampler's kind comes before its
            settings. Values are read as YAML.

    Raises:
        DataErrors: One line for each key that is unknown, missing or of another kind.
    """
    values, source = recipe_values(recipe, changes)
    if task_of(values) != "encoder":
        raise DataError(f"{source} is for a {task_of(values)}, and an encoder is trained here")
    return check(Recipe, {key: value for key, value in values.items() if key != "task"}, source)


def recipe_values(
    recipe: str | Path | Mapping[str, Any] | Schema, changes: Sequence[str] = ()
) -> tuple[dict[str, Any], str]:
    """The values of a recipe with those of its base and the changes, not yet checked, and what to call it."""
    if isinstance(recipe, Schema):
        values: dict[str, Any] = recipe.model_dump(mode="json")
        source = f"recipe {values.get('name')}"
    elif isinstance(recipe, Mapping):
        values, source = _with_base(deepcopy(dict(recipe)), "recipe", Path(), 0), "recipe"
    else:
        values, source = _read(str(recipe), Path(), 0), f"recipe {recipe}"
    for change in sorted(changes, key=lambda change: not change.partition("=")[0].strip().endswith(".kind")):
        _apply(values, change)
    return values, source


def task_of(values: Mapping[str, Any]) -> str:
    """What a recipe trains, by its values: `encoder`, or `detector`."""
    return str(values.get("task", "encoder"))


def recipe_text(recipe: Schema) -> str:
    """The whole recipe as YAML that `load_recipe` reads back."""
    return yaml_text(recipe.model_dump(mode="json"))


def recipe_differences(name: str, base: str) -> dict[str, Any]:
    """The keys, such as `sampler.strict`, and values in which a recipe with the same kind of sampler is not its base.

    The name of the recipe is left out.
    """
    own, other = (flat_values(load_recipe(one)) for one in (name, base))
    return {key: value for key, value in own.items() if key != "name" and value != other[key]}


def flat_values(recipe: Recipe) -> dict[str, Any]:
    """All values of a recipe by key, such as `sampler.strict`."""
    flat: dict[str, Any] = {}
    for key, value in recipe.model_dump(mode="json").items():
        flat |= {f"{key}.{name}": one for name, one in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _read(name: str, folder: Path, depth: int) -> dict[str, Any]:
    """Values of a recipe, merged over those of its base. It is in the package, or in a file relative to a folder."""
    path = folder / name
    try:
        if name in recipe_names():
            text = (_HOME / f"{name}.yaml").read_text(encoding="utf-8")
        elif path.is_file():
            if path.stat().st_size > _LARGEST_BYTES:
                raise FileError(f"{path} is too large to be a recipe")
            text = path.read_text(encoding="utf-8")
        else:
            raise FileError(
                f"there is no recipe {str(path)!r}: give one of {', '.join(recipe_names())}, or a YAML file"
            )
        values = read_yaml(text)
    except OSError as problem:
        raise FileError(f"{path}: the recipe cannot be read: {first_line(problem)}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: the recipe is not a text file in UTF-8") from None
    except DataError as problem:
        raise FileError(f"{path}: the recipe is not valid YAML, {problem}") from None
    if not isinstance(values, dict):
        kind = {str: "text", list: "a list", NoneType: "nothing"}.get(type(values), "a value")
        raise FileError(f"{path}: a recipe must be keys and values, found {kind}")  # the file may be anything else
    return _with_base(values, f"recipe {path}", path.parent, depth)


def _with_base(values: dict[str, Any], source: str, folder: Path, depth: int) -> dict[str, Any]:
    base = values.pop("base", None)
    if base is None:
        return values
    if depth == _MOST_BASES or not isinstance(base, str):
        raise DataError(f"{source}: base must be the name of a recipe that does not build on this one, found {base!r}")
    return _joined(_read(base, folder, depth + 1), values)


def _joined(base: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values merged over those of the base. Groups are merged too, unless they are of different kinds."""
    joined = dict(base)
    for key, value in values.items():
        old = joined.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value.get("kind", old.get("kind")) == old.get("kind"):
            joined[key] = _joined(old, value)
        else:
            joined[key] = value
    return joined


def _apply(values: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    *groups, key = path.strip().split(".")
    if not equals or not all(groups) or not key:
        raise DataError(f"a change must be KEY=VALUE such as optimizer.lr=1e-4, found {change!r}", mend="changes")
    try:
        value = read_yaml(text)
    except DataError:
        raise DataError(f"{path}: the value {text[:50]!r} is not valid YAML", mend="changes") from None
    group: Any = values
    for name in groups:
        group = group.setdefault(name, {})
        if not isinstance(group, dict):
            raise DataError(f"{path.strip()}: {name} has no keys of its own", mend="changes")
    if key == "kind" and group.get("kind") != value:
        group.clear()  # the settings of another kind of sampler do not apply to this one
    group[key] = value
