"""How well recordings are counted, on simulated procedures and real frames that nothing was chosen on.

Choosing uses 320 simulated procedures (seeds 1700 to 1715) and judging 192 others (seeds 1900 to 1915), with other
stills; see procedures.py. The bundled encoder was trained on none of these stills. All procedures are counted with
`polypcount.count`, with boxes that do not name polyps, and the vectors are kept. `--choose` chooses an operating point
for each method with `polypcount.counting.calibrate` and writes them beside the bundled encoder. `--judge` groups the
vectors of the other procedures at these points. It prints the share of exact counts, the mean absolute error, FR, FPR,
and for the default method how often the interval holds the true number and how wide it is: by kind and length, for
each method at its own point, and without clustering. The true number is that of the polyps that own a tracklet which is
long enough, before any tracklet is split: the same for all encoders and methods.

`--earlier FOLDER` compares with another encoder (such as that of an earlier version), whose evidence is cosine and time
only, chosen on the same procedures. The difference of the mean absolute errors has a 95 % interval from a bootstrap
over procedures.

Pseudo-procedures of CVC-ClinicDB are draws of 2 to 5 sequences out of 1 to 14; see procedures.py. Their intervals are
bootstraps over sequences.

Run: .venv/bin/python -m benchmarks.count_accuracy CVC_CLINICDB KVASIR_SEG POLYPGEN OUT --choose [--processes 2]
     .venv/bin/python -m benchmarks.count_accuracy CVC_CLINICDB KVASIR_SEG POLYPGEN OUT --judge [--earlier FOLDER]
         [--write]    keeps what was measured beside the operating points
     .venv/bin/python -m benchmarks.count_accuracy CVC_CLINICDB KVASIR_SEG POLYPGEN OUT --ends
         how often intervals hold and how wide they are if either end may miss 5, 6 or 6.5 % of the procedures, by
         cross-validation over those that were chosen on
     .venv/bin/python -m benchmarks.count_accuracy CVC_CLINICDB KVASIR_SEG POLYPGEN OUT --jumps
         how often tracklets of one polyp are split for a sudden change of appearance, and how often tracklets joined
         from two polyps are
     .venv/bin/python -m benchmarks.count_accuracy CVC_CLINICDB KVASIR_SEG POLYPGEN OUT --shift FOLDER
         how an encoder that was trained without CVC-ClinicDB (bundled_encoder --tune), with points chosen on the
         simulated procedures, counts pseudo-procedures of sequences 15 to 29: frames of a hospital new to it
"""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from benchmarks.encoder_data import cvc, split_stills
from benchmarks.procedures import (
    CHOOSING,
    JUDGING,
    MINUTES,
    Procedure,
    collect,
    polyps_to_count,
    pseudo_procedures,
    sequence_tracklets,
    simulated,
)
from numpy.typing import NDArray
from scipy.stats import binomtest

import polypcount as pc
from polypcount.clustering import OperatingPoint
from polypcount.corpus import Embeddings
from polypcount.counting import calibrate, read_operating_points, write_operating_points
from polypcount.counting.bands import fit_bands
from polypcount.counting.calibration import DEFAULT_METHOD, GRIDS
from polypcount.counting.counted_videos import CountedVideo, counted_videos
from polypcount.counting.decide import REPETITIONS, ends, within
from polypcount.counting.jumps import jumps
from polypcount.encoder import Encoder, bundled_folder
from polypcount.evaluation.pairs import sweep_counts
from polypcount.machine import available_cores

OF_EACH = {CHOOSING: 20, JUDGING: 12}  # procedures of each length and kind
ALONE, EARLIER = "no clustering", "earlier encoder and evidence"
PSEUDO_DRAWS, RESAMPLES = 100, 200


@dataclass(frozen=True)
class Row:
    """One procedure, counted by one method; without an interval, low and high are the count."""

    procedure: int
    polyps: int
    count: int
    fpr: float
    low: int
    high: int
    tracked: bool
    minutes: float
    kind: str

    @property
    def error(self) -> int:
        """How far the count is off."""
        return abs(self.count - self.polyps)

    @property
    def holds(self) -> bool:
        """Whether the interval holds the true number."""
        return self.low <= self.polyps <= self.high


CELLS: dict[str, Callable[[Row], bool]] = {
    "all": lambda _: True,
    "under 1 minute": lambda row: row.minutes < 1,
    "1 to 5 minutes": lambda row: 1 <= row.minutes < 5,
    "over 5 minutes": lambda row: row.minutes >= 5,
    "perfect boxes": lambda row: not row.tracked,
    "detector-like boxes": lambda row: row.tracked,
    "stills": lambda row: row.kind == "stills",
    "drawn": lambda row: row.kind == "drawn",
}


