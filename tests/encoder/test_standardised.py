"""The baseline of standardised features, against numpy."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from polypcount.encoder import Preprocessing, load_backbone, load_encoder, save_encoder, standardised_encoder
from polypcount.errors import DataError
from polypcount.video import CropRule

IMAGES = Preprocessing(crop=CropRule(size=40))


def random_features(n: int = 50, f: int = 32) -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    features: NDArray[np.float32] = (rng.random(f) * 10 * rng.normal(size=(n, f)) + rng.normal(size=f)).astype(
        np.float32
    )
    return features


def test_vectors_are_means_of_standardised_features(tmp_path: Path) -> None:
    training = random_features()
    training[:, 5] = 0.1  # whose mean, of 50, is not exactly 0.1
    training[:, 6] = 0
    torch.manual_seed(3)
    backbone = load_backbone("tiny").eval()
    encoder = standardised_encoder(backbone, training, IMAGES)
    assert (encoder.spec.d, encoder.spec.pooling, encoder.spec.preprocessing) == (32, "mean", IMAGES)
    assert not encoder.training
    saved = load_encoder(save_encoder(encoder, tmp_path), threads=1)

    rng = np.random.default_rng(1)
    crops = rng.integers(0, 256, (3, 7, 40, 40, 3), np.uint8)
    mask = np.arange(7) < np.array([[7], [4], [1]])
    features = np.stack([saved.encode_frames(clip) for clip in crops])
    vectors = saved.encode_sequences(features, mask)

    mean, std = training.astype(np.float64).mean(axis=0), training.astype(np.float64).std(axis=0)
    for row, frames in enumerate((7, 4, 1)):
        expected = np.array([(features[row, :frames, k].astype(np.float64) - mean[k]) / std[k] for k in (0, 4, 7, 31)])
        np.testing.assert_allclose(vectors[row, [0, 4, 7, 31]], expected.mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(vectors[:, [5, 6]], 0)
    images = torch.from_numpy(((crops[0] / 255 - IMAGES.mean) / IMAGES.std).transpose(0, 3, 1, 2).astype(np.float32))
    with torch.no_grad():
        np.testing.assert_allclose(features[0], backbone(images).numpy(), rtol=1e-4, atol=1e-4)


def test_training_features_have_mean_0_and_deviation_1() -> None:
    training = random_features()
    encoder = standardised_encoder(load_backbone("tiny"), training, IMAGES)
    with torch.no_grad():
        found = encoder.encode_sequences(
            torch.from_numpy(training[:, None]), torch.ones(50, 1, dtype=torch.bool)
        ).numpy()
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=0), 1, rtol=1e-5)


def test_lite0_of_1280_numbers_and_an_odd_image_size_is_saved_and_run(tmp_path: Path) -> None:
    training = random_features(n=60, f=1280)
    odd = Preprocessing(crop=CropRule(size=57))
    encoder = standardised_encoder(load_backbone("lite0", weights=False), training, odd)
    saved = load_encoder(save_encoder(encoder, tmp_path), threads=1)
    assert saved.encode_frames(np.zeros((2, 57, 57, 3), np.uint8)).shape == (2, 1280)
    file = tmp_path / saved.description["model"] / "sequence.onnx"
    assert 4 * 1280**2 < file.stat().st_size < 4 * 1280**2 + 20_000
    clip = random_features(n=5, f=1280)
    found = saved.encode_sequences(clip[None], np.ones((1, 5), bool))[0]
    expected = ((clip - training.mean(axis=0)) / training.std(axis=0)).mean(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_the_same_arguments_give_the_same_fingerprint(tmp_path: Path) -> None:
    training, backbone = random_features(), load_backbone("tiny")
    torch.manual_seed(3)
    expected = torch.rand(1)
    prints = []
    for name in ("a", "b"):
        torch.manual_seed(3)
        encoder = standardised_encoder(backbone, training, IMAGES)
        assert torch.rand(1) == expected, "the random numbers of the caller stay"
        prints.append(load_encoder(save_encoder(encoder, tmp_path / name)).fingerprint)
    other = load_encoder(save_encoder(standardised_encoder(backbone, training + 1, IMAGES), tmp_path / "c"))
    assert prints[0] == prints[1] != other.fingerprint


def test_a_backbone_by_name() -> None:
    encoder = standardised_encoder("tiny", random_features())
    assert (encoder.spec.backbone, encoder.spec.preprocessing) == ("tiny", Preprocessing())


def test_features_that_cannot_be_standardised_are_refused() -> None:
    features, backbone = random_features(), load_backbone("tiny")
    for bad, message in (
        (features[:, :31], r"features must be .* found float32\[50, 31\]"),
        (features[0], r"features must be .* found float32\[32\]"),
        (features.astype(int), r"features must be .* found int64\[50, 32\]"),
        (features[:1], r"n at least 2, found float32\[1, 32\]"),
        (np.repeat(features[:1], 9, axis=0), "must differ between images, found the same for all"),
        (np.where(features > 5, np.nan, features), "must be finite"),
    ):
        with pytest.raises(DataError, match=message):
            standardised_encoder(backbone, bad, IMAGES)
