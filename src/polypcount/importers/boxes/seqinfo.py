"""`seqinfo.ini`, the MOTChallenge description of a video, beside boxes in MOT and YOLO text.

    [Sequence]
    name=case1
    frameRate=25
    seqLength=1500
    imWidth=1240
    imHeight=1080

polypcount adds two sections where they are needed; other programs ignore them. `[Polyps]` has the ids of polyps by
their numbers in the text files, if an id does not follow from the number (`3=lesion A`). `[polypcount]` has notes on
how to read the text files. Names that a plain line would change are in JSON quotes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polypcount.corpus import Video
from polypcount.errors import FileError
from polypcount.importers.reading import (
    Options,
    Problems,
    VideoFacts,
    decimal,
    name_of,
    polyp_name,
    quoted,
    unquoted,
    usable,
    whole,
)
from polypcount.storage import read_text, shown, write_text

FILE_NAME = "seqinfo.ini"
_SEQUENCE, _POLYPS, _NOTES = "Sequence", "Polyps", "polypcount"
# Key of the file, how its text is read, and what is expected, by field of `VideoFacts`.
_NUMBERS: dict[str, tuple[str, Callable[[str], float | None], str]] = {
    "fps": ("framerate", decimal, "a number"),
    "width": ("imwidth", whole, "a whole number"),
    "height": ("imheight", whole, "a whole number"),
    "frame_count": ("seqlength", whole, "a whole number"),
}


@dataclass(frozen=True)
class SequenceInfo:
    """What the file says.

    Attributes:
        facts: What is known about the video.
        polyps: Polyp ids by their numbers in the text files.
        notes: How the text files are to be read.
    """

    facts: VideoFacts
    polyps: Mapping[int, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    def polyp(self, number: int) -> str:
        """Id of the polyp with this number."""
        return self.polyps.get(number) or polyp_name(number, self.facts.id)


def read_sequence_info(folder: Path, options: Options, problems: Problems) -> SequenceInfo:
    """The description in a folder, with what the user has set instead; without a file, only the name is known."""
    path, name = folder / FILE_NAME, name_of(folder)
    if not path.is_file():
        return SequenceInfo(VideoFacts(name).with_options(options))
    sections = _sections(path)
    if _SEQUENCE not in sections:
        raise FileError(f"{path}: the section [{_SEQUENCE}] is expected, found {', '.join(sections) or 'none'}")
    values = sections[_SEQUENCE]
    video = usable(unquoted(values.get("name") or name))
    if video is None:
        problems.bad(f"{path}: name", f"a text that can be an id is expected, found {shown(values['name'])}")
    numbers: dict[str, Any] = {}
    for field_name, (key, read, kind) in _NUMBERS.items():
        numbers[field_name] = read(values[key]) if values.get(key) else None
        if values.get(key) and numbers[field_name] is None:
            problems.bad(f"{path}: {key}", f"{kind} is expected, found {shown(values[key])}")
    facts = VideoFacts(video or name, **numbers)
    polyps = _polyps(sections.get(_POLYPS, {}), path, problems)
    return SequenceInfo(facts.checked(path, problems).with_options(options), polyps, sections.get(_NOTES, {}))


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """Values by lower-case key, by section.

    `configparser` is not used: its time grows with the square of a line's length, 7 s for 40 kB of spaces.
    """
    sections: dict[str, dict[str, str]] = {}
    values: dict[str, str] | None = None
    for number, line in enumerate(read_text(path).split("\n"), start=1):
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
    """Describe a video; unknown values are left out."""
    values = {
        "name": quoted(video.id),
        "frameRate": None if video.fps is None else repr(video.fps).removesuffix(".0"),
        "seqLength": video.frame_count,
        "imWidth": video.width,
        "imHeight": video.height,
    }
    named = {number: quoted(polyps[number]) for number in sorted(polyps)}
    sections: dict[str, Mapping[Any, object]] = {_SEQUENCE: values, _POLYPS: named, _NOTES: notes}
    lines: list[str] = []
    for section, entries in sections.items():
        if entries:
            lines += [f"[{section}]", *(f"{key}={value}" for key, value in entries.items() if value is not None)]
    write_text(folder / FILE_NAME, "\n".join(lines) + "\n")


def _polyps(named: Mapping[str, str], path: Path, problems: Problems) -> dict[int, str]:
    polyps: dict[int, str] = {}
    for key, value in named.items():
        number, polyp = whole(key), usable(unquoted(value))
        if number is None or polyp is None or polyp in polyps.values():
            problems.bad(f"{path}: [{_POLYPS}] {key}", f"number=polyp is expected, each once, found {shown(value)}")
        else:
            polyps[number] = polyp
    return polyps
