"""How many answers settle a count: the queue of the review against pairs of tracklets nearest the threshold.

Simulated procedures are those of procedures.py, of eight lengths from 20 seconds to 40 minutes, half of stills and half
drawn, half with perfect boxes and half with those of a simulated detector. Choosing uses 192 (seeds 2500 to 2515 and
2700 to 2715) with the stills for choosing, judging 192 others (seeds 2600 to 2615) with the stills for judging; no
other benchmark uses these seeds. Each is counted as a user would, and the report is read as by the page. Procedures
without a tracklet to count are left out. The true number is that of the polyps that own a tracklet which is long
enough.

A person who knows the truth answers up to 12 questions, one by one. What is asked, what an answer changes and the count
after it come from `Snapshot` and `Effects`, which the page uses; the next question is the one that the page would show.
A group shows the polyp that most of its boxes show. Two groups are answered with yes if these are the same, also where
one of them holds some other polyp. Where a side shows no polyp, it is marked as not a polyp, which is one answer too.

The peer asks, in the same way, about the two tracklets whose probability to be one polyp is nearest the threshold of
the count, and about which nothing is known yet. Differences have 95 % intervals from a bootstrap over procedures.

Run: .venv/bin/python -m benchmarks.review_queue KVASIR_SEG POLYPGEN OUT            judge
     .venv/bin/python -m benchmarks.review_queue KVASIR_SEG POLYPGEN OUT --choose   what the queue's settings rest on
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.encoder_data import split_stills
from benchmarks.procedures import MINUTES, Procedure, counted, polyps_to_count, shown_polyps, simulated
from numpy.typing import NDArray

import polypcount as pc
from polypcount.errors import DataError
from polypcount.review import Review, Snapshot, regroup
from polypcount.review.decisions import Answer, Effect, NotAPolyp
from polypcount.review.effects import Effects
from polypcount.review.kept import ReviewData
from polypcount.review.questions import MOST_QUESTIONS, Question
from polypcount.review.state import Decided, replay
from polypcount.workers import in_processes

CHOOSING, JUDGING = {2500: 4, 2700: 8}, {2600: 12}  # seeds of the first length, and procedures of each length and kind
ANSWERS, MOST, WRONG = (0, 3, 5, 8, 12), 12, 0.05
PURE = (0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
SECONDS = (0.0, 1.5, 3.0, 4.0, 6.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A counted procedure.

    Attributes:
        data: What was kept of it.
        base: The polyp of each item as counted.
        votes: int64[tracklets, polyps + 1], how many boxes show each polyp, the last column none.
        polyps: The true number.
        tracked: Whether its boxes are those of a detector.
    """

    data: ReviewData
    base: dict[str, int]
    votes: NDArray[np.int64]
    polyps: int
    tracked: bool

    def shown(self, items: Sequence[str]) -> int:
        """The polyp that most boxes of tracklets show; -1 for none."""
        most = int(self.votes[[int(item[1:]) for item in items]].sum(axis=0).argmax())
        return -1 if most == self.votes.shape[1] - 1 else most

    def moment(self, log: Sequence[Decided]) -> Snapshot:
        """The review after some decisions."""
        return Snapshot(self.data, replay(self.base, log), len(log), claimed=True)


def cases(options: argparse.Namespace, seeds: dict[int, int]) -> list[Case]:
    """All procedures of a set that have a tracklet; counted where they are not there yet."""
    listed = []
    for seed, of_each in seeds.items():
        folders = [options.out / f"counts-{seed}" / f"{number:04d}" for number in range(of_each * 2 * len(MINUTES))]
        if not all(folder.with_suffix(".json").exists() for folder in folders):
            stills = split_stills([options.kvasir_seg, options.polypgen])
            own = stills.judging if seeds is JUDGING else stills.choosing
            procedures = simulated(options.out / f"scenes-{seed}", own, seed, of_each)
            tasks = [
                (procedure, folder)
                for procedure, folder in zip(procedures, folders, strict=True)
                if not folder.with_suffix(".json").exists()
            ]
            for _ in in_processes(_keep, tasks, options.processes):
                pass
        listed += [case for folder in folders if (case := _case(folder)) is not None]
    return listed


