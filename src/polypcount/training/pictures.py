"""Pictures that explain the loss."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from polypcount.training.targets import identity_targets, instance_targets, temporal_targets

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_targets(views: int = 4, polyps: int = 3, decay: float = 1.0, seed: int = 0) -> "Figure":
    """What self-supervised, supervised and temporally-aware learning ask of the same views of some polyps.

    views: of each polyp, at random times of its life; self-supervised learning knows only pairs of one tracklet.
    """
    from matplotlib.figure import Figure

    rng = np.random.default_rng(seed)
    labels = torch.arange(polyps).repeat_interleave(views)
    positions = torch.tensor(np.sort(rng.random((polyps, views)), axis=1).ravel())
    pairs = torch.arange(len(labels)) // 2
    matrices = {
        "self-supervised": instance_targets(pairs),
        "supervised": identity_targets(labels),
        f"temporally-aware, decay {decay:g}": temporal_targets(labels, positions, decay),
    }
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    figure.suptitle(f"Targets of {len(labels)} views of {polyps} polyps")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, (title, targets) in zip(axes, matrices.items(), strict=True):
        shown = axis.imshow(targets.numpy(), vmin=0, vmax=1, cmap="Blues")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("other view")
        for border in range(views, len(labels), views):
            axis.axhline(border - 0.5, color="0.6", linewidth=0.8)
            axis.axvline(border - 0.5, color="0.6", linewidth=0.8)
        axis.set_xticks(range(len(labels)))
        axis.set_yticks(
            range(len(labels)), [f"polyp {k // views + 1}, view {k % views + 1}" for k in range(len(labels))]
        )
        axis.tick_params(labelsize=7)
    axes[0].set_ylabel("anchor")
    figure.colorbar(shown, ax=axes, label="share of the target", shrink=0.9)
    return figure
