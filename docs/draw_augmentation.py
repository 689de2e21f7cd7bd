"""Draw docs/images/augmentation.png: what each augmentation setting does to a synthetic polyp.

Run: .venv/bin/python docs/draw_augmentation.py
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from polypcount.evaluation.figures import save_figure
from polypcount.training import Augmentation, augment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE, SIZE, DRAWS = 62, 56, 6
LEVELS = 16  # of each colour; few levels keep the file small
ROWS: dict[str, dict[str, Any]] = {
    "flip": {"flip": True},
    "rotation 30": {"rotation": 30},
    "shift 0.15": {"shift": 0.15},
    "scale 0.4": {"scale": 0.4},
    "brightness 0.4": {"brightness": 0.4},
    "contrast 0.5": {"contrast": 0.5},
    "saturation 0.6": {"saturation": 0.6},
    "hue 0.08": {"hue": 0.08},
    "exposure 0.6": {"exposure": 0.6},
    "blur 3": {"blur": 3},
}


def made_up_polyp() -> NDArray[np.uint8]:
    """A shaded disc on mucosa with folds and vessels, uint8[SIDE, SIDE, 3]; fully synthetic."""
    y, x = (np.mgrid[:SIDE, :SIDE] + 0.5) / SIDE - 0.5
    folds = 0.06 * np.sin(24 * np.hypot(x + 0.9, y + 0.5) + 2 * np.sin(5 * y))
    vessels = 0.12 * np.exp(-((np.sin(14 * x + 9 * y + 1.5 * np.sin(11 * y)) / 0.09) ** 2))
    light = 0.8 + folds - 0.6 * np.hypot(x, y) ** 2
    mucosa = light[..., None] * [1.0, 0.62, 0.52] - vessels[..., None] * [0.3, 1.0, 0.9]
    far = np.hypot((x - 0.06) / 0.21, (y + 0.03) / 0.17)
    dome = np.sqrt(np.clip(1 - far**2, 0, 1))
    shine = np.exp(-(((x - 0.01) / 0.03) ** 2) - ((y + 0.09) / 0.022) ** 2)
    polyp = (0.5 + 0.45 * dome)[..., None] * [1.0, 0.45, 0.4] + shine[..., None]
    inside = np.clip((1 - far) / 0.06, 0, 1)[..., None]
    values: NDArray[np.float64] = np.clip(inside * polyp + (1 - inside) * mucosa, 0, 1)
    return (values * 255).astype(np.uint8)


def draw() -> "Figure":
    """One row for each setting: the unchanged crop, then random draws."""
    from matplotlib.figure import Figure

    clips = torch.tensor(made_up_polyp()).expand(DRAWS, 1, SIDE, SIDE, 3)
    figure = Figure(figsize=(4.3, 4.9), layout="constrained")
    axes = figure.subplots(len(ROWS), DRAWS + 1)
    for row, (label, chosen) in zip(axes, ROWS.items(), strict=True):
        for settings, places in ((Augmentation(), row[:1]), (Augmentation(**chosen), row[1:])):
            shown = augment(clips, settings, SIZE, torch.Generator().manual_seed(5))[:, 0].permute(0, 2, 3, 1)
            for axis, picture in zip(places, shown.numpy(), strict=False):
                axis.imshow(np.rint(picture * LEVELS) / LEVELS, interpolation="nearest")
                axis.set(xticks=[], yticks=[])
                axis.spines[:].set_visible(False)
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=7)
    axes[0, 0].set_title("crop", fontsize=7)
    axes[0, 1].set_title(f"{DRAWS} draws", fontsize=7, loc="left")
    return figure


if __name__ == "__main__":
    save_figure(draw(), Path(__file__).parent / "images" / "augmentation.png")
