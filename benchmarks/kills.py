"""What is left when the program is killed or stopped at random moments, and what the next run makes of it.

For each verb: an undisturbed run first; then trials, each in a new folder with an empty cache. A trial starts the
program, sends SIGKILL or SIGTERM after a random share of the undisturbed run's time, looks at every file that is there,
runs the command again (a training is resumed), and compares the result with the undisturbed one. A trial is good if

- each file that is visible after the signal can be read to its end, and a result that seems finished is the whole one;
- after SIGTERM, there is one line, exit code 143, and no temporary file (Python's own start cannot answer: exit by the
  signal, no line, nothing written);
- the second run ends well, gives the same result, and leaves no temporary file.

Run: .venv/bin/python benchmarks/kills.py   (an hour on two cores; --trials and --only make it shorter)
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-m", "polypcount"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM)
_VOLATILE = ("created", "began", "seconds", "when", "generated", "package_version", "time", "sources", "source")


@dataclass(frozen=True)
class Verb:
    """A command to be killed.

    Attributes:
        name: In the table.
        command: Its arguments, for an output folder.
        again: Arguments that the second run has more, where the first has left something.
        result: What must be the same; raises where the result is not whole.
        finished: Whether the output seems finished.
        trials: How many, for each signal.
    """

    name: str
    command: Callable[[Path], list[str]]
    result: Callable[[Path], Any]
    finished: Callable[[Path], bool]
    again: Callable[[Path], list[str]] = field(default=lambda _: [])
    trials: int = 5


def without_times(values: Any) -> Any:
    """JSON values without those that are times."""
    if isinstance(values, dict):
        return {key: without_times(value) for key, value in values.items() if key not in _VOLATILE}
    return [without_times(value) for value in values] if isinstance(values, list) else values


def digest(path: Path) -> str:
    """Of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def counted(out: Path) -> Any:
    """The content of a report, all of whose files are there."""
    from polypcount.report import read_count

    values = read_count(out)
    missing = [name for name in values["files"] if not (out / name).is_file()]
    if missing or not (out / "report.html").read_text().rstrip().endswith("</html>"):
        raise ValueError(f"the report lacks {missing}")
    return without_times({**values, "provenance": None})


def corpus(out: Path) -> Any:
    """The content of a corpus and its videos."""
    from polypcount.corpus import Corpus

    return Corpus.load(out).content_hash, sorted(map(digest, out.glob("pixels/*.mp4")))


def vectors(out: Path) -> Any:
    """The content of embeddings."""
    from polypcount.corpus import Embeddings

    return Embeddings.load(out).content_hash


def studied(out: Path) -> Any:
    """The content of a study, and which files it has."""
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    tables = [digest(out / name) for name in ("summary.md", "summary.csv", "videos.csv", "vectors.md")]
    return without_times({**json.loads((out / "study.json").read_text()), "provenance": None}), names, tables


def trained(out: Path) -> Any:
    """The weights, bit by bit, and the losses of all steps."""
    from polypcount.encoder import load_encoder

    load_encoder(out)
    (weights,) = out.glob("model-*/encoder.safetensors")
    steps = [line.split(",")[:4] for line in (out / "steps.csv").read_text().splitlines()]
    return digest(weights), steps


def unreadable(folder: Path) -> list[str]:
    """Visible files that cannot be read to their end."""
    bad = []
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            try:
                read(path)
            except Exception as problem:
                bad.append(f"{path.relative_to(folder)}: {problem}")
    return bad


