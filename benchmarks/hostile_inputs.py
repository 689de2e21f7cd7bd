"""The inputs of hostile.py: a good recording with boxes, and everything that can be wrong with it."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import polypcount as pc
from polypcount.importers import write_boxes as write_format

SECRET = "GERTRUDE-OF-NOWHERE"
UNSET = "<unset>"
PIPE, FOLDER = object(), object()
ZERO = Path("/dev/zero")
Content = str | bytes | Path | object
_FRAMES, _WIDTH, _HEIGHT = 40, 96, 64
_SEED = 15
_ODD_NUMBERS = [
    "-1",
    "0",
    "1e308",
    "-1e308",
    "1e999",
    "NaN",
    "Infinity",
    "99999999999999999999",
    "2147483648",
    "1e-320",
    "0x10",
    "١٢",
    "null",
    "true",
    "[]",
    "{}",
]
_numbers = count()


@dataclass(frozen=True)
class Case:
    """One run of the program.

    Attributes:
        name: What is tried.
        folder: Where the program is started; removed afterwards.
        arguments: Of the command line.
        environment: Additional variables.
        codes: Exit codes that are right.
        writes: Names of what may be new afterwards.
        keeps: Whether output may stay though the exit code is 2: the reports of several recordings.
        installed: Whether it runs in a new Python process, not in a fork of a running one.
        shell: A bash command with the program as "$@".
    """

    name: str
    folder: Path
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    codes: tuple[int, ...] = (0, 2)
    writes: tuple[str, ...] = ("out",)
    keeps: bool = False
    installed: bool = False
    shell: str = ""


@dataclass(frozen=True)
class Mutated:
    """Damaged copies of a good file or folder, and the function of the library that reads it.

    Attributes:
        name: What is tried.
        good: The good file or folder.
        read: Reads it.
        count: How many copies.
        only: Which files of a folder are damaged.
        head: How many bytes at the beginning are damaged; None for all.
    """

    name: str
    good: Path
    read: Callable[[Path], object]
    count: int
    only: str = "*"
    head: int | None = None

    def make(self, number: int) -> Path:
        """Copy number `number`, beside the good one. The first is not damaged, to show that the reader can read it."""
        rng, copy = random.Random(f"{self.name} {number}"), self.good.with_name(f"copy-{self.good.name}")
        if self.good.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.good, copy)
            file = rng.choice(sorted(path for path in copy.rglob(self.only) if path.is_file()))
        else:
            shutil.copy(self.good, copy)
            file = copy
        if number:
            data = file.read_bytes()
            head = len(data) if self.head is None else self.head
            file.write_bytes(damaged(data[:head], rng) + data[head:])
        return copy


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one kind of damage."""
    kind, at = rng.randrange(7), rng.randrange(len(data) + 1)
    if kind == 0:
        return data[:at]
    if kind == 1:
        changed = bytearray(data)
        for _ in range(rng.choice((1, 3, 20))):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(changed)
    if kind == 2:
        return data[:at] + data[max(0, at - rng.randrange(1, 200)) :]
    if kind == 3:
        return data[:at] + data[at + rng.randrange(1, 200) :]
    if kind == 4:
        return (
            data[:at] + rng.choice((b"\0", b"\xff\xfe", b"\x1b[31m", b'"', b"[" * 2000, b"{", b"\n", b",")) + data[at:]
        )
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data[: 1 << 20]))
    if kind == 5 and found:
        one = rng.choice(found)
        return data[: one.start()] + rng.choice(_ODD_NUMBERS).encode() + data[one.end() :]
    texts = list(re.finditer(rb'"[^"\n]{1,60}"', data[: 1 << 20]))
    if texts:
        one = rng.choice(texts)
        return (
            data[: one.start()] + rng.choice((b"null", b"[]", b'"../../x"', b'"\xff"', b"1", b'""')) + data[one.end() :]
        )
    return data[at:] + data[:at]


Cases = Iterator[Case | Mutated]


