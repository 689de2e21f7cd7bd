"""Looking at figures: what text they show, and ids that are hard to show."""

import io
import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOSTILE = [
    "$",
    r"$\frac{1$",
    "a_b^c",
    "_hidden",
    "<svg>&amp;--><!--",
    "two\nlines\tand\x00\x07",
    "息肉 один ポリープ 🧫 שלום",
    "\ud800\U000e0001\u202e\ufdd0",
    "x" * 300,
    "",
    "%s {0} \\",
]


def pixels(figure: "Figure") -> bytes:
    """Draw it, at which every text is laid out; warnings are errors."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    return file.getvalue()


def texts(figure: "Figure") -> list[str]:
    from matplotlib.text import Text

    pixels(figure)
    return [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]


def overlap(labels: list[Any]) -> bool:
    """Whether of texts from top to bottom one touches the next."""
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


def hexes(colours: Any) -> list[str]:
    from matplotlib.colors import to_hex

    return [to_hex(colour).upper() for colour in colours]
