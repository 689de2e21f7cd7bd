"""The recipe `published` against recorded outputs of independent calculations, and two steps of its training."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from polypcount.corpus import Boxes, Corpus
from polypcount.encoder import load_torch
from polypcount.tracking import fragments, link_tracklets
from polypcount.training import load_recipe, temporal_contrastive_loss, train
from polypcount.training.recipe import PolypViewSettings
from polypcount.training.samplers import PolypViews
from tests.encoder.test_backbones import random_resnet
from tests.training import published as plain

RECORDED: dict[str, Any] = json.loads(plain.RECORDED.read_text(encoding="utf-8"))
SETTINGS = load_recipe("published", [f"sampler.views={plain.VIEWS}", f"sampler.polyps={plain.POLYPS}"]).sampler


def boxes() -> Boxes:
    video, frame, polyp, xywh = zip(*plain.story(), strict=True)
    x, y, w, h = np.array(xywh).T
    return Boxes(video, frame, np.column_stack([x, y, x + w, y + h]), polyp=polyp)


def sampler(seed: int = 0) -> PolypViews:
    assert isinstance(SETTINGS, PolypViewSettings)
    return PolypViews(boxes(), link_tracklets(boxes()), SETTINGS, seed)


def test_the_independent_calculation_gives_what_is_recorded() -> None:
    assert json.loads(json.dumps(plain.outputs())) == RECORDED


def test_tracklets_and_fragments_are_those_recorded() -> None:
    data = boxes()
    linked = link_tracklets(data)
    found = np.column_stack([linked.polyp, linked.start_frame, linked.stop_frame - 1, linked.box_count])
    assert sorted(found.tolist()) == RECORDED["tracklets"]
    assert isinstance(SETTINGS, PolypViewSettings)
    pieces = fragments(linked, SETTINGS.length, SETTINGS.stride, SETTINGS.min_frames)
    rows = [pieces.rows_of(piece) for piece in range(len(pieces))]
    assert sorted([int(data.polyp[r[0]]), data.frame[r].tolist()] for r in rows) == RECORDED["fragments"]


def test_batches_hold_to_the_published_rule() -> None:
    data, draw = boxes(), sampler()
    known = {(polyp, frames[0]): frames for polyp, frames in RECORDED["fragments"]}
    positions = {(polyp, frame): position for polyp, frame, position in RECORDED["positions"]}
    for epoch in range(20):
        left = Counter(polyp for polyp, _ in RECORDED["fragments"])
        used, batches = set(), list(draw.batches(epoch))
        for batch in batches:
            polyps = Counter(batch.polyp.tolist())
            assert list(polyps.values()) == [plain.VIEWS] * plain.POLYPS
            assert all(left[polyp] >= plain.VIEWS for polyp in polyps), "enough unused fragments"
            left -= polyps
            for rows, polyp, position in zip(batch.rows, batch.polyp.tolist(), batch.position.tolist(), strict=True):
                key = (polyp, int(data.frame[rows[0]]))
                assert data.frame[rows].tolist() == known[key]
                assert position == pytest.approx(positions[key], rel=1e-12)
                assert key not in used, "no fragment twice in an epoch"
                used.add(key)
        assert sum(number >= plain.VIEWS for number in left.values()) < plain.POLYPS, "goes on while it can"
        assert {polyp for polyp, _ in used} <= set(RECORDED["usable"])
        assert 0 < len(batches) <= RECORDED["most_batches"]


def test_polyps_are_drawn_in_proportion_to_their_unused_fragments() -> None:
    draw = sampler()
    first = Counter(" ".join(map(str, next(draw.batches(epoch)).polyp[:: plain.VIEWS])) for epoch in range(3000))
    chances = RECORDED["pair_chances"]
    assert set(first) <= set(chances)
    assert chisquare([first[pair] for pair in chances], [3000 * chance for chance in chances.values()]).pvalue > 0.01
    even = [3000 / len(chances)] * len(chances)
    assert chisquare([first[pair] for pair in chances], even).pvalue < 1e-6, "the test can tell another rule"


def test_the_loss_is_that_recorded() -> None:
    settings, rows = load_recipe("published").loss, RECORDED["row_losses"]
    z, times = torch.tensor(plain.VECTORS, dtype=torch.float64), torch.tensor(plain.TIMES, dtype=torch.float64)
    for views in (6, 7):  # the published mean is over all rows, ours over those with a positive: equal for 6
        ours = temporal_contrastive_loss(
            z[:views], torch.tensor(plain.LABELS[:views]), times[:views], settings.temperature, settings.decay
        )
        expected = plain.loss(plain.VECTORS[:views], plain.LABELS, plain.TIMES, 0.25, 1.0)
        assert views == 6 or expected == pytest.approx(rows, rel=1e-12)
        assert float(ours) == pytest.approx(sum(expected) / 6, rel=1e-12)


def test_published_trains_two_steps_from_a_weights_file(
    drawn: Corpus, tmp_path: Path, crops_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    weights = random_resnet((2, 2, 2, 2), bottleneck=False)
    torch.save(weights, tmp_path / "weights.pth")
    small = ["model.backbone=resnet-18", "crop.size=32", "sampler.views=2", "sampler.polyps=2", "batches_per_epoch=2"]
    changes = [*small, "epochs=1", f"model.weights={tmp_path / 'weights.pth'}"]
    encoder = train(drawn, "published", tmp_path / "run", changes=changes, cache=crops_cache, log_to=())
    steps = list(csv.DictReader((tmp_path / "run" / "steps.csv").read_text().splitlines()))
    assert [np.isfinite(float(step["loss"])) for step in steps] == [True, True]
    assert (encoder.spec.preprocessing.mean, encoder.spec.preprocessing.std) == ((0, 0, 0), (1, 1, 1))
    trained = load_torch(tmp_path / "run").backbone.state_dict()
    stem = "network.model.embedder.embedder"
    torch.testing.assert_close(trained[f"{stem}.convolution.weight"], weights["conv1.weight"], rtol=0, atol=1e-4)
    assert int(trained[f"{stem}.normalization.num_batches_tracked"]) == 7 + 2, "statistics of two batches"
