"""How a count was made: as JSON values and as rows for people, without the folders of this machine."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from polypcount.corpus import Provenance
from polypcount.counting.result import CountReport
from polypcount.report.words import amount, interval, minutes

_FIRST = ("encoder", "method")  # the parameters that readers look for most
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
    """The same JSON values, but each absolute path is replaced by its file name."""
    if isinstance(values, str):
        absolute = PurePosixPath(values).is_absolute() or PureWindowsPath(values).is_absolute()
        return file_name(values) if absolute else values
    if isinstance(values, Mapping):
        return {key: without_folders(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [without_folders(value) for value in values]
    return values


def provenance_values(provenance: Provenance) -> dict[str, Any]:
    """A provenance and its parents as JSON values; each source is a file name, even if it was a relative path."""
    values: dict[str, Any] = without_folders(provenance.to_dict())
    values["sources"] = [file_name(source) for source in provenance.sources]
    values["parents"] = [provenance_values(parent) for parent in provenance.parents]
    return values


def provenance_rows(report: CountReport) -> list[tuple[str, str]]:
    """Names and values for people, in order: what was counted, and when."""
    video, provenance = report.video, report.provenance
    rows = [("Recording", video.id)]
    rate = "unknown frame rate" if video.fps is None else f"{video.fps:.4g} frames a second"
    if report.times is not None:
        rate += " on average, at varying times"
    size = f", {video.width} x {video.height} pixels" if video.width and video.height else ""
    rows.append(("Frames", f"{video.frame_count:,}, {rate}{size}"))
    files = [*provenance.sources] if video.source is None else [video.source, *provenance.sources]
    if names := ", ".join(dict.fromkeys(map(file_name, files))):
        rows.append(("Files", _cut(names)))
    # ISO 8601 in UTC as people write it; any other text stays.
    created = re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d\+00:00$", r"\1 \2 UTC", provenance.created)
    made_by = f"polypcount {provenance.package_version}, {provenance.made_by}"
    return [*rows, ("Made by", made_by), ("Created", created)]


def appendix_rows(report: CountReport) -> list[tuple[str, str]]:
    """Names and values of everything else that decided the count: fingerprints, settings, coefficients, times taken."""
    rows, parameters = [], without_folders(report.provenance.parameters)
    for key, value in sorted(parameters.items(), key=lambda item: item[0] not in _FIRST):
        words = key.replace("_", " ")
        rows.append((_NAMES.get(key, words[:1].upper() + words[1:]), _cut(_in_words(value))))
    if len(report.repeated):
        low, high = int(report.repeated.min()), int(report.repeated.max())
        rows.append(("Repetitions", f"{len(report.repeated)}, with counts of {interval(low, high)}"))
    if report.seconds:
        rows.append(("Time taken", ", ".join(f"{step} {_duration(value)}" for step, value in report.seconds.items())))
    return rows


def _in_words(value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        more = f" and {amount(len(value) - _MOST_ITEMS, 'other')}" if len(value) > _MOST_ITEMS else ""
        return ", ".join(_in_words(item) for item in value[:_MOST_ITEMS]) + more
    if isinstance(value, Mapping):
        return ", ".join(f"{key.replace('_', ' ')} {_in_words(item)}" for key, item in value.items())
    return str(value)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{minutes(seconds)} min"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."
