"""YAML that people write: plain values, of which nothing is run and nothing grows while it is read."""

from typing import Any

import yaml
from yaml.constructor import ConstructorError

from polypcount.errors import DataError


def read_yaml(text: str) -> Any:
    """The values of a YAML text; `DataError` says in one line what is wrong with it, and in which of its lines."""
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a SafeLoader
    except RecursionError:
        raise DataError("it is nested too deeply") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "it cannot be read"
        raise DataError(f"line {mark.line + 1}: {what}" if mark else what) from None


class _PlainLoader(yaml.SafeLoader):
    """Refuses aliases, with which a few lines can stand for endlessly many values, and a key that is there twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            alias: Any = self.peek_event()  # type: ignore[no-untyped-call]
            raise ConstructorError(None, None, f"the alias *{alias.anchor} must be written out", alias.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise ConstructorError(None, None, f"the key {key.value} is there twice", key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError):  # of a date, number or such that is none
            kind = node.tag.rpartition(":")[2]
            what = f"{str(node.value)[:50]!r} is not a valid {kind}"
            raise ConstructorError(None, None, what, node.start_mark) from None
