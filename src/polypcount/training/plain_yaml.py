"""YAML that people write: plain values. Reading runs no code, and no small file can stand for endlessly many values."""

import re
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from polypcount.errors import DataError, first_line


def read_yaml(text: str) -> Any:
    """The values of a YAML text.

    Raises:
        DataError: The text is not valid; the message says in one line what is wrong and where.
    """
    try:
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a SafeLoader
    except RecursionError:
        raise DataError("it is nested too deeply") from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or getattr(problem, "reason", None) or "it cannot be read"
        raise DataError(f"line {mark.line + 1}: {reason}" if mark else reason) from None
    except (ValueError, LookupError, AttributeError, TypeError) as problem:  # a date or number that does not exist
        raise DataError(f"a value is not valid: {first_line(problem)}") from None


def yaml_text(values: Any) -> str:
    """YAML that `read_yaml` reads back."""
    text: str = yaml.dump(values, Dumper=_PlainDumper, sort_keys=False, default_flow_style=None, width=100)
    return text


class _PlainLoader(yaml.SafeLoader):
    """Refuses aliases, with which a few lines can stand for endlessly many values, and repeated keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            alias: Any = self.peek_event()  # type: ignore[no-untyped-call]
            raise ConstructorError(None, None, f"the alias *{alias.anchor} must be written out", alias.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in names:
                raise ConstructorError(None, None, f"the key {key.value} is there twice", key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


class _PlainDumper(yaml.SafeDumper):
    """Puts quotes around text that the loader would take for a number."""


# As in YAML 1.2, 1e-4 is a number; PyYAML alone takes it for text.
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+$")
for _kind in (_PlainLoader, _PlainDumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+.0123456789"))
