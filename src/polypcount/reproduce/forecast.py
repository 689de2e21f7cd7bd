"""What a reproduction takes, before it begins: steps, hours, disk and memory.

The hours come from a trial on this machine: crops of a few polyps are cut, an encoder of each kind is trained for a few
steps, and some crops are encoded. Nothing of it is kept. What is already done is not counted.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from polypcount.corpus import Corpus
from polypcount.encoder import load_encoder
from polypcount.encoder.embed import crops_to_encode, embed
from polypcount.errors import FileError
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.reproduce.encoders import EncoderJob, engine_for, standardised_crops
from polypcount.reproduce.plan import Trial, trial
from polypcount.reproduce.results import MIN_FRAMES
from polypcount.reproduce.run import Comparison, ReproduceSettings
from polypcount.storage import cache_folder
from polypcount.tracking import link_tracklets
from polypcount.training import Machine, Recipe, load_recipe
from polypcount.training.batches import RowNumbers
from polypcount.training.data import (
    crop_folder,
    crop_rows,
    crops_to_learn_from,
    epoch_batches,
    learnt_data,
    open_crops,
)
from polypcount.training.frozen import features_never_change
from polypcount.training.memory import StepMemory, free_memory, gigabytes, refuse_too_large, step_memory
from polypcount.training.processes import new_fabric
from polypcount.training.start import new_model
from polypcount.video import CropRule

_POLYPS, _EMBEDDED, _STEPS = 32, 4, 3  # of a trial: polyps to learn from, polyps to embed, steps
_LONG = 64  # a tracklet of so many boxes is long enough for every sampler
_WITHOUT_VALIDATION = ("data.validation=[]", "data.validation_share=0", "validation.monitor=last")


@dataclass(frozen=True)
class EncoderForecast:
    """The trainings of one encoder on one benchmark.

    Attributes:
        name: The encoder.
        benchmark: Name of the data.
        trainings: How many are left to do.
        finished: How many are done.
        steps: Of each training.
        epoch: Batches of its first epoch.
        views: Views of a batch.
        images: Images of a batch.
        crops: Different crops that it learns from.
        seconds: Of each training.
        memory: Of one step.
        at_once: Views that are encoded at a time.
    """

    name: str
    benchmark: str
    trainings: int
    finished: int
    steps: int
    epoch: int
    views: int
    images: int
    crops: int
    seconds: float
    memory: StepMemory
    at_once: int


@dataclass
class Forecast:
    """What is left to do, apart from the studies.

    Attributes:
        free_memory: Bytes for training; None if not known.
        encoders: The encoders that are trained.
        training_seconds: Of all trainings.
        crops: Crops to cut, with the time for it.
        images: Images to encode for vectors, and for features of a backbone that does not learn, with the time.
        cache_bytes: Disk for crops and features, in the cache.
        out_bytes: Disk for runs, in the folder of the reproduction.
    """

    free_memory: int | None
    encoders: list[EncoderForecast] = field(default_factory=list)
    training_seconds: float = 0
    crops: int = 0
    cutting_seconds: float = 0
    images: int = 0
    encoding_seconds: float = 0
    cache_bytes: float = 0
    out_bytes: float = 0

    @property
    def seconds(self) -> float:
        """Of everything but the studies."""
        return self.training_seconds + self.cutting_seconds + self.encoding_seconds


@dataclass(frozen=True)
class _Measured:
    """What one kind of encoder takes on this machine: a step; a crop to cut, to keep and to encode; a run on disk."""

    trial: Trial
    cut_seconds: float
    cut_bytes: float
    encode_seconds: float
    feature_bytes: float
    run_bytes: int


def forecast(
    benchmarks: Sequence[Benchmark], out: Path, settings: ReproduceSettings, stage: Stage = silent
) -> Forecast:
    """Count and measure what `reproduce` would do with the same arguments.

    Raises:
        DataError: A step does not fit into the memory, or an encoder cannot learn from the data.
        FileError: Weights of a backbone are missing, or a disk has not enough room.
    """
    comparison = Comparison(benchmarks, out, settings, stage)
    jobs = [job for benchmark in benchmarks for job in comparison.jobs(benchmark)]
    machine = settings.machine or Machine()
    # On several devices a trial would start this process again. So one device stands for all.
    alone = Machine(machine.accelerator, 1, 1, machine.precision, machine.views_at_once, machine.readers)
    device = new_fabric(alone).device
    found = Forecast(free_memory(device, machine.devices))
    kinds: dict[str, Recipe] = {}
    for job in sorted(jobs, key=lambda job: job.recipe.views // job.recipe.views_of_polyp):
        kinds.setdefault(_kind(job.recipe), job.recipe)
    memory = {}
    for kind, recipe in kinds.items():  # what cannot work is refused before the trials
        encoder = new_model(recipe, download=settings.download)
        memory[kind] = step_memory(encoder, recipe, machine, on_processor=device.type == "cpu")
        if found.free_memory is not None and machine.views_at_once is None:
            refuse_too_large(memory[kind], recipe, found.free_memory)
    left = {_kind(job.recipe) for job in jobs if not (job.finished and comparison.vectors_file(job).exists())}
    cache_folder().mkdir(parents=True, exist_ok=True)
    measured = {
        kind: _measure(recipe, benchmarks[0].learn, settings, alone, stage)
        for kind, recipe in kinds.items()
        if kind in left
    }
    for benchmark in benchmarks:
        own = [job for job in jobs if job.benchmark is benchmark]
        for name in dict.fromkeys(job.row.name for job in own if job.row.trained):
            alike = [job for job in own if job.row.name == name]
            kind = _kind(alike[0].recipe)
            line = _trainings(alike, comparison, memory[kind], measured.get(kind), machine, found.free_memory)
            found.encoders.append(line)
            found.training_seconds += line.trainings * line.seconds
        _add_crops(found, own, comparison, measured)
    found.out_bytes = sum(measured[_kind(job.recipe)].run_bytes for job in jobs if not job.finished)
    _refuse_full(found, out)
    return found


def _kind(recipe: Recipe) -> str:
    """What decides how long a step takes: encoders of one kind share a trial."""
    parts = (recipe.model, recipe.augmentation)
    numbers = (recipe.crop.size, recipe.optimizer.backbone_factor, recipe.views, recipe.frames)
    return f"{[part.model_dump_json() for part in parts]} {numbers}"


def _trainings(
    jobs: Sequence[EncoderJob],
    comparison: Comparison,
    memory: StepMemory,
    measured: _Measured | None,
    machine: Machine,
    free: int | None,
) -> EncoderForecast:
    first, length = jobs[0], comparison.settings.length
    recipe, benchmark = first.recipe, first.benchmark
    epoch = epoch_batches(benchmark.learn, recipe)
    steps = comparison.plan.steps(comparison.settings.recipe(first.row, first.seed), benchmark)
    if steps is None and measured is not None:  # a budget whose own trial is still to come
        steps = comparison.plan.affordable(measured.trial, recipe, epoch)
    finished = sum(job.finished for job in jobs)
    seconds = measured.trial.seconds(steps or 0, epoch) if measured else 0.0
    return EncoderForecast(
        name=first.row.name,
        benchmark=benchmark.name,
        trainings=len(jobs) - finished,
        finished=finished,
        steps=steps or 0,
        epoch=epoch,
        views=recipe.views,
        images=recipe.images,
        crops=len(learnt_data(benchmark.learn, recipe).rows),
        seconds=min(seconds, length.budget_minutes * 60) if length.budget_minutes else seconds,
        memory=memory,
        at_once=machine.views_at_once or (memory.views if free is None else memory.most_views(free)),
    )


def _add_crops(
    found: Forecast, jobs: Sequence[EncoderJob], comparison: Comparison, measured: dict[str, _Measured]
) -> None:
    """Add the crops to cut and the images to encode. Encoders share what is equal, as they do when they are made."""
    stores: set[Path] = set()
    encoded: set[str] = set()
    for job in jobs:
        recipe, one = job.recipe, measured.get(_kind(job.recipe))
        if one is None:
            continue
        corpus, rows, rule = _crops(job)
        store = crop_folder(corpus, rows, rule, cache_folder() / "crops")
        if not job.finished and not store.exists() and store not in stores:
            stores.add(store)
            found.crops += len(rows)
            found.cutting_seconds += len(rows) * one.cut_seconds
            found.cache_bytes += len(rows) * one.cut_bytes
            if features_never_change(recipe) or not job.row.trained:
                found.images += len(rows)
                found.encoding_seconds += len(rows) * one.encode_seconds
        # Encoders with the same frozen backbone share the features of the study videos.
        shared = features_never_change(recipe) or not job.row.trained
        key = f"{recipe.model.backbone} {recipe.model.weights} {recipe.crop}" if shared else job.key
        if not comparison.vectors_file(job).exists() and key not in encoded:
            encoded.add(key)
            tracklets = link_tracklets(job.benchmark.study.boxes)
            images = crops_to_encode(tracklets, stride=comparison.settings.stride, min_frames=MIN_FRAMES)
            found.images += images
            found.encoding_seconds += images * one.encode_seconds
            found.cache_bytes += images * one.feature_bytes


def _crops(job: EncoderJob) -> tuple[Corpus, RowNumbers, CropRule]:
    """The crops that a job learns from."""
    if not job.row.trained:
        return *standardised_crops(job.benchmark.learn, job.recipe), job.recipe.crop
    data = learnt_data(job.benchmark.learn, job.recipe)
    return data.corpus, crop_rows(data), crops_to_learn_from(job.recipe)


def _measure(recipe: Recipe, corpus: Corpus, settings: ReproduceSettings, machine: Machine, stage: Stage) -> _Measured:
    few = _few_polyps(corpus, _POLYPS)
    recipe = load_recipe(recipe, _WITHOUT_VALIDATION)
    data, rule = learnt_data(few, recipe), crops_to_learn_from(recipe)
    rows = crop_rows(data)
    with (
        tempfile.TemporaryDirectory(prefix="trial-", dir=cache_folder()) as scratch,
        stage(f"a trial of {recipe.model.backbone}, {recipe.views} views of {recipe.frames}") as progress,
    ):
        crops, features, run = (Path(scratch) / name for name in ("crops", "features", "run"))
        began = time.monotonic()
        open_crops(data, rule, crops, progress)
        cut_seconds = time.monotonic() - began
        measured = trial(
            recipe, few, run, machine=machine, download=settings.download, cache=crops, steps=_STEPS, progress=progress
        )
        embedded = _few_polyps(few, _EMBEDDED)
        tracklets = link_tracklets(embedded.boxes)
        encoder = load_encoder(run, threads=settings.threads, engine=engine_for(settings.engine, machine))
        began = time.monotonic()
        embed(embedded, tracklets, encoder, stride=settings.stride, min_frames=MIN_FRAMES, cache=features)
        encode_seconds = time.monotonic() - began
        images = max(1, crops_to_encode(tracklets, stride=settings.stride, min_frames=MIN_FRAMES))
        return _Measured(
            trial=measured,
            cut_seconds=cut_seconds / len(rows),
            cut_bytes=_bytes(crops) / len(rows),
            encode_seconds=encode_seconds / images,
            feature_bytes=_bytes(features) / images,
            run_bytes=_bytes(run),
        )


def _few_polyps(corpus: Corpus, count: int) -> Corpus:
    """So many polyps with a long tracklet, those with the fewest boxes; all, if there are not so many."""
    tracklets, boxes = link_tracklets(corpus.boxes), corpus.boxes
    candidates = np.unique(tracklets.polyp[(tracklets.box_count >= _LONG) & (tracklets.polyp >= 0)])
    if len(candidates) <= count:
        return corpus
    number = np.bincount(boxes.polyp[boxes.polyp >= 0], minlength=len(corpus.polyps))[candidates]
    chosen = candidates[np.argsort(number, kind="stable")[:count]]
    return corpus.select(polyps=[corpus.polyps[k].id for k in sorted(chosen.tolist())])


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _refuse_full(found: Forecast, out: Path) -> None:
    """Raise if a disk has not enough room; the cache and the reproduction may be on the same."""
    needed: dict[int, list[tuple[Path, float]]] = {}
    for folder, count in ((cache_folder(), found.cache_bytes), (out, found.out_bytes)):
        needed.setdefault(os.stat(folder).st_dev, []).append((folder, count))
    for parts in needed.values():
        free, total = shutil.disk_usage(parts[0][0]).free, sum(count for _, count in parts)
        if total > free:
            folders = " and ".join(str(folder) for folder, count in parts if count)
            raise FileError(
                f"{folders}: about {gigabytes(total)} are needed, and {gigabytes(free)} are free on this disk; make "
                "room, choose another folder, or move the cache with POLYPCOUNT_CACHE"
            )
