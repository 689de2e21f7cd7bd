"""`polypcount count`: how many distinct polyps there are in a recording."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polypcount.cli.texts import harmless, parse_size

if TYPE_CHECKING:
    from polypcount.counting import CountingPoint, CountReport, Detector, DetectorSettings
    from polypcount.counting.inputs import Procedure
    from polypcount.encoder import Encoder
    from polypcount.video import FrameMask


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
    masks: tuple[str, ...]
    find_view: bool
    export: tuple[str, ...]
    video: bool
    pseudonyms: bool
    force: bool


def count(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING...", help="Video file, folder of images, DICOM file or corpus folder."),
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
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the report.", show_default="NAME-count")
    ] = None,
    encoder: Annotated[
        Path | None, typer.Option(help="Folder of a trained encoder.", show_default="the one that comes along")
    ] = None,
    boxes_format: Annotated[
        str | None, typer.Option("--format", help="Format of the boxes, see polypcount import --list.")
    ] = None,
    only: Annotated[str | None, typer.Option(metavar="ID", help="Which video, where boxes are of several.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second, where the recording does not say.")] = None,
    first_frame: Annotated[int | None, typer.Option(help="Number that the boxes give to the first frame.")] = None,
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
    export: Annotated[str, typer.Option(metavar="coco,mot,cvat,yolo,csv", help="Boxes with their polyps, too.")] = "",
    video: Annotated[bool, typer.Option("--video", help="Write an annotated mp4, too.")] = False,
    histology: Annotated[
        Path | None, typer.Option(metavar="CSV", help="video,histology: a row for each polyp resected.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace reports that are there.")] = False,
) -> None:
    """Count the distinct polyps of a recording, and write a report. Nothing leaves the machine.

    Boxes with tracks or polyps are taken as they are, others are tracked first. Of several recordings each gets a
    report, with a summary; one that cannot be counted does not stop the others, and the exit code is 2.
    """
    from polypcount.counting import CountingPoint, load_detector
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError, FileError

    if (boxes is not None) + (boxes_dir is not None) + (detector is not None) > 1:
        raise DataError("give one of --boxes, --boxes-dir and --detector")
    if boxes is not None and len(sources) > 1:
        raise DataError("--boxes are of one recording; for several, give --boxes-dir")
    if histology is not None and not histology.is_file():
        raise FileError(f"{histology} does not exist; it was given as --histology")
    formats = tuple(name for name in export.replace(" ", "").split(",") if name)
    several = len(sources) > 1
    folder = out or Path("polyp-counts" if several else f"{_name_of(sources[0])}-count")
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
        tuple(mask or ()),
        find_view,
        formats,
        video,
        pseudonyms is not None,
        force,
    )
    named = _named(sources, pseudonyms)
    if several:
        _count_several(sources, named, boxes_dir, folder, job, histology)
    else:
        place = boxes if boxes_dir is None else _boxes_for(sources[0], boxes_dir)
        report = _count_one(sources[0], named[sources[0]], place, folder, job)
        _say(report, folder)
        if histology is not None:
            raise DataError("--histology is for a summary of several recordings")


def _count_one(source: Path, name: str, boxes: Path | None, folder: Path, job: _Job) -> "CountReport":
    """Count one recording and write its report to a new folder."""
    from dataclasses import replace

    from polypcount.cli.progress import show_progress
    from polypcount.counting import count_procedure, count_with_detector, open_procedure, read_procedure
    from polypcount.report import refuse_unsuitable_report, write_annotated
    from polypcount.tracking import TrackRules

    refuse_unsuitable_report(folder, force=job.force)
    rules = TrackRules() if job.confidence is None else TrackRules(confidence=job.confidence)
    settings = {} if job.first_frame is None else {"first_frame": job.first_frame}
    if job.detector is not None:
        procedure = open_procedure(source, fps=job.fps)
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
    report.save(folder, force=job.force, export=job.export)
    if job.video:
        with show_progress("annotated video: frames") as progress:
            write_annotated(report, procedure.source, folder / "annotated.mp4", mask=mask, progress=progress)
    return report


def _count_several(
    sources: list[Path], named: dict[Path, str], boxes_dir: Path | None, folder: Path, job: _Job, histology: Path | None
) -> None:
    from polypcount.errors import PolypcountError
    from polypcount.report import Procedure, read_histology, write_summary

    known = None if histology is None else read_histology(histology)
    rows: list[Procedure] = []
    for place, source in enumerate(sources):
        name = named[source]
        typer.echo(f"[{place + 1} of {len(sources)}] {harmless(name)}")
        try:
            boxes = None if boxes_dir is None else _boxes_for(source, boxes_dir)
            report = _count_one(source, name, boxes, folder / name, job)
            rows.append(Procedure.of_report(folder / name))
            typer.echo(f"  {_counted(report)}")
        except (PolypcountError, OSError) as problem:
            told = harmless(" ".join(str(problem).split()))
            rows.append(Procedure(name, error=told))
            typer.echo(f"  not counted: {told}", err=True)
    write_summary(rows, folder, histology=known)
    failed = sum(bool(row.error) for row in rows)
    typer.echo(f"{len(rows) - failed} of {len(rows)} counted; {folder / 'summary.html'}")
    if failed:
        raise typer.Exit(2)


def _mask(procedure: "Procedure", job: _Job) -> "FrameMask | None":
    from polypcount.counting import view_of
    from polypcount.video import FrameMask, parse_rectangle

    rectangles = tuple(parse_rectangle(text) for text in job.masks)
    view = view_of(procedure) if job.find_view else None
    return FrameMask(rectangles, view) if rectangles or view is not None else None


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
            found[name] = parse_size(value)
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


def _name_of(source: Path) -> str:
    resolved = Path(os.path.abspath(source))
    return resolved.name if resolved.is_dir() else resolved.stem


def _named(sources: list[Path], pseudonyms: Path | None) -> dict[Path, str]:
    """What to call each recording; two of one name would be one report."""
    from polypcount.errors import DataError
    from polypcount.report.pseudonyms import Pseudonyms

    if pseudonyms is not None:
        keys = Pseudonyms.load(pseudonyms)
        found = {source: keys.of(os.path.abspath(source)) for source in sources}
        keys.save(pseudonyms)
    else:
        found = {source: _name_of(source) for source in sources}
    for source, name in found.items():
        if sum(other == name for other in found.values()) > 1:
            raise DataError(
                f"two recordings are called {name!r}, one of them {source}; rename one, or use --pseudonyms"
            )
    return found


def _boxes_for(source: Path, folder: Path) -> Path:
    """The one file or folder in there that has the recording's name."""
    from polypcount.errors import FileError

    name = _name_of(source)
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; it was given as --boxes-dir")
    found = sorted(entry for entry in folder.iterdir() if name in (entry.stem, entry.name) and entry != source)
    if len(found) != 1:
        told = "none" if not found else ", ".join(entry.name for entry in found)
        raise FileError(f"{folder} must have one file of boxes called {name}.json, .txt, .csv or so, found {told}")
    return found[0]


def _counted(report: "CountReport") -> str:
    low, high = report.interval.low, report.interval.high
    span = f"{low}" if low == high else f"{low} to {high}"
    noun = "polyp" if report.count == 1 else "polyps"
    return f"{report.count} {noun} ({report.interval.level:.0%} interval: {span})"


def _say(report: "CountReport", folder: Path) -> None:
    typer.echo(f"{_counted(report)} in {len(report.tracklets)} tracklets of {harmless(report.video.id)}")
    for pair in report.pairs[:3]:
        one, other = report.tracklets[pair.first], report.tracklets[pair.second]
        what = (
            f"polyps {one.polyp} and {other.polyp} may be one"
            if pair.doubt == "one?"
            else f"polyp {one.polyp} may be two"
        )
        typer.echo(f"  unsure: {what}: together in {pair.together:.0%} of {len(report.repeated)} repetitions")
    for remark in report.remarks:
        typer.echo(f"  {harmless(remark)}")
    spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.seconds.items() if seconds >= 0.05)
    typer.echo(f"  {spent}")
    typer.echo(f"report: {folder / 'report.html'}")
