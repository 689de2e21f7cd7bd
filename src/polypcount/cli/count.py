"""`polypcount count`: how many distinct polyps there are in a recording."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polypcount.cli.recordings import boxes_for, earlier_reports, name_of, name_recordings
from polypcount.cli.texts import harmless, parse_size, with_options

if TYPE_CHECKING:
    from polypcount.counting import CountReport, CountSettings
    from polypcount.detection import Detector, DetectorSettings
    from polypcount.encoder import Encoder

_MOST_SHOWN = 3  # doubts in the terminal


@dataclass(frozen=True)
class _Job:
    """What is the same for every recording."""

    encoder: "Encoder"
    detector: "Detector | None"
    settings: "CountSettings"
    export: tuple[str, ...]
    video: bool
    force: bool
    earlier: dict[Path, Path]  # reports of recordings under their names, to be replaced by those under pseudonyms


def count(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING", help="Video file, folder of images, DICOM file or corpus folder."),
    ],
    boxes: Annotated[
        Path | None, typer.Option(help="Boxes of a detector, tracker or annotation program; a corpus has its own.")
    ] = None,
    boxes_dir: Annotated[
        Path | None, typer.Option("--boxes-dir", help="Folder with the boxes of each recording, by its name.")
    ] = None,
    detector: Annotated[Path | None, typer.Option(metavar="ONNX", help="Find the boxes with this detector.")] = None,
    detector_set: Annotated[
        list[str] | None,
        typer.Option(
            "--detector-set",
            metavar="KEY=VALUE",
            help="How to run and read the detector, where its file does not say; see docs/detectors.md.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the report.", show_default="NAME-count, or polyp-counts for several"
        ),
    ] = None,
    encoder: Annotated[
        Path | None, typer.Option(help="Folder of a trained encoder.", show_default="the bundled encoder")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="auto|onnx|openvino|torch", help="What computes the encoder.")
    ] = "auto",
    method: Annotated[
        str | None,
        typer.Option(help="How tracklets are grouped, such as temporal-ap, the paper's.", show_default="the best one"),
    ] = None,
    polyps: Annotated[int | None, typer.Option(min=1, help="How many polyps there are, if that is known.")] = None,
    min_polyps: Annotated[int | None, typer.Option(min=1, help="Fewest polyps there can be.")] = None,
    max_polyps: Annotated[int | None, typer.Option(min=1, help="Most polyps there can be.")] = None,
    boxes_format: Annotated[
        str | None, typer.Option("--format", help="Format of the boxes, see polypcount import --list.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="ID", help="Which video, where a corpus or the boxes have several.")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second, where the recording does not say.")] = None,
    first_frame: Annotated[
        int | None,
        typer.Option(help="Number that the boxes give to the first frame.", show_default="0; 1 in mot and yolo"),
    ] = None,
    min_frames: Annotated[
        int | None, typer.Option(min=1, help="Leave shorter tracklets out.", show_default="30; less in a short clip")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Score from which a box begins a track.", show_default="0.5")
    ] = None,
    mask: Annotated[
        list[str] | None, typer.Option(metavar="X,Y,W,H", help="Black out this part in all pictures; repeat.")
    ] = None,
    mask_border: Annotated[
        bool, typer.Option("--mask-border/--no-mask-border", help="Black out what is outside the round view.")
    ] = True,
    pseudonyms: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Call recordings by pseudonyms; this file keeps which is which."),
    ] = None,
    export: Annotated[
        str, typer.Option(metavar="FORMAT,...", help="Write boxes with their polyps, too: coco, mot, cvat, yolo, csv.")
    ] = "",
    video: Annotated[bool, typer.Option("--video", help="Write an annotated mp4, too.")] = False,
    histology: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Table video,histology of resected polyps, for the adenoma detection rate of several."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace reports that are there.")] = False,
) -> None:
    """Count the distinct polyps of a recording, and write a report. Nothing leaves the machine.

    Boxes with tracks or polyps are taken as they are. Others are tracked first.

    Several recordings get a report each, and a summary. One that cannot be counted does not stop the others.
    """
    from polypcount.corpus import is_corpus
    from polypcount.counting import CountSettings, operating_point
    from polypcount.detection import load_detector
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError
    from polypcount.report import read_histology, refuse_unsuitable_report, refuse_unsuitable_summary, remove_summary
    from polypcount.storage import only_writer
    from polypcount.tracking import TrackRules
    from polypcount.video import parse_rectangle

    several = len(sources) > 1
    if (boxes is not None) + (boxes_dir is not None) + (detector is not None) > 1:
        raise DataError("give one of --boxes, --boxes-dir and --detector")
    if detector_set and detector is None:
        raise DataError("--detector-set is for a --detector")
    if boxes is not None and several:
        raise DataError("--boxes are of one recording; for several, give --boxes-dir")
    if boxes_dir is not None and not boxes_dir.is_dir():
        raise DataError(f"--boxes-dir: {boxes_dir} is not a folder")
    if histology is not None and not several:
        raise DataError("--histology is for a summary of several recordings")
    if polyps is not None and (min_polyps is not None or max_polyps is not None):
        raise DataError("--polyps is the exact number; give it, or --min-polyps and --max-polyps")
    if min_polyps is not None and max_polyps is not None and min_polyps > max_polyps:
        raise DataError(f"--min-polyps {min_polyps} is above --max-polyps {max_polyps}")
    rules = TrackRules()
    if confidence is not None:
        rules = TrackRules(confidence=confidence, low_confidence=min(confidence, rules.low_confidence))
    settings = CountSettings(
        method=method,
        polyps=polyps,
        min_polyps=min_polyps,
        max_polyps=max_polyps,
        min_frames=min_frames,
        tracker=rules,
        boxes_format=boxes_format,
        video=only,
        fps=fps,
        first_frame=first_frame,
        mask_border=mask_border,
        mask=tuple(parse_rectangle(text) for text in mask or ()),
        anonymous=pseudonyms is not None,
    )
    formats = _formats(export)
    resected = None if histology is None else read_histology(histology)
    named = name_recordings(sources, pseudonyms, by_name=boxes_dir is not None or histology is not None)
    if only is not None and pseudonyms is None and not several and is_corpus(sources[0]):
        named = {sources[0]: only}
    folder = out or Path("polyp-counts" if several else f"{named[sources[0]].replace(os.sep, '_')}-count")
    earlier = {} if pseudonyms is None else earlier_reports(named, folder, out=out, force=force)
    for name in named.values():
        refuse_unsuitable_report(folder / name if several else folder, force=force)
    if several:
        refuse_unsuitable_summary(folder, force=force)
    model = load_encoder(encoder, engine=engine)
    operating_point(model, method)  # a wrong method is refused before the first recording
    opened = None if detector is None else load_detector(detector, _detector_settings(detector_set or []))
    job = _Job(model, opened, settings, formats, video, force, earlier)
    if several:
        with only_writer(folder, "counting"):
            if force:
                remove_summary(folder)
            refuse_unsuitable_summary(folder)  # another process may have been here
            _count_several(named, boxes_dir, folder, job, resected)
    else:
        own_boxes = boxes if boxes_dir is None else boxes_for(sources[0], boxes_dir)
        report = _count_one(sources[0], named[sources[0]], own_boxes, folder, job)
        _say(report, folder)
        _write_video(sources[0], report, folder, job)


def _count_one(source: Path, name: str, boxes: Path | None, folder: Path, job: _Job) -> "CountReport":
    """Count one recording and write its report to a new folder."""
    from polypcount.cli.progress import show_progress
    from polypcount.counting import count as count_recording
    from polypcount.errors import PolypcountError
    from polypcount.report import remove_report

    settings = job.settings.model_copy(update={"name": name})
    with show_progress(f"{harmless(name)}: frames") as progress:
        report = count_recording(
            source, boxes, encoder=job.encoder, detector=job.detector, settings=settings, progress=progress
        )
    try:
        report.save(folder, force=job.force, export=job.export)
    except PolypcountError:
        typer.echo(f"{counted(report)}; the report could not be written")  # at least the number is not lost
        raise
    if source in job.earlier:
        remove_report(job.earlier[source])
        typer.echo(f"{harmless(str(job.earlier[source]))} is removed: it had the name of the recording")
    return report


def _write_video(source: Path, report: "CountReport", folder: Path, job: _Job) -> None:
    """Write the annotated video into a finished report: if this fails, the count stays."""
    from polypcount.cli.progress import show_progress
    from polypcount.counting import CountSettings, open_recording
    from polypcount.report import write_annotated

    if job.video:
        frames = open_recording(source, settings=CountSettings(video=job.settings.video)).source
        with show_progress("annotated video: frames") as progress:
            write_annotated(report, frames, folder / "annotated.mp4", mask=report.mask, progress=progress)


def _count_several(
    named: dict[Path, str], boxes_dir: Path | None, folder: Path, job: _Job, resected: dict[str, list[str]] | None
) -> None:
    from polypcount.cli.start import raise_if_stopped
    from polypcount.errors import PolypcountError
    from polypcount.report import SummaryRow, write_summary

    rows: list[SummaryRow] = []
    failed = 0
    for number, (source, name) in enumerate(named.items()):
        typer.echo(f"[{number + 1} of {len(named)}] {harmless(name)}")
        try:
            boxes = None if boxes_dir is None else boxes_for(source, boxes_dir)
            report = _count_one(source, name, boxes, folder / name, job)
            rows.append(SummaryRow.of_report(folder / name))
            typer.echo(f"  {counted(report)}")
            _say_remarks(report)
            _write_video(source, report, folder / name, job)
        except Exception as problem:  # an error in one recording does not stop the others
            raise_if_stopped()
            failed += 1
            message = with_options(problem) if isinstance(problem, PolypcountError) else str(problem)
            message = harmless(" ".join(message.split()))
            if not isinstance(problem, PolypcountError | OSError):
                message = f"{type(problem).__name__}: {message} (a fault in polypcount)"
            if len(rows) > number:
                typer.echo(f"  counted, but {message}", err=True)
                continue
            typer.echo(f"  not counted: {message}", err=True)
            # The message names files, which a summary with pseudonyms must not.
            shown = "could not be counted" if job.settings.anonymous else message
            rows.append(SummaryRow(name, error=_without_folders(shown, source.parent, boxes_dir, folder)))
    if resected is not None:  # the table names recordings by their files
        names = {name_of(source): name for source, name in named.items()}
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
    typer.echo(f"{sum(not row.error for row in rows)} of {len(rows)} counted")
    typer.echo(f"summary: {harmless(str(folder / 'summary.html'))}")
    if failed:
        raise typer.Exit(2)


def _without_folders(message: str, *folders: Path | None) -> str:
    """A message with the names of files alone, since folders may name a patient or a person."""
    for folder in folders:
        if folder is not None:
            message = message.replace(f"{folder.absolute()}{os.sep}", "").replace(f"{folder}{os.sep}", "")
    return message


def _formats(export: str) -> tuple[str, ...]:
    """The formats in which to write the boxes."""
    from polypcount.errors import DataError
    from polypcount.importers import FORMATS

    writable = [item.name for item in FORMATS.values() if item.writes]
    names = tuple(name for name in export.replace(" ", "").split(",") if name)
    for name in names:
        if name not in writable:
            raise DataError(f"--export: {name!r} cannot be written; these can: {', '.join(writable)}")
    return names


def _detector_settings(pairs: list[str]) -> "DetectorSettings":
    from polypcount.detection import DetectorSettings
    from polypcount.errors import DataError

    values: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        try:
            if name == "size":
                values[name] = parse_size(value)
            elif name == "classes":
                values[name] = value.split(",")
            else:
                values[name] = float(value) if name in ("confidence", "iou") else value
        except ValueError:
            expected = "WIDTHxHEIGHT, such as 640x640" if name == "size" else "a number from 0 to 1"
            raise DataError(f"--detector-set: {name} must be {expected}, found {value!r}") from None
    return DetectorSettings(**values)


def counted(report: "CountReport") -> str:
    """The count and its interval, in words."""
    low, high = report.interval.low, report.interval.high
    span = f"{low}" if low == high else f"{low} to {high}"
    noun = "polyp" if report.count == 1 else "polyps"
    return f"{report.count} {noun} ({report.interval.level:.0%} interval: {span})"


def _say_remarks(report: "CountReport") -> None:
    for remark in report.remarks:
        typer.echo(f"  {harmless(remark)}")
    if report.video.fps is None:
        typer.echo("  Set the frame rate with --fps.")


def _say(report: "CountReport", folder: Path) -> None:
    tracklets = "1 tracklet" if len(report.tracklets) == 1 else f"{len(report.tracklets)} tracklets"
    typer.echo(f"{counted(report)} in {tracklets} of {harmless(report.video.id)}")
    for pair in report.pairs[:_MOST_SHOWN]:
        one, other = report.tracklets[pair.first], report.tracklets[pair.second]
        what = (
            f"polyps {one.polyp} and {other.polyp} may be one"
            if pair.doubt == "one?"
            else f"polyp {one.polyp} may be two"
        )
        typer.echo(f"  unsure: {what}: together in {pair.together:.0%} of {len(report.repeated)} repetitions")
    if len(report.pairs) > _MOST_SHOWN:
        typer.echo(f"  unsure about {len(report.pairs) - _MOST_SHOWN} more decisions, see the report")
    _say_remarks(report)
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.seconds.items() if seconds >= 0.05)
    typer.echo(f"  {spent}")
    typer.echo(f"report: {harmless(str(folder / 'report.html'))}")
