"""The procedures that can be reviewed: counts, and recordings that are not counted yet."""

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from polypcount.errors import DataError, FileError, PolypcountError
from polypcount.report.count_file import COUNT_FILE
from polypcount.review.frames import Frames
from polypcount.review.kept import read_recording_file
from polypcount.review.review import Review

VIDEO_SUFFIXES = frozenset({".mp4", ".avi", ".mov", ".mkv", ".mpg", ".mpeg", ".m4v", ".wmv", ".webm", ".ts", ".dcm"})
RESULT = "-count"
_SECONDS_TO_OPEN = 1.0


@dataclass
class Procedure:
    """One procedure. It can be used from several threads.

    Attributes:
        folder: Where its count is, or will be; an absolute path.
        recording: The recording, if it is not counted yet, or was given; an absolute path.
        review: Its review, once it was opened.
        frames_problem: Why its frames cannot be shown; empty if they can, or nobody has tried.
    """

    folder: Path
    recording: Path | None = None
    review: Review | None = None
    frames_problem: str = ""
    _frames: Frames | None = None
    _frames_of: Review | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _frames_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def id(self) -> str:
        """A name for addresses: it shows nothing of the folder."""
        return hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]

    @property
    def name(self) -> str:
        """What people call it."""
        if (review := self.review) is not None:  # another thread may open it again
            return str(review.count_values["video"]["id"])
        return self.recording.stem if self.recording is not None else self.folder.name

    @property
    def is_counted(self) -> bool:
        """Whether its folder holds a count."""
        return (self.folder / COUNT_FILE).is_file()

    def open(self) -> Review:
        """Its review, read again if the recording was counted again.

        Raises:
            PolypcountError: It cannot be opened.
        """
        with self._lock:
            if self.review is None or self.review.is_outdated():
                self.review = None
                self.review = Review(self.folder)
            return self.review

    def source(self) -> tuple[Path | None, str | None]:
        """Where the recording lies, and the id of its video where it is a corpus; None where that is not known."""
        kept = read_recording_file(self.folder)
        path = self.recording or (Path(kept.source) if kept is not None else None)
        return path, kept.video if kept is not None else None

    def frames(self) -> Frames | None:
        """Its frames; None where the recording is not known or cannot be read. A long recording takes seconds."""
        return self._frames_for(self.open())

    def has_frames(self) -> bool:
        """Whether its frames can be shown. While a long recording is still being opened, they probably can."""
        opening = threading.Thread(target=self._frames_for, args=(self.open(),), daemon=True)
        opening.start()
        opening.join(_SECONDS_TO_OPEN)
        return not self.frames_problem

    def _frames_for(self, review: Review) -> Frames | None:
        with self._frames_lock:
            if self._frames_of is not review:
                self._frames, self._frames_of, self.frames_problem = None, review, ""
                try:
                    path, video = self.source()
                    if path is None:
                        self.frames_problem = "it is not known where the recording lies; --recording gives it"
                    else:
                        self._frames = Frames(path, video, review.data)
                except PolypcountError as problem:
                    self.frames_problem = str(problem)
            return self._frames


def find_procedures(places: Sequence[Path], recording: Path | None = None) -> list[Procedure]:
    """The procedures in folders.

    Args:
        places: Folders that `polypcount count` wrote, for one recording or several, or folders of recordings.
        recording: The recording of the one count.

    Raises:
        FileError: There is nothing to review.
        DataError: A recording was given for several counts.
    """
    found: dict[Path, Procedure] = {}
    for place in places:
        for procedure in _in_place(place):
            found.setdefault(procedure.folder, procedure)
    procedures = list(found.values())
    if recording is not None:
        if len(procedures) != 1:
            raise DataError(
                f"a recording can be given for one count, and there are {len(procedures)}", mend="recording"
            )
        procedures[0].recording = Path(os.path.abspath(recording))
    return procedures


def _in_place(place: Path) -> list[Procedure]:
    place = Path(os.path.abspath(place))
    if not place.is_dir():
        what = "is no folder" if place.exists() else "does not exist"
        raise FileError(f"{place} {what}; give the folder that polypcount count wrote, or a folder of recordings")
    if (place / COUNT_FILE).is_file():
        return [Procedure(place)]
    entries = sorted(entry for entry in place.iterdir() if not entry.name.startswith("."))
    counts = [entry for entry in entries if entry.is_dir() and (entry / COUNT_FILE).is_file()]
    procedures = {entry.name: Procedure(entry) for entry in counts}
    recordings = [entry for entry in entries if entry.is_file() and entry.suffix.lower() in VIDEO_SUFFIXES]
    stems = Counter(entry.stem for entry in recordings)
    for entry in recordings:
        own = f"{entry.stem if stems[entry.stem] == 1 else entry.name}{RESULT}"
        procedures.setdefault(own, Procedure(place / own)).recording = entry
    if not procedures:
        raise FileError(f"{place} holds no count and no recording; polypcount count RECORDING writes a count")
    return list(procedures.values())
