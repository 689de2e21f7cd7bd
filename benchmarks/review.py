"""The review page on a large result: first useful paint, scrolling, regrouping, an answer, and the server's memory.

For each size, a result is made by review_result.py: 90 minutes, without a recording. `polypcount review` serves it, and
Chromium without a window opens it, in a new context each time. The first useful paint is when a bar of the timeline,
the count and a question have been drawn. Requests are timed in the page, from sending to the parsed answer: regrouping,
and an answer to the first question; half of the answers are yes. The server's processor time for them depends less on
what else runs. Scrolling is the time between two frames while the wheel zooms in and out over the timeline. Memory is
that of the server process.

Run: .venv/bin/python -m benchmarks.review [--tracklets 150 300 600] [--rounds 5] [--result OUT]
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.review_result import large_result

ANSWERS, WHEELS = 10, 40
PAINTED = """() => document.querySelector("#timeline .bar") && document.querySelector("#starting").hidden
    && document.querySelector("#count").textContent && document.querySelector("#question-times rect")"""
NEXT_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
ASK = """async ([method, address, body]) => {
    const begun = performance.now();
    const answer = await fetch(address, {method, body: body && JSON.stringify(body),
        headers: body ? {"content-type": "application/json"} : {}});
    const values = await answer.json();
    if (!answer.ok) throw new Error(JSON.stringify(values).slice(0, 300));
    return [performance.now() - begun, values];
}"""
WATCH_FRAMES = """() => {
    window.frameTimes = [];
    let last = performance.now();
    const next = (now) => { window.frameTimes.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame(next);
}"""


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, str]]:
    """Run `polypcount review`; gives its process id and the address that it prints."""
    command = [sys.executable, "-m", "polypcount", "review", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().removeprefix("review: ").strip()
        finally:
            process.terminate()


def memory(pid: int) -> tuple[int, int]:
    """Memory of a process now, and the most it has had, in MB. Linux only."""
    status = Path(f"/proc/{pid}/status").read_text()
    now, most = (int(re.findall(rf"{name}:\s+(\d+)", status)[0]) for name in ("VmRSS", "VmHWM"))
    return now // 1024, most // 1024


def busy(pid: int) -> float:
    """Processor time of a process so far, in ms. Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shown(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):.0f} ms ({min(values):.0f} to {max(values):.0f})"


def measure(browser: Any, folder: Path, rounds: int) -> None:
    """Print all figures of one result."""
    with served(folder) as (pid, address):
        paints = []
        for _ in range(rounds):
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            begun = time.perf_counter()
            page.goto(address)
            page.wait_for_function(PAINTED)
            page.evaluate(NEXT_FRAMES)
            paints.append(1000 * (time.perf_counter() - begun))
            if len(paints) < rounds:
                page.context.close()
        listed = page.evaluate(ASK, ["GET", "/api/procedures", None])[1]["procedures"]
        place = f"/api/procedures/{listed[0]['id']}"
        loads, state = zip(*(page.evaluate(ASK, ["GET", place, None]) for _ in range(rounds)), strict=True)
        before = busy(pid)
        regroups = [page.evaluate(ASK, ["GET", f"{place}/regroup", None])[0] for _ in range(rounds)]
        of_regroup = (busy(pid) - before) / rounds
        frames = scrolled(page)
        answers, now, before = list[float](), state[-1], busy(pid)
        for number in range(min(ANSWERS, now["questions_left"])):
            if not now["questions"]:
                break
            question = now["questions"][0]
            sides = {name: question[name]["items"] for name in ("first", "second")}
            seen = {name: now[name] for name in ("version", "count_id")}
            body = {**seen, "decision": {"kind": "answer", **sides, "same": number % 2 == 0}}
            took, now = page.evaluate(ASK, ["POST", f"{place}/decisions", body])
            answers.append(took)
        of_answer = (busy(pid) - before) / max(len(answers), 1)
        used, most = memory(pid)
    items = len(state[0]["items"])
    print(f"first useful paint {shown(paints)}; the state with {items} items {shown(loads)}")
    print(f"regroup {shown(regroups)}, {of_regroup:.0f} ms of processor time")
    if answers:
        print(f"an answer {shown(answers)} of {len(answers)}, {of_answer:.0f} ms of processor time")
    print(f"time between frames while zooming: {shown(frames)}")
    print(f"memory of the server {used} MB, at most {most} MB", flush=True)


def scrolled(page: Any) -> list[float]:
    """Milliseconds between frames while the wheel turns over the timeline."""
    box = page.locator("#lanes").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 30)
    page.evaluate(WATCH_FRAMES)
    for turn in range(WHEELS):
        page.mouse.wheel(0, -120 if turn % 20 < 10 else 120)
    page.evaluate(NEXT_FRAMES)
    return list(page.evaluate("() => window.frameTimes"))


def main() -> None:
    """Make the results, and measure one after the other."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tracklets", type=int, nargs="+", default=[150, 300, 600])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--result", type=Path, help="what polypcount count wrote; a copy of it is measured alone")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as place, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        if options.result is not None:
            measure(browser, Path(shutil.copytree(options.result, Path(place) / "result")), options.rounds)
        else:
            for tracklets in options.tracklets:
                print(f"{tracklets} tracklets")
                measure(browser, large_result(Path(place) / str(tracklets), tracklets), options.rounds)
        browser.close()


if __name__ == "__main__":
    main()
