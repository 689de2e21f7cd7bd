"""The pages in a real browser: nothing is fetched, nothing overflows, everything is shown, nobody is shut out."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from polypcount.corpus import Video
from polypcount.report import SummaryRow, write_report, write_summary
from tests.report.reports import report_of
from tests.report.test_page import HOSTILE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: install the system package chromium")

SIZES = [(1280, 900), (820, 1180), (390, 844)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of all sizes, and a summary of them."""
    root = tmp_path_factory.mktemp("pages")
    reports = {
        "none": report_of([]),
        "many": report_of([*range(1, 10), 1, 2, 3]),
        "frames": report_of([1, 2], pictures=False, fps=None, video=Video("a_b" * 80, 10_000_000)),
        "hostile": report_of([1, 2], video=Video(HOSTILE, 900, 25), remarks=(HOSTILE,)),
    }
    for name, report in reports.items():
        write_report(report, root / name)
    rows = [*(SummaryRow.of_report(root / name) for name in reports), SummaryRow("x" * 300, error="y" * 300)]
    write_summary(rows, root)
    return {**{name: root / name / "report.html" for name in reports}, "summary": root / "summary.html"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; as root it has no sandbox of its own, and it opens only our own files."""
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page and what it did."""

    page: Any
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def watched(browser: Any) -> Watched:
    watched = Watched(browser.new_page())
    watched.page.on("request", lambda request: watched.requests.append(request.url))
    watched.page.on("console", lambda message: watched.problems.append(message.text))
    watched.page.on("pageerror", lambda problem: watched.problems.append(str(problem)))
    watched.page.on("dialog", lambda dialog: watched.problems.append(dialog.message))
    return watched


def test_pages_are_whole_quiet_and_fit(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    for name, path in pages.items():
        page.goto(path.as_uri(), wait_until="load")
        for media, (width, height) in [*(("screen", size) for size in SIZES), ("print", (718, 1047))]:
            page.emulate_media(media=media)
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, media, width)
            visible = "image => image.naturalWidth > 0 && image.getBoundingClientRect().width > 20"
            assert page.evaluate(f"[...document.images].every({visible})"), (name, media, width)
        assert page.get_by_text("Research software, not a medical device.").first.is_visible()
    others = [url for url in watched.requests if not url.startswith("data:")]
    assert others == [path.as_uri() for path in pages.values()]
    assert watched.problems == []


def test_the_policy_stops_what_a_page_must_not_do(watched: Watched, pages: dict[str, Path]) -> None:
    """So that the silence above says something: the same browser does tell when a page breaks its policy."""
    page = watched.page
    page.goto(pages["many"].as_uri())
    broken = page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"}));
        })"""
    )
    assert broken == "img-src"
    assert any("Content Security Policy" in problem for problem in watched.problems)


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("none", 1280, "light"), ("many", 390, "light"), ("many", 1280, "dark"), ("summary", 390, "dark")],
)
def test_nobody_is_shut_out(browser: Any, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    context = browser.new_context(bypass_csp=True, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(pages[name].as_uri())
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
    result = Axe().run(page, options=rules).response
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in result["violations"]] == []
    assert "color-contrast" in {rule["id"] for rule in result["passes"]}
    context.close()


def test_a_lane_leads_to_its_card(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    page.emulate_media(media="screen")
    page.goto(pages["many"].as_uri())
    page.get_by_role("link", name="Polyp 9").click()
    assert page.evaluate("location.hash") == "#polyp-9"
    assert page.locator("#polyp-9").evaluate("card => card.getBoundingClientRect().top < innerHeight")


def test_paper_has_what_is_folded_and_room_for_a_reviewer(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    page.goto(pages["many"].as_uri())
    shown = "part => part.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})"
    for media, visible in (("screen", False), ("print", True)):
        page.emulate_media(media=media, color_scheme="dark")
        for part in (".interval details p", "details td", ".review", ".card .verdict"):
            if (
                media == "screen" or part != "details td"
            ):  # a folded table is visible on paper, but not to this question
                assert page.locator(part).first.evaluate(shown) is visible, (media, part)
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 39, 51)"  # ink on white
    page.emulate_media(media="screen", color_scheme="light")


def test_cards_do_not_break_across_printed_pages(watched: Watched, pages: dict[str, Path]) -> None:
    page = watched.page
    page.goto(pages["many"].as_uri())
    page.emulate_media(media="print")
    style = "part => [getComputedStyle(part).breakInside, getComputedStyle(part).boxShadow]"
    for part in (".card", ".pair", ".timeline"):
        assert set(map(tuple, page.eval_on_selector_all(part, f"all => all.map({style})"))) == {("avoid", "none")}
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
