"""How often the same frames give the same mp4 bytes while all cores are busy: our settings, and others.

python benchmarks/same_bytes.py --writes 250
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import av

from polypcount.machine import available_cores
from polypcount.simulate import TimelineSettings, simulate_scenes
from polypcount.simulate.scene_file import SceneFile
from polypcount.video.write import _OPTIONS, _THREADS

_SETTINGS = {"ours": _OPTIONS["x264-params"], "x264's default": "", "rc-lookahead=0": "rc-lookahead=0"}


def encode(frames: list[av.VideoFrame], parameters: str, threads: int) -> bytes:
    """The mp4 file of these frames."""
    out, rate = io.BytesIO(), Fraction(30)
    options = {**_OPTIONS, "x264-params": parameters, "crf": "23"}
    with av.open(out, "w", format="mp4") as file:
        stream = file.add_stream("libx264", rate, options=options)
        stream.height, stream.width, stream.pix_fmt = frames[0].height, frames[0].width, "yuv420p"
        stream.thread_type, stream.thread_count = "FRAME", threads
        for number, frame in enumerate(frames):
            frame.pts, frame.time_base = number, 1 / rate
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return out.getvalue()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=60)
    parser.add_argument("--frames", type=int, default=120)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = TimelineSettings(minutes=0.2, width=320, height=256)
        corpus = simulate_scenes(folder, 1, 3, "study", settings=settings)
        scene = SceneFile.load(Path(str(corpus.videos[0].source))).scene()
        images = [scene.draw(number) for number in range(given.frames)]
    frames = [av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p") for image in images]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(available_cores())]
    try:
        print("| settings | threads | writes | different files | kB | frames a second |\n|---|---|---|---|---|---|")
        for name, parameters in _SETTINGS.items():
            for threads in (_THREADS, 1):
                began, files = time.monotonic(), []
                for _ in range(given.writes):
                    content = encode(frames, parameters, threads)
                    files.append(hashlib.sha256(content).digest())
                speed = given.writes * len(frames) / (time.monotonic() - began)
                size = len(content) / 1000
                print(
                    f"| {name} | {threads} | {given.writes} | {len(set(files))} | {size:.0f} | {speed:.0f} |",
                    flush=True,
                )
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    main()
