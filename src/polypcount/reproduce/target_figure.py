"""The comparison of targets: what self-supervised, supervised and temporally-aware learning ask of the same views."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from polypcount.corpus import Corpus
from polypcount.errors import DataError
from polypcount.evaluation.figures import blank
from polypcount.tracking import link_tracklets
from polypcount.training import Recipe, identity_targets, instance_targets, temporal_targets
from polypcount.training.data import split_corpus
from polypcount.training.recipe import PolypViewSettings
from polypcount.training.samplers import PolypViews

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLYPS, _VIEWS = 3, 4


def draw_learnt_targets(corpus: Corpus, recipe: Recipe) -> "Figure":
    """Targets of 4 views of 3 polyps that the recipe learns from."""
    assert isinstance(recipe.sampler, PolypViewSettings)
    settings = recipe.sampler.model_copy(update={"polyps": _POLYPS, "views": _VIEWS})
    try:
        learnt, _ = split_corpus(corpus, recipe)
        sampler = PolypViews(learnt.boxes, link_tracklets(learnt.boxes), settings, recipe.seed)
    except DataError:
        return blank(f"fewer than {_POLYPS} polyps to learn from", "Targets")
    batch = next(iter(sampler.batches(0)))
    order = np.lexsort([batch.position, batch.polyp])
    return draw_targets(torch.tensor(batch.polyp[order]), torch.tensor(batch.position[order]), recipe.loss.decay)


def draw_targets(labels: Tensor, positions: Tensor, decay: float = 1.0) -> "Figure":
    """Targets of the three kinds of learning for the same views.

    Args:
        labels: int64[n], the polyp of each view, equally many of each, one polyp after the other.
        positions: float64[n], when each view begins in the life of its polyp. For self-supervised learning, views 1
            and 2, 3 and 4, and so on are pairs.
        decay: Of the temporally-aware targets.
    """
    from matplotlib.figure import Figure

    polyps = len(set(labels.tolist()))
    views = len(labels) // polyps
    matrices = {
        "self-supervised": instance_targets(torch.arange(len(labels)) // 2),
        "supervised": identity_targets(labels),
        f"temporally-aware, decay {decay:g}": temporal_targets(labels, positions, decay),
    }
    names = [f"polyp {row // views + 1}, at {position:.2f}" for row, position in enumerate(positions.tolist())]
    figure = Figure(figsize=(9.6, 3.5), layout="constrained")
    figure.suptitle(f"Targets of {len(labels)} views of {polyps} polyps, by the time at which they begin")
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
