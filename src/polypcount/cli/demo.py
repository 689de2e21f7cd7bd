"""`polypcount demo`: what a procedure is made of, on a simulated one."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from polypcount.corpus import Corpus, Tracklets

_BLOCKS, _PLAIN_BLOCKS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
_MIN_FRAMES = 30
_TABLE_WIDTH = 55  # of the columns before the one that shows when


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another procedure.")] = 8,
) -> None:
    """Simulate a procedure, check it, and show what is in it. Needs no data, no network and no GPU.

    The polyps shown are the simulation's own, known from the start: nothing is counted.
    """
    from rich.console import Console

    show(Console(), seed)


def show(console: "Console", seed: int) -> None:
    """Print the demonstration."""
    from polypcount.corpus import check
    from polypcount.simulate import simulate_timelines
    from polypcount.tracking import link_tracklets

    corpus = simulate_timelines(1, seed, like="study")
    check(corpus).raise_if_bad()
    tracklets = link_tracklets(corpus.boxes)
    video = corpus.videos[0]
    seconds = video.frame_count / (video.fps or 1)
    console.print(
        f"A simulated procedure of {seconds // 60:.0f} min {seconds % 60:02.0f} s, "
        f"{video.frame_count:,} frames at {video.fps:g} per second, without pixels. Checked: nothing wrong.",
        highlight=False,
    )
    blocks = _BLOCKS if console.encoding.startswith("utf") else _PLAIN_BLOCKS
    console.print(_table(corpus, tracklets, max(console.width - _TABLE_WIDTH, 20), blocks))
    one = len(corpus.polyps) == 1
    lost = "polyp and found it" if one else f"{len(corpus.polyps)} polyps and found them"
    console.print(
        f"The camera lost the {lost} again so often that there are {len(tracklets)} tracklets. "
        "Counting means to find out which of those belong together. This demo has not counted: the polyps "
        "above are those that the simulation put in.",
        highlight=False,
    )


def _table(corpus: "Corpus", tracklets: "Tracklets", slices: int, blocks: str) -> "RenderableType":
    import numpy as np
    from rich.table import Column, Table

    video = corpus.videos[0]
    table = Table("polyp", Column("site", no_wrap=True), box=None, header_style="bold", pad_edge=False)
    for title in ("mm", "seen", "tracklets", f"{_MIN_FRAMES}+ fr."):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("when, start to end", no_wrap=True, style="cyan")
    for row, polyp in enumerate(corpus.polyps):
        mine = tracklets.polyp == row
        frames = corpus.boxes.frame[corpus.boxes.polyp == row]
        seen = np.bincount(frames.astype(np.int64) * slices // video.frame_count, minlength=slices)
        heights = np.ceil(seen / (video.frame_count / slices) * (len(blocks) - 1)).astype(int)
        table.add_row(
            str(row + 1),
            polyp.site.replace("_", " "),
            f"{polyp.size_mm:g}",
            f"{len(frames) / (video.fps or 1):.0f} s",
            str(np.count_nonzero(mine)),
            str(np.count_nonzero(tracklets.box_count[mine] >= _MIN_FRAMES)),
            "".join(blocks[min(height, len(blocks) - 1)] for height in heights),
        )
    return table
