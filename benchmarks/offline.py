"""What the program does besides its work: sockets, lookups of hosts, and files that are not its own.

Each command runs under strace, with its processes, in an empty home folder. A socket is one of AF_INET or AF_INET6; a
lookup is a read of the system's files for finding hosts. Files are those written outside the output and cache folders
that are still there at the end; matplotlib's font cache and Python's own bytecode are not counted.

Run: .venv/bin/python benchmarks/offline.py   (needs strace; about 10 minutes)
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = [sys.executable, "-m", "polypcount"]
LIVES = """
import sys, time
import polypcount as pc
video, corpus, out, seconds = sys.argv[1:]
began = time.monotonic()
encoder = pc.load_encoder()
pc.count(corpus, settings=pc.CountSettings(video=video), encoder=encoder).save(out)
time.sleep(max(0.0, float(seconds) - (time.monotonic() - began)))
"""
_SOCKET = re.compile(r"socket\(AF_INET6?\b")
_LOOKUP = re.compile(r'openat\([^"]*"/etc/(resolv\.conf|hosts|gai\.conf)"')
_WRITTEN = (
    re.compile(r'openat\([^"]*"([^"]*)", [^)]*O_(?:WRONLY|RDWR|CREAT)[^)]*\) = [0-9]'),
    re.compile(r'(?:mkdir|mkdirat|creat|symlink|link)\([^"]*"([^"]*)".*\) = 0'),
    re.compile(r'rename[^(]*\("[^"]*", [^"]*"([^"]*)".*\) = 0'),
)
_SYSTEM = ("/dev/", "/proc/", "/sys/")


def trace(command: list[str], home: Path, log: Path) -> tuple[int, float, str]:
    """Run a command under strace; gives its exit code, how many seconds it lived, and what strace saw."""
    places = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    hidden = ("TELEMETRY", "HF_HUB", "MPLCONFIGDIR", "POLYPCOUNT")
    environment = {name: value for name, value in os.environ.items() if not any(part in name for part in hidden)}
    environment |= dict.fromkeys(places, str(home)) | {
        "POLYPCOUNT_CACHE": str(home.parent / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    began = time.monotonic()
    strace = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%network,%file", "-o", str(log)]
    done = subprocess.run([*strace, *command], env=environment, cwd=home, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return done.returncode, time.monotonic() - began, log.read_text(errors="replace")


def others(seen: str, home: Path, own: list[Path]) -> set[str]:
    """Files and folders written outside our own ones."""
    paths = {match for pattern in _WRITTEN for match in pattern.findall(seen)}
    absolute = {os.path.normpath(home / path) for path in paths}
    ours = (*_SYSTEM, *map(str, own), str(home / "matplotlib"))
    kept = {path for path in absolute if not path.startswith(ours) and os.path.lexists(path)}
    return {path for path in kept if path != str(home) and "__pycache__" not in path}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=90, help="how long the library process lives")
    parser.add_argument("--only", default="", help="part of the name of what to run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        data, out = root / "data", root / "out"
        out.mkdir()
        simulate = ["simulate", "--procedures", "3", "--minutes", "0.3", "--size", "160x128", "--like", "study"]
        subprocess.run([*PROGRAM, *simulate, str(data)], check=True, capture_output=True)
        names = sorted(path.stem for path in (data / "pixels").glob("*.mp4"))
        few = ["--set", "epochs=1", "--set", "batches_per_epoch=3", "--set", "sampler.polyps=2"]
        few += ["--set", "data.validation=[]", "--set", "data.validation_share=0"]
        vectors = str(out / "vectors.parquet")
        count = [*PROGRAM, "count", str(data), "--only", names[0]]
        commands: dict[str, list[str]] = {
            "count, ONNX Runtime": [*count, "--engine", "onnx", "--out", str(out / "onnx"), "--video"],
            "count, OpenVINO": [*count, "--engine", "openvino", "--out", str(out / "openvino")],
            f"library: load, count, live {given.seconds:.0f} s": [
                *(sys.executable, "-c", LIVES, names[0], str(data), str(out / "library"), str(given.seconds))
            ],
            "simulate, 2 processes": [*PROGRAM, *simulate, str(out / "simulated")],
            "embed": [*PROGRAM, "embed", str(data), "--out", vectors],
            "study": [*PROGRAM, "study", vectors, "--grid", "coarse", "--out", str(out / "study"), "--min-frames", "1"],
            "train, 3 steps": [*PROGRAM, "train", str(data), "--recipe", "small", *few, "--out", str(out / "run")],
            "doctor": [*PROGRAM, "doctor"],
            f"for comparison: onnxruntime without polypcount, live {given.seconds:.0f} s": [
                *(sys.executable, "-c", f"import onnxruntime, time; time.sleep({given.seconds})")
            ],
        }
        print("| what ran | exit code | lived, s | sockets | lookups | files of others |\n|---|---|---|---|---|---|")
        for name, command in commands.items():
            if given.only in name:
                home = root / f"home-{name.split(',')[0].replace(' ', '-').replace(':', '')}"
                home.mkdir(exist_ok=True)
                code, seconds, seen = trace(command, home, root / "strace.log")
                files = others(seen, home, [out, root / "cache", root / "strace.log"])
                sockets, lookups = len(_SOCKET.findall(seen)), len(_LOOKUP.findall(seen))
                shown = ", ".join(sorted(files)[:5]) or "0"
                print(f"| {name} | {code} | {seconds:.0f} | {sockets} | {lookups} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
