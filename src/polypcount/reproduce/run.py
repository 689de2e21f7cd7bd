"""The whole comparison: encoders, vectors, studies, tables; whatever is there already is used as it is.

OUT/reproduce.json                 settings, versions, what there is, and which rows failed and why
OUT/plan.json                      how long encoders are trained, where a budget or a number of steps was given
OUT/corpora/                       what is learnt from and what is studied
OUT/encoders/ vectors/ results/    one folder or file for each row, seed and benchmark, named by what it was made from
OUT/sweeps/                        counts of the studies at every point of their grids
OUT/table-N.md .csv .tex           the tables, with figures/table-N.png
OUT/differences.md                 rows against rows, run by run
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from polypcount.corpus import Embeddings
from polypcount.encoder import embed, load_encoder
from polypcount.errors import DataError, FileError, PolypcountError, first_line
from polypcount.evaluation.figures import save_figure
from polypcount.evaluation.tables import Table
from polypcount.reproduce.data import Benchmark, Stage, silent
from polypcount.reproduce.differences import differences
from polypcount.reproduce.encoders import EncoderJob, make_encoder, recipe_for
from polypcount.reproduce.figures import draw_table
from polypcount.reproduce.kept import key_of, place_of, write_json, write_text
from polypcount.reproduce.plan import Plan, Wish
from polypcount.reproduce.results import MIN_FRAMES, Run, StudySettings, load_run, position_vectors, study_row
from polypcount.reproduce.rows import ENCODERS, ROWS, TABLES, EncoderRow, Row, encoders_of
from polypcount.reproduce.tables import paper_csv, paper_table
from polypcount.tracking import link_tracklets
from polypcount.training import Machine, Recipe, Stopped
from polypcount.training.run_folder import environment

_log = logging.getLogger(__name__)
MANIFEST = "reproduce.json"
_FORMAT = "polypcount-reproduction"
_STRIDE = 4


@dataclass(frozen=True)
class Settings:
    """What to run, and how.

    rows: see `choose_rows`. seeds: each encoder is trained with each. changes: to all recipes, as for `train`.
    most_frames: of a tracklet that are looked at in the study, every fourth or, where these are more, as many at even
        distances.
    sparse: whether the videos to learn from have only every fourth frame, as those of a simulated benchmark.
    threads: of studies and of encoders when they embed; all cores, if not given.
    """

    rows: Sequence[Row]
    seeds: Sequence[int] = (42,)
    changes: Sequence[str] = ()
    study: StudySettings = field(default_factory=StudySettings)
    wish: Wish = field(default_factory=Wish)
    most_frames: int = 1000
    sparse: bool = False
    threads: int | None = None
    machine: Machine | None = None
    download: bool = False

    def __post_init__(self) -> None:
        for encoder in encoders_of(self.rows):  # a wrong key is to be known before the work
            self.recipe(encoder, None)

    def recipe(self, encoder: EncoderRow, seed: int | None, length: Sequence[str] = ()) -> Recipe:
        """What an encoder is trained by. length: see `plan.py`."""
        return recipe_for(encoder, seed, self.changes, length, sparse=self.sparse)


@dataclass(frozen=True)
class Outcome:
    """Tables as they were written, by name, and one line for each row that failed."""

    tables: dict[str, Table]
    failures: list[str]


def refuse_unsuitable(out: Path) -> None:
    """Raise, before any work, where the comparison cannot be kept."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file; a reproduction is kept in a folder")
    if out.is_dir() and not (out / MANIFEST).exists() and any(out.iterdir()):
        raise FileError(f"{out} is not empty and not a reproduction; choose a new folder")
    out.mkdir(parents=True, exist_ok=True)
    if not (out / MANIFEST).exists():
        write_json(out / MANIFEST, {"format": _FORMAT, "format_version": 1})


