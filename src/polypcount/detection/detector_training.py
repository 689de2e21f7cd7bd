"""From a corpus and a recipe to a trained detector, in a folder of its own."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from polypcount.corpus import Corpus
from polypcount.detection.detector_file import MODEL, find_model
from polypcount.detection.frames import LearningPixels, learning_frames, open_pixels, split_videos
from polypcount.detection.keep import begin_with, read_weights
from polypcount.detection.learner import Averaged, DetectorLesson
from polypcount.detection.network import DetectorNetwork, folded
from polypcount.detection.recipe import DetectorRecipe, load_detector_recipe
from polypcount.encoder import lite0
from polypcount.encoder.backbones import load_backbone
from polypcount.errors import DataError
from polypcount.machine import available_cores
from polypcount.progress import Progress, no_progress
from polypcount.storage import cache_folder
from polypcount.training import Machine
from polypcount.training.loggers import refuse_missing
from polypcount.training.loop import Loop, Watch
from polypcount.training.processes import is_first, is_first_of_node, new_fabric, refuse_other_number
from polypcount.training.recipe_file import recipe_text
from polypcount.training.run_folder import RunFolder, environment
from polypcount.training.train_encoder import about_run, run_whole

_SCORES = {"ap50": "AP50"}


def train_detector(
    corpus: Corpus,
    recipe: str | Path | Mapping[str, Any] | DetectorRecipe | None = None,
    out: str | Path = "run",
    *,
    masks: Corpus | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    machine: Machine | None = None,
    log_to: Sequence[str] = ("tensorboard",),
    cache: str | Path | None = None,
    progress: Progress = no_progress,
    watch: Watch | None = None,
) -> Path:
    """Train a detector on the boxes of a corpus; everything of the run is written to the folder `out`.

    Args:
        corpus: Videos with pixels. Every box is a polyp; frames without boxes show none.
        recipe: Name of a recipe of the package (default `detector`), a YAML file, or values.
        out: The run folder.
        masks: Videos of the same ids whose pixels are masks, white where a polyp is. Learning them as a side task
            makes boxes better. Videos without masks are learnt from as well.
        changes: Changes to the recipe, such as `optimizer.lr=1e-4`.
        resume: Continue the run in `out` exactly from its last checkpoint.
        machine: Devices, precision and so on.
        log_to: `tensorboard`, `wandb`, `mlflow`; CSV files are always written.
        cache: Folder for frames, shared by runs; by default in the user's cache folder.
        progress: Counts frames while they are cut.
        watch: Called after each step and each epoch.

    Returns:
        The ONNX file of the detector of the best epoch, for `pc.count(..., detector=...)`.

    Raises:
        Stopped: Ctrl-C or SIGTERM; the run can be resumed.
    """
    run_folder, machine = RunFolder(Path(out), _SCORES, load_detector_recipe), machine or Machine()
    of_run = resume and recipe is None and run_folder.started
    chosen = load_detector_recipe(run_folder.recipe() if of_run else recipe or "detector", changes)
    refuse_missing(log_to)
    refuse_other_number(machine)
    _refuse_impossible(chosen, machine)
    if is_first():
        if resume:
            run_folder.refuse_another(chosen, corpus.content_hash)
        else:
            run_folder.refuse_used()
    fabric = new_fabric(machine)
    network = new_network(chosen, blank=resume and run_folder.last.exists())
    learnt, validated = split_videos(corpus, chosen.data, chosen.seed)
    with run_folder.locked() if is_first() else nullcontext():
        if is_first() and resume:
            run_folder.tidy()
            entry = {"machine": asdict(machine), **environment()}
            run_folder.add(resumed=[*run_folder.about().get("resumed", []), entry])
            run_folder.write("recipe.yaml", recipe_text(chosen))
        elif is_first():
            about = {**about_run(corpus, chosen, machine), "learnt_from": learnt, "validated_on": validated}
            run_folder.begin(chosen, about)
        folder = cache_folder() / "crops" if cache is None else Path(cache)
        parts = (corpus, masks, chosen, folder, learnt, validated)
        pixels = _open_pixels(*parts, progress) if is_first_of_node() else None
        fabric.launch()
        fabric.barrier()
        learning, validation = pixels or _open_pixels(*parts, no_progress)
        readers = machine.readers or max(1, available_cores() // 2)
        lesson = DetectorLesson(chosen, fabric, Averaged(network), learning, validation, readers)
        loop = Loop(lesson, run_folder, watch or (lambda _: None))
        if resume:
            loop.restore()
        run_whole(loop, log_to, resume, corpus.content_hash)
        fabric.barrier()
    return run_folder.folder / MODEL


def new_network(recipe: DetectorRecipe, *, blank: bool = False) -> DetectorNetwork:
    """The network with its first weights. blank: Weights come from elsewhere, so none are read."""
    start = "none" if blank else recipe.model.start
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        network = DetectorNetwork(recipe.model.channels)
    if start == "imagenet":
        weights = load_backbone("lite0").network
        assert isinstance(weights, lite0.Lite0)
        backbone = folded(weights)
        del backbone.head
        network.backbone.load_state_dict(backbone.state_dict())
    elif start != "none":
        _, file = find_model(start)
        begin_with(network, read_weights(file), file)
    return network


def _open_pixels(
    corpus: Corpus,
    masks: Corpus | None,
    recipe: DetectorRecipe,
    folder: Path,
    learnt: list[str],
    validated: list[str],
    progress: Progress,
) -> tuple[LearningPixels, LearningPixels | None]:
    learning = open_pixels(
        learning_frames(corpus.select(videos=learnt), recipe.data), recipe.side, folder, masks, progress
    )
    if not validated:
        return learning, None
    frames = learning_frames(corpus.select(videos=validated), recipe.data)
    return learning, open_pixels(frames, recipe.side, folder, None, progress)


def _refuse_impossible(recipe: DetectorRecipe, machine: Machine) -> None:
    if recipe.batch % machine.processes:
        raise DataError(
            f"a batch of {recipe.batch} frames cannot be shared equally by {machine.processes} processes; change the "
            "recipe's batch or the devices",
            mend="devices",
        )
