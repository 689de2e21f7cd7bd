"""The player in a browser: the frame that is shown is the frame that was asked for, with its boxes in place."""

from pathlib import Path
from typing import Any

import numpy as np

from polypcount.video.write import write_video
from tests.counting.recordings import FPS, HEIGHT, WIDTH
from tests.review.page_browser import Person, chromium, served
from tests.review.results import FRAMES, boxes

BITS, LEFT, BLOCK = 9, 20, 12
# What the player says it shows, and the number that the pixels spell, both at one moment.
SHOWN = f"""() => {{
    const frame = document.querySelector("#frame"), scale = frame.width / {WIDTH};
    const copy = Object.assign(document.createElement("canvas"), {{width: frame.width, height: frame.height}});
    const drawing = copy.getContext("2d", {{willReadFrequently: true}});
    drawing.drawImage(frame, 0, 0);
    const pixel = x => drawing.getImageData(Math.round(x * scale), Math.round(100 * scale), 1, 1).data[0];
    const bits = Array.from({{length: {BITS}}}, (_, bit) => pixel({LEFT + BLOCK // 2} + {BLOCK} * bit) > 128);
    return [Number(frame.dataset.frame), bits.reduce((sum, bit, k) => sum + bit * 2 ** k, 0)];
}}"""


def test_the_player_shows_the_frame_that_is_asked_for(result: Path) -> None:
    numbered = result.parent / "numbered.mp4"
    write_video(numbered, [_spelled(frame) for frame in range(FRAMES)], FPS, quality=12)
    with chromium() as browser, served(result, "--recording", numbered) as address:
        anna = Person.opens(browser, address)
        page = anna.page
        anna.waits_for(lambda: anna.frame >= 0, "a frame")
        anna.bar("t0").click()  # it plays by itself
        seen = [page.evaluate(SHOWN)]
        anna.waits_for(lambda: _adds(seen, page.evaluate(SHOWN)) and anna.frame == 44, "the end of the tracklet")
        assert all(said == spelled for said, spelled in seen)
        assert len(seen) > 3
        assert page.get_by_role("button", name="Play", exact=True).is_visible()  # it has stopped

        for key, frame in [(",", 43), (",", 42), ("Shift+<", 32), (".", 33), ("Shift+>", 43), (".", 44), (".", 44)]:
            page.keyboard.press(key)
            _shows(anna, frame)
        page.locator("#seek").focus()
        page.keyboard.press("Home")
        _shows(anna, 5)
        ruler = page.locator("#ruler").bounding_box()
        for frame in (359, 0, 11, 90):
            page.mouse.click(ruler["x"] + ruler["width"] * (frame + 0.5) / FRAMES, ruler["y"] + 8)
            _shows(anna, frame)
        _has_boxes(anna, 90)

        anna.lane(1).click()  # all its tracklets, one after the other
        page.locator("#seek").focus()
        page.keyboard.press("End")
        _shows(anna, 119)
        page.locator("#seek").fill("40")
        _shows(anna, 80)
        anna.found_no_fault()


def _spelled(frame: int) -> np.ndarray:
    """A frame whose blocks are the binary digits of its number: RGB uint8[128, 160, 3]."""
    image = np.full((HEIGHT, WIDTH, 3), 90, np.uint8)
    for bit in range(BITS):
        start = LEFT + BLOCK * bit
        image[84:116, start : start + BLOCK] = 255 * (frame >> bit & 1)
    return image


def _adds(seen: list[list[int]], now: list[int]) -> bool:
    seen.append(now)
    return True


def _shows(anna: Person, frame: int) -> None:
    anna.waits_for(lambda: anna.frame == frame, f"frame {frame}")
    assert anna.page.evaluate(SHOWN) == [frame, frame]
    assert f"frame {frame}" in anna.sees("#when")


def _has_boxes(anna: Person, frame: int) -> None:
    """The boxes of the frame are drawn where they are."""
    table = boxes()
    rows = np.flatnonzero(table.frame == frame)
    expected = {f"t{table.track[row]}": table.xyxy[row].tolist() for row in rows}
    drawn: Any = {}

    def all_drawn() -> bool:
        drawn.update(
            anna.page.eval_on_selector_all(
                "#overlay .found",
                f"""all => Object.fromEntries(all.map(one => {{
                    const box = one.lastChild.getBoundingClientRect(), frame = document.querySelector("#frame");
                    const {{left, top, width}} = frame.getBoundingClientRect(), scale = {WIDTH} / width;
                    return [one.dataset.item, [box.left - left, box.top - top, box.right - left, box.bottom - top]
                        .map(side => side * scale)];
                }}))""",
            )
        )
        return set(drawn) == set(expected)

    anna.waits_for(all_drawn, "the boxes")
    assert len(expected) == 2
    for item, box in expected.items():
        assert np.allclose(drawn[item], box, atol=1), item
