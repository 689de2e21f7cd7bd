"""`seqinfo.ini`, the MOTChallenge description of a video, beside boxes in MOT and YOLO text.

    [Sequence]
    name=case1
    frameRate=25
    seqLength=1500
    imWidth=1240
    imHeight=1080

polypcount adds two sections that other programs pass over, and only where they are needed: `[Polyps]`, with the ids
of polyps by their numbers in the text files where a number alone does not tell (`3=lesion A`), and `[polypcount]`,
with notes on how the text files are to be read. Names that would not survive as they are stand in JSON quotes.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polypcount.corpus import Video
from polypcount.errors import FileError
from polypcount.importers.decimals import decimal, whole
from polypcount.importers.files import read_text
from polypcount.importers.identities import polyp_name
from polypcount.importers.problems import Problems
from polypcount.importers.texts import quoted, shown, unquoted, usable
from polypcount.importers.videos import VideoFacts

FILE_NAME = "seqinfo.ini"
_LARGEST_BYTES = 1 << 24
_SEQUENCE, _POLYPS, _NOTES = "Sequence", "Polyps", "polypcount"


@dataclass(frozen=True)
class SequenceInfo:
    """What the file says.

    polyps: polyp ids by their numbers in the text files.
    notes: how the text files are to be read.
    """

    facts: VideoFacts
    polyps: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def polyp(self, number: int) -> str:
        """Id of the polyp with this number."""
        return self.polyps.get(number) or polyp_name(number, self.facts.id)


def read_sequence_info(folder: Path, name: str, problems: Problems) -> SequenceInfo:
    """The description in a folder; where there is none, only the name is known."""
    path = folder / FILE_NAME
    if not path.is_file():
        return SequenceInfo(VideoFacts(name))
    sections = _sections(path)
    if _SEQUENCE not in sections:
        raise FileError(f"{path}: the section [{_SEQUENCE}] is expected, found {', '.join(sections) or 'none'}")
    values = sections[_SEQUENCE]
    found = usable(unquoted(values["name"])) if values.get("name") else name
    if found is None:
        problems.bad(f"{path}: name", f"a text that can be an id is expected, found {shown(values['name'])}")
    facts = VideoFacts(
        found or name,
        fps=_number(values, "framerate", path, problems),
        width=_whole(values, "imwidth", path, problems),
        height=_whole(values, "imheight", path, problems),
        frame_count=_whole(values, "seqlength", path, problems),
    )
    polyps = _polyps(sections.get(_POLYPS, {}), path, problems)
    return SequenceInfo(facts.checked(path, problems), polyps, sections.get(_NOTES, {}))


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """Values by lower-case key, by section.

    Not by `configparser`, whose time grows with the square of a line's length: 7 s for 40 kB of spaces.
    """
    sections: dict[str, dict[str, str]] = {}
    values: dict[str, str] | None = None
    for number, line in enumerate(read_text(path, _LARGEST_BYTES).split("\n"), start=1):
        text = line.strip()
        if text.startswith("[") and text.endswith("]"):
            values = sections.setdefault(usable(text[1:-1]) or "", {})
        elif text and not text.startswith(("#", ";")):
            key, delimiter, value = text.partition("=")
            if values is None or not delimiter:
                raise FileError(f"{path}:{number}: [section] or key=value is expected, found {shown(text)}")
            values[key.strip().lower()] = value.strip()
    return sections


def write_sequence_info(folder: Path, video: Video, polyps: Mapping[int, str], notes: Mapping[str, str]) -> None:
    """Describe a video; what is not known of it is left out."""
    fps = None if video.fps is None else repr(video.fps).removesuffix(".0")
    values = {
        "name": quoted(video.id),
        "frameRate": fps,
        "seqLength": video.frame_count,
        "imWidth": video.width,
        "imHeight": video.height,
    }
    text = io.StringIO()
    named = {number: quoted(polyps[number]) for number in sorted(polyps)}
    sections: dict[str, Mapping[Any, object]] = {_SEQUENCE: values, _POLYPS: named, _NOTES: notes}
    for section, lines in sections.items():
        if lines:
            text.write(f"[{section}]\n")
            text.writelines(f"{key}={value}\n" for key, value in lines.items() if value is not None)
    (folder / FILE_NAME).write_text(text.getvalue(), encoding="utf-8")


def _polyps(named: Mapping[str, str], path: Path, problems: Problems) -> dict[int, str]:
    polyps: dict[int, str] = {}
    seen: set[str] = set()
    for key, value in named.items():
        number, polyp = whole(key), usable(unquoted(value))
        if number is None or polyp is None or polyp in seen:
            problems.bad(f"{path}: [{_POLYPS}] {key}", f"number=polyp is expected, each once, found {shown(value)}")
        else:
            polyps[number] = polyp
            seen.add(polyp)
    return polyps


def _number(values: Mapping[str, str], key: str, path: Path, problems: Problems) -> float | None:
    if not values.get(key):
        return None
    number = decimal(values[key])
    if number is None:
        problems.bad(f"{path}: {key}", f"a number is expected, found {shown(values[key])}")
    return number


def _whole(values: Mapping[str, str], key: str, path: Path, problems: Problems) -> int | None:
    if not values.get(key):
        return None
    number = whole(values[key])
    if number is None:
        problems.bad(f"{path}: {key}", f"a whole number is expected, found {shown(values[key])}")
    return number
