"""Time without a polyp: all that comes into view, none of it without difficulties, the same for the same seed."""

import numpy as np

from polypcount.simulate import Difficulty
from polypcount.simulate.surroundings import Surroundings

from .drawn import CLEAN, difference, scene_of, timeline

TIMES = np.arange(0, 1800, 0.5)


def test_everything_comes_and_goes() -> None:
    shares = []
    for seed in range(10):
        views = Surroundings(1800, Difficulty(), np.random.default_rng(seed)).at(TIMES)
        here = [views.liquid[:, 2] > 0, views.folds[:, 0, 1] < 0.6, views.tool[:, 0] > 0, views.foam[:, 0] > 0]
        shares.append([one.mean() for one in (*here, views.wash[:, 0] > 0)])
    assert (np.min(shares, axis=0) > 0).all(), "in every procedure of half an hour"
    means = np.mean(shares, axis=0)
    assert ((means > 0.02) & (means < 0.6)).all(), "liquid, folds, instruments, foam and washing: some of the time"


def test_nothing_comes_without_difficulties() -> None:
    surroundings = Surroundings(1800, CLEAN, np.random.default_rng(0))
    views = surroundings.at(TIMES)
    assert (views.liquid[:, 2] == 0).all()
    assert (views.folds[:, :, 1] > 1).all()
    assert max(views.tool[:, 0].max(), views.foam[:, 0].max(), views.wash[:, 0].max()) < 0
    assert len(surroundings.bubbles(0.0, views)) == 0


def test_frames_without_a_polyp_vary_as_much_as_those_with_one() -> None:
    """The deviation over frames of a small image, which folds, liquid, tools and light change."""
    line = timeline({frame: {0: (60, 40, 100, 84)} for frame in range(0, 15000, 500)}, 15001)
    line.visits[0].there[7500:] = False
    line.visits[0].seen[7500:] = False
    scene = scene_of(line, Difficulty(), 2)
    spread = []
    for first in (0, 7500):
        frames = np.array([scene.draw(frame, size=(20, 16)) for frame in range(first, first + 7500, 125)], float)
        spread.append(frames.std(axis=0).mean())
    assert spread[1] > 0.7 * spread[0]
    assert difference(scene.draw(9000), scene_of(line, Difficulty(), 2).draw(9000)) == 0
