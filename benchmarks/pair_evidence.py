"""What else could tell whether two tracklets are one polyp: features tried beside cosine and time.

Uses the vectors that `count_accuracy --shift FOLDER` has kept of simulated procedures, by an encoder that was trained
without CVC-ClinicDB. For each set of features, a logistic regression is fitted, with similarities never below 0. A
threshold of average linkage is chosen for the lowest error of the count with a mean FPR of at most 0.1: in four folds
over procedures, and once on all procedures for pseudo-procedures of sequences 15 to 29 of CVC-ClinicDB. Their tracklets
are 10 seconds apart, or 60.

`--local-features` compares frames of CVC-ClinicDB by RootSIFT with RANSAC instead. It needs opencv.

Run: .venv/bin/python -m benchmarks.pair_evidence CVC_CLINICDB OUT FOLDER [--minutes 15] [--local-features]
"""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.encoder_data import cvc
from benchmarks.procedures import CHOOSING, pseudo_procedures, sequence_tracklets
from numpy.typing import NDArray
from scipy.optimize import minimize

import polypcount as pc
from polypcount.clustering import Grid, GroupingInput
from polypcount.clustering.methods import Agglomerative
from polypcount.clustering.similarity import Matrix
from polypcount.corpus import Corpus, Embeddings, Tracklets
from polypcount.counting.counted_videos import CountedVideo, counted_videos
from polypcount.evaluation.pairs import sweep_counts

FRAMES, FOLDS, MOST_FPR, DRAWS = 8, 4, 0.1, 60
THRESHOLDS = tuple(np.linspace(0.02, 0.98, 49).round(2).tolist())
SETS = (
    ("cosine", "time"),
    ("best", "time"),
    ("top", "time"),
    ("maximum", "time"),
    ("cosine", "best", "time"),
    ("cosine", "time", "boxes"),
    ("cosine", "time", "frames"),
    ("cosine", "time", "coherence"),
    ("cosine", "time", "length"),
    ("cosine", "time", "number"),
)
SIMILARITIES = ("cosine", "best", "top", "maximum")
Features = dict[str, Matrix]


