"""`polypcount embed`: a vector for each tracklet of a corpus."""

import time
from pathlib import Path
from typing import Annotated

import typer


def embed(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Folder that polypcount has written.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write, .parquet or .npz.")],
    encoder: Annotated[
        Path | None,
        typer.Option("--encoder", help="Folder of a trained encoder.", show_default="the bundled encoder"),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Look at every N-th box of a tracklet, at most 1,000; 4 is the paper's way.",
            show_default="as counting does",
        ),
    ] = None,
    min_frames: Annotated[int, typer.Option(min=0, help="Leave shorter tracklets out.")] = 30,
    frames: Annotated[
        bool, typer.Option("--frames", help="Keep the vectors of the frames as well; not with --stride.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            metavar="auto|onnx|openvino|torch",
            help="What computes: ONNX Runtime, OpenVINO or torch. auto takes OpenVINO where it is installed and gives "
            "the same vectors as ONNX Runtime. ONNX Runtime and torch use a GPU where they can.",
        ),
    ] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Link the boxes to tracklets, and encode each as one vector.

    Boxes of known polyps or tracks are linked where they follow each other and overlap. A run that was stopped goes on
    where it was.
    """
    import numpy as np

    from polypcount.cli.progress import show_progress
    from polypcount.cli.start import continuable
    from polypcount.corpus import Corpus
    from polypcount.encoder import embed as embed_tracklets
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError, FileError
    from polypcount.tracking import link_tracklets

    if out.suffix.lower() not in (".parquet", ".npz"):
        raise FileError(f"{out}: embeddings are saved as .parquet or .npz, found {out.suffix or 'no suffix'}")
    if out.exists() and not force:
        raise FileError(f"{out} exists already; choose another name, or replace it", mend="force")
    recordings, model = Corpus.load(corpus), load_encoder(encoder, engine=engine)
    tracklets = link_tracklets(recordings.boxes)
    if not len(tracklets):
        raise DataError(f"{corpus}: no box has a polyp or a track, so there are no tracklets; import boxes with tracks")
    if not (tracklets.box_count >= min_frames).any():
        raise DataError(f"{corpus}: none of {len(tracklets):,} tracklets has {min_frames} boxes", mend="min_frames")
    crops, started = 0, time.monotonic()

    def speed() -> str:
        return f"{crops / max(time.monotonic() - started, 1e-9):,.0f} a second"

    with continuable(), show_progress("crops", speed) as show:

        def progress(done: int, total: int) -> None:
            nonlocal crops
            crops = done
            show(done, total)

        vectors = embed_tracklets(
            recordings, tracklets, model, stride=stride, min_frames=min_frames, frames=frames, progress=progress
        )
    vectors.save(out)
    typer.echo(
        f"{out}: {len(vectors):,} tracklets of at least {min_frames} boxes, of {len(tracklets):,}; "
        f"{crops:,} crops, {speed()}"
    )
    if vectors.polyps:
        owners = len(np.unique(vectors.polyp[vectors.polyp >= 0]))
        typer.echo(f"{owners:,} of {len(vectors.polyps):,} polyps own a tracklet that is long enough")
