"""The pages, from their templates. Whatever a template is given is text to it, never HTML."""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from polypcount.counting.result import CountReport
from polypcount.report.cards import card_of, pair_cards
from polypcount.report.provenance import told_provenance
from polypcount.report.timeline import timelines
from polypcount.report.words import NOT_A_DEVICE, Clock, amount, percent

if TYPE_CHECKING:
    from jinja2 import Environment

# A page may show the pictures that it holds and ask nobody for anything.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_page(report: CountReport) -> str:
    """report.html: one file, with its pictures and styles inside."""
    clock = Clock(report.video.fps)
    return render(
        "report.html.jinja",
        report=report,
        duration=clock.span(report.video.frame_count),
        timelines=timelines(report),
        cards=[card_of(report, polyp) for polyp in report.polyps],
        pairs=pair_cards(report),
        provenance=told_provenance(report),
    )


def render(template: str, **values: Any) -> str:
    """Fill in one of the templates of this folder."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files(__package__)
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(amount=amount, percent=percent)
    environment.globals.update(policy=_POLICY, not_a_device=NOT_A_DEVICE)
    return environment
