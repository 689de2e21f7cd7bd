"""Draw docs/images/targets.svg: the three kinds of pair targets, for views at random times.

Run: .venv/bin/python docs/draw_targets.py
"""

from pathlib import Path

import numpy as np
import torch

from polypcount.evaluation.figures import save_figure
from polypcount.reproduce.target_figure import draw_targets

if __name__ == "__main__":
    labels = torch.arange(3).repeat_interleave(4)
    positions = torch.tensor(np.sort(np.random.default_rng(0).random((3, 4)), axis=1).ravel())
    save_figure(draw_targets(labels, positions), Path(__file__).parent / "images" / "targets.svg")
