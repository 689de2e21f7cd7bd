"""The review of one count: its data, the decisions about it, and what follows from them."""

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

from polypcount.errors import DataError
from polypcount.report import read_count
from polypcount.report.review_file import REVIEW, REVIEW_FOLDER
from polypcount.review.decisions import Effect
from polypcount.review.effects import Effects
from polypcount.review.kept import ReviewData, read_review_data
from polypcount.review.log import DecisionLog, Stale
from polypcount.review.questions import Question, questions
from polypcount.review.regroup import Regrouping
from polypcount.review.state import State, replay
from polypcount.storage import content_key


class Snapshot:
    """A review as it is after some decisions. Nothing in it changes.

    Args:
        data: What is reviewed.
        state: The state.
        version: Number of the last decision.
        claimed: Whether the count came with an interval.
    """

    def __init__(self, data: ReviewData, state: State, version: int, *, claimed: bool) -> None:
        self.data = data
        self.state = state
        self.version = version
        self._claimed = claimed

    @property
    def count(self) -> int:
        """How many distinct polyps there are."""
        return len(self.state.polyps)

    @cached_property
    def regrouping(self) -> Regrouping:
        """The tracklets that can be grouped, with the constraints."""
        return Regrouping.of(self.data, self.state)

    @cached_property
    def interval(self) -> tuple[int, int] | None:
        """The interval of the count, given the decisions; None where nothing can be claimed."""
        return self.regrouping.ends(self.count) if self._claimed else None

    @cached_property
    def questions(self) -> list[Question]:
        """What an answer could still change, likeliest first."""
        return questions(self.regrouping)

    @cached_property
    def likeness(self) -> tuple[Any, bool]:
        """See `Regrouping.likeness`."""
        return self.regrouping.likeness()


class Review:
    """The review of the count in a folder.

    Args:
        folder: What `polypcount count` wrote.

    Attributes:
        count_id: Another one after each count, also of the same recording.
        count_values: What count.json says.
        data: What was kept for a review.
        counted_polyps: The polyps of count.json by number.
        log: The decisions.

    Raises:
        FileError: It holds no count, or no data for a review.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._identity = _identity(folder)
        self.count_id = content_key("review", *self._identity)[:16]
        self.count_values = read_count(folder)
        self.data = read_review_data(folder)
        if len(self.data.tracklets) != len(self.count_values["tracklets"]):
            raise DataError(f"{folder}: count.json and the data of the review are of different counts; count it again")
        self.counted_polyps = {polyp["number"]: polyp for polyp in self.count_values["polyps"]}
        self.log = DecisionLog(folder, self.data.digest)
        self._lock = threading.Lock()
        self._moment: Snapshot | None = None

    @property
    def moment(self) -> Snapshot:
        """The review as it is now; decisions of other windows and processes are in it."""
        with self._lock:
            return self._newest()

    def is_outdated(self) -> bool:
        """Whether the recording was counted again since this was read."""
        return _identity(self.folder) != self._identity

    def decide(self, decision: object, version: int, author: str = "") -> Snapshot:
        """Take a decision and keep it.

        Args:
            decision: One of `decisions.Decision`.
            version: Number of the last decision that the person has seen.
            author: Who decides.

        Raises:
            DataError: The decision is not possible.
            Stale: Another decision was taken meanwhile.
        """
        with self._lock:
            now = self._newest()
            if now.version != version:
                raise Stale("another decision was taken meanwhile, so this one was not; look at it again")
            effect: Effect = Effects(self.data, now.state).of(decision)
            self.log.append(effect, version, author, is_outdated=self.is_outdated)
            return self._newest()

    def _newest(self) -> Snapshot:
        version = self.log.version
        if self._moment is None or self._moment.version != version:
            base = dict.fromkeys(self.data.items, 0)
            base |= {f"t{row}": span.polyp for row, span in enumerate(self.data.tracklets)}
            log = self.log.read()
            version = log[-1].number if log else 0
            claimed = self.count_values["interval"] is not None
            self._moment = Snapshot(self.data, replay(base, log), version, claimed=claimed)
        return self._moment


def _identity(folder: Path) -> tuple[int, int]:
    """Which count the folder holds now."""
    try:
        found = (folder / REVIEW_FOLDER / REVIEW).stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns
