"""Pictures that explain the loss, and the course of a training."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

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


def draw_run(steps: dict[str, NDArray[np.float64]], epochs: dict[str, NDArray[np.float64]]) -> "Figure":
    """The loss of every step and the validation of every epoch, as the columns of `steps.csv` and `epochs.csv` say."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    lengths = {epoch: steps["step"][steps["epoch"] == epoch].max() for epoch in np.unique(steps["epoch"])}
    when = steps["epoch"] - 1 + steps["step"] / np.array([lengths[epoch] for epoch in steps["epoch"]])
    left.plot(when, steps["loss"], color="0.75", linewidth=0.8, label="a step")
    if len(epochs):
        left.plot(epochs["epoch"], epochs["loss"], color="C0", marker=".", label="an epoch, mean")
        left.plot(epochs["epoch"], epochs["validation_loss"], color="C1", marker=".", label="validation")
        names = {"hit_rate_1": "HR@1", "mean_average_precision": "mAP", "auroc": "pair AUROC"}
        for name, label in names.items():
            right.plot(epochs["epoch"], epochs[name], marker=".", label=label)
        right.legend(fontsize=8)
    left.set(xlabel="epoch", ylabel="loss")
    left.legend(fontsize=8)
    right.set(xlabel="epoch", ylabel="validation", ylim=(-0.02, 1.02))
    return figure
