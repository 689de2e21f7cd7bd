"""What killed processes leave behind, and several processes that write the same."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polypcount.errors import FileError
from polypcount.storage import leftovers, only_writer, remove_leftovers, whole_file, whole_folder, write_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no locks that end with a process")

BEGIN = "import os, signal, sys\nfrom pathlib import Path\nfrom polypcount.storage import *\nhome = Path(sys.argv[1])\n"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def killed(script: str, folder: Path) -> None:
    """Run a script that kills itself."""
    done = subprocess.run([sys.executable, "-c", BEGIN + script, folder], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


@contextlib.contextmanager
def at_work(script: str, folder: Path) -> Iterator[None]:
    """A living process that has run the script."""
    command = [sys.executable, "-c", f"{BEGIN}{script}"]
    with subprocess.Popen([*command, folder], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        yield
        process.communicate("go on\n", timeout=60)
        assert process.returncode == 0


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is as a new process, which has looked at no folder yet."""
    monkeypatch.setattr(leftovers, "_looked_at", set())


KILL = "os.kill(os.getpid(), signal.SIGKILL)"
WAIT = "print('at work', flush=True); input()"


def test_the_next_write_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    script = (
        "with whole_file(home / 'a.mp4') as name, whole_folder(home / 'out') as folder:\n    name.write_text('half')\n"
    )
    killed(f"{script}    (folder / 'half').touch()\n    {KILL}", tmp_path)
    assert len(names(tmp_path)) == 2
    assert all(name.endswith(".unfinished") for name in names(tmp_path))
    write_text(tmp_path / "another", "whole")
    assert names(tmp_path) == ["another"]


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    both = (
        "with whole_file(home / 'a') as name, whole_folder(home / 'out') as folder:\n"
        f"    name.write_text('whole'); (folder / 'b').touch()\n    {WAIT}"
    )
    with at_work(both, tmp_path):
        write_text(tmp_path / "another", "whole")
        remove_leftovers(tmp_path)
        assert len(names(tmp_path)) == 3
    assert names(tmp_path) == ["a", "another", "out"]
    assert names(tmp_path / "out") == ["b"]


def test_other_hidden_files_are_left_alone(tmp_path: Path) -> None:
    kept = [".a.1a2b3c4d", ".unfinished", "a.1a2b3c4d.unfinished", ".a.1a2b3c4d.unfinished.txt", ".a.xyz.unfinished"]
    for name in kept:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / ".pipe.1a2b3c4d.unfinished")  # opening it must not wait for a writer
    (tmp_path / ".link.1a2b3c4d.unfinished").symlink_to(tmp_path / ".unfinished")
    remove_leftovers(tmp_path)
    assert set(kept) <= set(names(tmp_path))


def test_without_locks_only_what_is_old_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "fcntl", None)
    new, old = tmp_path / ".a.1a2b3c4d.unfinished", tmp_path / ".b.1a2b3c4d.unfinished"
    for path in (new, old):
        path.touch()
    os.utime(old, (1, 1))
    write_text(tmp_path / "another", "whole")
    assert names(tmp_path) == [new.name, "another"]


def test_a_folder_is_put_back_after_a_kill_between_two_renames(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    script = (
        "rename = Path.rename\n"
        "def rename_or_die(path, target):\n"
        f"    {KILL} if path.name == 'new' else rename(path, target)\n"
        "Path.rename = rename_or_die\n"
        "with whole_folder(home / 'out') as name:\n    (name / 'new').touch()\n"
    )
    killed(script, tmp_path)
    assert not (tmp_path / "out").exists()
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["old"]


@pytest.mark.parametrize("replace", [True, False])
def test_of_two_that_write_one_folder_the_first_or_the_last_gets_it(tmp_path: Path, replace: bool) -> None:
    def write(name: str) -> None:
        with whole_folder(tmp_path / "out", replace=replace) as folder:
            (folder / name).touch()
            if name == "outer":
                write("inner")

    with contextlib.nullcontext() if replace else pytest.raises(FileExistsError, match="exists already"):
        write("outer")
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["outer" if replace else "inner"]


def test_many_processes_that_write_one_folder(tmp_path: Path) -> None:
    script = (
        "home.mkdir(exist_ok=True); won = 0\n"
        "for number in range(20):\n"
        "    try:\n"
        "        with whole_folder(home / str(number), replace=False) as name:\n"
        "            (name / 'a').write_text(str(os.getpid()))\n"
        "        won += 1\n"
        "    except FileExistsError: pass\n"
        "print(won)\n"
    )
    command = [sys.executable, "-c", BEGIN + script, str(tmp_path / "home")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sum(int(process.communicate(timeout=60)[0]) for process in processes) == 20
    assert names(tmp_path / "home") == sorted(str(number) for number in range(20))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "out"
    with at_work(f"with only_writer(home, 'counting'):\n    (home / 'x').touch()\n    {WAIT}", folder):
        with pytest.raises(FileError, match="out: another process is counting there") as caught:
            only_writer(folder, "counting").__enter__()
        assert "\n" not in str(caught.value)
    with only_writer(folder, "counting"):
        pass
    assert names(folder) == ["x"]


def test_a_folder_in_which_nothing_was_written_goes_again(tmp_path: Path) -> None:
    with pytest.raises(KeyError), only_writer(tmp_path / "out", "counting"):
        raise KeyError
    assert names(tmp_path) == []
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file cannot be written"):
        only_writer(tmp_path / "file", "counting").__enter__()


def test_a_private_file_is_private_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    path.touch(mode=0o644)
    with whole_file(path, private=True) as name:
        assert name.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    import resource

    path, limits = tmp_path / "a.txt", resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            write_text(path, "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.filename == str(path)
    assert names(tmp_path) == []