def reproduce(benchmarks: Sequence[Benchmark], out: Path, settings: Settings, stage: Stage = silent) -> Outcome:
    """Run the rows on the benchmarks, and write all tables with whatever runs there are of these settings.

    A row that fails does not keep the others from being run.
    """
    refuse_unsuitable(out)
    return _Comparison(benchmarks, out, settings, stage).run()


class _Comparison:
    def __init__(self, benchmarks: Sequence[Benchmark], out: Path, settings: Settings, stage: Stage) -> None:
        self.benchmarks, self.out, self.settings, self.stage = benchmarks, out, settings, stage
        self.failures: list[str] = []
        self.encoders = encoders_of(settings.rows)
        trained = sum(encoder.trained for encoder in self.encoders)
        self.plan = Plan(out / "plan.json", settings.wish, trained * len(settings.seeds) * len(benchmarks))

    def run(self) -> Outcome:
        tables: dict[str, Table] = {}
        for benchmark in self.benchmarks:
            for place, seed in enumerate(self.settings.seeds):
                self._run_rows(benchmark, seed, with_seedless=place == 0)
                tables = self._write_tables()
        return Outcome(tables, self.failures)

    def _run_rows(self, benchmark: Benchmark, seed: int, *, with_seedless: bool) -> None:
        for encoder in (None, *self.encoders):
            own = seed if encoder is not None and encoder.trained else None
            rows = [row for row in self.settings.rows if row.encoder == (encoder.name if encoder else None)]
            if not rows or (own is None and not with_seedless):
                continue
            try:
                job = None if encoder is None else self._planned(encoder, own, benchmark)
                rows = [row for row in rows if not self._result(row, job, benchmark, own).exists()]
                if not rows:
                    continue
                vectors = position_vectors(benchmark.study) if job is None else self._vectors(job, benchmark)
            except _CAN_HAPPEN as problem:
                self._failed(rows, benchmark, own, problem)
                continue
            for row in rows:
                try:
                    self._run_row(row, vectors, self._result(row, job, benchmark, own), benchmark, own)
                except _CAN_HAPPEN as problem:
                    self._failed([row], benchmark, own, problem)

    def _planned(self, encoder: EncoderRow, seed: int | None, benchmark: Benchmark) -> EncoderJob:
        length: Sequence[str] = ()
        if encoder.trained:
            length = self.plan.work_out(
                encoder.name,
                self.settings.recipe(encoder, seed),
                benchmark,
                machine=self.settings.machine,
                download=self.settings.download,
                stage=self.stage,
            )
        return self._job(encoder, seed, benchmark, length)

    def _job(self, encoder: EncoderRow, seed: int | None, benchmark: Benchmark, length: Sequence[str]) -> EncoderJob:
        return EncoderJob(encoder, seed, self.settings.recipe(encoder, seed, length), benchmark, self.out / "encoders")

    def _run_row(self, row: Row, vectors: Embeddings, path: Path, benchmark: Benchmark, seed: int | None) -> None:
        told = f"{row.name}{'' if seed is None else f', seed {seed}'}, {benchmark.name}"
        _log.info("%s: study", told)
        with self.stage(f"{told}: grid points") as progress:
            found = study_row(
                row,
                vectors,
                self.settings.study,
                sweeps=self.out / "sweeps",
                threads=self.settings.threads,
                progress=progress,
            )
        write_json(path, {**found, "benchmark": benchmark.name, "seed": seed})

    def _vectors(self, job: EncoderJob, benchmark: Benchmark) -> Embeddings:
        base = place_of(
            self.out / "vectors" / benchmark.name, job.row.name, job.seed, self._vectors_key(job, benchmark)
        )
        path = base.with_name(f"{base.name}.parquet")
        if path.exists():
            return Embeddings.load(path)
        settings = self.settings
        folder = make_encoder(job, machine=settings.machine, download=settings.download, stage=self.stage)
        _log.info("%s: vectors", job.told)
        with self.stage(f"{job.told}: crops to encode") as progress:
            found = embed(
                benchmark.study,
                link_tracklets(benchmark.study.boxes),
                load_encoder(folder, threads=settings.threads),
                stride=_STRIDE,
                most=settings.most_frames,
                min_frames=MIN_FRAMES,
                progress=progress,
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        found.save(path)
        return found

    def _vectors_key(self, job: EncoderJob | None, benchmark: Benchmark) -> str:
        return key_of(
            "" if job is None else job.key, benchmark.study_key, _STRIDE, self.settings.most_frames, MIN_FRAMES
        )

    def _result(self, row: Row, job: EncoderJob | None, benchmark: Benchmark, seed: int | None) -> Path:
        key = key_of(self._vectors_key(job, benchmark), self.settings.study.about(row))
        base = place_of(self.out / "results" / benchmark.name, row.name, seed, key)
        return base.with_name(f"{base.name}.json")

    def _results(self) -> Iterator[tuple[Run, Path]]:
        """All runs that there are of these settings, also of rows that this call has not been asked for."""
        for benchmark in self.benchmarks:
            for row in ROWS.values():
                encoder = None if row.encoder is None else ENCODERS[row.encoder]
                seeds: Sequence[int | None] = self.settings.seeds if encoder and encoder.trained else (None,)
                for seed in seeds:
                    job = None if encoder is None else self._known(encoder, seed, benchmark)
                    path = self._result(row, job, benchmark, seed)
                    if (encoder is None or job is not None) and path.exists():
                        yield load_run(path, benchmark.name, seed), path

    def _known(self, encoder: EncoderRow, seed: int | None, benchmark: Benchmark) -> EncoderJob | None:
        """The job of an encoder; None where it is not in the plan, or the changes do not fit its recipe."""
        length: Sequence[str] | None = ()
        try:
            if encoder.trained:
                length = self.plan.known(self.settings.recipe(encoder, seed))
            return None if length is None else self._job(encoder, seed, benchmark, length)
        except DataError:
            return None

    def _write_tables(self) -> dict[str, Table]:
        runs: dict[str, list[Run]] = {}
        files = []
        for run, path in self._results():
            runs.setdefault(run.row, []).append(run)
            files.append(path.relative_to(self.out).as_posix())
        tables = {}
        for name, table in TABLES.items():
            tables[name] = shown = paper_table(table, runs)
            write_text(self.out / f"{name}.md", shown.to_markdown())
            write_text(self.out / f"{name}.tex", shown.to_latex())
            write_text(self.out / f"{name}.csv", paper_csv(table, runs))
            save_figure(draw_table(table, runs), self.out / "figures" / f"{name}.png")
        write_text(self.out / "differences.md", differences(runs).to_markdown())
        write_json(self.out / MANIFEST, self._manifest(files))
        return tables

    def _manifest(self, files: list[str]) -> dict[str, Any]:
        settings = self.settings
        return {
            "format": _FORMAT,
            "format_version": 1,
            "rows": [row.name for row in settings.rows],
            "seeds": list(settings.seeds),
            "benchmarks": [benchmark.name for benchmark in self.benchmarks],
            "changes": list(settings.changes),
            "study": {**asdict(settings.study), "min_frames": MIN_FRAMES},
            "most_frames": settings.most_frames,
            "sparse": settings.sparse,
            "length": settings.wish.name or "recipe",
            "results": sorted(files),
            "failures": self.failures,
            "environment": environment(),
        }

    def _failed(self, rows: Sequence[Row], benchmark: Benchmark, seed: int | None, problem: BaseException) -> None:
        if isinstance(problem, Stopped):
            raise problem
        what = " ".join(str(problem).split()) if isinstance(problem, PolypcountError) else first_line(problem)
        names = ", ".join(row.name for row in rows)
        line = f"{names} ({benchmark.name}{'' if seed is None else f', seed {seed}'}): {what}"
        _log.warning("failed: %s", line)
        self.failures.append(line)


# Of a row alone, so that others may go well: bad data, a disk, a device without memory.
_CAN_HAPPEN = (PolypcountError, OSError, MemoryError, RuntimeError)
