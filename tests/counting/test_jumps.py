"""Where a tracklet is split."""

import numpy as np
import pytest

from polypcount.counting.jumps import WINDOW, jumps
from polypcount.encoder import load_encoder


def features_of(*kinds: int, each: int = 8) -> np.ndarray:
    """Features that are of one kind for a while, then of another, with a little noise."""
    size = load_encoder(threads=1).spec.feature_size
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(max(kinds) + 1, size)) * 2
    rows = np.concatenate([np.repeat(centres[kind][None], each, axis=0) for kind in kinds])
    return (rows + rng.normal(size=rows.shape) * 0.1).astype(np.float32)


def cosines(features: np.ndarray) -> np.ndarray:
    """Between the window before and the window after each cut, one by one."""
    encoder = load_encoder(threads=1)
    found = []
    for cut in range(WINDOW, len(features) - WINDOW + 1):
        pair = [features[cut - WINDOW : cut], features[cut : cut + WINDOW]]
        one, other = (encoder.encode_sequences(part[None], np.ones((1, WINDOW), bool))[0] for part in pair)
        found.append(float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)))
    return np.array(found)


@pytest.mark.parametrize(("kinds", "cuts"), [((0,), []), ((0, 1), [8]), ((0, 1, 2), [8, 16]), ((0, 1, 0), [8, 16])])
def test_it_is_split_where_the_looks_change(kinds: tuple[int, ...], cuts: list[int]) -> None:
    features, encoder = features_of(*kinds), load_encoder(threads=1)
    assert jumps(features, encoder, below=0.6) == cuts
    assert jumps(features, encoder, below=-1.0) == []


def test_the_cut_is_where_the_cosine_is_lowest() -> None:
    features = features_of(0, 1, each=11)
    alike = cosines(features)
    (cut,) = jumps(features, load_encoder(threads=1), below=float(np.sort(alike)[1]))
    assert cut == WINDOW + int(np.argmin(alike)) == 11


@pytest.mark.parametrize("frames", [1, 2, 2 * WINDOW - 1])
def test_what_is_short_stays_whole(frames: int) -> None:
    assert jumps(features_of(0, 1)[4 : 4 + frames], load_encoder(threads=1), below=1.1) == []


def test_all_equal_stays_whole() -> None:
    same = np.repeat(features_of(0)[:1], 20, axis=0)
    assert jumps(same, load_encoder(threads=1), below=0.99) == []
