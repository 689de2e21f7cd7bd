"""`polypcount doctor`: what this machine has, for users and for bug reports."""

import json
import os
import platform
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, extras, cores, memory, GPUs, folders and the bundled encoder."""
    parts = examine()
    if as_json:
        typer.echo(json.dumps(parts, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for part, values in parts.items():
        table = Table(box=None, show_header=False, title=part, title_justify="left", title_style="bold")
        for name, value in values.items():
            table.add_row(name, Text(_as_text(value)))
        console.print(table)


def examine() -> dict[str, dict[str, Any]]:
    """Everything that `doctor` shows, as JSON values."""
    import polypcount
    from polypcount.machine import available_cores
    from polypcount.storage import cache_folder

    return {
        "versions": {
            "polypcount": polypcount.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            **_required_versions(""),
        },
        "extras": {extra: _required_versions(extra) for extra in _extras()},
        "machine": {"cores": available_cores(), "memory_gib": _memory_gib(), **_gpus()},
        "folders": {"package": str(Path(polypcount.__file__).parent), "caches": str(cache_folder())},
        "encoder": {"bundled": _ask(_bundled_encoder)},
    }


def _extras() -> list[str]:
    return metadata.metadata("polypcount").get_all("Provides-Extra") or []


def _required_versions(extra: str) -> dict[str, str | None]:
    """Version of each package that an extra needs ("" for the base install); None if it is not installed."""
    versions: dict[str, str | None] = {}
    for requirement in metadata.requires("polypcount") or []:
        needed_by = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name and name[0] != "polypcount" and (needed_by[1] if needed_by else "") == extra:
            try:
                versions[name[0]] = metadata.version(name[0])
            except metadata.PackageNotFoundError:
                versions[name[0]] = None
    return versions


def _memory_gib() -> float | None:
    """Memory in GiB, or the limit of the container if that is lower; None if the system does not say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        memory = min(memory, int(text))
    return round(memory / 2**30, 1)


def _gpus() -> dict[str, Any]:
    """The GPUs that ONNX Runtime and torch report; for a library that does not load, the reason."""
    return {"onnxruntime_providers": _ask(_onnxruntime_providers), "torch_cuda_devices": _ask(_cuda_devices)}


def _ask(question: Callable[[], list[str] | str | None]) -> list[str] | str | None:
    try:
        return question()
    except ModuleNotFoundError:
        return None
    except Exception as problem:  # a broken installation can raise any error; the rest is still useful
        return f"installed, but does not load: {type(problem).__name__} {problem}".splitlines()[0]


def _onnxruntime_providers() -> list[str]:
    from polypcount.offline import import_offline

    return list(import_offline("onnxruntime").get_available_providers())


def _cuda_devices() -> list[str]:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


def _bundled_encoder() -> str | None:
    """Fingerprint of the bundled encoder; None if the package has none."""
    from polypcount.encoder.bundle import bundled_folder
    from polypcount.encoder.manifest import FOLDER
    from polypcount.errors import FileError

    try:
        folder = bundled_folder()
    except FileError:
        return None
    return FOLDER.describe(folder).fingerprint


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version or 'not installed'}" for name, version in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return "not installed" if value is None else str(value)
