"""Draw the pictures of the documentation from runs of the program.

Run: .venv/bin/python docs/make_pictures.py
"""

import io
from pathlib import Path

from rich.console import Console

from polypcount.cli.demo import show

HERE = Path(__file__).parent / "images"

# Like rich's own frame for terminal pictures, but with the reader's monospace font instead of one from the web.
FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>Output of polypcount demo</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; \
line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect fill="#1e1e2e" width="100%" height="100%" rx="8"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def main() -> None:
    """Write docs/images/demo.svg."""
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print("$ polypcount demo", style="bold green", highlight=False)
    show(console, seed=8)
    HERE.mkdir(exist_ok=True)
    drawing = console.export_svg(title="polypcount demo", code_format=FRAME, unique_id="demo")
    (HERE / "demo.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