class Material:
    """Good files, made once, and fresh folders with a recording in them."""

    def __init__(self, root: Path) -> None:
        from polypcount.simulate import TimelineSettings, simulate_scenes

        self.root, self.good, self.outside = root, root / "good", root / "outside"
        self.good.mkdir()
        (root / "outside" / "secret.txt").write_text(f"{SECRET}\n" * 20)
        rng = np.random.default_rng(_SEED)
        noise = rng.integers(0, 255, (_HEIGHT, _WIDTH, 3), np.uint8)
        self.images = [np.roll(noise, frame, axis=1) for frame in range(_FRAMES)]
        write_video(self.good / "case.mp4", self.images)
        write_boxes(self.good / "case.csv")
        self.scenes = self.good / "scenes"
        settings = TimelineSettings(minutes=0.2, width=96, height=80)
        self.corpus = simulate_scenes(self.scenes, 1, _SEED, "study", settings=settings)
        self.corpus.save(self.scenes)
        for name in ("coco", "mot", "cvat", "yolo", "csv"):
            write_format(self.corpus, name, self.good / name)
        self._make_embeddings()
        # In another process: a process that has started threads should not be forked.
        command = [sys.executable, "-m", "polypcount", "count", "case.mp4", "-o", "report", "--quiet"]
        subprocess.run(command, cwd=self.good, check=True, stdout=subprocess.DEVNULL)

    def _make_embeddings(self) -> None:
        """Vectors of 12 tracklets in two videos, as Parquet and npz."""
        rng = np.random.default_rng(_SEED)
        columns = {
            "video": ["a"] * 6 + ["b"] * 6,
            "polyp": [f"p{row // 3}" for row in range(12)],
            "start_frame": [50 * row for row in range(12)],
            "stop_frame": [50 * row + 40 for row in range(12)],
            "frame_count": [1000] * 12,
        }
        vectors = rng.normal(size=(12, 8)).astype(np.float32)
        pq.write_table(pa.table({**columns, "vector": list(vectors)}), self.good / "by-hand.parquet")
        made = pc.Embeddings.load(self.good / "by-hand.parquet")
        made.save(self.good / "vectors.parquet")
        made.save(self.good / "vectors.npz")

    def fresh(self, files: Mapping[str, Content] | None = None) -> Path:
        """A new folder with the good recording and its boxes, and with these files."""
        folder = self.root / "cases" / str(next(_numbers))
        folder.mkdir(parents=True)
        for name in ("case.mp4", "case.csv"):
            os.link(self.good / name, folder / name)
        for name, content in (files or {}).items():
            put(folder / name, content)
        return folder

    def count(self, name: str, *arguments: str, files: Mapping[str, Content] | None = None, **more: Any) -> Case:
        """A case of `polypcount count -o out ...` in a fresh folder, or in `folder`."""
        folder = more.pop("folder", None) or self.fresh(files)
        return Case(name, folder, ["count", "-o", "out", *arguments], **more)


def put(path: Path, content: Content) -> None:
    """Put something at a path in place of what is there: a text, bytes, a link to a path, a pipe, or a folder."""
    if path.is_symlink() or path.exists():
        path.unlink()
    if isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif isinstance(content, Path):
        path.symlink_to(content)
    elif content is PIPE:
        os.mkfifo(path)
    else:
        path.mkdir()


def write_video(path: Path, images: Sequence[np.ndarray], codec: str = "libx264", **more: Any) -> Path:
    """Write frames at 25 a second, or at `times` in milliseconds."""
    times = more.get("times")
    with av.open(str(path), "w") as file:
        file.metadata["title"] = file.metadata["comment"] = SECRET
        stream: Any = file.add_stream(codec, rate=25)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = more.get("pixels", "yuv420p")
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = times[number] if times else number
            frame.time_base = Fraction(1, 1000 if times else 25)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return path


def write_boxes(path: Path, frames: int = _FRAMES, width: int = _WIDTH, height: int = _HEIGHT) -> Path:
    """A CSV file with one tracked box in each frame."""
    box = f"{width * 0.2:.1f},{height * 0.2:.1f},{width * 0.8:.1f},{height * 0.8:.1f}"
    lines = [f"{frame},{box},0.9,1" for frame in range(frames)]
    path.write_text("frame,x1,y1,x2,y2,score,track\n" + "\n".join(lines) + "\n")
    return path
