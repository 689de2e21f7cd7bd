"""What `polypcount reproduce --plan` prints."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from polypcount.reproduce import Benchmark, EncoderForecast, Forecast, ReproduceSettings


def show_data(benchmarks: "Sequence[Benchmark]") -> None:
    """Print videos and polyps of each dataset, with the published numbers beside them."""
    from polypcount import reproduce as room

    rows = []
    for benchmark in benchmarks:
        for one in room.data_counts(benchmark):
            published = (one.published_videos, one.published_polyps)
            counts = (one.videos, published[0], one.polyps, published[1], one.boxes, one.tracklets, one.fragments)
            name = one.name if len(benchmarks) == 1 else f"{benchmark.name} {one.name}"
            rows.append([name, one.part, *map(_number, counts)])
    titles = ("data", "", "videos", "paper", "polyps", "paper", "boxes", "tracklets", "fragments")
    _print("Videos with a polyp, and the paper's numbers", titles, rows)


def show_forecast(forecast: "Forecast", settings: "ReproduceSettings") -> None:
    """Print what is left to do: rows, trainings, hours, disk and memory."""
    from polypcount.training.memory import gigabytes

    typer.echo(f"rows: {', '.join(row.name for row in settings.rows)}")
    rows = [_line(one, several=len({line.benchmark for line in forecast.encoders}) > 1) for one in forecast.encoders]
    titles = ("encoder", "left", "steps", "of an epoch", "views", "images seen", "crops", "a training", "memory")
    _print("Trainings", titles, rows)
    free = "" if forecast.free_memory is None else f", {gigabytes(forecast.free_memory)} are free"
    most = max((one.memory.of_piece(one.at_once) for one in forecast.encoders), default=0)
    left = sum(one.trainings for one in forecast.encoders)
    lines = [
        f"training: {left} left, {_time(forecast.training_seconds)}",
        f"cutting: {forecast.crops:,} crops, {_time(forecast.cutting_seconds)}",
        f"encoding: {forecast.images:,} images, {_time(forecast.encoding_seconds)}",
        f"together: {_time(forecast.seconds)} on this machine, from a trial; the studies come on top",
        f"disk: {gigabytes(forecast.cache_bytes)} in the cache, {gigabytes(forecast.out_bytes)} in OUT",
        f"memory: {gigabytes(most)} for a step{free}",
    ]
    if settings.machine is not None and settings.machine.processes > 1:
        lines.append("the hours are those of one device; several share each training")
    typer.echo("\n".join(lines))


def _line(one: "EncoderForecast", several: bool) -> list[str]:
    pieces = -(-one.memory.views // one.at_once)
    memory = f"{one.memory.of_piece(one.at_once) / 1e9:.1f} GB{f' in {pieces} pieces' if pieces > 1 else ''}"
    return [
        f"{one.name}, {one.benchmark}" if several else one.name,
        f"{one.trainings} of {one.trainings + one.finished}",
        _number(one.steps),
        _number(one.epoch),
        _number(one.views),
        _number(one.steps * one.images),
        _number(one.crops),
        _time(one.seconds) if one.trainings else "-",
        memory,
    ]


def _print(title: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    shown = Table(box=None, title=title, title_justify="left")
    for name in titles:
        shown.add_column(name, justify="left" if name in (titles[0], "") else "right", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
