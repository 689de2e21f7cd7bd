"""Importing REAL-Colon's XML files, against a plain loop with the standard library's ElementTree.

Run: .venv/bin/python benchmarks/import_real_colon.py [--files 600000]

Builds a tree in the dataset's layout in a temporary folder: 12 % of the frames show a polyp. The plain loop finds the
same boxes, and both results are compared.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

VIDEOS, ROUNDS = 10, 3
FRAME = """<annotation>
  <version_fmt>1.0</version_fmt>
  <folder>{video}</folder>
  <filename>{video}_{frame}.jpg</filename>
  <source>
    <database>cosmoimd</database>
    <release>v1.0_20230228</release>
  </source>
  <size>
    <width>1240</width>
    <height>1080</height>
    <depth>3</depth>
  </size>
{objects}</annotation>
"""
OBJECT = """  <object>
    <name>lesion</name>
    <unique_id>{video}_{polyp}</unique_id>
    <box_id>{number}</box_id>
    <bndbox>
      <xmin>{x1}</xmin>
      <xmax>{x2}</xmax>
      <ymin>{y1}</ymin>
      <ymax>{y2}</ymax>
    </bndbox>
  </object>
"""
OURS = """
import resource, sys, time
from polypcount.importers import read_corpus
if __name__ == "__main__":
    start = time.perf_counter()
    corpus = read_corpus("real-colon", sys.argv[1], cache=sys.argv[2] == "cache")
    seconds = time.perf_counter() - start
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    boxes = corpus.boxes
    print(seconds, peak // 1024, len(boxes), int(boxes.frame.sum()), float(boxes.xyxy.astype(float).sum()))
"""


def build(root: Path, files: int) -> None:
    """Write a tree of this many annotation files."""
    rng = np.random.default_rng(1)
    per_video = files // VIDEOS
    for index in range(VIDEOS):
        video = f"001-{index + 1:03d}"
        folder = root / f"{video}_annotations"
        folder.mkdir()
        for frame in range(per_video):
            objects = ""
            if frame % 100 < 12:
                for number in range(1 + (frame % 400 == 0)):
                    x, y, w, h = rng.integers(50, 500, 4).tolist()
                    polyp = 1 + frame * 3 // per_video
                    objects += OBJECT.format(video=video, polyp=polyp, number=number, x1=x, x2=x + w, y1=y, y2=y + h)
            (folder / f"{video}_{frame}.xml").write_text(FRAME.format(video=video, frame=frame, objects=objects))
    rows = "".join(f'"001-{i + 1:03d}",60,"male","Olympus",29.97,{per_video},3,9\n' for i in range(VIDEOS))
    head = '"unique_video_name","age","sex","endoscope_brand","fps","num_frames","num_lesions","bbps"\n'
    (root / "video_info.csv").write_text(head + rows)
    head = '"unique_object_id","unique_video_name","size [mm]","site","histology_extended","histology_class"\n'
    names = [(f"001-{i + 1:03d}", k) for i in range(VIDEOS) for k in (1, 2, 3)]
    (root / "lesion_info.csv").write_text(
        head + "".join(f'"{v}_{k}","{v}",3,"sigma","adenoma","AD"\n' for v, k in names)
    )


def plain(root: Path) -> tuple[int, int, float]:
    """The same columns by a loop over all files: number of boxes, sums of their frames and of their coordinates."""
    videos: list[int] = []
    frames: list[int] = []
    boxes: list[list[float]] = []
    polyps: list[str] = []
    for index, folder in enumerate(sorted(root.glob("*_annotations"))):
        numbered = sorted((int(name.split("_")[1][:-4]), name) for name in os.listdir(folder))  # noqa: PTH208
        for frame, name in numbered:
            tree = ET.parse(os.path.join(folder, name)).getroot()
            width, height = int(tree.findtext("size/width", "")), int(tree.findtext("size/height", ""))
            for found in tree.findall("object"):
                sides = [float(found.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")]
                limits = (width, height, width, height)
                boxes.append([min(max(value, 0), limit) for value, limit in zip(sides, limits, strict=True)])
                videos.append(index)
                frames.append(frame)
                polyps.append(found.findtext("unique_id", ""))
    columns = np.array(videos), np.array(frames), np.array(boxes), np.unique(polyps, return_inverse=True)[1]
    return len(columns[0]), int(columns[1].sum()), float(columns[2].sum())


def ours(root: Path, cache: str, home: str) -> tuple[float, int, tuple[int, int, float]]:
    """Seconds and peak MB of the import in a process of its own, and what it found."""
    script = root / "run.py"
    script.write_text(OURS)
    command = [sys.executable, str(script), str(root), cache]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "POLYPCOUNT_CACHE": home}
    )
    seconds, peak, *found = done.stdout.split()
    return float(seconds), int(peak), (int(found[0]), int(found[1]), float(found[2]))


def main() -> None:
    """Build, compare, and show how memory and time grow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=600_000)
    files = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        root = Path(folder) / "whole"
        root.mkdir()
        build(root, files)
        print(f"{files:,} files in {VIDEOS} videos")
        ratios = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            expected = plain(root)
            slow = time.perf_counter() - start
            fast, peak, found = ours(root, "no", home)
            assert found == expected, (found, expected)
            ratios.append(slow / fast)
            print(
                f"plain {slow:.1f} s, import {fast:.2f} s, peak {peak} MB over all processes: {slow / fast:.1f} times"
            )
        print(f"ratio: median {statistics.median(ratios):.1f}, lowest {min(ratios):.1f}, highest {max(ratios):.1f}")
        first, again = ours(root, "cache", home)[0], ours(root, "cache", home)[0]
        print(f"with cache: first {first:.2f} s, again over the unchanged tree {again:.2f} s")
        small = Path(folder) / "tenth"
        small.mkdir()
        build(small, files // 10)
        print(f"a tenth of the files: peak {ours(small, 'no', home)[1]} MB")


if __name__ == "__main__":
    main()
