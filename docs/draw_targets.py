"""Draw docs/images/targets.svg: the three kinds of pair targets.

Run: .venv/bin/python docs/draw_targets.py
"""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from polypcount.evaluation.figures import save_figure
from polypcount.training import identity_targets, instance_targets, temporal_targets


def draw_targets(views: int = 4, polyps: int = 3, decay: float = 1.0, seed: int = 0) -> Figure:
    """Targets of self-supervised, supervised and temporally-aware learning for the same views.

    Args:
        views: Views of each polyp, at random times; self-supervised learning has only pairs of one tracklet.
        polyps: Number of polyps.
        decay: Of the temporally-aware targets.
        seed: Of the random times.
    """
    rng = np.random.default_rng(seed)
    labels = torch.arange(polyps).repeat_interleave(views)
    positions = torch.tensor(np.sort(rng.random((polyps, views)), axis=1).ravel())
    pairs = torch.arange(len(labels)) // 2
    matrices = {
        "self-supervised": instance_targets(pairs),
        "supervised": identity_targets(labels),
        f"temporally-aware, decay {decay:g}": temporal_targets(labels, positions, decay),
    }
    names = [f"polyp {polyp + 1}, view {view + 1}" for polyp in range(polyps) for view in range(views)]
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    figure.suptitle(f"Targets of {len(labels)} views of {polyps} polyps")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, (title, targets) in zip(axes, matrices.items(), strict=True):
        image = axis.imshow(targets.numpy(), vmin=0, vmax=1, cmap="Blues")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("other view")
        for border in range(views, len(labels), views):
            axis.axhline(border - 0.5, color="0.6", linewidth=0.8)
            axis.axvline(border - 0.5, color="0.6", linewidth=0.8)
        axis.set_xticks(range(len(labels)))
        axis.set_yticks(range(len(labels)), names)
        axis.tick_params(labelsize=7)
    axes[0].set_ylabel("anchor")
    figure.colorbar(image, ax=axes, label="share of the target", shrink=0.9)
    return figure


if __name__ == "__main__":
    save_figure(draw_targets(), Path(__file__).parent / "images" / "targets.svg")
