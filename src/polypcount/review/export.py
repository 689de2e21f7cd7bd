"""The corrected count: a report, count.json, boxes for other programs, and a corpus to train on."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from polypcount.corpus import Boxes, Corpus, FrameFiles, Polyp, Provenance, Video, is_corpus
from polypcount.counting.result import CountedPolyp, CountedTracklet, CountInterval, CountReport, Picture
from polypcount.errors import FileError, first_line
from polypcount.report import write_report
from polypcount.report.keep_review import held
from polypcount.report.review_file import CORRECTED
from polypcount.review.decisions import Details
from polypcount.review.effects import span_of
from polypcount.review.frames import video_in
from polypcount.review.kept import read_recording_file
from polypcount.review.log import Stale
from polypcount.review.review import Review, Snapshot
from polypcount.storage import whole_folder

FORMATS = ("coco", "mot", "cvat")
_CORPUS = "corpus"
_MEANING = (
    "The ends are the counts at a loose and at a strict setting, with everything that was decided in the review. How "
    "often such an interval holds the true number was not measured."
)


def export(
    review: Review, moment: Snapshot, formats: Iterable[str] = (), author: str = "", recording: Path | None = None
) -> tuple[Path, list[str]]:
    """Write the corrected count into the folder of the count, in place of an earlier export.

    Args:
        review: The review.
        moment: Its state to export.
        formats: Formats of `polypcount.importers` to write the boxes in.
        author: Who reviewed; empty if that is not said.
        recording: Where the recording lies now, if it has been moved since it was counted.

    Returns:
        The folder, and the names of its files.

    Raises:
        FileError: It cannot be written.
    """
    folder = review.folder / CORRECTED
    report = corrected_report(review, moment, author)
    corpus = corrected_corpus(review, report, recording)
    try:
        with held(review.folder, alone=False), whole_folder(folder) as new:
            if review.is_outdated():
                raise Stale("the recording was counted again meanwhile; look at the new count, then export again")
            write_report(report, new / "report", export=formats, review=False)
            corpus.save(new / _CORPUS)
    except OSError as problem:
        raise FileError(f"{folder} cannot be written: {first_line(problem)}") from None
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return folder, names


def corrected_report(review: Review, moment: Snapshot, author: str = "") -> CountReport:
    """The corrected count as a report. Its polyps are numbered in the order in which they are first seen."""
    data, state, original = review.data, moment.state, review.count_values
    items = sorted(
        (item for item, polyp in state.polyp_of.items() if polyp), key=lambda item: span_of(item, data, state)
    )
    new_number = _new_numbers(review, moment)
    boxes, tracklet = _boxes(review, moment, items)
    video = original["video"]
    interval = moment.interval
    level = original["interval"]["level"] if original["interval"] else 0.0
    n = len(items)
    return CountReport(
        Video(video["id"], data.frame_count, data.basis.fps, video["width"], video["height"], video["file"] or None),
        None if interval is None else CountInterval(*interval, level, _MEANING),
        polyps=tuple(
            CountedPolyp(number, tuple(row for row, item in enumerate(items) if state.polyp_of[item] == polyp), np.nan)
            for polyp, number in new_number.items()
        ),
        tracklets=tuple(_tracklet(review, moment, item, new_number[state.polyp_of[item]]) for item in items),
        together=np.eye(n, dtype=np.float32),
        pairs=(),
        repeated=np.empty(0, np.int32),
        provenance=_provenance(review, moment, author),
        boxes=boxes,
        tracklet=tracklet,
        left_out=sum(1 for item, polyp in state.polyp_of.items() if not polyp),
        remarks=(_who(moment, author), *_described(moment, new_number), *original["remarks"]),
        no_interval="" if interval is not None else original["no_interval"] or "No interval is given.",
        times=data.times,
        mask=data.mask,
    )


def corrected_corpus(review: Review, report: CountReport, recording: Path | None = None) -> Corpus:
    """The boxes with their polyps, as `polypcount train` takes them. It names the recording where that is known."""
    boxes, _ = report.counted_boxes()
    details = _details_by_number(report)
    polyps = tuple(
        Polyp(
            f"{report.video.id}-{polyp.number}",
            report.video.id,
            size_mm=details[polyp.number].size_mm,
            site=details[polyp.number].site,
            histology=details[polyp.number].histology,
        )
        for polyp in report.polyps
    )
    known = boxes.take(np.flatnonzero(boxes.polyp >= 0))
    source, files = _pixels(review, recording)
    return Corpus((replace(report.video, source=source),), known, polyps, files, report.provenance)


def _pixels(review: Review, recording: Path | None) -> tuple[str | None, FrameFiles]:
    """Where the frames of the recording are, as a corpus of that one video names it."""
    kept = read_recording_file(review.folder)
    # A count that does not say where its recording lies may have been made with a pseudonym.
    path = None if kept is None else recording or Path(kept.source)
    if path is None or not is_corpus(path):
        return None if path is None else str(path), FrameFiles.empty()
    corpus, row = video_in(path, kept.video if kept is not None else None)
    own = corpus.files.of_video(row)
    frame, name = corpus.files.frame[own], corpus.files.name[own]
    return corpus.videos[row].source, FrameFiles(np.zeros(len(frame), np.int32), frame, name)


def _details_by_number(report: CountReport) -> dict[int, Details]:
    values = report.provenance.parameters["polyps"]
    assert isinstance(values, dict)
    return {int(number): Details(**own) for number, own in values.items()}


def _tracklet(review: Review, moment: Snapshot, item: str, polyp: int) -> CountedTracklet:
    data = review.data
    start, stop = span_of(item, data, moment.state)
    views, whole = data.pictures_of(item)
    counts = {"t": data.tracklets, "a": data.set_aside, "s": data.short}
    count = counts[item[0]][int(item[1:])].box_count if item[0] in counts else 1
    pictures = [
        Picture(one.frame, data.jpeg(one), one.width, one.height, one.xyxy, one.quality)
        for one in [*views, *([whole] if whole else [])]
    ]
    return CountedTracklet(start, stop, count, polyp, tuple(pictures[: len(views)]), pictures[-1] if whole else None)


def _boxes(review: Review, moment: Snapshot, items: Sequence[str]) -> tuple[Boxes, np.ndarray]:
    """All boxes with those that were added by hand, and the row in `items` of each; -1 for none."""
    data, state = review.data, moment.state
    row = {item: number for number, item in enumerate(items)}
    code = np.array([row.get(item, -1) for item in data.items] + [-1], np.int32)
    tracklet = code[data.item_of_box]
    added = [one for item, one in state.added.items() if item in row]
    frame = np.concatenate([data.boxes.frame, np.array([one.frame for one in added], np.int32)])
    xyxy = np.concatenate([data.boxes.xyxy, np.array([one.box for one in added], np.float32).reshape(-1, 4)])
    score = np.concatenate([data.boxes.score, np.ones(len(added), np.float32)])
    tracklet = np.concatenate([tracklet, np.array([row[one.item] for one in added], np.int32)])
    order = np.argsort(frame, kind="stable")
    boxes = Boxes(np.zeros(len(frame), np.int32), frame[order], xyxy[order], score[order], track=tracklet[order])
    return boxes, tracklet[order]


def _provenance(review: Review, moment: Snapshot, author: str) -> Provenance:
    original = review.count_values["provenance"]
    report_numbers = _new_numbers(review, moment)
    parameters = {
        "encoder": original.get("parameters", {}).get("encoder", ""),
        "method": "review",
        "reviewed_by": _reviewers(moment, author),
        "decisions": len(moment.state.done),
        "count_before": review.count_values["count"],
        "polyps": {
            str(number): moment.state.details.get(polyp, Details()).model_dump()
            for polyp, number in report_numbers.items()
        },
    }
    return Provenance.now("review", (), parameters)


def _new_numbers(review: Review, moment: Snapshot) -> dict[int, int]:
    """The number in the corrected report of each polyp."""
    state, data = moment.state, review.data
    first = {polyp: min(span_of(item, data, state) for item in items) for polyp, items in state.members().items()}
    return {polyp: number for number, polyp in enumerate(sorted(first, key=lambda one: (first[one], one)), 1)}


def _reviewers(moment: Snapshot, author: str) -> str:
    """Who decided, and who exports, as far as they said it."""
    names = [*(decided.author for decided in moment.state.done), author]
    return ", ".join(dict.fromkeys(name for name in names if name))


def _who(moment: Snapshot, author: str) -> str:
    done = moment.state.done
    number = "1 decision" if len(done) == 1 else f"{len(done)} decisions"
    when = f" on {done[-1].time[:10]}" if done else ""
    return (
        f"Corrected in a review{f' by {names}' if (names := _reviewers(moment, author)) else ''}{when}, with {number}."
    )


def _described(moment: Snapshot, new_number: dict[int, int]) -> list[str]:
    """What was said about polyps, a sentence each."""
    sentences = []
    for polyp, number in new_number.items():
        details = moment.state.details.get(polyp)
        if details is None:
            continue
        size = f"{details.size_mm:g} mm" if details.size_mm is not None else ""
        parts = [part for part in (details.name, details.site, size, details.histology, details.note) if part]
        if parts:
            sentences.append(f"Polyp {number}: {', '.join(parts)}.")
    return sentences


def refuse_unknown_formats(formats: Iterable[str]) -> None:
    """Raise where boxes cannot be written in a format."""
    for name in formats:
        if name not in FORMATS:
            raise FileError(f"{name!r} is no format for export; there are: {', '.join(FORMATS)}")
