"""Make the bundled detector: draw its frames, train it in rounds with hard negatives, choose its threshold, judge it.

It learns from real stills and sequences, simulated frames, and frames without polyps (see detector_data.py). The first
round begins with ImageNet's weights. After each round, the detector looks at frames without polyps that it
has not learnt from: simulated stretches, and polyp-free parts of the stills that it learns from. Those on which
it is most wrong are learnt from in the rounds that follow.

On the tuning part, a slope and an offset are fitted that turn its scores into the chance that a box shows a polyp, and
the threshold is chosen. Then it is judged once on what was held back: stills of Kvasir-SEG and PolypGen, sequences 1 to
14 of CVC-ClinicDB, polyp-free parts of these.

Run: .venv/bin/python -m benchmarks.bundled_detector KVASIR_SEG POLYPGEN CVC_CLINICDB CP_CHILD OUT [--seed 0]
         [--without kvasir|polypgen|cvc]   leaves a dataset out of learning, to judge on a hospital never seen
         [--epochs 3 2 7]                  lengths of the rounds
         [--set KEY=VALUE ...]             other settings, to try them
         [--bundle src/polypcount/detection/bundled]
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.detector_data import (
    Parts,
    drawn_frames,
    folder_of_empty_frames,
    masks_of,
    polyp_free_parts,
    real_frames,
    save_image,
)
from benchmarks.detector_judging import digest, judged, tuned
from benchmarks.encoder_data import split_stills
from numpy.typing import NDArray
from PIL import Image as Pillow

import polypcount as pc
from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Video
from polypcount.detection import load_detector
from polypcount.detection.detector_file import DESCRIPTION, MODEL
from polypcount.detection.detector_training import new_network, train_detector
from polypcount.detection.keep import begin_with, keep_detector, read_weights
from polypcount.detection.recipe import load_detector_recipe
from polypcount.progress import Progress
from polypcount.tracking import evenly
from polypcount.training import Moment
from polypcount.video import open_source

POLYP_FRAMES, EMPTY_FRAMES = 8, 24  # of each simulated procedure
PROCEDURES, LEARNT_EMPTY = 90, 5  # of the empty frames of a procedure, so many are learnt from; the others are mined
CHILD_FRAMES, FREE_PARTS, HARD = 300, 500, 500
# All rounds but the last have small images and a rate that does not fall: they find out what is hard. The last one is
# the longest, and sees frames that are more like those of a recording. All else is as the recipe says.
EARLY = ("model.width=256", "model.height=192", "optimizer.schedule=constant", "optimizer.warmup=0")
LAST = (
    *("model.width=320", "model.height=256", "changes.rotation=45", "changes.zoom=2", "changes.shrink=1.6"),
    *("changes.exposure=0.4", "changes.veil=0.03"),
)
TERMS = (
    "The weights are under the licence of polypcount. They were learnt from Kvasir-SEG, PolypGen and CVC-ClinicDB, "
    "which are for research and education, from CP-CHILD, for research, and from EfficientNet-Lite0's ImageNet weights."
)


def materials(options: argparse.Namespace, parts: Parts) -> tuple[Corpus, list[Path]]:
    """What the first round learns from, and folders of images without polyps to mine."""
    out: Path = options.out
    # The stills of all rounds, whatever is left out of learning: their polyps are animated, not detected.
    names = {Path(str(video.source)).name + video.id for video in parts.learnt.videos}
    stills = [
        still
        for still in split_stills([options.kvasir_seg, options.polypgen]).learnt
        if any(name.endswith(f"-{Path(still.image).stem}") for name in names)
    ]
    drawn = drawn_frames(out / "drawn", stills, 2000 + options.seed, PROCEDURES, (POLYP_FRAMES, EMPTY_FRAMES))
    shown = np.unique(np.column_stack([drawn.boxes.video, drawn.boxes.frame]), axis=0)
    pool, some = out / "pool-drawn", out / "drawn-empty"
    if not pool.exists():
        for folder in (pool, some):
            folder.mkdir()
        for row, video in enumerate(drawn.videos):
            source = Path(str(video.source))
            files = sorted(source.glob("*.jpg"))
            own = set(shown[shown[:, 0] == row, 1].tolist())
            empty = [file for number, file in enumerate(files) if number not in own]
            for number, file in enumerate(empty):
                target = some if number < LEARNT_EMPTY else pool
                (target / f"{video.id}-{file.name}").write_bytes(file.read_bytes())
    free, free_pool = out / "free", out / "pool-free"
    if not free.exists():
        for folder in (free, free_pool):
            folder.mkdir()
        for number, image in enumerate(polyp_free_parts(parts.learnt, 1, 3)):
            target = free if number % 3 == 0 and number < 3 * FREE_PARTS else free_pool
            save_image(target / f"{number:05d}.jpg", image)
    child, with_polyps = cp_child(options.cp_child), _only_shown(drawn)
    corpora = [parts.learnt, again(parts.learnt), with_polyps, child]
    corpora += [*_single_images(some, "drawn-empty"), *_single_images(free, "free")]
    return pc.merge(corpora), [pool, free_pool]


def again(corpus: Corpus) -> Corpus:
    """The corpus by other names: real frames are learnt from twice an epoch, so that they are half of what is seen."""
    names = [f"{video.id}-again" for video in corpus.videos]
    videos = tuple(replace(video, id=name) for video, name in zip(corpus.videos, names, strict=True))
    polyps = tuple(Polyp(f"{polyp.id}-again", f"{polyp.video}-again") for polyp in corpus.polyps)
    return replace(corpus, videos=videos, polyps=polyps)


def _only_shown(corpus: Corpus) -> Corpus:
    """The corpus with the frames that show a polyp alone."""
    parts = []
    for row, video in enumerate(corpus.videos):
        own = np.unique(corpus.boxes.frame[corpus.boxes.video == row])
        if len(own):
            parts.append(_frames_of(corpus, row, own, video.id))
    return pc.merge(parts)


def _frames_of(corpus: Corpus, row: int, frames: NDArray[np.int64], name: str) -> Corpus:
    """Some frames of a video of images as a corpus of their own."""
    video = corpus.videos[row]
    boxes = np.flatnonzero((corpus.boxes.video == row) & np.isin(corpus.boxes.frame, frames))
    files = np.flatnonzero((corpus.files.video == row) & np.isin(corpus.files.frame, frames))
    ids, polyp = np.unique(corpus.boxes.polyp[boxes], return_inverse=True)
    place = np.searchsorted(frames, corpus.files.frame[files])
    return Corpus(
        (replace(video, id=name, frame_count=len(frames)),),
        Boxes(
            np.zeros(len(boxes)),
            np.searchsorted(frames, corpus.boxes.frame[boxes]),
            corpus.boxes.xyxy[boxes],
            polyp=polyp,
        ),
        tuple(Polyp(corpus.polyps[k].id, name) for k in ids.tolist()),
        files=FrameFiles(np.zeros(len(files)), place, corpus.files.name[files]),
    )


def cp_child(folder: Path) -> Corpus:
    """The images of CP-CHILD that are learnt from, evenly spaced."""
    corpus = folder_of_empty_frames(folder, "cp-child")
    return _frames_of(corpus, 0, evenly(corpus.videos[0].frame_count, CHILD_FRAMES), corpus.videos[0].id)


def _single_images(folder: Path, name: str) -> list[Corpus]:
    """The images of a folder by size, each size a video without polyps."""
    by_size: dict[tuple[int, int], list[str]] = {}
    for path in sorted(folder.glob("*.jpg")):
        with Pillow.open(path) as image:
            by_size.setdefault(image.size, []).append(path.name)
    corpora = []
    for number, (size, names) in enumerate(sorted(by_size.items())):
        video = Video(f"{name}-{number}", len(names), None, *size, str(folder.resolve()))
        corpora.append(Corpus((video,), files=FrameFiles(np.zeros(len(names)), np.arange(len(names)), names)))
    return corpora


def mined(folders: list[Path], detector: Path, place: Path, most: int) -> list[Corpus]:
    """The images of the pools on which the detector is most wrong, copied into a folder."""
    if not place.exists():
        place.mkdir()
        model, wrong = load_detector(detector), []
        for folder in folders:
            for path in sorted(folder.glob("*.jpg")):
                ((_, image),) = open_source(path).frames([0])
                _, score = model.detect(image)
                wrong.append((float(score.max(initial=0.0)), path))
        hardest = sorted(wrong, key=lambda one: (-one[0], one[1].name))[:most]
        print(f"mined from {len(wrong)}: scores from {hardest[-1][0]:.2f} to {hardest[0][0]:.2f}", flush=True)
        for number, (_, path) in enumerate(hardest):
            (place / f"{number:05d}-{path.name}").write_bytes(path.read_bytes())
    return _single_images(place, place.name)


def trained(options: argparse.Namespace, parts: Parts) -> Path:
    """The run folder of the last round; rounds that are there are not trained again."""
    corpus, pools = materials(options, parts)
    masks = masks_of(pc.merge([parts.learnt, again(parts.learnt)]))
    start, hard, last = "imagenet", list[Corpus](), Path()
    for turn, epochs in enumerate(options.epochs):
        run: Path = options.out / f"round-{turn}-{options.seed}"
        if not (run / MODEL).exists():
            whole = pc.merge([corpus, *hard]) if hard else corpus
            changes = [
                f"seed={options.seed + turn}",
                f"epochs={epochs}",
                f"model.start={start}",
                "data.validation_share=0",
                "data.empty=100",
                "validation.monitor=last",
                *(LAST if turn + 1 == len(options.epochs) else EARLY),
                *options.changes,
            ]
            begun = time.monotonic()
            train_detector(
                whole,
                "detector",
                run,
                masks=masks,
                changes=changes,
                cache=options.out / "cache",
                log_to=[],
                resume=(run / "run.json").exists(),
                progress=_every(500, "frames cut"),
                watch=_watch,
            )
            print(f"round {turn}: {time.monotonic() - begun:.0f} s", flush=True)
        start, last = str(run), run
        if turn + 1 < len(options.epochs):
            hard += mined(pools, run / MODEL, options.out / f"hard-{turn}-{options.seed}", HARD)
    return last


def _watch(moment: Moment) -> None:
    if moment.done % 50 == 0:
        rate = f"{moment.crops_per_second:.1f} images a second"
        print(f"step {moment.done} of {moment.total}: loss {moment.loss:.3f}, {rate}", flush=True)


def _every(step: int, what: str) -> Progress:
    return lambda done, total: None if done % step else print(f"{done} of {total} {what}", flush=True)


def main() -> None:
    """Train or take what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kvasir_seg", "polypgen", "cvc_clinicdb", "cp_child", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without", default="", choices=["", "kvasir", "polypgen", "cvc"])
    parser.add_argument("--epochs", type=int, nargs="+", default=[3, 2, 7])
    parser.add_argument("--set", nargs="*", default=[], dest="changes", help="changes to the recipe of all rounds")
    parser.add_argument("--bundle", type=Path)
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    parts = real_frames(options.kvasir_seg, options.polypgen, options.cvc_clinicdb, options.without)
    run = trained(options, parts)
    calibration, threshold = tuned(run / MODEL, parts)
    print(f"calibration {calibration}, threshold {threshold}", flush=True)
    made = options.out / f"detector-{options.seed}"
    made.mkdir(exist_ok=True)
    recipe = load_detector_recipe(run / "recipe.yaml")
    network = new_network(recipe, blank=True)
    begin_with(network, read_weights(run / MODEL), run)
    settings: dict[str, Any] = {
        "threshold": threshold,
        "made_by": "benchmarks/bundled_detector.py",
        "data": _data(options, parts),
    }
    settings["rounds"] = {"epochs": options.epochs, "early": EARLY, "last": LAST, "seed": options.seed}
    about: dict[str, Any] = {"data_hash": parts.learnt.content_hash, "metrics": {}, "calibration": calibration}
    keep_detector(network, made, recipe, **about, **settings)
    figures = judged(made / MODEL, parts, threshold)
    keep_detector(network, made, recipe, **about, **settings, terms=TERMS, figures=figures)
    if options.bundle:
        for name in (MODEL, DESCRIPTION):
            (options.bundle / name).write_bytes((made / name).read_bytes())


def _data(options: argparse.Namespace, parts: Parts) -> dict[str, Any]:
    """What was learnt from, and tuned on, with hashes of the images."""
    return {
        "learnt": {"frames": len(parts.learnt.files), "sha256": digest(parts.learnt)},
        "tuned": {"frames": len(parts.tuning.files), "sha256": digest(parts.tuning)},
        "without_polyps": {"frames": CHILD_FRAMES, "sha256": digest(cp_child(options.cp_child))},
        "without": options.without,
    }


if __name__ == "__main__":
    main()
