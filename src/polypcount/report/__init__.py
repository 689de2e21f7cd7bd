"""What people get of a count: a page to read, files to go on with, an annotated video, a summary over procedures."""

from polypcount.report.count_file import read_count
from polypcount.report.histology import read_histology
from polypcount.report.summary import Procedure, refuse_unsuitable_summary, write_summary
from polypcount.report.video import write_annotated
from polypcount.report.write import refuse_unsuitable_report, write_report

__all__ = [
    "Procedure",
    "read_count",
    "read_histology",
    "refuse_unsuitable_report",
    "refuse_unsuitable_summary",
    "write_annotated",
    "write_report",
    "write_summary",
]
