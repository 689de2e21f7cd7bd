"""`polypcount doctor`: what this machine has, for a look and for a bug report."""

import json
import os
import platform
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Show versions, extras, cores, memory, GPUs, where models and caches live, and which encoder comes with it."""
    found = examine()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for part, values in found.items():
        table = Table(box=None, show_header=False, title=part, title_justify="left", title_style="bold")
        for name, value in values.items():
            table.add_row(name, Text(_as_text(value)))
        console.print(table)


def examine() -> dict[str, dict[str, Any]]:
    """Everything that `doctor` shows, as JSON values."""
    import polypcount
    from polypcount.machine import available_cores
    from polypcount.places import cache_folder, model_folder

    return {
        "versions": {
            "polypcount": polypcount.__version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            **_required_versions(""),
        },
        "extras": {extra: _required_versions(extra) for extra in _extras()},
        "machine": {"cores": available_cores(), "memory_gib": _memory_gib(), **_gpus()},
        "folders": {
            "package": str(Path(polypcount.__file__).parent),
            "models": str(model_folder()),
            "caches": str(cache_folder()),
        },
        "encoder": {"bundled": _ask(_bundled_encoder)},
    }


def _extras() -> list[str]:
    return metadata.metadata("polypcount").get_all("Provides-Extra") or []


def _required_versions(extra: str) -> dict[str, str | None]:
    """Version of each package that an extra asks for ("" for the base), None where it is not installed."""
    versions: dict[str, str | None] = {}
    for requirement in metadata.requires("polypcount") or []:
        asked_by = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name and name[0] != "polypcount" and (asked_by[1] if asked_by else "") == extra:
            try:
                versions[name[0]] = metadata.version(name[0])
            except metadata.PackageNotFoundError:
                versions[name[0]] = None
    return versions


def _memory_gib() -> float | None:
    """Memory in GiB, or the container's limit where that is lower; None where the system does not say."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdigit():
        memory = min(memory, int(text))
    return round(memory / 2**30, 1)


def _gpus() -> dict[str, Any]:
    """What the libraries for computing say of GPUs; an installed library that does not load says why."""
    return {"onnxruntime_providers": _ask(_onnxruntime_providers), "torch_cuda_devices": _ask(_cuda_devices)}


def _ask(question: Callable[[], list[str] | str | None]) -> list[str] | str | None:
    try:
        return question()
    except ModuleNotFoundError:
        return None
    except Exception as problem:  # whatever a broken installation does, the rest of the page is worth having
        return f"installed, but does not load: {type(problem).__name__} {problem}".splitlines()[0]


def _onnxruntime_providers() -> list[str]:
    from polypcount.offline import import_offline

    return list(import_offline("onnxruntime").get_available_providers())


def _cuda_devices() -> list[str]:
    import torch  # type: ignore[import-not-found,unused-ignore]

    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


def _bundled_encoder() -> str | None:
    """Fingerprint of the encoder that comes with the package; None where none does."""
    from polypcount.encoder.bundle import bundled_folder
    from polypcount.encoder.manifest import read_manifest
    from polypcount.errors import FileError

    try:
        folder = bundled_folder()
    except FileError:
        return None
    return str(read_manifest(folder)["fingerprint"])


def _as_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {version or 'not installed'}" for name, version in value.items())
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or "none"
    return "not installed" if value is None else str(value)
