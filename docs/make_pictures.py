"""Draw the picture in the README: the report of `polypcount demo --minutes 6` in a browser.

A procedure of a minute, as the demo draws by default, has too few tracklets to show much.

Needs chromium and the test extra. Run: .venv/bin/python docs/make_pictures.py
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent / "images"
WIDTH, HEIGHT = 1120, 1700  # down to the end of the cards


def main() -> None:
    """Write docs/images/report.png."""
    program = Path(sys.executable).with_name("polypcount")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as player:
        subprocess.run([program, "demo", "--minutes", "6", "--out", f"{place}/demo"], check=True)
        browser = player.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(Path(f"{place}/demo/report/report.html").as_uri())
        page.screenshot(path=f"{place}/report.png")
        browser.close()
        # A palette halves the file size. This method keeps small areas of a colour of their own, such as badges.
        picture = Image.open(f"{place}/report.png").convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE)
        picture.save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
