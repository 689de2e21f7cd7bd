"""A verb of the program, as typer understands it, with two more rules."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

from polypcount.errors import DataError


class Verb(TyperCommand):
    """A command that refuses an option given twice or without a value.

    typer alone takes the last value, and an empty path, as `--boxes "$UNSET"` gives it, for the current folder.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments."""
        if not ctx.resilient_parsing:
            values, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                single = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
                if single and times > 1:
                    raise DataError(f"{parameter.opts[0]} is given {times} times, and takes one value")
                if isinstance(parameter, TyperOption) and "" in _listed(values[parameter.name]):
                    raise DataError(f"{parameter.opts[0]} is given without a value")
        return super().parse_args(ctx, args)


def _listed(value: object) -> list[object]:
    """The values of an option that may be repeated, or the one value of another."""
    return value if isinstance(value, list) else [value]
