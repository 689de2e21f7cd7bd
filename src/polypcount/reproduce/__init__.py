"""The comparison of the paper end to end: which rows, on which data, for how long, and the resulting tables."""

from polypcount.reproduce.counts import DatasetCounts, data_counts
from polypcount.reproduce.data import Benchmark, Stage, simulated_benchmark
from polypcount.reproduce.forecast import EncoderForecast, Forecast, forecast
from polypcount.reproduce.plan import TrainingLength
from polypcount.reproduce.real import DATASETS, corpus_benchmark, e2e_benchmark, possible_rows, real_benchmark
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
    "DatasetCounts",
    "EncoderForecast",
    "Forecast",
    "Outcome",
    "ReproduceSettings",
    "Stage",
    "StudySettings",
    "TrainingLength",
    "choose_rows",
    "corpus_benchmark",
    "data_counts",
    "e2e_benchmark",
    "forecast",
    "possible_rows",
    "real_benchmark",
    "refuse_unsuitable",
    "reproduce",
    "simulated_benchmark",
]