def read(path: Path) -> None:
    """Read a file to its end; raises where it is not whole."""
    import av
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image
    from safetensors import safe_open

    match path.suffix:
        case ".json" | ".scene":
            json.loads(path.read_bytes())
        case ".mp4":
            with av.open(str(path)) as file:
                if sum(1 for _ in file.decode(video=0)) != file.streams.video[0].frames:
                    raise ValueError("frames are missing")
        case ".parquet":
            pq.read_table(path)
        case ".arrow":
            pa.ipc.open_file(pa.memory_map(str(path))).read_all().validate(full=True)
        case ".npz" | ".npy":
            loaded = np.load(path, allow_pickle=False)
            _ = [loaded[name] for name in loaded.files] if path.suffix == ".npz" else loaded.sum()
        case ".png":
            Image.open(path).load()
        case ".safetensors":
            with safe_open(path, "np") as file:
                _ = [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118
        case ".html" | ".svg":
            if not path.read_text().rstrip().endswith((">",)):
                raise ValueError("cut short")
        case ".csv" | ".md" | ".tex" | ".yaml":
            if path.name not in ("steps.csv", "epochs.csv") and not path.read_text().endswith("\n"):
                raise ValueError("cut short")


def leftovers(*folders: Path) -> list[str]:
    """Temporary files and folders."""
    return [str(path.name) for folder in folders for path in folder.rglob("*.unfinished")]


def run(verb: Verb, home: Path, more: list[str], stop: tuple[int, float] | None = None) -> tuple[int, str, float]:
    """Run the command, and perhaps stop it; gives exit code, lines on standard error, and seconds."""
    environment = {**os.environ, "POLYPCOUNT_CACHE": str(home / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    began = time.monotonic()
    with subprocess.Popen(
        [*PROGRAM, *verb.command(home / "out"), *more],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
    ) as process:
        if stop is not None:
            try:
                process.wait(stop[1])
            except subprocess.TimeoutExpired:
                process.send_signal(stop[0])
        lines = process.communicate(timeout=1200)[1]
    return process.returncode, lines, time.monotonic() - began


def trial(verb: Verb, home: Path, kind: int, seconds: float, expected: Any) -> tuple[list[str], float]:
    """One kill and one run after it; gives how the killed run ended, what was wrong, and how long that run took."""
    home.mkdir()
    out = home / "out"
    code, lines, took = run(verb, home, [], (kind, seconds))
    said = [line for line in lines.splitlines() if line.startswith("polypcount: ")]
    ended = {0: "finished before", -kind: "killed"}.get(code, "stopped" if code == 128 + kind else f"exit code {code}")
    wrong = [] if ended[0] in "fks" else [f"the stopped run had {ended}: {lines[-300:]}"]
    if kind == signal.SIGTERM:
        if "Traceback" in lines or len(said) != (code == 128 + kind):
            wrong.append(f"it said {lines[-500:]!r}")
        if left := leftovers(home):
            wrong.append(f"SIGTERM left {left}")
    wrong += unreadable(home)
    if out.exists() and verb.finished(out):
        try:
            if verb.result(out) != expected:
                wrong.append("it seems finished, and is another result")
        except Exception as problem:
            wrong.append(f"it seems finished, and is not whole: {problem}")
    code, lines, _ = run(verb, home, verb.again(out))
    if code:
        wrong.append(f"the second run had exit code {code}: {lines[-300:]}")
    elif verb.result(out) != expected:
        wrong.append("the second run gives another result")
    if left := leftovers(home):
        wrong.append(f"after the second run there is {left}")
    return [ended, *wrong], took


def verbs(data: Path) -> list[Verb]:
    """What is killed: small work of every kind."""
    simulate = ["--procedures", "2", "--minutes", "0.2", "--size", "160x128", "--seed", "3"]
    few = ["--set", "epochs=2", "--set", "batches_per_epoch=4", "--set", "sampler.polyps=2", "--log-to", "none"]
    with_boxes = sorted(path.stem for path in (data / "boxes").iterdir())
    videos = [data / "corpus" / "pixels" / f"{name}.mp4" for name in with_boxes]
    boxes = data / "boxes"
    force = lambda out: ["--force"] if out.exists() else []  # noqa: E731

    def several(out: Path) -> Any:
        summary = json.loads((out / "summary.json").read_text())
        return without_times(summary), [counted(out / path.stem) for path in videos]

    def one(out: Path) -> Any:
        return counted(out), digest(out / "annotated.mp4")

    count = [
        "count",
        str(videos[0]),
        "--boxes",
        str(boxes / f"{videos[0].stem}.csv"),
        "--video",
        "--export",
        "coco,csv",
    ]
    batch = ["count", *map(str, videos), "--boxes-dir", str(boxes)]
    return [
        Verb(
            "count", lambda out: [*count, "--out", str(out)], one, lambda out: (out / "annotated.mp4").exists(), force
        ),
        Verb(
            "count, several",
            lambda out: [*batch, "--out", str(out)],
            several,
            lambda out: (out / "summary.json").exists(),
            force,
        ),
        Verb(
            "import",
            lambda out: ["import", "coco", str(data / "coco" / "boxes.json"), "--out", str(out)],
            corpus,
            lambda out: (out / "corpus.json").exists(),
            force,
        ),
        Verb(
            "simulate",
            lambda out: ["simulate", str(out), *simulate],
            corpus,
            lambda out: (out / "corpus.json").exists(),
            lambda out: ["--force"] if (out / "corpus.json").exists() else [],
        ),
        Verb(
            "embed",
            lambda out: ["embed", str(data / "corpus"), "--out", str(out / "vectors.parquet"), "--min-frames", "5"],
            lambda out: vectors(out / "vectors.parquet"),
            lambda out: (out / "vectors.parquet").exists(),
            force,
        ),
        Verb(
            "study",
            lambda out: ["study", str(data / "v.parquet"), "--out", str(out), "--grid", "coarse", "--min-frames", "5"],
            studied,
            lambda out: any((out / name).exists() for name in ("study.json", "summary.md")),
            lambda out: ["--force"] if (out / "study.json").exists() else [],
        ),
        Verb(
            "train, resumed",
            lambda out: ["train", str(data / "corpus"), "--recipe", "small", *few, "--out", str(out)],
            trained,
            lambda out: (out / "encoder.json").exists(),
            lambda out: ["--resume"] if (out / "run.json").exists() else [],
        ),
    ]


def prepare(data: Path) -> None:
    """Small inputs."""
    simulate = ["simulate", str(data / "corpus"), "--procedures", "3", "--minutes", "0.3", "--size", "160x128"]
    steps = (
        [*simulate, "--seed", "5", "--like", "study"],
        ["export", str(data / "corpus"), "--to", "coco", "--out", str(data / "coco")],
        ["export", str(data / "corpus"), "--to", "csv", "--out", str(data / "csv")],
        ["embed", str(data / "corpus"), "--out", str(data / "v.parquet"), "--min-frames", "5"],
    )
    for step in steps:
        subprocess.run([*PROGRAM, *step], check=True, capture_output=True)
    header, *lines = (data / "csv" / "boxes.csv").read_text().splitlines()
    (data / "boxes").mkdir()
    for name in {line.split(",")[0] for line in lines}:
        own = [line for line in lines if line.split(",")[0] == name]
        (data / "boxes" / f"{name}.csv").write_text("\n".join([header, *own, ""]))


def main() -> None:
    """Print the table, and a line for whatever was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, help="of each verb and signal")
    parser.add_argument("--only", default="", help="part of the name of the verb")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        data.mkdir()
        prepare(data)
        print("| verb | signal | trials | ended by it | finished before | good | undisturbed, s |", flush=True)
        print("|---|---|---|---|---|---|---|", flush=True)
        for verb in verbs(data):
            if given.only not in verb.name:
                continue
            home = Path(scratch) / f"{verb.name.split(',')[0]}-reference-{len(verb.name)}"
            home.mkdir()
            code, lines, seconds = run(verb, home, [])
            assert code == 0, lines
            expected = verb.result(home / "out")
            for kind in SIGNALS:
                outcomes: list[list[str]] = []
                for number in range(given.trials or verb.trials):
                    place = Path(scratch) / f"{home.name}-{kind}-{number}"
                    outcome, took = trial(verb, place, kind, random.uniform(0, 1.02) * seconds, expected)
                    outcomes.append(outcome)
                    if outcome[0] == "finished before":  # other programs have slowed down the undisturbed run
                        seconds = min(seconds, took)
                ends = Counter(outcome[0] for outcome in outcomes)
                good = sum(len(outcome) == 1 for outcome in outcomes)
                stopped = sum(ends.values()) - ends["finished before"]
                name = signal.Signals(kind).name
                print(
                    f"| {verb.name} | {name} | {len(outcomes)} | {stopped} | {ends['finished before']} | {good} | "
                    f"{seconds:.1f} |",
                    flush=True,
                )
                for outcome in outcomes:
                    for line in outcome[1:]:
                        print(f"  {verb.name}, {name}: {' '.join(line.split())}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
