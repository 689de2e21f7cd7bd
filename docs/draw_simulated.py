"""Draw docs/images/simulated-frames.png: frames of simulated procedures. Every pixel is synthetic.

Run: .venv/bin/python docs/draw_simulated.py
"""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import polypcount as pc
from polypcount.simulate import TimelineSettings, simulate_scenes
from polypcount.storage.files import whole_file
from polypcount.video import open_video

SEED, COLUMNS, ROWS, WIDTH, HEIGHT, GAP = 7, 4, 3, 300, 240, 4
COLOURS = 256  # size of the palette; a palette keeps the file small
TARGET = Path(__file__).parent / "images" / "simulated-frames.png"


def main() -> None:
    """Draw a frame of each procedure, drawn at random among those that show a polyp for a second, with its boxes."""
    rng = np.random.default_rng(SEED)
    sheet = Image.new("RGB", (COLUMNS * (WIDTH + GAP) - GAP, ROWS * (HEIGHT + GAP) - GAP), "white")
    with tempfile.TemporaryDirectory() as folder:
        settings = TimelineSettings(width=640, height=512)
        corpus = simulate_scenes(Path(folder), COLUMNS * ROWS, SEED, "study", settings=settings)
        tracklets = pc.link_tracklets(corpus.boxes)
        for row, video in enumerate(corpus.videos):
            mine = np.flatnonzero(tracklets.video == row)
            boxes = np.concatenate([tracklets.rows(k) for k in mine[tracklets.box_count[mine] >= 30]])
            frame = int(rng.choice(corpus.boxes.frame[boxes]))
            ((_, picture),) = open_video(video).frames([frame])
            small = Image.fromarray(picture).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
            shown = (corpus.boxes.video == row) & (corpus.boxes.frame == frame)
            for box in corpus.boxes.xyxy[shown] * WIDTH / picture.shape[1]:
                ImageDraw.Draw(small).rectangle(
                    tuple(np.minimum(box, [WIDTH, HEIGHT] * 2) - [0, 0, 1, 1]), outline="lime"
                )
            sheet.paste(small, (row % COLUMNS * (WIDTH + GAP), row // COLUMNS * (HEIGHT + GAP)))
    with whole_file(TARGET) as unfinished:
        sheet.quantize(COLOURS, dither=Image.Dither.NONE).save(unfinished, "PNG", optimize=True)


if __name__ == "__main__":
    main()
