"""The files of a count: a page, JSON and CSV, an annotated video, and a summary of several procedures."""

from polypcount.report.count_file import read_count
from polypcount.report.histology import read_histology
from polypcount.report.summary import SummaryRow, refuse_unsuitable_summary, remove_summary, write_summary
from polypcount.report.video import write_annotated
from polypcount.report.write import refuse_unsuitable_report, remove_report, write_report

__all__ = [
    "SummaryRow",
    "read_count",
    "read_histology",
    "refuse_unsuitable_report",
    "refuse_unsuitable_summary",
    "remove_report",
    "remove_summary",
    "write_annotated",
    "write_report",
    "write_summary",
]
