"""The whole comparison: encoders, vectors, studies, tables. Existing results are used as they are.

OUT/reproduce.json                 settings, versions, results so far, and which rows failed and why
OUT/plan.json                      how long encoders are trained, for a budget
OUT/corpora/                       the data to learn from and to study
OUT/encoders/ vectors/ results/    one folder or file for each row, seed and benchmark, named after its input
OUT/sweeps/                        counts of the studies at every point of their grids
OUT/table-N.md .csv .tex           the tables, with figures/table-N.png
OUT/differences.md                 rows against rows, run by run
OUT/parameters, ratios, videos     .md .csv .tex: chosen parameters, ratios of FR, each video
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from polypcount.corpus import Embeddings
from polypcount.encoder import embed, load_encoder
from polypcount.encoder.engines import refuse_unusable
from polypcount.errors import DataError, FileError, PolypcountError, first_line
from polypcount.evaluation.figures import save_figure
from polypcount.evaluation.tables import Table
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.reproduce.differences import differences
from polypcount.reproduce.encoders import (
    EncoderJob,
    engine_for,
    file_name,
    job_title,
    make_encoder,
    published_changes,
    recipe_for,
)
from polypcount.reproduce.figures import draw_table
from polypcount.reproduce.parameters import parameter_csv, parameter_table
from polypcount.reproduce.plan import Plan, TrainingLength
from polypcount.reproduce.ratios import ratio_csv, ratio_table
from polypcount.reproduce.results import MIN_FRAMES, Run, StudySettings, load_run, position_vectors, study_row
from polypcount.reproduce.rows import ENCODERS, REFERENCE, ROWS, TABLES, EncoderRow, Row, encoders_of
from polypcount.reproduce.tables import paper_csv, paper_table
from polypcount.reproduce.target_figure import draw_learnt_targets
from polypcount.reproduce.videos import draw_videos, video_csv, video_table
from polypcount.storage import content_key, read_json, write_json, write_text
from polypcount.tracking import link_tracklets
from polypcount.training import Machine, Recipe, Stopped
from polypcount.training.run_folder import environment

_log = logging.getLogger(__name__)
MANIFEST = "reproduce.json"
_FORMAT = {"format": "polypcount-reproduction", "format_version": 1}
# Errors of one row that need not stop the others: bad data, a disk, a device without memory.
_CAN_HAPPEN = (PolypcountError, OSError, MemoryError, RuntimeError)


@dataclass(frozen=True)
class ReproduceSettings:
    """What to run, and how.

    Attributes:
        rows: See `choose_rows`.
        seeds: Each encoder is trained with each.
        changes: Changes to all recipes, as for `train`.
        study: How rows are evaluated.
        length: How long to train.
        stride: Which boxes of a tracklet are looked at in the study, see `embed`; 4 is the paper's rule.
        sparse: Whether the videos to learn from have only every fourth frame, like those of a simulated benchmark.
        threads: Threads of studies, and of encoders when they embed; None for all cores.
        machine: Machine for training.
        engine: What computes vectors of the study videos, see `load_encoder`; `auto` takes torch where training is on
            CUDA.
        download: Whether weights of a backbone may be downloaded.
        as_published: Whether all recipes first get the settings in which `published` differs from `temporal`.
    """

    rows: Sequence[Row]
    seeds: Sequence[int] = (42,)
    changes: Sequence[str] = ()
    study: StudySettings = field(default_factory=StudySettings)
    length: TrainingLength = field(default_factory=TrainingLength)
    stride: int | None = 4
    sparse: bool = False
    threads: int | None = None
    machine: Machine | None = None
    engine: str = "auto"
    download: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        refuse_unusable(self.engine)
        if self.length.budget_minutes is not None and self.machine is not None and self.machine.processes > 1:
            raise DataError("a budget is measured on one device; for several, give a number of steps", mend="steps")
        for encoder in encoders_of(self.rows):  # report a wrong key before the work
            self.recipe(encoder, None)

    def recipe(self, encoder: EncoderRow, seed: int | None, steps: int | None = None) -> Recipe:
        """The recipe of an encoder; for `steps` see `plan.py`."""
        length = [] if steps is None else [f"steps={steps}"]
        published = published_changes(encoder) if self.as_published else ()
        return recipe_for(encoder, seed, [*published, *self.changes], length, sparse=self.sparse)


@dataclass(frozen=True)
class Outcome:
    """The tables that were written, by name, and one line for each row that failed."""

    tables: dict[str, Table]
    failures: list[str]


def refuse_unsuitable(out: Path) -> None:
    """Raise, before any work, if the reproduction cannot be written here."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file; a reproduction needs a folder")
    if not (out / MANIFEST).exists():
        if out.is_dir() and any(out.iterdir()):
            raise FileError(f"{out} is not empty and not a reproduction; choose a new folder")
        write_json(out / MANIFEST, _FORMAT)


