"""The colour and texture of each polyp, the same on the page and in the annotated video.

The colours are the Okabe-Ito palette, darkened until each has a contrast of 3 to white; people with the usual kinds of
colour blindness can tell them apart. From the eighth polyp on, the colours repeat with a texture. A number is always
beside them, so colour is never the only sign.
"""

from dataclasses import dataclass

COLOURS = ("#00528c", "#b93a00", "#009e73", "#c96ba6", "#bf8400", "#3a97d4", "#3d3d3d")
TEXTURES = ("", "stripes", "bars", "dots")
NOT_COUNTED = "#a0a0a0"
_INKS = ("#ffffff", "#111111")


@dataclass(frozen=True)
class PolypMark:
    """How a polyp is marked.

    Attributes:
        colour: "#rrggbb".
        ink: Colour of text on it, with a contrast of at least 4.5.
        texture: One of `TEXTURES`; empty for none.
    """

    colour: str
    ink: str
    texture: str


def mark_of(number: int) -> PolypMark:
    """How polyp 1, 2, ... is marked."""
    turn, index = divmod(number - 1, len(COLOURS))
    colour = COLOURS[index]
    return PolypMark(colour, max(_INKS, key=lambda ink: contrast(ink, colour)), TEXTURES[turn % len(TEXTURES)])


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of "#rrggbb", 0 to 255."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def contrast(first: str, second: str) -> float:
    """1 to 21, as WCAG 2 defines it: (lighter luminance + 0.05) / (darker luminance + 0.05)."""
    darker, lighter = sorted((_luminance(first), _luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [value / 255 for value in rgb(colour)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
