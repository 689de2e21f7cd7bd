"""The memory of a step, and the pieces into which a batch is cut."""

import json
import logging
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from polypcount.corpus import Corpus
from polypcount.encoder import TrackletEncoder
from polypcount.errors import DataError
from polypcount.machine import available_memory
from polypcount.training import Machine, Recipe, load_recipe, memory, train
from polypcount.training.learner import ViewEncoder, set_training
from polypcount.training.memory import SHARE_TO_USE, StepMemory, step_memory, views_that_fit
from polypcount.training.start import new_model
from tests.training.corpora import assert_same_gradients, tiny

CPU = torch.device("cpu")


def counted(*changes: str, precision: str = "32") -> tuple[StepMemory, Recipe, TrackletEncoder]:
    recipe = load_recipe("temporal", [*tiny("temporal"), *changes])
    encoder = new_model(recipe)
    machine = Machine("cpu", precision=precision)  # type: ignore[arg-type]
    return step_memory(encoder, recipe, machine, on_processor=True), recipe, encoder


def bytes_kept(encoder: TrackletEncoder, recipe: Recipe, views: int) -> int:
    """What autograd keeps for the backward pass of so many views, each storage once, without the weights."""
    network = ViewEncoder(encoder)
    network.encoder.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    set_training(encoder, recipe)
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    size = recipe.crop.size
    frames, mask = torch.zeros(views, recipe.frames, 3, size, size), torch.ones(views, recipe.frames, dtype=torch.bool)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        vectors = network(frames, mask)
    ours = {tensor.untyped_storage()._cdata for tensor in (frames, *network.parameters(), *network.buffers())}
    assert vectors.requires_grad
    return sum(tensor.untyped_storage().nbytes() for key, tensor in kept.items() if key not in ours)


def test_a_view_takes_what_autograd_keeps_of_it_and_little_more() -> None:
    found, recipe, encoder = counted()
    kept = bytes_kept(encoder, recipe, 9) - bytes_kept(encoder, recipe, 8)
    each = found.of_piece(9) - found.of_piece(8)
    assert kept <= each < 1.2 * kept


def test_weights_gradients_and_moments_are_counted() -> None:
    found, recipe, encoder = counted()
    trained = sum(parameter.nbytes for parameter in encoder.parameters())
    buffers = sum(buffer.nbytes for buffer in encoder.buffers())
    pixels = recipe.views * recipe.frames * 3 * recipe.crop.size**2
    assert found.fixed == 4 * trained + buffers + pixels * (4 + 1 + 3)
    frozen, _, _ = counted("optimizer.backbone_factor=0")
    features = recipe.views * recipe.frames * encoder.spec.feature_size
    above = trained - sum(parameter.nbytes for parameter in encoder.backbone.parameters())
    assert frozen.fixed == trained + 3 * above + buffers + features * (4 + 3 * 4)
    assert frozen.whole < 0.2 * found.whole, "features are small, and their backbone is not run"


def test_the_encoder_and_the_random_state_stay_as_they_are() -> None:
    recipe = load_recipe("temporal", [*tiny("temporal"), "model.batch_norm=batch"])
    encoder = new_model(recipe)
    before, state = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}, torch.get_rng_state()
    step_memory(encoder, recipe, Machine("cpu"), on_processor=True)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in encoder.parameters())


def test_half_precision_and_several_processes_take_less() -> None:
    whole, recipe, encoder = counted()
    half, _, _ = counted(precision="bf16")
    assert half.of_piece(9) - half.of_piece(8) < 0.75 * (whole.of_piece(9) - whole.of_piece(8))
    shared = step_memory(encoder, recipe, Machine("cpu", devices=2), on_processor=True)
    assert shared.views == whole.views // 2


