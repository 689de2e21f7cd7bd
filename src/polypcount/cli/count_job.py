"""Counting one recording or several from the command line: progress, reports, and what is printed."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polypcount.cli.count_words import counted, details, headline, report_line, review_command, spent
from polypcount.cli.progress import show_progress
from polypcount.cli.recordings import Target, boxes_beside, boxes_for
from polypcount.cli.start import raise_if_stopped
from polypcount.cli.texts import harmless, with_options
from polypcount.errors import PolypcountError

if TYPE_CHECKING:
    from polypcount.counting import CountReport, CountSettings
    from polypcount.detection import Detector
    from polypcount.encoder import Encoder


@dataclass(frozen=True)
class Job:
    """What is the same for every recording.

    Attributes:
        encoder: Computes the vectors.
        detector: Finds the boxes of all recordings; None if only those without boxes need one, the bundled one.
        boxes: Boxes of the one recording.
        boxes_dir: Folder with the boxes of each recording.
        settings: How to count.
        export: Formats in which the boxes are written.
        video: Whether an annotated video is written.
        force: Whether reports are replaced.
        as_json: Whether the result is printed as one JSON object, and nothing else.
        quiet: Whether only counts are printed.
        earlier: Reports of recordings under their names, to be replaced by those under pseudonyms.
    """

    encoder: "Encoder"
    detector: "Detector | None"
    boxes: Path | None
    boxes_dir: Path | None
    settings: "CountSettings"
    export: tuple[str, ...]
    video: bool
    force: bool
    as_json: bool
    quiet: bool
    earlier: Mapping[Target, Path]

    def say(self, *lines: str, important: bool = False) -> None:
        """Print lines, unless only JSON or only what is important is wanted."""
        if not self.as_json and (important or not self.quiet):
            for line in lines:
                typer.echo(harmless(line))


def refuse_unsuitable_folders(targets: Sequence[Target], folder: Path, *, several: bool, force: bool) -> None:
    """Raise, before any work, where a report could not be written."""
    from polypcount.errors import DataError
    from polypcount.report import refuse_unsuitable_report, refuse_unsuitable_summary

    names: set[str] = set()
    for target in targets:
        if target.folder_name in names:
            raise DataError(f"two videos would have one report, {folder / target.folder_name}; count one at a time")
        names.add(target.folder_name)
        refuse_unsuitable_report(folder / target.folder_name if several else folder, force=force)
    if several:
        refuse_unsuitable_summary(folder, force=force)


def count_single(target: Target, folder: Path, job: Job) -> None:
    """Count one recording, write its report to a new folder, and print the result."""
    from polypcount.report import read_count

    report = _count(target, folder, job)
    job.say(headline(report), important=True)
    job.say(*(f"  {line}" for line in [*details(report), spent(report)]), report_line(folder))
    job.say(f"review: {review_command(folder)}")
    _write_video(target, report, folder, job)
    if job.as_json:
        typer.echo(json.dumps({**read_count(folder), "folder": str(folder)}, ensure_ascii=False))


def count_several(
    targets: Sequence[Target], folder: Path, job: Job, resected: dict[str, list[str]] | None = None
) -> None:
    """Count several recordings, each with a report, and write a summary. One that fails does not stop the others.

    Args:
        targets: The recordings.
        folder: Folder for all reports and the summary.
        job: How to count.
        resected: Histology of the resected polyps by plain name of the recording.
    """
    from polypcount.report import refuse_unsuitable_summary, remove_summary
    from polypcount.storage import only_writer, read_json

    with only_writer(folder, "counting"):
        if job.force:
            remove_summary(folder)
        refuse_unsuitable_summary(folder)  # another process may have been here
        failed = _count_each(targets, folder, job, resected)
    if job.as_json:
        typer.echo(json.dumps({**read_json(folder / "summary.json"), "folder": str(folder)}, ensure_ascii=False))
    if failed:
        raise typer.Exit(2)


def _count_each(targets: Sequence[Target], folder: Path, job: Job, resected: dict[str, list[str]] | None) -> int:
    """Count recordings one after the other and write the summary; returns how many failed."""
    from polypcount.report import SummaryRow, write_summary

    rows: list[SummaryRow] = []
    failed = 0
    for number, target in enumerate(targets):
        own_folder = folder / target.folder_name
        job.say(f"[{number + 1} of {len(targets)}] {target.name}")
        try:
            report = _count(target, own_folder, job)
            rows.append(SummaryRow.of_report(own_folder))
            job.say(f"{target.name}: {counted(report)}" if job.quiet else f"  {counted(report)}", important=True)
            job.say(*(f"  {line}" for line in details(report)))
            _write_video(target, report, own_folder, job)
        except Exception as problem:  # an error in one recording does not stop the others
            raise_if_stopped()
            failed += 1
            message = harmless(_message(problem))
            if len(rows) > number:
                typer.echo(f"  {harmless(target.name)}: counted, but {message}", err=True)
                continue
            typer.echo(f"  {harmless(target.name)}: not counted: {message}", err=True)
            # The message names files, which a summary with pseudonyms must not.
            shown = "could not be counted" if job.settings.anonymous else message
            rows.append(SummaryRow(target.name, error=_without_folders(shown, target.source.parent, job, folder)))
    if resected is not None:  # the table names recordings by their files
        names = {target.plain_name: target.name for target in targets}
        # Rows of other recordings would bring their names into a summary with pseudonyms.
        resected = {
            names.get(recording, recording): classes
            for recording, classes in resected.items()
            if recording in names or not job.settings.anonymous
        }
    for kept in job.earlier.values():
        if kept.exists():
            typer.echo(f"{harmless(str(kept))} is still there, under the name of the recording", err=True)
    write_summary(rows, folder, histology=resected)
    job.say(f"{sum(not row.error for row in rows)} of {len(rows)} counted")
    job.say(f"summary: {folder / 'summary.html'}", f"review: {review_command(folder)}")
    return failed


def _count(target: Target, folder: Path, job: Job) -> "CountReport":
    """Count one recording and write its report to a new folder."""
    from polypcount.corpus import is_corpus
    from polypcount.counting import count as count_recording
    from polypcount.report import remove_report

    boxes, detector = job.boxes, job.detector
    if job.boxes_dir is not None:
        boxes = boxes_for(target.source, job.boxes_dir)
    elif boxes is None and detector is None and (boxes := boxes_beside(target.source)) is not None:
        job.say(f"boxes: {boxes}, beside the recording")
    if boxes is None and detector is None and not is_corpus(target.source):
        detector = _bundled_detector()
    settings = job.settings.model_copy(update={"name": target.name, "video": target.video})
    with show_progress(f"{harmless(target.name)}: frames", quiet=job.quiet) as progress:
        report = count_recording(
            target.source, boxes, encoder=job.encoder, detector=detector, settings=settings, progress=progress
        )
    try:
        report.save(folder, force=job.force, export=job.export)
    except PolypcountError:
        typer.echo(f"{counted(report)}; the report could not be written", err=job.as_json)  # the number is not lost
        raise
    if target in job.earlier:
        remove_report(job.earlier[target])
        job.say(f"{job.earlier[target]} is removed: it had the name of the recording")
    return report


@cache
def _bundled_detector() -> "Detector":
    """The bundled detector, loaded once for all recordings."""
    from polypcount.detection import load_detector

    return load_detector("bundled")


def _write_video(target: Target, report: "CountReport", folder: Path, job: Job) -> None:
    """Write the annotated video into a finished report: if this fails, the count stays."""
    from polypcount.counting import CountSettings, open_recording
    from polypcount.report import write_annotated

    if job.video:
        frames = open_recording(target.source, settings=CountSettings(video=target.video)).source
        with show_progress("annotated video: frames", quiet=job.quiet) as progress:
            write_annotated(report, frames, folder / "annotated.mp4", mask=report.mask, progress=progress)


def _message(problem: Exception) -> str:
    message = with_options(problem) if isinstance(problem, PolypcountError) else str(problem)
    message = " ".join(message.split())
    if isinstance(problem, PolypcountError | OSError):
        return message
    return f"{type(problem).__name__}: {message} (a fault in polypcount)"


def _without_folders(message: str, place: Path, job: Job, folder: Path) -> str:
    """A message with the names of files alone, since folders may name a patient or a person."""
    for above in (place, job.boxes_dir, folder):
        if above is not None:
            message = message.replace(f"{above.absolute()}{os.sep}", "").replace(f"{above}{os.sep}", "")
    return message
