"""The player in a browser: the frame that is shown is the frame that was asked for, with its boxes in place."""

import time
from pathlib import Path
from typing import Any

import numpy as np

from polypcount.video.write import write_video
from tests.counting.recordings import FPS, HEIGHT, SIDE, WIDTH, place
from tests.review.page_browser import Person, chromium, served
from tests.review.results import COUNTED, FRAMES, boxes
from tests.review.test_page_similar import STATE

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

# The part of the frame that is shown; where the green of the canvas lies, and where the box is drawn, both as shares
# of the screen: left, top, right, bottom.
CLOSE_UP = """() => {
    const frame = document.querySelector("#frame"), {width, height} = frame;
    const copy = Object.assign(document.createElement("canvas"), {width, height});
    const drawing = copy.getContext("2d", {willReadFrequently: true});
    drawing.drawImage(frame, 0, 0);
    const {data} = drawing.getImageData(0, 0, width, height);
    const green = [width, height, 0, 0];
    for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) {
        const at = 4 * (y * width + x);
        if (data[at + 1] < 170 || data[at] > 100) continue;
        [green[0], green[1]] = [Math.min(green[0], x), Math.min(green[1], y)];
        [green[2], green[3]] = [Math.max(green[2], x + 1), Math.max(green[3], y + 1)];
    }
    const screen = frame.getBoundingClientRect();
    const box = document.querySelector("#overlay .current .box")?.getBoundingClientRect();
    return {
        view: document.querySelector("#overlay").getAttribute("viewBox").split(" ").map(Number),
        green: [green[0] / width, green[1] / height, green[2] / width, green[3] / height],
        box: box && [(box.left - screen.left) / screen.width, (box.top - screen.top) / screen.height,
            (box.right - screen.left) / screen.width, (box.bottom - screen.top) / screen.height],
    };
}"""


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


def test_a_close_up_follows_the_polyp(result: Path) -> None:
    """The first tracklet is green in the recording, and its box moves by a pixel at times, and once by seven."""
    green = result.parent / "green.mp4"
    write_video(green, [_green(frame) for frame in range(FRAMES)], FPS, quality=2)
    with chromium() as browser, served(result, "--recording", green) as address:
        anna = Person.opens(browser, address, reduced_motion="reduce")  # nothing plays by itself
        page = anna.page
        anna.bar("t0").click()
        page.keyboard.press("z")
        button = page.get_by_role("button", name="Close-up")
        assert button.get_attribute("aria-pressed") == "true"
        places = []
        for frame in range(5, 45):
            anna.waits_for(lambda now=frame: anna.frame == now, f"frame {frame}")  # type: ignore[misc]
            anna.waits_for(lambda: page.locator("#overlay .current").count() == 1, "the box")
            shown = page.evaluate(CLOSE_UP)
            left, top, width, height = shown["view"]
            assert np.allclose(shown["box"], shown["green"], atol=0.02), (frame, shown)
            assert 0 <= left <= WIDTH - width
            assert 0 <= top <= HEIGHT - height
            assert width / height == WIDTH / HEIGHT
            assert 1.5 < WIDTH / width < 2
            x, y = place(frame, *(COUNTED[0][k] for k in (0, 3, 4)))
            assert left <= x
            assert x + SIDE <= left + width
            assert top <= y
            assert y + SIDE <= top + height
            places.append((left, top))
            page.keyboard.press(".")
        assert 0 < np.abs(np.diff(places, axis=0)).max() < 1.5

        ruler = page.locator("#ruler").bounding_box()
        page.mouse.click(ruler["x"] + ruler["width"] * 50.5 / FRAMES, ruler["y"] + 8)  # nothing is seen there
        anna.waits_for(lambda: anna.frame == 50, "frame 50")
        assert tuple(page.evaluate(CLOSE_UP)["view"][:2]) == places[-1]
        page.keyboard.press("a")  # a box is drawn on the whole frame
        assert page.evaluate(CLOSE_UP)["view"] == [0, 0, WIDTH, HEIGHT]
        assert button.is_disabled()
        page.keyboard.press("Escape")
        button.click()
        assert page.evaluate(CLOSE_UP)["view"] != [0, 0, WIDTH, HEIGHT]
        button.click()
        assert page.evaluate(CLOSE_UP)["view"] == [0, 0, WIDTH, HEIGHT]
        page.keyboard.press("?")
        assert "Close-up" in anna.sees("#help-keys")
        anna.found_no_fault()


def test_a_close_up_has_finer_frames(result: Path) -> None:
    """It asks for frames as wide as the recording, but not wider than 1920."""
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address)
        anna.page.route(STATE, lambda route: _change_video(route, width=3200, height=2560))
        anna.page.reload()
        anna.waits_for(lambda: anna.frame >= 0, "a frame")
        assert not any("width=1920" in one for one in anna.requests)
        anna.page.keyboard.press("z")
        anna.waits_for(lambda: any("width=1920" in one for one in anna.requests), "a wider frame")
        anna.found_no_fault()


def test_times_come_from_the_table_where_there_is_one(result: Path) -> None:
    """The first half of the recording has a frame per second here, the second half five."""
    with chromium() as browser, served(result) as address:
        anna = Person.opens(browser, address, reduced_motion="reduce")
        page = anna.page
        page.route(STATE, lambda route: _change_video(route, times=[[0, 0], [180, 180], [360, 216]]))
        page.reload()
        anna.waits_for(lambda: anna.frame >= 0, "a frame")
        ruler = page.locator("#ruler").bounding_box()
        for frame, when in ((90, "1:30.00"), (270, "3:18.00")):
            page.mouse.click(ruler["x"] + ruler["width"] * (frame + 0.5) / FRAMES, ruler["y"] + 8)
            anna.waits_for(lambda now=frame: anna.frame == now, f"frame {frame}")  # type: ignore[misc]
            assert anna.sees("#when") == f"{when}, frame {frame}"
        label = page.locator("#ruler text", has_text="3:00").bounding_box()
        assert abs(label["x"] + label["width"] / 2 - ruler["x"] - ruler["width"] / 2) < 3
        anna.bar("t0").click()
        anna.waits_for(lambda: anna.frame == 5, "the first frame of the tracklet")
        began = time.monotonic()
        page.keyboard.press(" ")
        anna.waits_for(lambda: anna.frame >= 7, "the frame after the next")
        assert time.monotonic() - began > 1.5
        anna.found_no_fault()


def _change_video(route: Any, **values: object) -> None:
    """Send the state with other values of the video."""
    answer = route.fetch()
    state = answer.json()
    route.fulfill(response=answer, json={**state, "video": {**state["video"], **values}})


def _green(frame: int) -> np.ndarray:
    """A grey frame with the first tracklet in green: RGB uint8[128, 160, 3]."""
    image = np.full((HEIGHT, WIDTH, 3), 110, np.uint8)
    start, stop, _, x, y = COUNTED[0]
    if start <= frame < stop:
        left, top = place(frame, start, x, y)
        image[top : top + SIDE, left : left + SIDE] = 0, 255, 0
    return image
