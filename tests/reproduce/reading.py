"""What a reproduction has left in its folder."""

import csv
import json
from pathlib import Path

from polypcount.encoder import load_encoder
from polypcount.reproduce.rows import TABLES

FILES = [f"{name}{suffix}" for name, table in TABLES.items() if table.by_default for suffix in (".md", ".csv", ".tex")]


def made(out: Path) -> dict[str, int]:
    """What takes time to make, and when it was last written."""
    kinds = ("corpora", "encoders", "vectors", "results", "sweeps")
    found = [path for kind in kinds for path in (out / kind).rglob("*") if path.is_file()]
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in found}


def tables(out: Path) -> dict[str, str]:
    return {name: (out / name).read_text() for name in FILES}


def encoders(out: Path) -> dict[str, str]:
    """Fingerprint of each finished encoder, by name and seed."""
    found = {}
    for path in sorted((out / "encoders" / "real").glob("*.json")):
        told = json.loads(path.read_text())
        found[f"{told['encoder']} {told['seed']}"] = load_encoder(path.with_suffix(""), threads=1).fingerprint
    return found


def scores(out: Path, table: str, part: str = "mean") -> dict[tuple[str, str, str], str]:
    """A column of a table's CSV, by row, rule and score."""
    read = csv.DictReader((out / f"{table}.csv").read_text().splitlines())
    return {(row["row"], row["rule"], row["score"]): row[part] for row in read}
