"""A verb of the program, as typer understands it, with one more rule."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperOption

from polypcount.errors import DataError


class Verb(TyperCommand):
    """A command that refuses an option given twice; typer alone takes the last value and says nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments."""
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(order).items():
                single = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
                if single and times > 1:
                    raise DataError(f"{parameter.opts[0]} is given {times} times, and takes one value")
        return super().parse_args(ctx, args)
