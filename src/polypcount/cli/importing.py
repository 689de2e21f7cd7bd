"""`polypcount import`, `merge` and `export`: files in, corpora together, files out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from polypcount.cli.texts import harmless, parse_size

if TYPE_CHECKING:
    from polypcount.corpus import Corpus

_MOST_LINES_SHOWN = 20


def _list_formats(asked: bool) -> None:
    if asked:
        from polypcount.importers import FORMATS

        width = max(map(len, FORMATS))
        for item in FORMATS.values():
            typer.echo(f"{item.name:{width}}  {item.summary}{' (also exported)' if item.writes else ''}")
        raise typer.Exit


def import_(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="What the files are; see --list.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The dataset's folder, or the file.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="CORPUS", help="Folder to write the corpus to.")],
    list_formats: Annotated[  # noqa: ARG001 - its callback has done it
        bool, typer.Option("--list", help="List the formats and stop.", callback=_list_formats, is_eager=True)
    ] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out what cannot be read, and list it.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a corpus that is already there.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Processes to read with; default: one for each core.")
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep what was read, so that repeating is quick.")] = True,
    split: Annotated[str | None, typer.Option(help="real-colon: train, study or all.")] = None,
    split_tracks: Annotated[
        bool, typer.Option("--split-tracks", help="Where a video counts as one polyp: separate boxes by track.")
    ] = False,
    train2019: Annotated[bool, typer.Option("--train2019", help="polypsset: import train2019 too.")] = False,
    sequences: Annotated[Path | None, typer.Option(help="cvc-clinicdb: CSV of frame and sequence.")] = None,
    images: Annotated[Path | None, typer.Option(help="Folder of the images, or COCO file that lists them.")] = None,
    source: Annotated[Path | None, typer.Option(help="Video file or frame folder that the boxes belong to.")] = None,
    video: Annotated[str | None, typer.Option(help="Id of the one video in the file.")] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="Size of the frames in pixels.")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second.")] = None,
    frame_count: Annotated[int | None, typer.Option(min=1, help="Frames in the video.")] = None,
    first_frame: Annotated[int | None, typer.Option(help="Number that the file gives to the first frame.")] = None,
    box: Annotated[
        Literal["xyxy", "xyxy-inclusive", "xywh", "cxcywh"] | None,
        typer.Option(help="What the four numbers of a box are."),
    ] = None,
    ids: Annotated[Literal["polyp", "track"] | None, typer.Option(help="What numbers in the file mean.")] = None,
) -> None:
    """Read a dataset, or boxes of another program, into a corpus.

    An error ends the import and nothing is written; --skip-bad imports the rest. An import that was interrupted
    continues where it stopped.
    """
    from polypcount.cli.output import refuse_existing
    from polypcount.cli.progress import show_progress
    from polypcount.cli.start import continuable
    from polypcount.importers import Options, read_corpus

    refuse_existing(out, force)
    width, height = parse_size(size) if size else (None, None)
    options = Options(
        split=split,
        split_tracks=split_tracks,
        train2019=train2019,
        sequences=sequences,
        images=images,
        source=source,
        video=video,
        width=width,
        height=height,
        fps=fps,
        frame_count=frame_count,
        first_frame=first_frame,
        box=box,
        ids=ids,
    )
    with continuable(), show_progress("reading files") as progress:
        corpus = read_corpus(
            format, path, options, skip_bad=skip_bad, processes=processes, cache=cache, progress=progress
        )
    corpus.save(out)
    parameters = corpus.provenance.parameters
    _show_lines("note", parameters["remarks"], len(parameters["remarks"]), out)
    _show_lines("left out", parameters["left_out"], parameters["left_out_count"], out)
    _show_counts(corpus, out)


def merge(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="Two or more corpus folders.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="CORPUS", help="Folder to write the result to.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a corpus that is already there.")] = False,
) -> None:
    """Put corpora together into one. Ids that two datasets share get the dataset's name before them."""
    from polypcount.cli.output import refuse_existing
    from polypcount.corpus import Corpus
    from polypcount.importers import merge as merge_corpora
    from polypcount.importers import published_counts

    refuse_existing(out, force)
    merged = merge_corpora([Corpus.load(folder) for folder in corpora])
    merged.save(out)
    for line in published_counts(merged):
        typer.echo(line)
    _show_counts(merged, out)


def export(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Corpus folder.")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="coco, mot, cvat, yolo or csv.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="New folder to write to.")],
) -> None:
    """Write the boxes of a corpus, with identities, for other programs."""
    from polypcount.corpus import Corpus
    from polypcount.importers import write_boxes

    loaded = Corpus.load(corpus)
    typer.echo(f"{write_boxes(loaded, to, out)}: {len(loaded.boxes):,} boxes as {to}")


def _show_lines(label: str, lines: list[str], count: int, out: Path) -> None:
    for line in lines[:_MOST_LINES_SHOWN]:
        typer.echo(f"{label}: {harmless(line)}", err=True)
    if count > _MOST_LINES_SHOWN:
        typer.echo(f"{label}: {count - _MOST_LINES_SHOWN:,} more, listed in {out / 'corpus.json'}", err=True)


def _show_counts(corpus: "Corpus", out: Path) -> None:
    typer.echo(f"{out}: {len(corpus.videos):,} videos, {len(corpus.polyps):,} polyps, {len(corpus.boxes):,} boxes")
