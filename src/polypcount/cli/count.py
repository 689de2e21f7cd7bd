"""`polypcount count`: how many distinct polyps there are in a recording."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from polypcount.cli.texts import parse_size

if TYPE_CHECKING:
    from polypcount.detection import Detector, DetectorSettings


def count(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING", help="Video file, folder of images, DICOM file or corpus folder."),
    ],
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="Boxes of a detector, tracker or annotation program.",
            show_default="NAME.csv or NAME.json beside the recording; a corpus has its own",
        ),
    ] = None,
    boxes_dir: Annotated[
        Path | None, typer.Option("--boxes-dir", help="Folder with the boxes of each recording, by its name.")
    ] = None,
    detector: Annotated[
        str | None,
        typer.Option(
            metavar="bundled|FILE",
            help="Find the boxes with this detector: an ONNX file, or the folder of a trained one.",
            show_default="bundled, where a recording comes without boxes",
        ),
    ] = None,
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
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for the report.",
            show_default="NAME-count, or polyp-counts for several",
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
    keep_polyps: Annotated[
        bool, typer.Option("--keep-polyps", help="Keep the polyps that the boxes name, and group the rest.")
    ] = False,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME|FRAME", help="Count from here on: 1:30, 90s, or a frame.")
    ] = None,
    stop: Annotated[
        str | None, typer.Option("--to", metavar="TIME|FRAME", help="Count up to here; this frame is not counted.")
    ] = None,
    boxes_format: Annotated[
        str | None, typer.Option("--format", help="Format of the boxes, see polypcount import --list.")
    ] = None,
    box: Annotated[
        Literal["xyxy", "xyxy-inclusive", "xywh", "cxcywh"] | None,
        typer.Option(help="What the four numbers of a box are.", show_default="by format"),
    ] = None,
    ids: Annotated[
        Literal["polyp", "track"] | None, typer.Option(help="What numbers in the boxes mean.", show_default="by format")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH",
            help="Size of the frames that the boxes were drawn on; they are scaled to the recording.",
            show_default="the recording's",
        ),
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images of the boxes, or COCO file that lists them.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="ID", help="Which video, where a corpus or the boxes have several.")
    ] = None,
    all_videos: Annotated[bool, typer.Option("--all", help="Count every video of a corpus.")] = False,
    fps: Annotated[float | None, typer.Option(help="Frames per second, where the recording does not say.")] = None,
    first_frame: Annotated[
        int | None,
        typer.Option(help="Number that the boxes give to the first frame.", show_default="0; 1 in mot and yolo"),
    ] = None,
    min_frames: Annotated[
        int | None, typer.Option(min=1, help="Leave shorter tracklets out.", show_default="30; less in a short clip")
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Score from which a box begins a track.", show_default="0.5, or the detector's"
        ),
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print count.json, or for several summary.json, and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the count alone.")] = False,
) -> None:
    """Count the distinct polyps of a recording, and write a report. Nothing leaves the machine.

    Boxes with tracks or polyps are taken as they are. Others are tracked first. In a recording that comes without
    boxes, the bundled detector finds them.

    Several recordings get a report each, and a summary. One that cannot be counted does not stop the others.
    """
    from polypcount.cli.count_job import Job, count_several, count_single, refuse_unsuitable_folders
    from polypcount.cli.recordings import earlier_reports, list_targets
    from polypcount.counting import CountSettings, operating_point
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError
    from polypcount.report import read_histology
    from polypcount.tracking import TrackRules
    from polypcount.video import parse_rectangle

    if (boxes is not None) + (boxes_dir is not None) + (detector is not None) > 1:
        raise DataError("give one of --boxes, --boxes-dir and --detector")
    if detector_set and detector is None:
        raise DataError("--detector-set is for a --detector")
    if only is not None and all_videos:
        raise DataError("give --only or --all, not both")
    several = len(sources) > 1 or all_videos
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
    settings = CountSettings(
        method=method,
        polyps=polyps,
        min_polyps=min_polyps,
        max_polyps=max_polyps,
        min_frames=min_frames,
        keep_polyps=keep_polyps,
        start=start,
        stop=stop,
        boxes_format=boxes_format,
        fps=fps,
        first_frame=first_frame,
        box=box,
        ids=ids,
        size=parse_size(size) if size else None,
        images=images,
        mask_border=mask_border,
        mask=tuple(parse_rectangle(text) for text in mask or ()),
        anonymous=pseudonyms is not None,
    )
    if confidence is not None:  # otherwise the threshold of the detector holds
        rules = TrackRules(confidence=confidence, low_confidence=min(confidence, TrackRules().low_confidence))
        settings = settings.model_copy(update={"tracker": rules})
    formats = _formats(export)
    resected = None if histology is None else read_histology(histology)
    by_name = boxes_dir is not None or histology is not None
    targets = list_targets(sources, only=only, all_videos=all_videos, pseudonyms=pseudonyms, by_name=by_name)
    folder = out or Path("polyp-counts" if several else f"{targets[0].folder_name}-count")
    earlier = {} if pseudonyms is None else earlier_reports(targets, folder if several else out, force=force)
    refuse_unsuitable_folders(targets, folder, several=several, force=force)
    model = load_encoder(encoder, engine=engine)
    operating_point(model, method)  # a wrong method is refused before the first recording
    opened = None if detector is None else _opened(detector, detector_set or [])
    job = Job(model, opened, boxes, boxes_dir, settings, formats, video, force, as_json, quiet, earlier)
    if several:
        count_several(targets, folder, job, resected)
    else:
        count_single(targets[0], folder, job)


def _opened(detector: str, settings: list[str]) -> "Detector":
    """The detector that was asked for."""
    from polypcount.detection import load_detector
    from polypcount.errors import DataError

    if detector != "bundled" and not os.path.exists(detector):
        raise DataError(
            f"--detector: {detector} does not exist; give bundled, an ONNX file, or the folder of a trained detector"
        )
    return load_detector(detector, _detector_settings(settings))


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
