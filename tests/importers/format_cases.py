"""What the tests of box formats share: reading without cache, and boxes as comparable rows."""

from pathlib import Path
from typing import Any

import pytest

from polypcount.corpus import Corpus
from polypcount.errors import FileError
from polypcount.importers import read_corpus

Row = tuple[str, int, tuple[float, ...], float, str | None, int]


def read(format: str, path: Path, **settings: Any) -> Corpus:
    return read_corpus(format, path, cache=False, processes=1, **settings)


def rows(corpus: Corpus) -> list[Row]:
    """(video, frame, xyxy, score, polyp, track) of each box, sorted."""
    boxes = corpus.boxes
    return sorted(
        (
            (
                corpus.videos[boxes.video[row]].id,
                int(boxes.frame[row]),
                tuple(boxes.xyxy[row].tolist()),
                float(boxes.score[row]),
                corpus.polyps[boxes.polyp[row]].id if boxes.polyp[row] >= 0 else None,
                int(boxes.track[row]),
            )
            for row in range(len(boxes))
        ),
        key=repr,
    )


def refused(format: str, path: Path, *parts: str, **settings: Any) -> None:
    """Assert that reading fails with one line that has all these parts, or with settings that mend it."""
    with pytest.raises(FileError) as caught:
        read(format, path, **settings)
    message = " ".join([str(caught.value), *caught.value.mend])
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def told(corpus: Corpus, key: str) -> list[str]:
    found: list[str] = corpus.provenance.parameters[key]
    return found
