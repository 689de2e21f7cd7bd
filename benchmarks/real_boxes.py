"""How widely real boxes are spread, and simulated ones: the figures of `polypcount.simulate.spread` side by side.

Real: three whole procedures of REAL-Colon, and the 139 videos of LDPolypVideo with one box in a frame. FOLDER has
`real-colon-001-003.csv` and so on and `ldpolypvideo.csv`, with the columns video, frame, cx, cy, w, h: the middle and
size of each box as shares of the image. 003-001 and 004-008 have one polyp each; 001-003 has two, told apart by its one
long gap (at frame 18,000). The frame rate of LDPolypVideo is taken as 25. Simulated: timelines like the study set and
like all of REAL-Colon, each with several seeds. The camera's motion was set on seeds 0 to 7; the first here is 40.

Run: .venv/bin/python benchmarks/real_boxes.py FOLDER [--seeds 4] [--first 40]
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from polypcount.corpus import Boxes, Corpus, Polyp, Video
from polypcount.simulate import simulate_timelines
from polypcount.simulate.figures import REAL_BOXES
from polypcount.simulate.spread import BoxSpread, box_spread

NEXT_POLYP = {"001-003": 18_000}  # frame from which boxes are of the next polyp
ROWS: dict[str, Callable[[BoxSpread], str]] = {
    "tracklets, all / at least 30 boxes": lambda one: f"{one.all_tracklets} / {one.tracklets}",
    "length in s, 10 / 50 / 90 %": lambda one: listed(one.seconds, 1),
    "gap to the next of the polyp in s, 25 / 50 / 75 / 90 %": lambda one: listed(one.gap_seconds, 1),
    "motion of the middle in a frame, median": lambda one: f"{one.motion:.3f}",
    "size, 10 / 50 / 90 %": lambda one: listed(one.size, 2),
    "log size, s.d. between tracklets of a polyp, median": lambda one: f"{one.size_between:.2f}",
    "log size, s.d. within a tracklet, median": lambda one: f"{one.size_within:.2f}",
    "log aspect ratio, s.d. within a tracklet, median": lambda one: f"{one.aspect_within:.2f}",
    "distance from the middle of the image, median": lambda one: f"{one.distance:.2f}",
    "share of boxes at an edge, 50 / 90 %": lambda one: listed(one.edge, 2),
    "share of short tracklets": lambda one: f"{one.short:.2f}",
    "FR without clustering": lambda one: f"{one.fragmentation:.1f} ± {one.fragmentation_spread:.1f}",
}


def listed(values: tuple[float, ...], digits: int) -> str:
    """Quantiles in a cell."""
    return " / ".join(f"{value:.{digits}f}" for value in values)


def read_boxes(path: Path, fps: float, width: int, height: int, *, one_each: bool = False) -> Corpus:
    """The boxes of a file; `one_each` leaves out videos that have a frame with several."""
    with path.open() as file:
        table = list(csv.DictReader(file))
    name, frame = np.array([row["video"] for row in table]), np.array([int(row["frame"]) for row in table])
    places = np.array([[float(row[key]) for key in ("cx", "cy", "w", "h")] for row in table])
    if one_each:
        wanted = [one for one in np.unique(name) if len(np.unique(frame[name == one])) == (name == one).sum()]
        chosen = np.isin(name, wanted)
        name, frame, places = name[chosen], frame[chosen], places[chosen]
    names, video = np.unique(name, return_inverse=True)
    later = [at >= NEXT_POLYP.get(one, 1 << 31) for one, at in zip(name.tolist(), frame, strict=True)]
    owners, polyp = np.unique(2 * video + later, return_inverse=True)
    xyxy = np.hstack([places[:, :2] - places[:, 2:] / 2, places[:, :2] + places[:, 2:] / 2])
    return Corpus(
        tuple(Video(one, int(frame[name == one].max()) + 1, fps, width, height) for one in names.tolist()),
        Boxes(video, frame, np.clip(xyxy, 0, 1) * [width, height, width, height], polyp=polyp),
        tuple(Polyp(f"{names[owner // 2]}_{owner % 2 + 1}", str(names[owner // 2])) for owner in owners.tolist()),
    )


def real(folder: Path) -> dict[str, BoxSpread]:
    """The figures of the real boxes."""
    rates = {"003-001": 25.0, "004-008": 29.97, "001-003": 29.97}
    spreads = {
        f"REAL-Colon {name}": box_spread(read_boxes(folder / f"real-colon-{name}.csv", fps, 1240, 1080))
        for name, fps in rates.items()
    }
    clips = read_boxes(folder / "ldpolypvideo.csv", 25.0, 560, 480, one_each=True)
    return {**spreads, "LDPolypVideo": box_spread(clips)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=40, help="first seed")
    options = parser.parse_args()
    columns = real(options.folder)
    for name, spread in columns.items():
        found = {key: round(value, 4) for key, value in spread.medians.items()}
        same = "as kept" if found == REAL_BOXES.get(name) else f"kept {REAL_BOXES.get(name)}"
        print(f"{name}: {found}: {same}")
    for seed in range(options.first, options.first + options.seeds):
        columns[f"study, seed {seed}"] = box_spread(simulate_timelines(19, seed, "study"))
    for seed in range(options.first, options.first + options.seeds):
        columns[f"all, seed {seed}"] = box_spread(simulate_timelines(60, seed))
    print("|  |", " | ".join(columns), "|")
    print("|---|" + "---|" * len(columns))
    for title, cell in ROWS.items():
        print(f"| {title} |", " | ".join(cell(one) for one in columns.values()), "|", flush=True)


if __name__ == "__main__":
    main()
