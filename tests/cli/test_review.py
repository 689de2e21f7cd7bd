"""`polypcount review`: the address, how it ends, counting from the page, and what it refuses."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from polypcount.report import read_count
from polypcount.review import Review
from polypcount.review import decisions as d
from tests.cli.test_count import case_in
from tests.conftest import Run
from tests.counting.recordings import boxes
from tests.review.results import copy_of_result, recording

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[tuple["subprocess.Popen[str]", httpx.Client, list[str]]]:
    """The program, a browser that has opened its address, and what it has printed."""
    command = [sys.executable, "-m", "polypcount", "review", *map(str, arguments), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().strip() for _ in range(2)]
        address = lines[0].removeprefix("review: ")
        with httpx.Client(base_url=address.partition("/?")[0], timeout=60, follow_redirects=True) as client:
            client.get(address).raise_for_status()
            yield process, client, lines
    finally:
        process.kill()
        process.communicate()


def end(process: "subprocess.Popen[str]", kind: signal.Signals) -> tuple[int, str]:
    process.send_signal(kind)
    return process.wait(60), process.stderr.read() if process.stderr is not None else ""


def until(done: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rows(client: httpx.Client) -> dict[str, Any]:
    return {row["name"]: row for row in client.get("/api/procedures").raise_for_status().json()["procedures"]}


def test_one_count(tmp_path: Path) -> None:
    result = copy_of_result(tmp_path / "result")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running(result, "--port", port) as (process, client, lines):
        assert re.fullmatch(rf"review: http://127\.0\.0\.1:{port}/\?token=[\w-]{{40,}}", lines[0])
        assert lines[1] == "Ctrl-C ends it. Every decision is saved at once."
        (row,) = rows(client).values()
        home = f"/api/procedures/{row['id']}"
        body = {
            "version": 0,
            "count_id": client.get(home).json()["count_id"],
            "decision": {"kind": "merge", "polyp": 1, "other": 4},
        }
        assert client.post(f"{home}/decisions", json=body).json()["count"] == 3
        assert client.get(f"{home}/frames/7.jpg").status_code == 200
        assert end(process, signal.SIGTERM) == (143, "polypcount: stopped\n")
    assert Review(result).moment.count == 3


def test_a_folder_of_recordings(tmp_path: Path) -> None:
    """Two counts are summed; two recordings are not counted yet, and are counted or stopped from the page."""
    for name in ("a-count", "b-count"):
        copy_of_result(tmp_path / name)
    opened = Review(tmp_path / "b-count")
    opened.decide(d.Merge(kind="merge", polyp=1, other=4), 0)
    for name in ("first", "second", "third"):
        _, table = case_in(tmp_path, name, boxes(tracks=True))
        table.rename(tmp_path / f"{name}.csv")  # beside the recording, so that it is quick
    (tmp_path / "notes.txt").write_text("no recording")
    (tmp_path / "broken.mp4").write_bytes(b"no recording at all")
    with running(tmp_path) as (process, client, _):
        listed = client.get("/api/procedures").json()
        assert (listed["folder"], listed["sums"]["counted"], listed["sums"]["polyps"]) == (tmp_path.name, 2, 7)
        states = [(row["name"], row["state"], row["decisions"]) for row in listed["procedures"]]
        assert states == [
            ("case-7", "counted", 0),
            ("case-7", "counted", 1),
            ("broken", "not counted", 0),
            ("first", "not counted", 0),
            ("second", "not counted", 0),
            ("third", "not counted", 0),
        ]
        homes = {name: f"/api/procedures/{row['id']}" for name, row in rows(client).items()}
        assert client.get(homes["first"]).json() == {"detail": "this recording is not counted yet"}
        for name in ("first", "second"):
            assert client.post(f"{homes[name]}/count").json()["state"] == "counting"
        assert client.delete(f"{homes['second']}/count").json()["state"] == "not counted"  # it waited
        until(lambda: rows(client)["first"]["state"] == "counted")
        assert read_count(tmp_path / "first-count")["count"] == client.get(homes["first"]).json()["count"] > 0
        assert client.post(f"{homes['first']}/count").status_code == 400
        client.post(f"{homes['broken']}/count")
        client.post(f"{homes['second']}/count")
        until(lambda: rows(client)["broken"]["state"] == "failed")
        assert rows(client)["broken"]["message"].startswith("broken.mp4 cannot be read as a video")
        assert str(tmp_path) not in rows(client)["broken"]["message"]
        until(lambda: rows(client)["second"]["message"] == "")  # it has begun
        assert client.delete(f"{homes['second']}/count").json()["state"] == "not counted"
        client.post(f"{homes['third']}/count")
        until(lambda: rows(client)["third"]["message"] == "")
        assert end(process, signal.SIGINT) == (130, "polypcount: stopped\n")
    names = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert names == {
        "a-count",
        "b-count",
        "first-count",
        "boxes",
        *(f"csv-{name}" for name in ("first", "second", "third")),
    }


def test_what_is_refused(polypcount: Run, tmp_path: Path) -> None:
    result = copy_of_result(tmp_path / "result")
    (tmp_path / "empty").mkdir()
    plain = copy_of_result(tmp_path / "plain")
    for path in (plain / "review").iterdir():
        path.unlink()
    copy_of_result(tmp_path / "both" / "one")
    copy_of_result(tmp_path / "both" / "two")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = {
            (tmp_path / "missing",): "does not exist; give the folder that polypcount count wrote",
            (result / "count.json",): "is no folder; give the folder",
            (tmp_path / "empty",): "holds no count and no recording; polypcount count RECORDING writes a count",
            (plain,): "holds no data for a review; count the recording again with this version",
            (result, "--recording", tmp_path / "gone.mp4"): "gone.mp4 does not exist",
            (tmp_path / "both", "--recording", recording()): "a recording can be given for one count, and there are 2",
            (result, "--port", port): f"port {port} of 127.0.0.1 cannot be used: Address already in use (--port)",
            (
                result,
                "--host",
                "0.0.0.0",
            ): "0.0.0.0 stands for all addresses of this machine; give one of them (--host)",
            (result, "--host", "::"): ":: stands for all addresses of this machine; give one of them (--host)",
            (result, "--host", "no.such.host.invalid"): "no.such.host.invalid is no address of this machine",
            (result, "--host", "192.0.2.1"): "cannot be used: Cannot assign requested address",
        }
        for arguments, sentence in refused.items():
            done = polypcount("review", *arguments, "--no-browser")
            assert done.returncode == 2, arguments
            assert sentence in " ".join(done.stderr.split()), done.stderr
            assert "review: http" not in done.stdout
            assert done.stderr.startswith("polypcount: ")
            assert len(done.stderr.splitlines()) == 1
