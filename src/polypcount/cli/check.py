"""`polypcount check`: is a corpus fit for use?"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from polypcount.corpus import Corpus, Findings

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}


def check(
    corpora: Annotated[list[Path], typer.Argument(metavar="CORPUS...", help="One or more corpus folders.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look for defects in a corpus, before they spoil a count or a study.

    Several corpora are also taken as splits, which must not share a video or a polyp. The exit code is 1 where there
    are errors.
    """
    from polypcount.corpus import Corpus
    from polypcount.corpus import check as check_corpora

    loaded = [Corpus.load(folder) for folder in corpora]
    findings = check_corpora(*loaded, names=[str(folder) for folder in corpora])
    if as_json:
        counted = [{"folder": str(folder), **_counts(corpus)} for folder, corpus in zip(corpora, loaded, strict=True)]
        typer.echo(json.dumps({"corpora": counted, **findings.to_dict()}, indent=2))
    else:
        for folder, corpus in zip(corpora, loaded, strict=True):
            typer.echo(f"{folder}: " + ", ".join(f"{count:,} {what}" for what, count in _counts(corpus).items()))
        print_findings(findings)
    if findings.errors:
        raise typer.Exit(1)


def print_findings(findings: "Findings") -> None:
    """Print a table of the findings, if there are any, and a line with their counts."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from polypcount.cli.texts import harmless

    console = Console()
    if len(findings):
        several = any(finding.corpus for finding in findings)
        table = Table("", "what", *(["corpus"] if several else []), "video", "frame", "count", "finding")
        for finding in findings:
            table.add_row(
                Text(finding.severity, _COLOURS[finding.severity]),
                Text(finding.kind),
                *([Text(harmless(finding.corpus or ""))] if several else []),
                Text(harmless(finding.video or "")),
                "" if finding.frame is None else str(finding.frame),
                f"{finding.count:,}",
                Text(harmless(finding.message)),
            )
        console.print(table)
    counts = ", ".join(
        f"{count:,} {severity}{'' if count == 1 else 's'}" for severity, count in findings.counts().items()
    )
    console.print(f"found: {counts}" if len(findings) else "found: nothing wrong", highlight=False)


def _counts(corpus: "Corpus") -> dict[str, int]:
    return {"videos": len(corpus.videos), "polyps": len(corpus.polyps), "boxes": len(corpus.boxes)}