def reproduce(
    benchmarks: Sequence[Benchmark], out: Path, settings: ReproduceSettings, stage: Stage = silent
) -> Outcome:
    """Run the rows on the benchmarks, and write all tables from all runs with these settings.

    If a row fails, the others are still run.
    """
    refuse_unsuitable(out)
    comparison, tables = Comparison(benchmarks, out, settings, stage), {}
    for benchmark in benchmarks:
        comparison.say_steps(benchmark)
        for number, seed in enumerate(settings.seeds):
            for encoder in (None, *encoders_of(settings.rows)):
                if encoder is not None and encoder.trained:
                    comparison.run(encoder, seed, benchmark)
                elif number == 0:  # does not depend on the seed
                    comparison.run(encoder, None, benchmark)
            tables = comparison.write_tables()
    return Outcome(tables, comparison.failures)


@dataclass(frozen=True, eq=False)
class _Source:
    """Where the vectors of some rows come from; without an encoder, from the times of tracklets."""

    seed: int | None
    benchmark: Benchmark
    job: EncoderJob | None


class Comparison:
    """The rows of a reproduction on its benchmarks: what they need, what is there already, and the tables of it."""

    def __init__(self, benchmarks: Sequence[Benchmark], out: Path, settings: ReproduceSettings, stage: Stage) -> None:
        self.benchmarks, self.out, self.settings, self.stage = benchmarks, out, settings, stage
        self.failures: list[str] = []
        trained = sum(encoder.trained for encoder in encoders_of(settings.rows))
        number = trained * len(settings.seeds) * len(benchmarks)
        self.plan = Plan(out / "plan.json", settings.length, settings.recipe(ENCODERS[REFERENCE], None), number)

    def jobs(self, benchmark: Benchmark) -> list[EncoderJob]:
        """All different encoders of the rows. Where a budget has not been measured yet, with all steps of a recipe."""
        jobs: dict[str, EncoderJob] = {}
        for encoder in encoders_of(self.settings.rows):
            for seed in self.settings.seeds if encoder.trained else (None,):
                job = self._job(encoder, seed, benchmark, planned_only=True)
                recipe = self.settings.recipe(encoder, seed)
                job = job or EncoderJob(encoder, seed, recipe, benchmark, self.out / "encoders")
                jobs.setdefault(job.key, job)
        return list(jobs.values())

    def say_steps(self, benchmark: Benchmark) -> None:
        """Say how long the encoders are trained, before the first one is."""
        jobs = [job for job in self.jobs(benchmark) if job.row.trained and not job.finished]
        if not jobs:
            return
        numbers = sorted({job.recipe.steps for job in jobs if job.recipe.steps})
        each = f"{' or '.join(f'{steps:,}' for steps in numbers)} steps" if numbers else "an equal share of the budget"
        _log.info("%s: trainings to do: %d, each of %s", benchmark.name, len(jobs), each)

    def vectors_file(self, job: EncoderJob) -> Path:
        """Where the vectors of an encoder are saved."""
        key = self._vectors_key(_Source(job.seed, job.benchmark, job))
        return self.out / "vectors" / job.benchmark.name / f"{file_name(job.row.name, job.seed, key)}.parquet"

    def run(self, encoder: EncoderRow | None, seed: int | None, benchmark: Benchmark) -> None:
        """Run the rows of one encoder that have no result yet."""
        rows = [row for row in self.settings.rows if row.encoder == (encoder.name if encoder else None)]
        try:
            source = _Source(seed, benchmark, None if encoder is None else self._job(encoder, seed, benchmark))
            rows = [row for row in rows if not self._result(row, source).exists()]
            if not rows:
                return
            vectors = self._vectors(source)
        except _CAN_HAPPEN as problem:
            self._failed(rows, seed, benchmark, problem)
            return
        for row in rows:
            try:
                self._run_row(row, vectors, source)
            except _CAN_HAPPEN as problem:
                self._failed([row], seed, benchmark, problem)

    def write_tables(self) -> dict[str, Table]:
        """Write tables, figures and the manifest from all results so far."""
        results = list(self._results())
        runs: dict[str, list[Run]] = {}
        for run, _ in results:
            runs.setdefault(run.row, []).append(run)
        shown = [
            table for table in TABLES.values() if table.by_default or any(line.row in runs for line in table.lines)
        ]
        tables = {table.name: paper_table(table, runs) for table in shown}
        more = {
            "differences": differences(runs),
            "parameters": parameter_table(runs),
            "ratios": ratio_table(runs),
            "videos": video_table(runs),
        }
        notes = [f"Data: {note}." for note in dict.fromkeys(each.note for each in self.benchmarks) if note]
        if self.settings.as_published:
            notes.append("Settings: as in the published code, see the recipe `published`.")
        for name, table in {**tables, **more}.items():
            told = replace(table, notes=(*notes, *table.notes))
            write_text(self.out / f"{name}.md", told.to_markdown())
            write_text(self.out / f"{name}.tex", told.to_latex())
        values = {name: paper_csv(TABLES[name], runs) for name in tables}
        values |= {"parameters": parameter_csv(runs), "ratios": ratio_csv(runs), "videos": video_csv(runs)}
        for name, text in values.items():
            write_text(self.out / f"{name}.csv", text)
        for name in tables:
            save_figure(draw_table(TABLES[name], runs), self.out / "figures" / f"{name}.png")
        save_figure(draw_videos(runs), self.out / "figures" / "videos.png")
        learnt, targets = self.benchmarks[0].learn, self.out / "figures" / "targets.png"
        if not targets.exists():
            save_figure(draw_learnt_targets(learnt, self.settings.recipe(ENCODERS[REFERENCE], None)), targets)
        settings = self.settings
        manifest = {
            **_FORMAT,
            "rows": [row.name for row in settings.rows],
            "seeds": list(settings.seeds),
            "benchmarks": [benchmark.name for benchmark in self.benchmarks],
            "as_published": settings.as_published,
            "changes": list(settings.changes),
            "study": {**asdict(settings.study), "min_frames": MIN_FRAMES},
            "stride": settings.stride,
            "sparse": settings.sparse,
            "length": settings.length.name,
            "results": sorted(path.relative_to(self.out).as_posix() for _, path in results),
            "failures": self.failures,
            "environment": environment(),
        }
        write_json(self.out / MANIFEST, manifest)
        return tables

    def _job(
        self, encoder: EncoderRow, seed: int | None, benchmark: Benchmark, *, planned_only: bool = False
    ) -> EncoderJob | None:
        """The job of an encoder; with `planned_only`, None if it is not in the plan yet."""
        settings, recipe = self.settings, self.settings.recipe(encoder, seed)
        if encoder.like and settings.recipe(ENCODERS[encoder.like], seed) == recipe:
            encoder = ENCODERS[encoder.like]  # it is not trained twice
        if encoder.trained:
            options: dict[str, Any] = {"machine": settings.machine, "download": settings.download, "stage": self.stage}
            steps = (
                self.plan.steps(recipe, benchmark)
                if planned_only
                else self.plan.measured_steps(encoder.name, recipe, benchmark, **options)
            )
            if steps is None:
                return None
            recipe = settings.recipe(encoder, seed, steps)
        return EncoderJob(encoder, seed, recipe, benchmark, self.out / "encoders")

    def _run_row(self, row: Row, vectors: Embeddings, source: _Source) -> None:
        title = job_title(row.name, source.seed, source.benchmark)
        _log.info("%s: study", title)
        sweeps, threads = self.out / "sweeps", self.settings.threads
        with self.stage(f"{title}: grid points") as progress:
            result = study_row(row, vectors, self.settings.study, sweeps=sweeps, threads=threads, progress=progress)
        about = {"benchmark": source.benchmark.name, "seed": source.seed, "training": _training(source.job)}
        write_json(self._result(row, source), {**result, **about})

    def _vectors(self, source: _Source) -> Embeddings:
        job, study, settings = source.job, source.benchmark.study, self.settings
        if job is None:
            return position_vectors(study)
        path = self.vectors_file(job)
        if path.exists():
            return Embeddings.load(path)
        folder = make_encoder(job, machine=settings.machine, download=settings.download, stage=self.stage)
        _log.info("%s: vectors", job.title)
        with self.stage(f"{job.title}: crops to encode") as progress:
            vectors = embed(
                study,
                link_tracklets(study.boxes),
                load_encoder(folder, threads=settings.threads, engine=engine_for(settings.engine, settings.machine)),
                stride=settings.stride,
                min_frames=MIN_FRAMES,
                progress=progress,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        vectors.save(path)
        return vectors

    def _vectors_key(self, source: _Source) -> str:
        encoder_key = "" if source.job is None else source.job.key
        sampling = (self.settings.stride, MIN_FRAMES)
        return content_key("vectors 2", encoder_key, source.benchmark.study_key, sampling)

    def _result(self, row: Row, source: _Source) -> Path:
        key = content_key("result 3", self._vectors_key(source), self.settings.study.about(row))
        return self.out / "results" / source.benchmark.name / f"{file_name(row.name, source.seed, key)}.json"

    def _results(self) -> Iterator[tuple[Run, Path]]:
        """All runs with these settings, including those of rows that this call does not run."""
        for benchmark in self.benchmarks:
            for row in ROWS.values():
                encoder = None if row.encoder is None else ENCODERS[row.encoder]
                for seed in self.settings.seeds if encoder and encoder.trained else (None,):
                    job = None
                    if encoder is not None:
                        with suppress(DataError):  # the changes may not fit the recipe of a row that is not asked for
                            job = self._job(encoder, seed, benchmark, planned_only=True)
                    path = self._result(row, _Source(seed, benchmark, job))
                    if (encoder is None or job is not None) and path.exists():
                        yield load_run(path, benchmark.name, seed), path

    def _failed(self, rows: Sequence[Row], seed: int | None, benchmark: Benchmark, problem: BaseException) -> None:
        if isinstance(problem, Stopped):
            raise problem
        reason = " ".join(str(problem).split()) if isinstance(problem, PolypcountError) else first_line(problem)
        names = ", ".join(row.name for row in rows)
        line = f"{names} ({benchmark.name}{'' if seed is None else f', seed {seed}'}): {reason}"
        _log.warning("failed: %s", line)
        self.failures.append(line)


def _training(job: EncoderJob | None) -> dict[str, int] | None:
    """Steps of the training and images that it has seen; None without a training."""
    if job is None or not job.row.trained:
        return None
    report = read_json(job.report)
    return {name: int(report[name]) for name in ("steps", "images")}
