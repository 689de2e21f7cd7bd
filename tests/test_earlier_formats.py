"""Files that an earlier version wrote still load."""

from pathlib import Path

import numpy as np
import pytest

import polypcount as pc
from polypcount.report import read_count

FOLDER = Path(__file__).parent / "earlier_formats"
ENCODER = "fe27ffb2f427e24c3f15ebac482def64644081b3f90178f9a3e94c8830cc5daf"


def test_a_corpus() -> None:
    corpus = pc.Corpus.load(FOLDER / "corpus")
    assert [video.id for video in corpus.videos] == ["sim-study-5-000", "sim-study-5-001"]
    assert corpus.videos[0].source == str(FOLDER / "corpus" / "sim-study-5-000.scene")
    assert (len(corpus.boxes), len(corpus.polyps)) == (288, 7)
    assert corpus.boxes.frame[:3].tolist() == [240, 241, 242]
    assert corpus.boxes.xyxy[0].tolist() == [108, 32, 127, 51]
    assert corpus.polyps[0].size_mm == 2.0
    assert corpus.content_hash == "sha256:9f6e14c563d84b4af5abdff5b3a8b49c581dcc0d75daf153824967b254e8c813"
    assert corpus.provenance.parameters["seed"] == 5


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_embeddings(suffix: str) -> None:
    embeddings = pc.Embeddings.load(FOLDER / f"embeddings{suffix}")
    assert embeddings.vectors.shape == (7, 16)
    assert np.isfinite(embeddings.vectors).all()
    assert len(embeddings.together) == 1
    assert embeddings.encoder == ENCODER
    assert embeddings.frames is None
    assert embeddings.content_hash == "sha256:6fe84d1a6fc7d059052dde549a77751f35e5055b27937513d879898520280a12"
    assert embeddings.provenance.made_by == "embed"


def test_an_encoder() -> None:
    encoder = pc.load_encoder(FOLDER / "encoder")
    assert encoder.fingerprint == ENCODER
    assert (encoder.spec.d, encoder.spec.preprocessing.crop.size) == (16, 40)


def test_a_count() -> None:
    count = read_count(FOLDER / "count" / "count.json")
    assert count["count"] == 1
    assert count["video"]["id"] == "sim-study-5-000"
    assert count["polyps"][0]["tracklets"] == [0, 1, 2]
    assert count["polyps"][0]["best_frame"]["frame"] == 327
