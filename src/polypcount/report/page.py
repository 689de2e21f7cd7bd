"""The pages, from their templates. Templates treat every value as text, never as HTML."""

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from polypcount.counting.result import CountReport
from polypcount.report.cards import card_of, pair_cards, set_aside_cards
from polypcount.report.colours import NOT_COUNTED, mark_of
from polypcount.report.provenance import appendix_rows, provenance_rows
from polypcount.report.timeline import timelines
from polypcount.report.words import NOT_A_DEVICE, amount, duration, percent

if TYPE_CHECKING:
    from jinja2 import Environment

# A page may show the pictures inside it, and may not contact any host.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def report_page(report: CountReport) -> str:
    """The text of report.html: one file that holds its pictures and styles."""
    return render(
        "report.html.jinja",
        report=report,
        duration=duration(report.seconds_of(report.video.frame_count), report.video.frame_count),
        timelines=timelines(report),
        cards=[card_of(report, polyp) for polyp in report.polyps],
        set_aside=set_aside_cards(report),
        pairs=pair_cards(report),
        provenance=provenance_rows(report),
        appendix=appendix_rows(report),
    )


def render(template: str, **values: Any) -> str:
    """Fill in one of the templates in this folder."""
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
    environment.globals.update(policy=_POLICY, not_a_device=NOT_A_DEVICE, mark_of=mark_of, not_counted=NOT_COUNTED)
    return environment
