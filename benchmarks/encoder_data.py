"""What the bundled encoder learns from, and what is kept from it: the split rule of all benchmarks that use stills.

Of the usable stills of each folder, in natural order, every third is held back: half of these (every second) to choose
operating points on, the others to judge counts on. The rest is learnt from. Of CVC-ClinicDB, sequences 15 to 29 are
learnt from, and 1 to 14 are held back; the halves lie apart, since neighbouring sequences may be of one patient.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import polypcount as pc
from polypcount.corpus import Boxes, Corpus
from polypcount.simulate import TimelineSettings, list_stills, simulate_scenes
from polypcount.simulate.stills import Still
from polypcount.simulate.timeline import simulate_timeline
from polypcount.tracking import evenly

LEARN_SETTINGS = TimelineSettings(width=640, height=512, minutes=10)
# Of PolypGen, names tell the hospitals apart.
_CENTRES = {
    "C3": r"C3_",
    "C5": r"EndoCV2021_C5",
    "C6": r"EndoCV2021_C6",
    "C1": r"\d+OLCV",
    "C2": r"EndoCV2021_\d|\d+[HS]\d",
}


@dataclass(frozen=True)
class SplitStills:
    """The stills of several folders, each in one of three parts."""

    learnt: list[Still]
    choosing: list[Still]
    judging: list[Still]


def split_stills(folders: Sequence[Path]) -> SplitStills:
    """The split rule: see the top of this file."""
    learnt, choosing, judging = list[Still](), list[Still](), list[Still]()
    for folder in folders:
        stills = list_stills(folder)
        learnt += [still for k, still in enumerate(stills) if k % 3]
        choosing += stills[::6]
        judging += stills[3::6]
    return SplitStills(learnt, choosing, judging)


def centre_of(still: Still) -> str:
    """The hospital of a still, by its name and folder."""
    name = Path(still.image).stem
    return next((centre for centre, pattern in _CENTRES.items() if re.match(pattern, name)), "Kvasir")


def by_centre(stills: Sequence[Still]) -> dict[str, list[Still]]:
    """The stills of each hospital."""
    centres: dict[str, list[Still]] = {}
    for still in stills:
        centres.setdefault(centre_of(still), []).append(still)
    return centres


def cvc(folder: Path, first: int, last: int) -> Corpus:
    """Some sequences of CVC-ClinicDB."""
    corpus = pc.read_corpus("cvc-clinicdb", folder)
    return corpus.select(
        videos=[video.id for video in corpus.videos if first <= int(video.id.rpartition("-")[2]) <= last]
    )


def thinned(corpus: Corpus, most: int) -> Corpus:
    """The same with at most so many boxes of each polyp, at even distances."""
    rows = [np.flatnonzero(corpus.boxes.polyp == k) for k in range(len(corpus.polyps))]
    keep = np.sort(np.concatenate([mine[evenly(len(mine), most)] for mine in rows]))
    return Corpus(corpus.videos, corpus.boxes.take(keep), corpus.polyps, provenance=corpus.provenance)


def plain_stills(folders: Sequence[Path], stills: Sequence[Still]) -> Corpus:
    """Stills as they are, those with a single box; a polyp has the name of its image, without suffix."""
    centres = {Path(still.image).stem: centre_of(still) for still in stills}
    parts = []
    for folder in folders:
        corpus = pc.read_corpus("stills", folder)
        boxes = np.bincount(corpus.boxes.video, minlength=len(corpus.videos))
        stem = {video.id: video.id.removeprefix(f"{video.dataset}-") for video in corpus.videos}
        kept = [video.id for video, count in zip(corpus.videos, boxes, strict=True) if count == 1]
        chosen = corpus.select(videos=[video for video in kept if stem[video] in centres])
        polyps = tuple(replace(polyp, id=stem[str(polyp.video)]) for polyp in chosen.polyps)
        chosen = with_centre(chosen, [centres[stem[video.id]] for video in chosen.videos])
        parts.append(replace(chosen, polyps=polyps))
    return pc.merge(parts)


def with_centre(corpus: Corpus, centres: Sequence[str]) -> Corpus:
    """The corpus with the centre of each video; without a dataset and split, which would set it apart."""
    videos = [
        replace(video, dataset="", centre=centre, split="")
        for video, centre in zip(corpus.videos, centres, strict=True)
    ]
    return replace(corpus, videos=tuple(videos))


def animated(folder: Path, stills: Sequence[Still], seed: int, frames: int) -> Corpus:
    """Nearly all of these stills, animated in procedures of one hospital each, with so many frames of each polyp."""
    parts = []
    for number, (centre, own) in enumerate(sorted(by_centre(stills).items())):
        count, polyps = 0, 0
        while True:
            polyps += len(simulate_timeline(seed + number, count, "train", LEARN_SETTINGS).corpus.polyps)
            if polyps > len(own):
                break
            count += 1
        place = folder / centre
        corpus = simulate_scenes(place, count, seed + number, "train", stills=own, settings=LEARN_SETTINGS)
        parts.append(with_centre(thinned(corpus, frames), [centre] * len(corpus.videos)))
    return pc.merge(parts)


def still_of_polyp(corpus: Corpus) -> dict[str, str]:
    """The image from which each polyp of animated stills is taken, by the polyp's name."""
    images: dict[str, str] = {}
    for video in corpus.videos:
        scene = json.loads(Path(str(video.source)).read_text())
        own = [polyp.id for polyp in corpus.polyps if polyp.video == video.id]
        images |= {polyp: still["image"] for polyp, still in zip(own, scene["stills"], strict=True)}
    return images


def same_polyps(moving: Corpus, plain: Corpus) -> Corpus:
    """Animated stills and plain ones in one corpus, in which a still and its animation are one polyp."""
    both = pc.merge([moving, plain])
    row = {polyp.id: k for k, polyp in enumerate(both.polyps)}
    owner = np.arange(len(both.polyps))
    for polyp, image in still_of_polyp(moving).items():
        owner[row.get(Path(image).stem, row[polyp])] = row[polyp]
    boxes = Boxes(**{**both.boxes.columns(), "polyp": owner[both.boxes.polyp]})
    whole = replace(both, boxes=boxes)
    return whole.select(polyps=[both.polyps[k].id for k in np.unique(owner).tolist()])