def vectors_of(options: argparse.Namespace, seed: int, encoder: Path | None) -> list[Embeddings]:
    """The vectors of all procedures of a set by an encoder, with the truth; counted where they are not there yet."""
    name = "bundled" if encoder is None else encoder.name
    folder, count = options.out / f"{name}-{seed}", OF_EACH[seed] * 2 * len(MINUTES)
    paths = [folder / f"{number:04d}.parquet" for number in range(count)]
    if not all(path.exists() for path in paths):
        collect(procedures_of(options, seed), encoder, paths, options.processes)
    return [Embeddings.load(path) for path in paths]


def procedures_of(options: argparse.Namespace, seed: int) -> list[Procedure]:
    """The procedures of a set, as scenes that are drawn when read."""
    stills = split_stills([options.kvasir_seg, options.polypgen])
    part = stills.choosing if seed == CHOOSING else stills.judging
    return simulated(options.out / f"scenes-{seed}", part, seed, OF_EACH[seed])


def true_numbers(options: argparse.Namespace, seed: int) -> list[int | None]:
    """What should be counted in each procedure of a set, see `polyps_to_count`; kept in a file."""
    path = options.out / f"truth-{seed}.json"
    if not path.exists():
        path.write_text(json.dumps([polyps_to_count(one) for one in procedures_of(options, seed)]))
    numbers: list[int | None] = json.loads(path.read_text())
    return numbers


def judged_all(sets: Sequence[Embeddings], numbers: Sequence[int | None], point: OperatingPoint | None) -> list[Row]:
    """All procedures of the judging set that have a tracklet, at an operating point."""
    rows = []
    for number, (one, polyps) in enumerate(zip(sets, numbers, strict=True)):
        if polyps is None:
            continue
        kind = "stills" if number // OF_EACH[JUDGING] % 2 == 0 else "drawn"
        video, tracked = one.videos[0], bool(one.provenance.parameters.get("tracker"))
        minutes = video.frame_count / (video.fps or 25) / 60
        # Without a tracklet, because splitting left only short ones: nothing is counted.
        nothing = Row(number, polyps, 0, math.nan, 0, 0, tracked, minutes, kind)
        counted = [judged(video, point, kind, number) for video in counted_videos(one)] or [nothing]
        rows += [replace(row, polyps=polyps) for row in counted]
    return rows


def judged(video: CountedVideo, point: OperatingPoint | None, kind: str, number: int) -> Row:
    """One procedure at an operating point; every tracklet alone without one."""
    labels = np.arange(len(video.truth), dtype=np.int32)
    low = high = len(labels)
    if point is not None:
        labels = point.labels_at(video.tracklets, [float(point.parameters[point.varied])])[0]
        low = high = len(np.unique(labels))
        band = point.band(len(labels), tracked=video.tracked)
        if band is not None:
            low, high = within(ends(point, band, video.tracklets, video.seconds), low, None)
    counts = sweep_counts(np.unique(labels, return_inverse=True)[1].astype(np.int32)[None], video.truth)
    negative = int(counts.false_positive[0] + counts.true_negative[0])
    return Row(
        procedure=number,
        polyps=video.polyps,
        count=int(counts.groups[0]),
        fpr=int(counts.false_positive[0]) / negative if negative else math.nan,
        low=low,
        high=high,
        tracked=video.tracked,
        minutes=video.video.frame_count / (video.video.fps or 25) / 60,
        kind=kind,
    )


def line(rows: Sequence[Row], *, with_interval: bool) -> str:
    """The cells of one row of a table: exact, error, FR, FPR, and of the interval coverage and width."""
    rate = [row.count / row.polyps for row in rows if row.polyps]
    fpr = [row.fpr for row in rows if not math.isnan(row.fpr)]
    error = np.mean([row.error for row in rows])
    cells = f"{np.mean([row.error == 0 for row in rows]):.2f} | {error:.2f} | {np.mean(rate):.2f}"
    cells += f" | {np.mean(fpr) if fpr else math.nan:.3f}"
    if not with_interval:
        return f"{cells} | | "
    holds = sum(row.holds for row in rows)
    exact = binomtest(holds, len(rows)).proportion_ci(0.95, method="exact")
    width = np.mean([row.high - row.low for row in rows])
    return f"{cells} | {holds / len(rows):.3f} [{exact.low:.2f}, {exact.high:.2f}] | {width:.2f}"


def choose(options: argparse.Namespace) -> None:
    """Choose the operating points for counting, and keep them beside the bundled encoder."""
    sets = vectors_of(options, CHOOSING, None)
    points = calibrate(
        sets, f"{len(sets)} simulated procedures of 20 seconds to 40 minutes, half with detector-like boxes"
    )
    for name, point in points.items():
        print(name, json.dumps(point.model_dump(exclude={"values"})), flush=True)
    write_operating_points(bundled_folder(), points, DEFAULT_METHOD)


