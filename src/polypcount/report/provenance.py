"""How a count came to be: without the folders of the machine, and as rows that people read."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from polypcount.corpus import Provenance
from polypcount.counting.result import CountReport
from polypcount.report.words import amount, interval, minutes

_FIRST = ("encoder", "method")  # what these parameters say is looked for most
_NAMES = {
    "encoder": "Encoder fingerprint",
    "cannot_link": "Kept apart if seen in one frame",
    "min_frames": "Fewest boxes of a tracklet",
    "selected_on": "Settings were chosen on",
}
_MOST_ITEMS = 12
_LONGEST_TEXT = 300


def file_name(path: str) -> str:
    """The last part of a path of any system; folders may name a patient or a person."""
    return (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).name or path


def without_folders(values: Any) -> Any:
    """The same JSON values, with the file name alone where a text is an absolute path."""
    if isinstance(values, str):
        absolute = PurePosixPath(values).is_absolute() or PureWindowsPath(values).is_absolute()
        return file_name(values) if absolute else values
    if isinstance(values, Mapping):
        return {key: without_folders(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [without_folders(value) for value in values]
    return values


def told_of(provenance: Provenance) -> dict[str, Any]:
    """A provenance as JSON values, its sources and those before it by file name alone, however they were given."""
    values = without_folders(provenance.to_dict())
    values["sources"] = [file_name(source) for source in provenance.sources]
    values["parents"] = [told_of(parent) for parent in provenance.parents]
    return values  # type: ignore[no-any-return]


def told_provenance(report: CountReport) -> list[tuple[str, str]]:
    """Names and values, in order."""
    video, made = report.video, report.provenance
    rows = [("Recording", video.id)]
    if video.source is not None:
        rows.append(("File", file_name(video.source)))
    rate = "unknown frame rate" if video.fps is None else f"{video.fps:g} frames a second"
    size = f", {video.width} x {video.height} pixels" if video.width and video.height else ""
    rows.append(("Frames", f"{video.frame_count:,}, {rate}{size}"))
    if names := ", ".join(dict.fromkeys(file_name(source) for source in made.sources)):
        rows.append(("Made from", _cut(names)))
    parameters = without_folders(made.parameters)
    ordered = sorted(parameters.items(), key=lambda item: item[0] not in _FIRST)
    rows += [(_name(key), _cut(_told(value))) for key, value in ordered]
    if len(report.repeated):
        low, high = int(report.repeated.min()), int(report.repeated.max())
        rows.append(("Repetitions", f"{len(report.repeated)}, with counts of {interval(low, high)}"))
    if report.seconds:
        rows.append(("Time taken", ", ".join(f"{step} {_time(value)}" for step, value in report.seconds.items())))
    return [*rows, ("Made by", f"polypcount {made.package_version}, {made.made_by}"), ("Created", _date(made.created))]


def _name(key: str) -> str:
    words = _words(key)
    return _NAMES.get(key, words[:1].upper() + words[1:])


def _words(key: str) -> str:
    return key.replace("_", " ")


def _told(value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        more = f" and {amount(len(value) - _MOST_ITEMS, 'other')}" if len(value) > _MOST_ITEMS else ""
        return ", ".join(_told(item) for item in value[:_MOST_ITEMS]) + more
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(key)} {_told(item)}" for key, item in value.items())
    return str(value)


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{minutes(seconds)} min"


def _date(created: str) -> str:
    """ISO 8601 in UTC as people write it; any other text as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00", created)
    return f"{found[1]} {found[2]} UTC" if found else created


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."