def test_pieces_are_as_large_as_fit_and_about_equal() -> None:
    found, recipe, encoder = counted()
    needed = {views: found.of_piece(views) for views in range(1, found.views + 1)}
    assert found.views == 12
    for free in (needed[12], needed[11], needed[7], needed[5], needed[1]):
        at_once = found.most_views(int(free / SHARE_TO_USE) + 1)
        pieces = -(-12 // at_once)
        assert needed[at_once] <= free
        assert pieces == 1 or needed[min(-(-12 // (pieces - 1)), 12)] > free, "no fewer pieces would do"
    assert found.most_views(int(needed[12] / SHARE_TO_USE) + 1) == 12
    assert found.most_views(int(needed[7] / SHARE_TO_USE) + 1) == 6
    assert found.most_views(needed[1]) == 0
    assert views_that_fit(encoder, recipe, Machine("cpu", views_at_once=5), CPU) == 5, "as it was asked for"


def test_a_batch_that_does_not_fit_is_cut_and_learns_the_same(
    drawn: Corpus, crops_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    changes = [*tiny("temporal"), "model.dropout=0", "batches_per_epoch=1"]
    train(drawn, "temporal", tmp_path / "whole", changes=changes, cache=crops_cache, log_to=())
    found, _, _ = counted()
    monkeypatch.setattr(memory, "free_memory", lambda *_: int(found.of_piece(5) / SHARE_TO_USE) + 1)
    with caplog.at_level(logging.INFO):
        train(drawn, "temporal", tmp_path / "cut", changes=changes, cache=crops_cache, log_to=())
    (line,) = [record.getMessage() for record in caplog.records if "of memory" in record.getMessage()]
    assert line.endswith("it is encoded in 3 pieces of up to 4 views, with the gradient of the whole batch")
    assert_same_gradients(tmp_path / "whole", tmp_path / "cut")
    about = json.loads((tmp_path / "cut" / "run.json").read_text())
    assert about["views_at_once"] == 4
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["views_at_once"] is None


def test_a_resumed_run_takes_the_pieces_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    found, recipe, encoder = counted()
    monkeypatch.setattr(memory, "free_memory", lambda *_: int(found.of_piece(6) / SHARE_TO_USE) + 1)
    assert views_that_fit(encoder, recipe, Machine("cpu"), CPU, before=3) == 3
    assert views_that_fit(encoder, recipe, Machine("cpu"), CPU, before=8) == 6, "which does not fit now"


def test_what_cannot_fit_is_refused_before_anything_is_written(
    drawn: Corpus, crops_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _, _ = counted()
    monkeypatch.setattr(memory, "free_memory", lambda *_: int(found.of_piece(5) / SHARE_TO_USE) + 1)
    changes = [*tiny("temporal"), "model.batch_norm=batch"]
    with pytest.raises(
        DataError, match=r"^a batch of 12 views of 8 images .* so it cannot be cut in pieces: set "
    ) as no:
        train(drawn, "temporal", tmp_path / "run", changes=changes, cache=crops_cache)
    assert no.value.mend == ("precision",)
    monkeypatch.setattr(memory, "free_memory", lambda *_: 1000)
    with pytest.raises(DataError, match=r"^learning from one view of 8 images of 32 pixels with tiny takes about "):
        train(drawn, "temporal", tmp_path / "run", changes=tiny("temporal"), cache=crops_cache)
    assert not (tmp_path / "run").exists()


def test_where_the_memory_is_not_known_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    _, recipe, encoder = counted()
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert memory.free_memory(CPU) is None
    assert views_that_fit(encoder, recipe, Machine("cpu"), CPU) is None
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert memory.free_memory(CPU, 4) == 250, "processes of a node share it"


def test_limits_of_control_groups_count(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert available_memory(tmp_path) is None
    write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n")
    assert available_memory(tmp_path) == 8_192_000
    write("proc/self/cgroup", "0::/slurm/job_1\n")
    write("sys/fs/cgroup/slurm/job_1/memory.max", "max\n")
    write("sys/fs/cgroup/slurm/job_1/memory.current", "100\n")
    assert available_memory(tmp_path) == 8_192_000
    write("sys/fs/cgroup/slurm/memory.max", "5000\n")
    write("sys/fs/cgroup/slurm/memory.current", "3000\n")
    write("sys/fs/cgroup/slurm/memory.stat", "anon 2000\ninactive_file 700\n")
    assert available_memory(tmp_path) == 2700
    write("proc/self/cgroup", "9:cpu,memory:/a\n0::/\n")
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n")
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "3900\n")
    assert available_memory(tmp_path) == 100, "of the older kind, and seen from inside a container"


def test_what_is_freed_is_not_counted() -> None:
    network = nn.Sequential(*(nn.Linear(8, 8, bias=False) for _ in range(10))).requires_grad_(False)
    inputs, alive = torch.zeros(1000, 8), memory._Alive()
    alive.ignore([inputs, *network.parameters()])
    with alive:
        network(inputs)
    assert alive.most == 2 * inputs.nbytes, "without gradients only two layers' outputs are alive at a time"
