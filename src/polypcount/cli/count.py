"""`polypcount count`: how many distinct polyps there are in a recording."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polypcount.cli.recordings import boxes_for, name_of, name_recordings
from polypcount.cli.texts import harmless, parse_size

if TYPE_CHECKING:
    from polypcount.counting import CountingPoint, CountReport, Detector, DetectorSettings
    from polypcount.counting.inputs import Procedure
    from polypcount.encoder import Encoder
    from polypcount.video import FrameMask, FrameSource
    from polypcount.video.view_mask import Rectangle

_MOST_SHOWN = 3  # doubts in the terminal


@dataclass(frozen=True)
class _Job:
    """What is the same for every recording."""

    encoder: "Encoder"
    point: "CountingPoint"
    detector: "Detector | None"
    boxes_format: str | None
    only: str | None
    fps: float | None
    first_frame: int | None
    min_frames: int | None
    confidence: float | None
    rectangles: "tuple[Rectangle, ...]"
    find_view: bool
    export: tuple[str, ...]
    video: bool
    pseudonyms: bool
    force: bool


@dataclass(frozen=True)
class _Counted:
    """A report that is written, and what an annotated video needs besides."""

    report: "CountReport"
    source: "FrameSource"
    mask: "FrameMask | None"


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
            help="How to run and read the detector, where its file does not tell; see docs/detectors.md.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the report.", show_default="NAME-count; polyp-counts of several"),
    ] = None,
    encoder: Annotated[
        Path | None, typer.Option(help="Folder of a trained encoder.", show_default="the one that comes along")
    ] = None,
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
        list[str] | None, typer.Option(metavar="X,Y,W,H", help="Black out this part in all that is written; repeat.")
    ] = None,
    find_view: Annotated[
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
        typer.Option(metavar="CSV", help="video,histology of each polyp resected: adenoma detection rate of several."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace reports that are there.")] = False,
) -> None:
    """Count the distinct polyps of a recording, and write a report. Nothing leaves the machine.

    Boxes with tracks or polyps are taken as they are, others are tracked first.

    Of several recordings each gets a report, with a summary. One that cannot be counted does not stop the others.
    """
    from polypcount.corpus import is_corpus
    from polypcount.counting import CountingPoint, load_detector
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError
    from polypcount.report import read_histology, refuse_unsuitable_report, refuse_unsuitable_summary
    from polypcount.video import parse_rectangle

    several = len(sources) > 1
    if (boxes is not None) + (boxes_dir is not None) + (detector is not None) > 1:
        raise DataError("give one of --boxes, --boxes-dir and --detector")
    if detector_set and detector is None:
        raise DataError("--detector-set is for a --detector")
    if boxes is not None and several:
        raise DataError("--boxes are of one recording; for several, give --boxes-dir")
    if histology is not None and not several:
        raise DataError("--histology is for a summary of several recordings")
    if boxes is None and boxes_dir is None and detector is None:
        for source in sources:
            if source.exists() and not is_corpus(source):
                way = "--boxes-dir" if several else "--boxes"
                raise DataError(f"{source} comes without boxes: give them with {way}, or a detector with --detector")
    rectangles = tuple(parse_rectangle(text) for text in mask or ())
    formats = _formats(export)
    resected = None if histology is None else read_histology(histology)
    named = name_recordings(sources, pseudonyms, by_name=boxes_dir is not None or histology is not None)
    folder = out or Path("polyp-counts" if several else f"{named[sources[0]]}-count")
    for name in named.values():
        refuse_unsuitable_report(folder / name if several else folder, force=force)
    if several:
        refuse_unsuitable_summary(folder, force=force)
    model = load_encoder(encoder)
    job = _Job(
        model,
        CountingPoint.of(model),
        None if detector is None else load_detector(detector, _detector_settings(detector_set or [])),
        boxes_format,
        only,
        fps,
        first_frame,
        min_frames,
        confidence,
        rectangles,
        find_view,
        formats,
        video,
        pseudonyms is not None,
        force,
    )
    if several:
        _count_several(named, boxes_dir, folder, job, resected)
    else:
        place = boxes if boxes_dir is None else boxes_for(sources[0], boxes_dir)
        done = _count_one(sources[0], named[sources[0]], place, folder, job)
        _say(done.report, folder)
        _write_video(done, folder, job)


def _count_one(source: Path, name: str, boxes: Path | None, folder: Path, job: _Job) -> _Counted:
    """Count one recording and write its report to a new folder."""
    from dataclasses import replace

    from polypcount.cli.progress import show_progress
    from polypcount.counting import count_procedure, count_with_detector, open_procedure, read_procedure
    from polypcount.errors import PolypcountError
    from polypcount.tracking import TrackRules

    rules = TrackRules()
    if job.confidence is not None:
        rules = TrackRules(confidence=job.confidence, low_confidence=min(job.confidence, rules.low_confidence))
    settings = {} if job.first_frame is None else {"first_frame": job.first_frame}
    if job.detector is not None:
        procedure = open_procedure(source, video=job.only, fps=job.fps)
    else:
        procedure = read_procedure(
            source, boxes, boxes_format=job.boxes_format, video=job.only, fps=job.fps, **settings
        )
    procedure = replace(procedure, video=replace(procedure.video, id=name))
    if job.pseudonyms:  # then nothing written may tell where it came from
        procedure = replace(procedure, video=replace(procedure.video, source=None), sources=())
    mask = _mask(procedure, job)
    with show_progress(f"{harmless(name)}: frames") as progress:
        if job.detector is not None:
            report = count_with_detector(
                procedure,
                job.detector,
                job.encoder,
                job.point,
                min_frames=job.min_frames,
                rules=rules,
                mask=mask,
                progress=progress,
            )
        else:
            report = count_procedure(
                procedure,
                job.encoder,
                job.point,
                min_frames=job.min_frames,
                rules=rules,
                mask=mask,
                progress=progress,
            )
    report = replace(report, remarks=(*report.remarks, *_masked(mask, job)))
    try:
        report.save(folder, force=job.force, export=job.export)
    except PolypcountError:
        typer.echo(f"{counted(report)}; the report could not be written")  # the number at least is not lost
        raise
    return _Counted(report, procedure.source, mask)


def _masked(mask: "FrameMask | None", job: _Job) -> list[str]:
    """What of the pictures was blacked out: whoever passes a report on must know."""
    if mask is not None and mask.view is not None:
        return ["In pictures, what lies outside the endoscope's view was blacked out."]
    if not job.find_view:
        return [
            "In pictures, the border was left as it is." if mask is None else "Only what --mask names was blacked out."
        ]
    return ["No dark border around the endoscope's view was found: look for burned-in text before passing this on."]


def _write_video(done: _Counted, folder: Path, job: _Job) -> None:
    """Write the annotated video, if it is wanted, to a report that is there: it can fail, and the count stays."""
    from polypcount.cli.progress import show_progress
    from polypcount.report import write_annotated

    if job.video:
        with show_progress("annotated video: frames") as progress:
            place = folder / "annotated.mp4"
            write_annotated(done.report, done.source, place, mask=done.mask, progress=progress)


def _count_several(
    named: dict[Path, str], boxes_dir: Path | None, folder: Path, job: _Job, resected: dict[str, list[str]] | None
) -> None:
    from polypcount.errors import PolypcountError
    from polypcount.report import Procedure, write_summary

    rows: list[Procedure] = []
    failed = 0
    for place, (source, name) in enumerate(named.items()):
        typer.echo(f"[{place + 1} of {len(named)}] {harmless(name)}")
        try:
            boxes = None if boxes_dir is None else boxes_for(source, boxes_dir)
            done = _count_one(source, name, boxes, folder / name, job)
            rows.append(Procedure.of_report(folder / name))
            typer.echo(f"  {counted(done.report)}")
            _write_video(done, folder / name, job)
        except Exception as problem:  # whatever is wrong with one, the others are counted
            failed += 1
            told = harmless(" ".join(str(problem).split()))
            if not isinstance(problem, PolypcountError | OSError):
                told = f"{type(problem).__name__}: {told} (a fault in polypcount)"
            if len(rows) > place:
                typer.echo(f"  counted, but {told}", err=True)
                continue
            typer.echo(f"  not counted: {told}", err=True)
            # The line names files, which a summary with pseudonyms must not.
            rows.append(
                Procedure(
                    name,
                    error="could not be counted"
                    if job.pseudonyms
                    else _without_folders(told, source.parent, boxes_dir, folder),
                )
            )
    if resected is not None:  # whose table knows recordings by the names of their files
        names = {name_of(source): name for source, name in named.items()}
        # Rows of other recordings would bring their names into a summary with pseudonyms.
        resected = {
            names.get(known, known): classes
            for known, classes in resected.items()
            if known in names or not job.pseudonyms
        }
    write_summary(rows, folder, histology=resected)
    typer.echo(f"{sum(not row.error for row in rows)} of {len(rows)} counted")
    typer.echo(f"summary: {harmless(str(folder / 'summary.html'))}")
    if failed:
        raise typer.Exit(2)


def _without_folders(told: str, *folders: Path | None) -> str:
    """A line with the names of files alone, since folders may name a patient or a person."""
    for folder in folders:
        if folder is not None:
            told = told.replace(f"{folder.absolute()}{os.sep}", "").replace(f"{folder}{os.sep}", "")
    return told


def _mask(procedure: "Procedure", job: _Job) -> "FrameMask | None":
    from polypcount.counting import view_of
    from polypcount.video import FrameMask

    view = view_of(procedure) if job.find_view else None
    return FrameMask(job.rectangles, view) if job.rectangles or view is not None else None


def _formats(export: str) -> tuple[str, ...]:
    """The formats that boxes are to be written in."""
    from polypcount.errors import DataError
    from polypcount.importers import FORMATS

    able = [item.name for item in FORMATS.values() if item.writes]
    found = tuple(name for name in export.replace(" ", "").split(",") if name)
    for name in found:
        if name not in able:
            raise DataError(f"--export: {name!r} cannot be written; these can: {', '.join(able)}")
    return found


def _detector_settings(given: list[str]) -> "DetectorSettings":
    from polypcount.counting import DetectorSettings
    from polypcount.errors import DataError

    found: dict[str, Any] = {}
    for part in given:
        name, _, value = part.partition("=")
        if name not in {item.name for item in fields(DetectorSettings)}:
            known = ", ".join(item.name for item in fields(DetectorSettings))
            raise DataError(f"--detector-set: there is no setting {name!r}; there are: {known}")
        if name == "size":
            try:
                found[name] = parse_size(value)
            except DataError:
                raise DataError(
                    f"--detector-set: size must be WIDTHxHEIGHT, such as 640x640, found {value!r}"
                ) from None
        elif name == "classes":
            found[name] = tuple(value.split(","))
        elif name in ("confidence", "iou"):
            try:
                found[name] = float(value)
            except ValueError:
                raise DataError(f"--detector-set: {name} must be a number from 0 to 1, found {value!r}") from None
        else:
            found[name] = value
    return DetectorSettings(**found)


def counted(report: "CountReport") -> str:
    """The count and its interval, in words."""
    low, high = report.interval.low, report.interval.high
    span = f"{low}" if low == high else f"{low} to {high}"
    noun = "polyp" if report.count == 1 else "polyps"
    return f"{report.count} {noun} ({report.interval.level:.0%} interval: {span})"


def _say(report: "CountReport", folder: Path) -> None:
    typer.echo(f"{counted(report)} in {len(report.tracklets)} tracklets of {harmless(report.video.id)}")
    for pair in report.pairs[:_MOST_SHOWN]:
        one, other = report.tracklets[pair.first], report.tracklets[pair.second]
        what = (
            f"polyps {one.polyp} and {other.polyp} may be one"
            if pair.doubt == "one?"
            else f"polyp {one.polyp} may be two"
        )
        typer.echo(f"  unsure: {what}: together in {pair.together:.0%} of {len(report.repeated)} repetitions")
    if len(report.pairs) > _MOST_SHOWN:
        typer.echo(f"  unsure of {len(report.pairs) - _MOST_SHOWN} more, see the report")
    for remark in report.remarks:
        typer.echo(f"  {harmless(remark)}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.seconds.items() if seconds >= 0.05)
    typer.echo(f"  {spent}")
    typer.echo(f"report: {harmless(str(folder / 'report.html'))}")