class Given(Agglomerative):
    """Average linkage on a matrix that is given."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__()
        self.matrix = matrix

    def _visual(self, tracklets: GroupingInput) -> Matrix:
        return tracklets.constraints.unite(self.matrix.copy())


def features_of(video: CountedVideo, embeddings: Embeddings, seconds_apart: float = 1.0) -> Features:
    """Every feature of every pair of tracklets. seconds_apart: Factor on all times."""
    assert embeddings.frames is not None
    n, fps = len(video.truth), video.video.fps or 25.0
    sets = [embeddings.frames.vectors[embeddings.frames.of_tracklet(row)] for row in range(n)]
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in sets]
    chosen = np.stack([rows[np.arange(FRAMES) * len(rows) // FRAMES] for rows in unit])
    flat = chosen.reshape(n * FRAMES, -1)
    between = (flat @ flat.T).reshape(n, FRAMES, n, FRAMES)
    there, back = between.max(axis=3).transpose(0, 2, 1), between.max(axis=1)
    better = slice(FRAMES // 2, None)
    vectors = video.tracklets.vectors / np.linalg.norm(video.tracklets.vectors, axis=1, keepdims=True)
    minutes = video.video.frame_count / fps / 60 * seconds_apart
    start = video.start_frame / fps * seconds_apart
    gap = np.abs(start[:, None] - start) / max(60 * minutes, 60)
    boxes, frames = embeddings.box_count, np.array([len(rows) for rows in sets])
    coherence = np.array([np.linalg.norm(rows.mean(axis=0)) for rows in unit])
    every = np.ones((n, n))
    return {
        "cosine": vectors @ vectors.T,
        "best": (there.mean(axis=2) + back.mean(axis=2)) / 2,
        "top": (np.sort(there, axis=2)[..., better].mean(axis=2) + np.sort(back, axis=2)[..., better].mean(axis=2)) / 2,
        "maximum": between.max(axis=(1, 3)),
        "time": np.log1p(100 * gap),
        "boxes": np.log(np.minimum(boxes[:, None], boxes)),
        "frames": np.log(np.minimum(frames[:, None], frames)),
        "coherence": np.minimum(coherence[:, None], coherence),
        "length": every * np.log(max(minutes, 2)),
        "number": every * np.log(n),
    }


Item = tuple[CountedVideo, Features]


def fit(items: Sequence[Item], names: Sequence[str]) -> NDArray[np.float64]:
    """Coefficients [1 + features] of a logistic regression in which each procedure has the same weight."""
    rows, same, weight = [], [], []
    for video, features in items:
        left, right = np.triu_indices(len(video.truth), 1)
        if len(left):
            rows.append(np.column_stack([features[name][left, right] for name in names]))
            same.append(video.truth[left] == video.truth[right])
            weight.append(np.full(len(left), 1 / len(left)))
    values, sign = np.concatenate(rows), np.where(np.concatenate(same), 1.0, -1.0)
    share = np.concatenate(weight) / sum(map(np.sum, weight))
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    scaled = np.column_stack([np.ones(len(values)), (values - mean) / spread])

    def loss(numbers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        score = sign * (scaled @ numbers)
        slope = -sign * share / (1 + np.exp(score))
        return float(share @ np.logaddexp(0, -score)), scaled.T @ slope + 1e-4 * np.append(0, numbers[1:])

    bounds = [(None, None), *((0, None) if name in SIMILARITIES else (None, None) for name in names)]
    found = minimize(loss, np.zeros(len(names) + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    slopes = found[1:] / spread
    return np.append(found[0] - slopes @ mean, slopes)


def counts(items: Sequence[Item], names: Sequence[str], numbers: NDArray[np.float64]) -> tuple[Matrix, Matrix]:
    """Groups and FPR at every threshold, [procedures, thresholds] each."""
    groups, fpr = np.zeros((len(items), len(THRESHOLDS))), np.full((len(items), len(THRESHOLDS)), np.nan)
    for row, (video, features) in enumerate(items):
        score = numbers[0] + sum(value * features[name] for value, name in zip(numbers[1:], names, strict=True))
        method = Given(1 / (1 + np.exp(-np.asarray(score))))
        sweep, tasks = method.prepare(video.tracklets, Grid({"threshold": THRESHOLDS}))
        for task in tasks:
            task()
        found = sweep_counts(sweep.labels, video.truth)
        groups[row] = found.groups
        negative = found.false_positive + found.true_negative
        if negative[0]:
            fpr[row] = found.false_positive / negative
    return groups, fpr


def chosen(items: Sequence[Item], names: Sequence[str], numbers: NDArray[np.float64]) -> int:
    """The threshold with the lowest error of the count within the limit of FPR."""
    groups, fpr = counts(items, names, numbers)
    error = np.abs(groups - np.array([video.polyps for video, _ in items])[:, None]).mean(axis=0)
    return int(np.argmin(np.where(np.nanmean(fpr, axis=0) <= MOST_FPR, error, np.inf)))


def shown(errors: NDArray[np.float64], fpr: NDArray[np.float64]) -> str:
    """Mean absolute error, bias, exact share and FPR."""
    return f"{np.abs(errors).mean():.2f} {errors.mean():+.2f} {(errors == 0).mean():.2f} {np.nanmean(fpr):.3f}"


def compare(items: Sequence[Item], real: dict[str, list[Item]]) -> None:
    """A line for each set of features."""
    fold = np.random.default_rng(0).permutation(len(items)) % FOLDS
    print("mean absolute error, bias, exact, FPR: simulated;", "; ".join(real))
    for names in SETS:
        errors, fpr = np.zeros(len(items)), np.zeros(len(items))
        for number in range(FOLDS):
            others = [item for item, own in zip(items, fold, strict=True) if own != number]
            mine = [item for item, own in zip(items, fold, strict=True) if own == number]
            numbers = fit(others, names)
            point = chosen(others, names, numbers)
            groups, rates = counts(mine, names, numbers)
            errors[fold == number] = groups[:, point] - [video.polyps for video, _ in mine]
            fpr[fold == number] = rates[:, point]
        cells = [shown(errors, fpr)]
        numbers = fit(items, names)
        point = chosen(items, names, numbers)
        for those in real.values():
            groups, rates = counts(those, names, numbers)
            cells.append(shown(groups[:, point] - [video.polyps for video, _ in those], rates[:, point]))
        print(f"{', '.join(names):28} {'; '.join(cells)}", flush=True)


def local_features(corpus: Corpus, vectors: NDArray[np.float32]) -> None:
    """Print how many matches that fit one another pairs of frames have, by RootSIFT and RANSAC."""
    cv2: Any = import_module("cv2")
    sift, matcher, rng = cv2.SIFT_create(400), cv2.BFMatcher(cv2.NORM_L2), np.random.default_rng(0)
    boxes = corpus.boxes
    names = {(int(v), int(f)): n for v, f, n in zip(*corpus.files.columns().values(), strict=True)}

    def keypoints(row: int) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        video = corpus.videos[boxes.video[row]]
        image = cv2.imread(str(Path(str(video.source)) / names[int(boxes.video[row]), int(boxes.frame[row])]), 0)
        x1, y1, x2, y2 = boxes.xyxy[row]
        width, height = x2 - x1, y2 - y1
        top, left = max(0, int(y1 - height / 2)), max(0, int(x1 - width / 2))
        crop = image[top : int(y2 + height / 2), left : int(x2 + width / 2)]
        factor = 256 / max(crop.shape)
        found, values = sift.detectAndCompute(cv2.resize(crop, None, fx=factor, fy=factor), None)
        if values is None or len(found) < 4:
            return None
        root = np.sqrt(values / np.maximum(values.sum(axis=1, keepdims=True), 1e-9))
        return np.array([one.pt for one in found], np.float32), root.astype(np.float32)

    points = [keypoints(row) for row in range(len(boxes))]

    def inliers(one: int, other: int) -> int:
        left, right = points[one], points[other]
        if left is None or right is None:
            return 0
        pairs = [pair for pair in matcher.knnMatch(left[1], right[1], k=2) if len(pair) == 2]
        good = [best for best, second in pairs if best.distance < 0.8 * second.distance]
        if len(good) < 4:
            return 0
        ends = [
            np.array([side[0][getattr(m, key)] for m in good])
            for side, key in ((left, "queryIdx"), (right, "trainIdx"))
        ]
        _, kept = cv2.estimateAffinePartial2D(*ends, ransacReprojThreshold=6)
        return 0 if kept is None else int(kept.sum())

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    left, right = np.triu_indices(len(boxes), 1)
    alike, same = (unit @ unit.T)[left, right], boxes.video[left] == boxes.video[right]
    far = same & (np.abs(boxes.frame[left] - boxes.frame[right]) >= 9)
    low, high = np.quantile(alike[far], [0.05, 0.4])
    undecided = (alike >= low) & (alike <= high)
    for name, mask in (("one polyp", far & undecided), ("two polyps", ~same & undecided)):
        drawn = rng.permutation(np.flatnonzero(mask))[:500]
        many = np.array([inliers(int(left[k]), int(right[k])) for k in drawn])
        shares = ", ".join(f"{least} inliers {np.mean(many >= least):.3f}" for least in (6, 8, 10, 15))
        print(f"undecided pairs of {name}, of {len(drawn)}: at least {shares}")


def main() -> None:
    """Parse, and print one of the two comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("cvc_clinicdb", "out", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--local-features", action="store_true")
    options = parser.parse_args()
    corpus = cvc(options.cvc_clinicdb, 15, 29)
    encoder, cache = pc.load_encoder(options.folder, threads=1, engine="onnx"), options.out / "features"
    if options.local_features:
        alone = Tracklets.gather(corpus.boxes, np.arange(len(corpus.boxes), dtype=np.int32))
        return local_features(corpus, pc.embed(corpus, alone, encoder, stride=1, cache=cache).vectors)
    vectors = pc.embed(corpus, sequence_tracklets(corpus), encoder, frames=True, cache=cache)
    paths = sorted((options.out / f"{options.folder.name}-{CHOOSING}").glob("*.parquet"))
    items = [
        (video, features_of(video, one))
        for one in map(Embeddings.load, paths)
        for video in counted_videos(one)
        if video.video.frame_count / (video.video.fps or 25) <= 60 * options.minutes + 1
    ]
    drawn = [(video, one) for one in pseudo_procedures(vectors, DRAWS, 5) for video in counted_videos(one)]
    real = {
        f"real frames, {10 * factor:.0f} s apart": [(video, features_of(video, one, factor)) for video, one in drawn]
        for factor in (1.0, 6.0)
    }
    return compare(items, real)


if __name__ == "__main__":
    main()
