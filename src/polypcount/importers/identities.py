"""Which polyp an id in a file means, and the number that a polyp gets in formats that only have numbers.

A number, such as a track id, counts within its video: id 3 of video `case1` is the polyp `case1_3`. A text such as
`001-001_1` is kept as it is, unless several videos of the import have it: then it too counts within each video, and
the video goes before it where it does not begin so already.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from polypcount.corpus import Corpus, concatenate
from polypcount.errors import FileError

_NUMBER = re.compile(r"[0-9]+")
_ENDS_IN_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def polyp_name(identity: int | str, video: str) -> str:
    """Id of the polyp: a number becomes `<video>_<number>`, a text stays."""
    return f"{video}_{identity}" if isinstance(identity, int) else identity


def number_or_text(identity: str) -> int | str:
    """Digits as the number they are, for formats in which everything is text."""
    return int(identity) if _NUMBER.fullmatch(identity) and len(identity) <= 18 else identity


def track_numbers(identities: Sequence[int | str]) -> Mapping[int | str, int]:
    """A track number for each identity of a video: numbers stay, texts get the next ones that are free."""
    used = {identity for identity in identities if isinstance(identity, int)}
    numbers: dict[int | str, int] = {}
    following = 0
    for identity in identities:
        if isinstance(identity, int):
            numbers[identity] = identity
        elif identity not in numbers:
            while following in used:
                following += 1
            numbers[identity] = following
            following += 1
    return numbers


def join(corpora: Sequence[Corpus], name: object) -> Corpus:
    """One corpus of those of single videos, some perhaps empty, with polyp ids kept apart as the module says.

    name: what was read, for the message where ids cannot be kept apart, or where nothing of it could be read.
    """
    if corpora and not any(corpus.videos for corpus in corpora):
        reasons = [line for corpus in corpora for line in corpus.provenance.parameters.get("left_out", ())]
        raise FileError(f"nothing of {name} can be read: {reasons[0] if reasons else 'it holds no videos'}")
    times = Counter(polyp.id for corpus in corpora for polyp in corpus.polyps)
    renamed = [_apart(corpus, times) for corpus in corpora if corpus.videos]
    for kind, ids in (
        ("videos", [video.id for corpus in renamed for video in corpus.videos]),
        ("polyps of different videos", [polyp.id for corpus in renamed for polyp in corpus.polyps]),
    ):
        for found, count in Counter(ids).items():
            if count > 1:
                raise FileError(f"{name}: {count} {kind} would have the id {found}; rename them")
    return concatenate(renamed)


def numbers_for_polyps(corpus: Corpus, video: int) -> tuple[dict[int, int], dict[int, str]]:
    """Numbers for the polyps with boxes in a video, by polyp row, and ids by number where the number does not tell.

    A polyp called `<video>_<number>` gets that number; others get the lowest ones left, from 1.
    """
    rows = np.unique(corpus.boxes.polyp[corpus.boxes.of_video(video)])
    prefix = f"{corpus.videos[video].id}_"
    numbers: dict[int, int] = {}
    others = []
    for row in rows[rows >= 0].tolist():
        polyp = corpus.polyps[row].id
        ending = polyp.removeprefix(prefix)
        if polyp.startswith(prefix) and _ENDS_IN_NUMBER.fullmatch(ending):
            numbers[row] = int(ending)
        else:
            others.append(row)
    used = set(numbers.values())
    free = (number for number in range(1, len(rows) + len(used) + 2) if number not in used)
    named = dict(zip(others, free, strict=False))
    return numbers | named, {number: corpus.polyps[row].id for row, number in named.items()}


def _apart(corpus: Corpus, times: Mapping[str, int]) -> Corpus:
    """The corpus of one video, with the video before each polyp id that other videos have too."""
    prefix = f"{corpus.videos[0].id}_"
    polyps = tuple(
        dataclasses.replace(polyp, id=f"{prefix}{polyp.id}")
        if times[polyp.id] > 1 and not polyp.id.startswith(prefix)
        else polyp
        for polyp in corpus.polyps
    )
    return dataclasses.replace(corpus, polyps=polyps)
