"""Text that users type, and text that is safe to show on a terminal."""

import os
import re

from polypcount.errors import DataError, PolypcountError

# Settings of the library whose option has another name.
_OPTIONS = {
    "boxes_format": "--format",
    "for_counting": "polypcount study --for-counting",
    "video": "--only",
    "start": "--from",
    "stop": "--to",
    "changes": "--set",
    "model.weights": "--set model.weights=PATH",
    "parameters": "--fix",
    "budget_minutes": "--budget",
    "width": "--size",
    "height": "--size",
}


def parse_size(text: str) -> tuple[int, int]:
    """Width and height from a text such as `1240x1080`."""
    if not (match := re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)) or not int(match[1]) or not int(match[2]):
        raise DataError(f"--size must be width x height in pixels, such as 1240x1080, found {text!r}")
    return int(match[1]), int(match[2])


def harmless(text: str) -> str:
    """The text as one line without control characters, which could control the terminal.

    Paths below the current folder are shown from there, as users type them.
    """
    line = "".join(c if c.isprintable() else " " if c.isspace() else repr(c)[1:-1] for c in text)
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the current folder is gone
        return line
    return line if here == os.sep else re.sub(rf"(?<![^\s'\"(=:]){re.escape(here)}(?=[^\s])", "", line)


def with_options(problem: PolypcountError) -> str:
    """The message, followed by the options that would help."""
    return f"{problem} ({', '.join(dict.fromkeys(map(_option, problem.mend)))})" if problem.mend else str(problem)


def _option(setting: str) -> str:
    """The option for a setting of the library: "min_frames" is --min-frames, "detector.size" --detector-set size=..."""
    if setting in _OPTIONS:
        return _OPTIONS[setting]
    group, _, name = setting.rpartition(".")
    return f"--{group}-set {name}=..." if group else f"--{name.replace('_', '-')}"