def point_of(options: argparse.Namespace, encoder: Path, *, number: bool) -> OperatingPoint:
    """The point of another encoder, chosen on the same procedures. number: Whether their number is evidence."""
    sets = vectors_of(options, CHOOSING, encoder)
    return calibrate(sets, "the same", methods=[DEFAULT_METHOD], number=number)[DEFAULT_METHOD]


def judge(options: argparse.Namespace) -> None:
    """Print the tables of procedures that nothing was chosen on."""
    kept = read_operating_points(bundled_folder())
    sets = vectors_of(options, JUDGING, None)
    numbers = true_numbers(options, JUDGING)
    table = {name: judged_all(sets, numbers, point) for name, point in kept.points.items()}
    table[ALONE] = judged_all(sets, numbers, None)
    print(f"{len(sets)} procedures, of which {len(table[ALONE])} have a tracklet to count")
    print(f"median of repeated counts differs in {medians_that_differ(sets, kept.points[kept.default])} of them")
    if options.earlier:
        point = point_of(options, options.earlier, number=False)
        print("earlier point", json.dumps(point.model_dump(exclude={"values"})))
        table[EARLIER] = judged_all(vectors_of(options, JUDGING, options.earlier), numbers, point)
        compare(table[kept.default], table[EARLIER], len(sets))
    (options.out / "judged.json").write_text(
        json.dumps({name: [asdict(row) for row in rows] for name, rows in table.items()})
    )
    print("| procedures | method | exact | mean abs. error | FR | FPR | 90 % interval holds | width |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for cell, inside in CELLS.items():
        for name, rows in table.items():
            if cell == "all" or name in (kept.default, EARLIER, "threshold", "temporal-ap", ALONE):
                part = [row for row in rows if inside(row)]
                shown = line(part, with_interval=name in (kept.default, EARLIER))
                print(f"| {cell} ({len(part)}) | {name} | {shown} |")
    real_frames(options, None, kept.points[kept.default], (1, 14))
    if options.write:
        points = {name: with_measured(point, table[name], kept.default) for name, point in kept.points.items()}
        write_operating_points(bundled_folder(), points, kept.default)


def medians_that_differ(sets: Sequence[Embeddings], point: OperatingPoint) -> int:
    """In how many procedures the median count over the thresholds of the repetitions is not that of the grouping."""
    differ = 0
    for video in (video for one in sets for video in counted_videos(one)):
        values = [float(point.parameters[point.varied]), *point.repeated_values(REPETITIONS)]
        count, *repeated = (len(np.unique(row)) for row in point.labels_at(video.tracklets, values))
        differ += count != int(np.median(repeated))
    return differ


def compare(new: Sequence[Row], earlier: Sequence[Row], procedures: int) -> None:
    """Print by how much the error is lower than that of the earlier method, with a paired bootstrap interval.

    Procedures without a tracklet that is long enough have no error by either method.
    """
    less = np.zeros((procedures, 2))
    for column, rows in enumerate((new, earlier)):
        less[[row.procedure for row in rows], column] = [row.error for row in rows]
    means = less[np.random.default_rng(0).integers(len(less), size=(5000, len(less)))].mean(axis=1)
    share = 1 - means[:, 0] / means[:, 1]
    low, high = np.quantile(share, [0.025, 0.975])
    now, before = less.mean(axis=0)
    print(f"mean absolute error over all {procedures} procedures: {now:.3f}, earlier {before:.3f}: ", end="")
    print(f"{1 - now / before:.1%} lower [{low:.1%}, {high:.1%}]")


def real_frames(
    options: argparse.Namespace, folder: Path | None, point: OperatingPoint, sequences: tuple[int, int]
) -> None:
    """Print how pseudo-procedures of sequences of CVC-ClinicDB are counted. folder: Of the encoder."""
    corpus = cvc(options.cvc_clinicdb, *sequences)
    encoder = pc.load_encoder(folder, threads=1, engine="onnx")
    vectors = pc.embed(corpus, sequence_tracklets(corpus), encoder, frames=True, cache=options.out / "features")

    def counted(sequences: NDArray[np.int64] | None, draws: int, seed: int) -> list[Row]:
        drawn = pseudo_procedures(vectors, draws, seed, sequences)
        return [judged(video, point, "real", k) for k, one in enumerate(drawn) for video in counted_videos(one)]

    rows, rng = counted(None, PSEUDO_DRAWS, 0), np.random.default_rng(0)
    again = [counted(rng.integers(len(corpus.videos), size=len(corpus.videos)), 10, k) for k in range(RESAMPLES)]
    shares = [np.mean([row.holds for row in some]) for some in again]
    low, high = np.quantile(shares, [0.025, 0.975])
    print(
        f"| CVC-ClinicDB {sequences[0]} to {sequences[1]} ({len(rows)}) | {point.method} | "
        f"{line(rows, with_interval=True)} |"
    )
    print(
        f"coverage there, bootstrap over sequences: {np.mean([row.holds for row in rows]):.3f} [{low:.3f}, {high:.3f}]"
    )


def with_measured(point: OperatingPoint, rows: Sequence[Row], default: str) -> OperatingPoint:
    """The operating point with what was measured; the interval was measured for the default method only."""
    chosen = {name: value for name, value in point.measured.items() if name.startswith("selection")}
    fpr = float(np.nanmean([row.fpr for row in rows]))
    error, exact = float(np.mean([row.error for row in rows])), float(np.mean([row.error == 0 for row in rows]))
    measured = {**chosen, "procedures": float(len(rows)), "exact": exact, "mean_absolute_error": error, "fpr": fpr}
    if point.method == default:
        measured["coverage"] = float(np.mean([row.holds for row in rows]))
    return point.model_copy(update={"measured": measured})


def end_shares(options: argparse.Namespace) -> None:
    """Print coverage and width by cross-validation, four times in five folds, for several shares of misses."""
    videos = [video for one in vectors_of(options, CHOOSING, None) for video in counted_videos(one)]
    point = read_operating_points(bundled_folder()).points[DEFAULT_METHOD]
    folds = [np.random.default_rng(seed).permutation(len(videos)) % 5 for seed in range(4)]
    for share in (0.5, 0.6, 0.65):
        rows = list[Row]()
        for fold, number in ((fold, number) for fold in folds for number in range(5)):
            others = [video for video, own in zip(videos, fold, strict=True) if own != number]
            bands = fit_bands(point, others, GRIDS[DEFAULT_METHOD][point.varied], point.level, share)
            fitted = point.model_copy(update={"bands": bands})
            mine = [video for video, own in zip(videos, fold, strict=True) if own == number]
            rows += [judged(video, fitted, "", 0) for video in mine]
        holds, width = np.mean([row.holds for row in rows]), np.mean([row.high - row.low for row in rows])
        print(f"either end may miss {share * (1 - point.level):.3f}: holds {holds:.3f}, width {width:.2f}", flush=True)


class MeanOfFrames:
    """In place of an encoder for `jumps`: the vector of a sequence is the mean of those of its frames.

    For the bundled encoder it is, since its last layer is linear.
    """

    def encode_sequences(self, frames: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.float32]:  # noqa: ARG002
        """float32[n, t, d] -> float32[n, d]."""
        return np.asarray(frames.mean(axis=1))


def jump_rates(options: argparse.Namespace) -> None:
    """Print how many tracklets are split, on the procedures with perfect boxes that were chosen on."""
    rng, encoder = np.random.default_rng(0), cast(Encoder, MeanOfFrames())
    for kind in ("stills", "drawn"):
        whole, parts, joined = 0, 0, list[bool]()
        for number, one in enumerate(vectors_of(options, CHOOSING, None)):
            first = number // OF_EACH[CHOOSING] % 2 == 0
            if one.provenance.parameters.get("tracker") or first != (kind == "stills") or one.frames is None:
                continue
            # Parts of a tracklet that was split end where the next one begins.
            follows = np.isin(one.start_frame, one.stop_frame)
            whole, parts = whole + len(one) - int(follows.sum()), parts + int(follows.sum())
            frames = [one.frames.vectors[one.frames.of_tracklet(row)] for row in range(len(one))]
            pairs = [(i, j) for i in range(len(one)) for j in range(len(one)) if one.polyp[i] != one.polyp[j]]
            for chosen in rng.permutation(len(pairs))[:15].tolist():
                left, right = (frames[row][::2] for row in pairs[chosen])
                joined.append(bool(jumps(np.concatenate([left, right]), encoder)))
        print(f"{kind}: {parts} splits in {whole} tracklets of one polyp, ", end="")
        print(f"{np.mean(joined):.3f} of {len(joined)} joined from two are split")


def main() -> None:
    """Parse, choose or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cvc_clinicdb", "kvasir_seg", "polypgen", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("--jumps", action="store_true")
    parser.add_argument("--earlier", type=Path, help="folder of another encoder, which has operating points")
    parser.add_argument("--shift", type=Path, help="folder of an encoder without CVC-ClinicDB, with operating points")
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--write", action="store_true", help="keep what was measured beside the bundled encoder")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.choose:
        choose(options)
    if options.judge:
        judge(options)
    if options.ends:
        end_shares(options)
    if options.jumps:
        jump_rates(options)
    if options.shift:
        real_frames(options, options.shift, point_of(options, options.shift, number=True), (15, 29))


if __name__ == "__main__":
    main()
