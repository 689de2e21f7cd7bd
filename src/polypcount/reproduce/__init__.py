"""The comparison of the paper end to end: which rows, on which data, for how long, and the resulting tables."""

from polypcount.reproduce.data import DATASETS, Benchmark, Stage, real_benchmark, simulated_benchmark
from polypcount.reproduce.plan import TrainingLength
from polypcount.reproduce.results import StudySettings
from polypcount.reproduce.rows import ENCODERS, ROWS, TABLES, choose_rows
from polypcount.reproduce.run import MANIFEST, Outcome, ReproduceSettings, refuse_unsuitable, reproduce

__all__ = [
    "DATASETS",
    "ENCODERS",
    "MANIFEST",
    "ROWS",
    "TABLES",
    "Benchmark",
    "Outcome",
    "ReproduceSettings",
    "Stage",
    "StudySettings",
    "TrainingLength",
    "choose_rows",
    "real_benchmark",
    "refuse_unsuitable",
    "reproduce",
    "simulated_benchmark",
]
