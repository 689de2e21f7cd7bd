"""Several corpora into one."""

import dataclasses
from pathlib import Path

import pytest

from polypcount.corpus import Corpus
from polypcount.errors import DataError
from polypcount.importers import merge, published_counts

from .miniatures import ldpolypvideo, polypsset, real_colon, sun, write
from .reading import read as imported


def test_merge_keeps_ids_apart_by_dataset(tmp_path: Path) -> None:
    parts = [
        imported("real-colon", real_colon(tmp_path / "rc", {"001-001": 2}), split="train"),
        imported("ldpolypvideo", ldpolypvideo(tmp_path / "ld")),
        imported("sun", sun(tmp_path / "sun")),
        imported("polypsset", polypsset(tmp_path / "ps")),
    ]
    whole = merge(parts)
    assert len(whole.polyps) == 2 + 2 + 1 + 2
    assert len(whole.boxes) == sum(len(part.boxes) for part in parts)
    assert published_counts(whole) == [
        "real-colon: 2 polyps, the paper's training set has 85 (-83)",
        "ldpolypvideo: 2 polyps, the paper's training set has 160 (-158)",
        "sun: 1 polyps, the paper's training set has 100 (-99)",
        "polypsset: 2 polyps, the paper's training set has 39 (-37)",
        "together: 7 polyps, the paper's training set has 384 (-377)",
    ]
    with pytest.raises(DataError, match="video ids must differ"):
        merge([parts[0], parts[0]])


def test_merge_renames_only_what_collides(tmp_path: Path) -> None:
    clip = '{"width": 64, "height": 48, "frames": [[{"bbox": [1, 2, 30, 40], "polyp": "p"}]]}'
    one = imported("frames-json", write(tmp_path / "case.json", clip))

    def of(dataset: str) -> Corpus:
        return dataclasses.replace(one, videos=(dataclasses.replace(one.videos[0], dataset=dataset),))

    whole = merge([of("x"), of("y")])
    assert [video.id for video in whole.videos] == ["x/case", "y/case"]
    assert [(polyp.id, polyp.video) for polyp in whole.polyps] == [("x/p", "x/case"), ("y/p", "y/case")]
    assert published_counts(whole) == []
