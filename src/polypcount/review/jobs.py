"""Counting recordings from the page, one after the other, each in a process of its own."""

import re
import subprocess
import sys
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from polypcount.errors import first_line

_PROGRESS = re.compile(r"(\d[\d,]*) of (\d[\d,]*)")
_MOST_LINE = 300


@dataclass
class CountingJob:
    """A recording that is counted, or waits for it.

    Attributes:
        recording: The recording.
        folder: Where the count goes.
        share: How much is done, 0 to 1.
        message: Why it failed, or what it does; empty for nothing to say.
        state: "waiting", "counting", "done", "failed" or "stopped".
    """

    recording: Path
    folder: Path
    share: float = 0.0
    message: str = ""
    state: str = "waiting"


class Jobs:
    """The queue of recordings to count. Everything ends with `close`."""

    def __init__(self) -> None:
        self._jobs: dict[str, CountingJob] = {}
        self._waiting: deque[str] = deque()
        self._lock = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._now: str | None = None
        self._closed = False
        self._worker: threading.Thread | None = None

    def get(self, name: str) -> CountingJob | None:
        """The job of a procedure."""
        return self._jobs.get(name)

    def start(self, name: str, recording: Path, folder: Path) -> None:
        """Count a recording, after those that wait already. Nothing happens if it waits or is counted."""
        with self._lock:
            known = self._jobs.get(name)
            if known is not None and known.state in ("waiting", "counting"):
                return
            self._jobs[name] = CountingJob(recording, folder)
            self._waiting.append(name)
            if self._worker is None:
                self._worker = threading.Thread(target=self._work, daemon=True)
                self._worker.start()
            self._lock.notify_all()

    def stop(self, name: str) -> None:
        """Stop counting a recording, or waiting for it; nothing is left half written."""
        with self._lock:
            job = self._jobs.get(name)
            if job is None:
                return
            if job.state == "waiting":
                self._waiting.remove(name)
                job.state = "stopped"
            elif job.state == "counting" and self._process is not None and self._now == name:
                job.state = "stopped"
                self._process.terminate()

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            if self._process is not None:
                self._process.terminate()
            self._lock.notify_all()
        if self._worker is not None:
            self._worker.join(timeout=20)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._process = self._now = None
                self._lock.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                self._now = self._waiting.popleft()
                job = self._jobs[self._now]
                try:
                    process = self._process = _counting(job)
                except OSError as problem:
                    job.state, job.message = "failed", first_line(problem)
                    continue
                job.state = "counting"
            self._follow(job, process)

    def _follow(self, job: CountingJob, process: "subprocess.Popen[str]") -> None:
        """Read what the process says until it ends."""
        assert process.stderr is not None
        last = ""
        with process.stderr as lines:
            for line in lines:
                last = line.strip()[:_MOST_LINE] or last
                if found := _PROGRESS.search(line):
                    done, total = (int(part.replace(",", "")) for part in found.groups())
                    job.share = min(1.0, done / max(1, total))
        code = process.wait()
        if job.state == "counting":
            job.state = "done" if code == 0 else "failed"
            job.message = "" if code == 0 else last.removeprefix("polypcount: ").replace(f"{job.recording.parent}/", "")


def _counting(job: CountingJob) -> "subprocess.Popen[str]":
    """A process that counts."""
    command = [sys.executable, "-m", "polypcount", "count", str(job.recording), "--out", str(job.folder)]
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
