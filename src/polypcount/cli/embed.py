"""`polypcount embed`: a vector for each tracklet of a corpus."""

import time
from pathlib import Path
from typing import Annotated

import typer


def embed(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Folder that polypcount has written.")],
    out: Annotated[Path, typer.Option("--out", help="File to write, .parquet or .npz.")],
    encoder: Annotated[
        Path | None,
        typer.Option(
            "--encoder", help="Folder of a trained encoder.", show_default="the one that comes with polypcount"
        ),
    ] = None,
    stride: Annotated[int, typer.Option(min=1, help="Look at every so many-th box of a tracklet.")] = 4,
    min_frames: Annotated[int, typer.Option(min=0, help="Leave shorter tracklets out.")] = 30,
    engine: Annotated[
        str,
        typer.Option(
            metavar="onnx|torch|openvino|openvino-int8",
            help="What computes: ONNX Runtime, torch, OpenVINO, or OpenVINO in 8 bits, which is calibrated with crops "
            "of this corpus and changes the vectors a little. The first two take a GPU where they can.",
        ),
    ] = "onnx",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Link the boxes to tracklets, and encode each as one vector.

    Boxes of known polyps or tracks are linked where they follow each other and overlap. Stopped and started again, it
    goes on where it was.
    """
    import numpy as np

    from polypcount.cli.progress import show_progress
    from polypcount.corpus import Corpus
    from polypcount.encoder import embed as embed_tracklets
    from polypcount.encoder import load_encoder
    from polypcount.errors import DataError, FileError
    from polypcount.tracking import link_tracklets

    if out.suffix.lower() not in (".parquet", ".npz"):
        raise FileError(f"{out}: embeddings are saved as .parquet or .npz, found {out.suffix or 'no suffix'}")
    if out.exists() and not force:
        raise FileError(f"{out} exists already; choose another name, or replace it with --force")
    read, model = Corpus.load(corpus), load_encoder(encoder, engine=engine)
    tracklets = link_tracklets(read.boxes)
    if not (tracklets.box_count >= min_frames).any():
        raise DataError(
            f"{corpus}: none of {len(tracklets):,} tracklets has {min_frames} boxes, see --min-frames"
            if len(tracklets)
            else f"{corpus}: there is no tracklet, since no box has a polyp or a track; import boxes with track ids"
        )
    crops, started = 0, time.monotonic()

    def speed() -> str:
        return f"{crops / max(time.monotonic() - started, 1e-9):,.0f} a second"

    with show_progress("crops", speed) as shown:

        def progress(done: int, total: int) -> None:
            nonlocal crops
            crops = done
            shown(done, total)

        found = embed_tracklets(read, tracklets, model, stride=stride, min_frames=min_frames, progress=progress)
    found.save(out)
    typer.echo(
        f"{out}: {len(found):,} tracklets of at least {min_frames} boxes, of {len(tracklets):,}; "
        f"{crops:,} crops, {speed()}"
    )
    if calibration := found.provenance.parameters["calibration"]:
        typer.echo(
            f"int8: cosine to fp32 on {calibration['crops']} crops: mean {calibration['mean_cosine']:.4f}, "
            f"lowest {calibration['lowest_cosine']:.4f}"
        )
    kept, known = len(np.unique(found.polyp[found.polyp >= 0])), len(found.polyps)
    if known:
        typer.echo(f"{kept:,} of {known:,} polyps own a tracklet that is long enough")
