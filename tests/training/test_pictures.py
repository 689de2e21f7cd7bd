"""The picture of the targets shows the targets."""

import numpy as np
import torch

from polypcount.training import identity_targets
from polypcount.training.pictures import draw_targets


def test_three_matrices_of_twelve_views() -> None:
    figure = draw_targets()
    shown = [np.asarray(axis.images[0].get_array()) for axis in figure.axes[:3]]
    assert [matrix.shape for matrix in shown] == [(12, 12)] * 3
    for matrix in shown:
        assert np.allclose(matrix.sum(axis=1), 1)
        assert (np.diag(matrix) == 0).all()
    assert (np.count_nonzero(shown[0], axis=1) == 1).all(), "one other view of the same tracklet"
    assert np.allclose(shown[1], identity_targets(torch.arange(3).repeat_interleave(4)).numpy())
    assert (shown[2] > 0).tolist() == (shown[1] > 0).tolist()
    assert shown[2][0, 1] > shown[2][0, 3], "the nearer in time, the more"
