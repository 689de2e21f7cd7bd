"""The baseline without training."""

from pathlib import Path

import numpy as np
import pytest
import simplejpeg  # type: ignore[import-untyped]

from polypcount.encoder import load_encoder
from polypcount.reproduce import Benchmark, encoders
from polypcount.reproduce.encoders import recipe_for, save_standardised
from polypcount.reproduce.rows import ENCODERS
from polypcount.video import CropStore
from polypcount.video.opening import open_video
from polypcount.video.store_part import QUALITY
from tests.reproduce.conftest import TINY


def test_features_of_what_is_learnt_from_have_mean_0_and_deviation_1(
    benchmark_of_datasets: Benchmark, tmp_path: Path
) -> None:
    """Of one video, with every crop cut and encoded here once more."""
    corpus = benchmark_of_datasets.learn.select(videos=["001-001", "polypsset-test-1"])
    recipe = recipe_for(ENCODERS["frozen"], None, [*TINY, "data.leave_out=[study, test]"])
    told: list[int] = []
    save_standardised(corpus, recipe, tmp_path, progress=lambda done, total: told.append(total - done))
    assert told[-1] == 0
    encoder = load_encoder(tmp_path, threads=1)
    assert encoder.spec.pooling == "mean"
    assert encoder.description["recipe"]["crop"]["size"] == 32
    learnt = corpus.select(videos="001-001")  # the other is of a split that is left out
    assert encoder.description["metrics"]["crops"] == len(learnt.boxes)
    source = open_video(learnt.videos[0], learnt.files, 0)
    crops = [  # kept as JPEG, as those that are learnt from
        simplejpeg.decode_jpeg(simplejpeg.encode_jpeg(recipe.crop.crop(frame, box), quality=QUALITY))
        for (_, frame), box in zip(source.frames(learnt.boxes.frame), learnt.boxes.xyxy, strict=True)
    ]
    features = encoder.encode_frames(np.stack(crops))
    vectors = encoder.encode_sequences(features[:, None], np.ones((len(crops), 1), bool))
    alive = features.std(axis=0) > 1e-4
    assert alive.sum() > 5
    np.testing.assert_allclose(vectors.mean(axis=0)[alive], 0, atol=1e-3)
    np.testing.assert_allclose(vectors.std(axis=0)[alive], 1, rtol=1e-2)
    whole = encoder.encode_sequences(features[None, :30], np.ones((1, 30), bool))
    np.testing.assert_allclose(whole[0], vectors[:30].mean(axis=0), atol=1e-4)


def test_only_crops_that_are_used_are_cut(
    benchmark_of_datasets: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "_MOST_CROPS", 8)
    monkeypatch.setenv("POLYPCOUNT_CACHE", str(tmp_path / "cache"))
    corpus = benchmark_of_datasets.learn.select(videos=["001-001"])
    save_standardised(corpus, recipe_for(ENCODERS["frozen"], None, TINY), tmp_path / "encoder")
    (store,) = (tmp_path / "cache" / "crops").iterdir()
    assert len(CropStore.open(store)) == 8
