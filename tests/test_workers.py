"""Work in several processes: every result under its number, errors passed on, and nobody left waiting."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from polypcount.errors import FileError, PolypcountError
from polypcount.workers import in_processes


def squared(number: int) -> tuple[int, int]:
    """The square, and which process worked it out."""
    return number**2, os.getpid()


def the_first_waits(number: int, folder: Path) -> None:
    """The others leave a file; task 0 is done when all of them have."""
    if number:
        (folder / str(number)).touch()
    deadline = time.monotonic() + 60
    while not number and len(list(folder.iterdir())) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)


def noted(number: int, folder: Path) -> None:
    """Leave a file when the task is begun."""
    (folder / str(number)).touch()
    time.sleep(0.01)


def failing(number: int) -> int:
    if number == 2:
        raise FileError(f"file {number} is damaged; copy it again")
    return number


def dying(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_every_result_comes_with_the_number_of_its_task() -> None:
    results = dict(in_processes(squared, [(k,) for k in range(12)], 2))
    assert {number: square for number, (square, _) in results.items()} == {k: k**2 for k in range(12)}
    workers = {worker for _, worker in results.values()}
    assert len(workers) <= 2
    assert os.getpid() not in workers


def test_results_come_as_they_are_done(tmp_path: Path) -> None:
    order = [number for number, _ in in_processes(the_first_waits, [(k, tmp_path) for k in range(4)], 2)]
    assert order[0] != 0
    assert sorted(order) == [0, 1, 2, 3]


@pytest.mark.parametrize(("tasks", "processes"), [(5, 1), (1, 8), (5, 0)])
def test_with_one_process_or_one_task_it_is_done_here_and_in_order(tasks: int, processes: int) -> None:
    results = list(in_processes(squared, [(k,) for k in range(tasks)], processes))
    assert results == [(k, (k**2, os.getpid())) for k in range(tasks)]


def test_no_tasks() -> None:
    assert list(in_processes(squared, [], 4)) == []


def test_here_a_task_is_begun_when_its_result_is_asked_for() -> None:
    begun: list[int] = []
    results = in_processes(begun.append, [(1,), (2,)], 1)
    assert begun == []
    next(results)
    assert begun == [1]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_passes_through(processes: int) -> None:
    with pytest.raises(FileError, match=r"^file 2 is damaged; copy it again$"):
        list(in_processes(failing, [(k,) for k in range(6)], processes))


def test_a_killed_worker_gives_one_line() -> None:
    with pytest.raises(PolypcountError, match="a working process has died") as caught:
        list(in_processes(dying, [(k,) for k in range(400)], 2))
    assert "\n" not in str(caught.value)


def test_work_that_nobody_waits_for_is_not_begun(tmp_path: Path) -> None:
    results = in_processes(noted, [(k, tmp_path) for k in range(500)], 2)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert len(list(tmp_path.iterdir())) < 250


def test_beside_other_threads() -> None:
    """Forking is not safe then, so processes are started anew."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        results = dict(in_processes(squared, [(k,) for k in range(4)], 2))
    finally:
        stop.set()
        thread.join()
    assert [results[k][0] for k in range(4)] == [0, 1, 4, 9]


SCRIPT = """
import signal, sys, threading, time
from pathlib import Path
from polypcount.storage.files import whole_file
from polypcount.workers import in_processes

def slow(folder, number):
    with whole_file(Path(folder) / str(number)) as unfinished:
        unfinished.write_text("begun")
        for _ in range(60000):
            time.sleep(0.01)

{guard}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if {threads}:
        threading.Thread(target=time.sleep, args=(2,), daemon=True).start()
    for _ in in_processes(slow, [(sys.argv[1], k) for k in range(8)], 2):
        pass
"""


def begun(folder: Path, process: "subprocess.Popen[str]") -> list[Path]:
    """Wait until two workers are at it; the files that they have begun."""
    deadline = time.monotonic() + 60
    while len(files := list(folder.iterdir())) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    return files


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a group of processes")
@pytest.mark.parametrize("threads", [False, True], ids=["forked", "spawned"])
@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, signal_name: str, threads: bool) -> None:
    """Ctrl-C goes to all of them; SIGTERM and a kill only to the one that was started."""
    script, folder = tmp_path / "script.py", tmp_path / "work"
    script.write_text(SCRIPT.format(guard="if __name__ == '__main__':", threads=threads))
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, script, folder], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    assert len(begun(folder, process)) == 2
    if signal_name == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(getattr(signal, signal_name))
    messages = process.communicate(timeout=60)[1]  # ends when no process holds standard error open any more
    if signal_name != "SIGKILL":
        assert messages.count("Traceback") == 1, "of this process, not of those that it started"
        assert list(folder.iterdir()) == [], "what was begun is tidied up, and nothing else is begun"


def test_a_script_without_a_guard_is_told_how_to_mend_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(guard="if True:", threads=True))
    done = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("polypcount.errors.PolypcountError: a working process has died. A script needs `if __name__")
