"""Servers of the review in processes of their own, on a real port, started fast.

A first process imports everything once. Each server is a fork of it, so that many can be started and killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx


@dataclass
class Server:
    """A running server. address: What a person would open, with the token."""

    pid: int
    address: str

    @property
    def home(self) -> str:
        """The address without the token."""
        return self.address.partition("/?")[0]

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A browser that has opened the address."""
        with httpx.Client(base_url=self.home, timeout=60, follow_redirects=True) as client:
            client.get(self.address).raise_for_status()
            yield client

    def kill(self, kind: signal.Signals = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, kind)


@dataclass
class Servers:
    """Starts servers."""

    _first: "subprocess.Popen[str]"
    _running: list[Server] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, *places: Path) -> Server:
        """A server for these folders; it can be asked at once."""
        assert self._first.stdin is not None
        assert self._first.stdout is not None
        with self._lock:
            print(json.dumps([str(place) for place in places]), file=self._first.stdin, flush=True)
            server = Server(**json.loads(self._first.stdout.readline()))
        self._running.append(server)
        return server

    def stop(self) -> None:
        for server in self._running:
            server.kill()
        self._first.communicate(timeout=30)


@contextlib.contextmanager
def servers() -> Iterator[Servers]:
    """Servers that end with the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", __name__]
    first = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    started = Servers(first)
    try:
        yield started
    finally:
        started.stop()


def state_of(client: httpx.Client) -> dict[str, Any]:
    """The state of the first procedure."""
    (first, *_) = client.get("/api/procedures").json()["procedures"]
    answer = client.get(f"/api/procedures/{first['id']}")
    values: dict[str, Any] = answer.raise_for_status().json()
    return values


def taken_on(state: dict[str, Any]) -> dict[str, Any]:
    """What a request says about the state that a person has seen."""
    return {"version": state["version"], "count_id": state["count_id"]}


def _serve_each() -> None:
    import uvicorn  # noqa: F401 - before the first fork

    from polypcount.review import find_procedures, serve

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            places = [Path(place) for place in json.loads(line)]
            serve(
                find_procedures(places),
                places[0],
                ready=lambda address: print(json.dumps({"pid": os.getpid(), "address": address}), flush=True),
            )
            os._exit(0)


if __name__ == "__main__":
    _serve_each()
