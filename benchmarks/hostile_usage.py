"""Cases of hostile.py: where the report goes, the options, names of recordings, and the surroundings of the process."""

import os
import shutil
from pathlib import Path
from typing import Any

from benchmarks.hostile_inputs import PIPE, SECRET, UNSET, Case, Cases, Material

_VALUES = [
    *("", " ", "-1", "0", "1e308", "nan", "9" * 400, "x" * 1000, "\u202etxt.4pm", "e\u0301\u0301", "a\nb", "\udcff"),
    *("\x1b[31mred\x1b[0m", "'\";$(touch hacked)`id`", "😀,😀"),
]
_OPTIONS = [
    "boxes",
    "boxes-dir",
    "detector",
    "detector-set",
    "encoder",
    "engine",
    "method",
    "polyps",
    "min-polyps",
    "max-polyps",
    "from",
    "to",
    "format",
    "box",
    "ids",
    "size",
    "images",
    "only",
    "fps",
    "first-frame",
    "min-frames",
    "confidence",
    "mask",
    "pseudonyms",
    "export",
    "histology",
]
_TOGETHER = [
    "--from 9 --to 3",
    " --from 1:99 --to 9:99:99",
    " --from 0 --to 0",
    " --from -5",
    " --to 99999999999999999999",
    "\n--from 5s --to 1s",
    " --from 1:2:3:4",
    " --from 0:00.5 --to 0:01",
    " --polyps 2 --min-polyps 1",
    " --min-polyps 5 --max-polyps 2",
    "\n--only a --all",
    " --all",
    " --json --quiet",
    " --boxes case.csv --boxes-dir .",
    " --boxes-dir .",
    " --histology case.csv",
    " --mask 1,2,3",
    "\n--mask 0,0,1e9,1e9",
    " --mask 0,0,0,0",
    " --mask -5,-5,10,10",
    " --size 96x64",
    " --size 1x1",
    " --size 99999x99999",
    " --first-frame 40",
    "\n--first-frame -99999999999",
    " --fps 0",
    " --fps -25",
    " --fps 1e-300",
    " --fps 1e300",
    " --min-frames 999",
    " --confidence 0",
    "\n--confidence 1",
    " --polyps 99999999999",
    " --max-polyps 1 --keep-polyps",
    " case.mp4",
    " --export coco,coco,coco",
    " --export all",
    "\n--export coco,mot,cvat,yolo,csv --video",
    " --debug=1",
    " --nothing",
]
_NAMES = [
    *("-h", "--json", "a\nb", "'quoted\"", "\x1b[31m", "\u202eabc", "e\u0301", "x" * 200, " ", "a b", "=1+1", "<b>"),
    *("%s%n", "..mp4", "\udcff", "CON"),
]
_SURROUNDINGS: dict[str, dict[str, Any]] = {  # a shell command with the program as "$@", and what is new in the case
    '"$@" | head -1': {"codes": (0, 1), "keeps": True},  # 1 where nobody reads the rest
    '"$1" "$2" "$3" count --help | head -1': {"codes": (0, 1)},
    '"$@" > /dev/full': {"keeps": True},
    '"$@" --json > /dev/full': {"keeps": True},
    '"$@" 2> /dev/full': {},
    '"$@" >&-': {"codes": (0,)},
    '"$@" 2>&-': {"codes": (0,)},
    '"$@" <&- >&- 2>&-': {"codes": (0,)},
    'mkdir gone && cd gone && rmdir ../gone && "$@"': {"codes": (2,)},
    'umask 777; "$@"': {},
    'ulimit -n 20; "$@"': {},
    "\"$@\" --only $'\\xc3\\xa9'": {
        "environment": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    },
    'true; "$@"': {"environment": {"HOME": UNSET}},
    '"$@" --quiet': {"environment": {"HOME": "/dev/null", "POLYPCOUNT_CACHE": "/dev/null"}},
    'echo; "$@"': {"environment": {"PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "1"}},
    'date > /dev/null; "$@"': {"environment": {"TMPDIR": "/no/such"}},
    '"$@" --method temporal-ap': {"environment": {"POLYPCOUNT_ENGINE": "\x1b[31m"}},
}


def outputs(at: Material, _: int) -> Cases:
    """Places to write the report to."""
    others, reports = at.outside / "others", at.outside / "reports"
    others.mkdir()
    (others / "report.html").write_text(SECRET)
    shutil.copytree(at.good / "report", reports)
    links = {
        "link to report": reports,
        "link to others": others,
        "link to nothing": at.outside / "new",
        "loop": Path("out"),
    }
    kinds = [
        "report",
        "report with notes",
        "report with a link",
        "report with a huge count.json",
        "notes",
        "file",
        "pipe",
    ]
    for name in (*kinds, *links):
        for force in ([], ["--force"]):
            folder = at.fresh({"out": links[name]} if name in links else {})
            out = folder / "out"
            if name.startswith("report"):
                shutil.copytree(reports, out)
            if name.endswith("notes"):
                out.mkdir(exist_ok=True)
                (out / "notes.txt").write_text("keep me")
            if name == "report with a link":
                (out / "count.json").unlink()
                (out / "count.json").symlink_to(at.outside / "secret.txt")
            if name == "report with a huge count.json":
                (out / "count.json").write_text("[" * 10**6)
            if name == "file":
                out.write_text("keep me")
            if name == "pipe":
                os.mkfifo(out)
            yield at.count(f"out is a {name} {force}", "case.mp4", *force, folder=folder)
    for path in (
        "/",
        "/proc",
        "/proc/self/x",
        "/dev/null",
        "/dev/null/x",
        "/sys/x",
        ".",
        "..",
        "case.mp4",
        "x" * 300,
        "case.mp4/x",
    ):
        for force in ([], ["--force"]):
            yield Case(f"-o {path[:12]!r} {force}", at.fresh(), ["count", "case.mp4", "-o", path, *force])


def command_line(at: Material, _: int) -> Cases:
    """Options with odd values, odd names, and odd surroundings."""
    for option in _OPTIONS:
        for value in _VALUES:
            writes = ("out", value) if option == "pseudonyms" else ("out",)
            yield at.count(f"--{option} {value[:12]!r}", "case.mp4", f"--{option}={value}", writes=writes)
        yield at.count(f"--{option} without a value", "case.mp4", f"--{option}")
        twice = [f"--{option}=1", f"--{option}=2"]
        yield at.count(f"--{option} twice", "case.mp4", *twice)
    for options in _TOGETHER:
        yield at.count(options.strip(), "case.mp4", *options.split())
    for name in _NAMES:
        files = {f"{name}{suffix}": (at.good / f"case{suffix}").read_bytes() for suffix in (".mp4", ".csv")}
        arguments = ["count", "--export", "csv", "--", f"{name}.mp4"]
        yield Case(f"recording {name[:12]!r}", at.fresh(files), arguments, writes=(f"{name}-count",))
        yield at.count(f"two recordings, {name[:12]!r}", "--", f"{name}.mp4", "case.mp4", files=files, keeps=True)
    for name in ("-h", "--json"):
        yield at.count(f"recording {name} without --", name, files={name: (at.good / "case.mp4").read_bytes()})
    for shell, more in _SURROUNDINGS.items():
        yield at.count(f"{shell} {more.get('environment', '')}", "case.mp4", shell=shell, **more)
    yield at.count(
        "boxes from a pipe that nobody fills", "case.mp4", "--boxes", "pipe", files={"pipe": PIPE}, installed=True
    )
