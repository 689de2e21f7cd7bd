"""Simulated procedures with known polyps that counting is calibrated and judged on, and real frames.

A set has procedures of eight lengths, from 20 seconds to 40 minutes, modelled on all 60 of REAL-Colon (0 to 9 polyps),
half of animated stills and half of drawn polyps. Half of each have perfect boxes and tracks, the others the boxes of a
simulated detector, which counting tracks itself. Stills for choosing and for judging differ, and the encoder has
learnt from neither.

Pseudo-procedures put sequences of CVC-ClinicDB one after the other: 2 to 5 polyps, each seen again and again in
tracklets of up to 8 frames. They have real frames and no real time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import polypcount as pc
from polypcount.corpus import Boxes, Corpus, Embeddings, FrameVectors, Polyp, Tracklets, Video
from polypcount.counting import CountReport, CountSettings
from polypcount.counting.tracklets import track
from polypcount.encoder import Encoder
from polypcount.machine import available_cores
from polypcount.simulate import TimelineSettings, as_detected, simulate_scenes
from polypcount.simulate.stills import Still
from polypcount.workers import in_processes

MINUTES = (1 / 3, 0.6, 1.0, 2.0, 4.0, 8.0, 15.0, 40.0)
CHOOSING, JUDGING = 1700, 1900  # seeds of the first length
_LEAST_OVERLAP = 0.3  # IoU at which a box of a detector shows a polyp
_SEQUENCE_FRAMES, _APART_SECONDS = 8, 10


@dataclass(frozen=True)
class Procedure:
    """One procedure to count.

    Attributes:
        truth: A corpus of one video with the true boxes.
        detected: The boxes of a detector; None for perfect boxes and tracks.
        kind: "stills" or "drawn".
        minutes: The longest that it may be.
    """

    truth: Corpus
    detected: Boxes | None
    kind: str
    minutes: float


def simulated(folder: Path, stills: Sequence[Still], seed: int, of_each: int) -> list[Procedure]:
    """The procedures of a set: `of_each` of each length and kind."""
    procedures = []
    for number, minutes in enumerate(MINUTES):
        settings = TimelineSettings(width=640, height=512, minutes=minutes)
        for kind, own in (("stills", stills), ("drawn", None)):
            place = folder / f"{kind}-{number}"
            first = seed + number + (0 if own else len(MINUTES))
            corpus = simulate_scenes(place, of_each, first, "all", stills=own, settings=settings)
            for turn, video in enumerate(corpus.videos):
                truth = corpus.select(videos=[video.id])
                detected = as_detected(truth, first + turn).boxes if turn % 2 else None
                procedures.append(Procedure(truth, detected, kind, minutes))
    return procedures


def counted(procedure: Procedure, encoder: Encoder) -> CountReport:
    """Count a procedure as a user would, with boxes that do not name polyps."""
    source, boxes = str(procedure.truth.videos[0].source), unnamed_boxes(procedure)
    return pc.count(source, boxes, encoder=encoder, settings=CountSettings(pictures=False))


def with_truth(report: CountReport, procedure: Procedure) -> Embeddings:
    """The vectors that counting used, with the true polyp of each tracklet; -1 where a detector saw no polyp."""
    vectors, video = report.embeddings, procedure.truth.videos[0]
    assert vectors is not None
    assert report.boxes is not None
    assert report.tracklet is not None
    shown = shown_polyps(report.boxes, procedure.truth.boxes)
    polyp = np.array([_owner(shown[report.tracklet == row]) for row in range(len(vectors))], np.int32)
    polyps = tuple(replace(one, video=video.id) for one in procedure.truth.polyps)
    return replace(vectors, videos=(replace(video, source=None),), polyps=polyps, polyp=polyp)


def polyps_to_count(procedure: Procedure) -> int | None:
    """How many polyps own a tracklet that is long enough; None where there is no such tracklet.

    It is asked before tracklets are split by their appearance. So it is the same for every encoder, and a polyp that is
    lost by splitting counts as an error.
    """
    truth, boxes = procedure.truth.boxes, unnamed_boxes(procedure)
    tracked = track(boxes, procedure.truth.videos[0], CountSettings())
    shown = shown_polyps(tracked.boxes, truth)
    owners = {_owner(shown[tracked.tracklets.rows(row)]) for row in tracked.counted.tolist()}
    return len(owners - {-1}) if len(tracked.counted) else None


def unnamed_boxes(procedure: Procedure) -> Boxes:
    """What counting is given: the boxes of a detector, or the true ones with their tracks but without polyps."""
    true = procedure.truth.boxes
    if procedure.detected is not None:
        return procedure.detected
    return Boxes(true.video, true.frame, true.xyxy, true.score, track=true.polyp)


def _owner(shown: NDArray[np.int32]) -> int:
    """The polyp that more than half of the boxes of a tracklet show; -1 for none."""
    votes = np.bincount(shown[shown >= 0], minlength=1)
    return int(votes.argmax()) if votes.max() * 2 > len(shown) else -1


def shown_polyps(boxes: Boxes, truth: Boxes) -> NDArray[np.int32]:
    """The polyp that each box shows, int32[boxes]: that of the true box it overlaps most, -1 below an IoU of 0.3."""
    shown, best = np.full(len(boxes), -1, np.int32), np.full(len(boxes), _LEAST_OVERLAP)
    first, last = (np.searchsorted(truth.frame, boxes.frame, side=side) for side in ("left", "right"))
    for turn in range(int((last - first).max(initial=0))):
        rows = np.flatnonzero(first + turn < last)
        one, other = boxes.xyxy[rows].astype(float), truth.xyxy[first[rows] + turn].astype(float)
        sides = np.minimum(one[:, 2:], other[:, 2:]) - np.maximum(one[:, :2], other[:, :2])
        common = np.maximum(sides, 0).prod(axis=1)
        iou = common / ((one[:, 2:] - one[:, :2]).prod(axis=1) + (other[:, 2:] - other[:, :2]).prod(axis=1) - common)
        better = rows[iou >= best[rows]]
        shown[better], best[better] = truth.polyp[first[better] + turn], iou[iou >= best[rows]]
    return shown


def sequence_tracklets(corpus: Corpus) -> Tracklets:
    """The boxes of each sequence, the first of a frame, in tracklets of up to 8 frames."""
    label, count = np.full(len(corpus.boxes), -1, np.int32), 0
    for polyp in range(len(corpus.polyps)):
        mine = np.flatnonzero(corpus.boxes.polyp == polyp)
        mine = mine[np.unique(corpus.boxes.frame[mine], return_index=True)[1]]
        label[mine] = count + np.arange(len(mine)) // _SEQUENCE_FRAMES
        count = int(label[mine].max()) + 1
    return Tracklets.gather(corpus.boxes, label)


def pseudo_procedures(
    vectors: Embeddings, draws: int, seed: int, sequences: NDArray[np.int64] | None = None
) -> Iterator[Embeddings]:
    """Draws of 2 to 5 sequences, in a random order, all tracklets of one after those of the other.

    Args:
        vectors: Of the tracklets of sequences, with the vectors of frames; each sequence is a video.
        draws: How many.
        seed: Of the draws.
        sequences: The sequences to draw from; all by default.
    """
    assert vectors.frames is not None
    rng = np.random.default_rng(seed)
    fps, members = 30, np.unique(vectors.video if sequences is None else sequences)
    for number in range(draws):
        chosen = rng.permutation(members)[: rng.integers(2, 6)]
        rows = np.concatenate([np.flatnonzero(vectors.video == video) for video in chosen])
        begin = np.arange(len(rows)) * _APART_SECONDS * fps
        frames = [vectors.frames.of_tracklet(row) for row in rows.tolist()]
        counts = [part.stop - part.start for part in frames]
        video = Video(f"sequences-{seed}-{number}", int(begin[-1]) + _APART_SECONDS * fps, fps)
        yield Embeddings(
            videos=(video,),
            polyps=[Polyp(f"{video.id}-{k}", video.id) for k in range(len(chosen))],
            video=np.zeros(len(rows), np.int32),
            start_frame=begin,
            stop_frame=begin + 30,
            box_count=np.full(len(rows), 30),
            polyp=np.argmax(vectors.video[rows, None] == chosen, axis=1),
            vectors=vectors.vectors[rows],
            encoder=vectors.encoder,
            frames=FrameVectors(
                np.repeat(np.arange(len(rows)), counts),
                np.concatenate([start + np.arange(count) for start, count in zip(begin, counts, strict=True)]),
                np.concatenate([vectors.frames.vectors[part] for part in frames]),
            ),
        )


def collect(
    procedures: Sequence[Procedure], encoder: Path | None, paths: Sequence[Path], processes: int | None = None
) -> None:
    """Count all procedures, and keep the vectors with the truth in files; what is there is not counted again."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    tasks = [(procedure, encoder, path) for procedure, path in zip(procedures, paths, strict=True) if not path.exists()]
    # The longest first, so that no process is left with one of them at the end.
    tasks.sort(key=lambda task: -len(task[0].truth.boxes))
    for done, _ in enumerate(in_processes(_keep, tasks, processes or available_cores()), 1):
        if done % 10 == 0:
            print(f"{done} of {len(tasks)} procedures", flush=True)


def _keep(procedure: Procedure, encoder: Path | None, path: Path) -> None:
    report = counted(procedure, pc.load_encoder(encoder, threads=1, engine="onnx"))
    with_truth(report, procedure).save(path)
