"""Draw the pictures of the report and of the review: `polypcount demo` in a browser.

A procedure of a minute, as the demo draws by default, has too few tracklets to show much.

Needs chromium and the test extra. Run: .venv/bin/python docs/make_pictures.py [report] [review]
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent / "images"
PROGRAM = Path(sys.executable).with_name("polypcount")
WIDTH, HEIGHT = 1120, 1700  # of the report, down to the end of the cards
# Of the review: name, width and height of the window, colours.
VIEWS = (
    *(("light", 1440, 900, "light"), ("dark", 1440, 900, "dark"), ("small", 1024, 700, "light")),
    *(("small-dark", 1024, 700, "dark"), ("large", 1920, 1080, "light"), ("large-dark", 1920, 1080, "dark")),
)


def main() -> None:
    """Write docs/images/report.png and docs/images/review-*.png, or only those that are named."""
    wanted = sys.argv[1:] or ["report", "review"]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as player:
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        subprocess.run([PROGRAM, "demo", "--minutes", "6", "--out", f"{place}/demo"], check=True)
        result, picture = Path(place, "demo", "report"), Path(place, "picture.png")
        if "report" in wanted:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto((result / "report.html").as_uri())
            page.screenshot(path=picture)
            keep(picture, "report.png")
        if "review" in wanted:
            draw_review(browser, result, picture)
        browser.close()


def draw_review(browser: Any, result: Path, picture: Path) -> None:
    """The page as it is when it is opened."""
    command = [str(PROGRAM), "review", str(result), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().removeprefix("review: ").strip()
            for name, width, height, scheme in VIEWS:
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(address)
                page.wait_for_selector("#frame[data-frame]")
                page.wait_for_selector("#overlay .found")
                page.wait_for_load_state("networkidle")
                page.screenshot(path=picture)
                keep(picture, f"review-{name}.png", kmeans=4)
        finally:
            server.terminate()


def keep(picture: Path, name: str, kmeans: int = 0) -> None:
    """Store a screenshot in the docs.

    A palette halves the file size. This method keeps small areas of a colour of their own, such as badges.
    """
    image = Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans)
    image.save(HERE / name, optimize=True)


if __name__ == "__main__":
    main()