def _keep(procedure: Procedure, folder: Path) -> None:
    """Count a procedure, and write the report and the truth."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    report = counted(procedure, pc.load_encoder(threads=1, engine="onnx"))
    assert report.boxes is not None
    assert report.tracklet is not None
    report.save(folder, force=True)
    votes = np.zeros((len(report.tracklets), len(procedure.truth.polyps) + 1), np.int64)
    rows = np.flatnonzero(report.tracklet >= 0)
    np.add.at(votes, (report.tracklet[rows], shown_polyps(report.boxes, procedure.truth.boxes)[rows]), 1)
    tracked = procedure.detected is not None
    values = {"polyps": polyps_to_count(procedure), "votes": votes.tolist(), "tracked": tracked}
    folder.with_suffix(".json").write_text(json.dumps(values))


def _case(folder: Path) -> Case | None:
    kept = json.loads(folder.with_suffix(".json").read_text())
    if kept["polyps"] is None:
        return None
    review = Review(folder)
    return Case(
        review.data, review.moment.state.polyp_of, np.array(kept["votes"], np.int64), kept["polyps"], kept["tracked"]
    )


Asked = tuple[list[Question], Question] | None
Asking = Callable[[Snapshot, Asked], Question | None]


def queue(now: Snapshot, before: Asked) -> Question | None:
    """The question that the page shows.

    While an answer is saved, the page shows the first question that has nothing to do with it, and stays with it.

    Args:
        now: The review.
        before: The questions at the last answer, and which was answered.
    """
    listed = now.questions[:MOST_QUESTIONS]
    if before is not None:
        busy = set(before[1].first) | set(before[1].second)
        waiting = (question for question in before[0] if not busy & {*question.first, *question.second})
        shown = next(waiting, None)
        same = [question for question in listed if shown is not None and _sides(question) == _sides(shown)]
        listed = same or listed
    return listed[0] if listed else None


def pairs(now: Snapshot, _: Asked) -> Question | None:
    """The two tracklets nearest the threshold about which nothing is known."""
    regrouping = now.regrouping
    if len(regrouping.items) < 2:
        return None
    point, constraints = regrouping.basis.point, regrouping.tracklets.constraints
    unit, probability = constraints.unit, regrouping.likeness()[0]
    open_pairs = np.triu((unit[:, None] != unit) & ~constraints.forbidden[np.ix_(unit, unit)], 1)
    apart = np.where(open_pairs, np.abs(probability - float(point.parameters[point.varied])), np.inf)
    row, column = np.unravel_index(int(apart.argmin()), apart.shape)
    if not open_pairs[row, column]:
        return None
    return Question((regrouping.items[row],), (regrouping.items[column],), float(probability[row, column]), 0.5)


def _sides(question: Question) -> frozenset[frozenset[str]]:
    return frozenset((frozenset(question.first), frozenset(question.second)))


def counts(case: Case, ask: Asking, wrong: float = 0.0, seed: int = 0) -> list[int]:
    """The count after 0 to 12 answers, of which a share is wrong; unchanged once nothing is asked."""
    rng, log, before = np.random.default_rng(seed), list[Decided](), None
    now = case.moment(log)
    numbers = [now.count]
    while len(numbers) <= MOST:
        question = ask(now, before)
        if question is not None:
            effect = _answered(case, now, question, wrong=bool(rng.random() < wrong))
            before = now.questions[:MOST_QUESTIONS], question
            log = [*log, Decided(len(log) + 1, "", "", effect)]
            now = case.moment(log)
        numbers.append(now.count)
    return numbers


def _answered(case: Case, now: Snapshot, question: Question, *, wrong: bool) -> Effect:
    """What the person decides."""
    effects = Effects(case.data, now.state)
    sides = [case.shown(side) for side in (question.first, question.second) if side]
    if -1 in sides and len(sides) == 2 and not wrong:
        none = [item for side in (question.first, question.second) if case.shown(side) < 0 for item in side]
        return effects.of(NotAPolyp(kind="not a polyp", items=none))
    true = sides[0] == sides[-1] >= 0
    answer = Answer(kind="answer", first=list(question.first), second=list(question.second), same=true != wrong)
    try:
        return effects.of(answer)
    except DataError:  # a wrong yes that is refused, since both are seen in one frame
        return effects.of(answer.model_copy(update={"same": False}))


def errors(listed: Sequence[Case], ask: Asking, wrong: float = 0.0) -> NDArray[np.int64]:
    """How far each count is off after each number of answers, int64[cases, len(ANSWERS)]."""
    rows = [counts(case, ask, wrong, seed) for seed, case in enumerate(listed)]
    off = np.array(rows, np.int64)[:, ANSWERS] - np.array([case.polyps for case in listed], np.int64)[:, None]
    return np.asarray(np.abs(off))


def line(name: str, off: NDArray[np.int64]) -> str:
    """Exact share and mean absolute error after each number of answers."""
    cells = [
        f"{exact:.2f} ({error:.2f})" for exact, error in zip((off == 0).mean(axis=0), off.mean(axis=0), strict=True)
    ]
    return f"| {name} | {' | '.join(cells)} |"


def difference(more: NDArray[np.bool_], less: NDArray[np.bool_]) -> str:
    """Difference of two shares over the same procedures, with its interval."""
    paired = more.astype(float) - less
    drawn = paired[np.random.default_rng(0).integers(len(paired), size=(10_000, len(paired)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{paired.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def judge(options: argparse.Namespace) -> None:
    """Print the tables of procedures that nothing was chosen on."""
    listed = cases(options, JUDGING)
    tracked = np.array([case.tracked for case in listed])
    kinds = {"all": tracked | True, "perfect boxes": ~tracked, "detector-like boxes": tracked}
    print(f"exact (mean absolute error) after {', '.join(map(str, ANSWERS))} answers")
    for wrong in (0.0, WRONG):
        off = {name: errors(listed, ask, wrong) for name, ask in (("queue", queue), ("pairs", pairs))}
        for kind, own in kinds.items():
            for name, rows in off.items():
                print(line(f"{kind} ({own.sum()}), {100 * wrong:.0f} % wrong, {name}", rows[own]), flush=True)
            five = {name: rows[own, ANSWERS.index(5)] == 0 for name, rows in off.items()}
            print(f"exact after 5, queue less none: {difference(five['queue'], off['queue'][own, 0] == 0)}; ", end="")
            print(f"queue less pairs: {difference(five['queue'], five['pairs'])}")


def choose(options: argparse.Namespace) -> None:
    """Print how pure groups should be, and how often polyps that are seen for a short time show none."""
    listed = cases(options, CHOOSING)
    print(f"{len(listed)} procedures; exact (mean absolute error) after {', '.join(map(str, ANSWERS))} answers")
    print(line("pairs", errors(listed, pairs)))
    chosen = regroup.PURE
    for value in PURE:
        regroup.PURE = value
        print(line(f"queue, purity {value}", errors(listed, queue)), flush=True)
    regroup.PURE = chosen
    rows = []
    for case in (case for case in listed if case.tracked):
        now = case.moment([])
        seconds = now.regrouping.seconds
        for polyp in now.state.polyps:
            own = np.flatnonzero(now.regrouping.polyp == polyp)
            rows.append((seconds[own].sum(), case.shown([now.regrouping.items[row] for row in own]) < 0))
    seen, alarm = np.array(rows).T
    for low, high in zip(SECONDS, (*SECONDS[1:], np.inf), strict=True):
        inside = (seen >= low) & (seen < high)
        print(f"{inside.sum()} counted polyps seen for {low} to {high} s: {alarm[inside].mean():.2f} show none")


def main() -> None:
    """Parse, choose or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kvasir_seg", "polypgen", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    (choose if options.choose else judge)(options)


if __name__ == "__main__":
    main()
