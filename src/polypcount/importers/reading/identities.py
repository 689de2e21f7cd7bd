"""Which polyp an id in a file means, and the number of a polyp in formats that only have numbers.

A number, such as a track id, belongs to its video: id 3 of video `case1` is the polyp `case1_3`. A text such as
`001-001_1` stays as it is, unless several videos of the import have it. Then it names one polyp in each video, and gets
the id of the video as a prefix, unless it already begins with it.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

import numpy as np

from polypcount.corpus import Corpus, concatenate
from polypcount.errors import FileError

_NUMBER = re.compile(r"[0-9]+")
_ENDS_IN_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def polyp_name(identity: int | str, video: str) -> str:
    """Id of the polyp: a number becomes `<video>_<number>`, a text stays."""
    return f"{video}_{identity}" if isinstance(identity, int) else identity


def number_or_text(identity: str) -> int | str:
    """An identity of digits as a number, for formats in which everything is text."""
    return int(identity) if _NUMBER.fullmatch(identity) and len(identity) <= 18 else identity


def track_numbers(identities: Iterable[int | str | None]) -> Mapping[int | str | None, int]:
    """A track number for each identity of a video: numbers stay, texts get the next free ones, None is -1."""
    different = dict.fromkeys(identities)
    numbers: dict[int | str | None, int] = {one: one for one in different if isinstance(one, int)}
    free = (number for number in count() if number not in different)
    numbers |= {text: next(free) for text in different if isinstance(text, str)}
    return {**numbers, None: -1}


def join(corpora: Sequence[Corpus], name: object) -> Corpus:
    """One corpus from corpora of single videos, with distinct polyp ids, by the rule of this module.

    Args:
        corpora: Some may be empty.
        name: What was read, for messages.

    Raises:
        FileError: Nothing could be read, or ids cannot be kept apart.
    """
    if corpora and not any(corpus.videos for corpus in corpora):
        reasons = [line for corpus in corpora for line in corpus.provenance.parameters.get("left_out", ())]
        raise FileError(f"nothing of {name} can be read: {reasons[0] if reasons else 'it holds no videos'}")
    times = Counter(polyp.id for corpus in corpora for polyp in corpus.polyps)
    renamed = [_apart(corpus, times) for corpus in corpora if corpus.videos]
    for kind, ids in (
        ("videos", Counter(video.id for corpus in renamed for video in corpus.videos)),
        ("polyps of different videos", Counter(polyp.id for corpus in renamed for polyp in corpus.polyps)),
    ):
        if ids and (most := ids.most_common(1)[0])[1] > 1:
            raise FileError(f"{name}: {most[1]} {kind} would have the id {most[0]}; rename them")
    return concatenate(renamed)


def numbers_for_polyps(corpus: Corpus, video: int) -> tuple[dict[int, int], dict[int, str]]:
    """Numbers for the polyps with boxes in a video, by polyp row, and ids by number where the number is not the id.

    A polyp called `<video>_<number>` gets that number; others get the lowest ones left, from 1.
    """
    rows = np.unique(corpus.boxes.polyp[corpus.boxes.of_video(video)])
    names = {row: corpus.polyps[row].id for row in rows[rows >= 0].tolist()}
    prefix = f"{corpus.videos[video].id}_"
    numbers = {
        row: int(name.removeprefix(prefix))
        for row, name in names.items()
        if name.startswith(prefix) and _ENDS_IN_NUMBER.fullmatch(name.removeprefix(prefix))
    }
    used = set(numbers.values())
    free = (number for number in count(1) if number not in used)
    named = {row: next(free) for row in names if row not in numbers}
    return numbers | named, {number: names[row] for row, number in named.items()}


def _apart(corpus: Corpus, times: Mapping[str, int]) -> Corpus:
    """The corpus of one video, with its id as prefix of each polyp id that other videos have too."""
    prefix = f"{corpus.videos[0].id}_"
    polyps = tuple(
        dataclasses.replace(polyp, id=f"{prefix}{polyp.id}")
        if times[polyp.id] > 1 and not polyp.id.startswith(prefix)
        else polyp
        for polyp in corpus.polyps
    )
    return dataclasses.replace(corpus, polyps=polyps)
