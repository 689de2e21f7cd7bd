"""Kills the server of the review with SIGKILL at random moments through scripted edits, and counts what is lost.

Somebody edits without a pause, one decision after the other. After each kill a new server starts; where no answer had
come, they look whether the decision is there, and take it again if it is not. At the end the log is compared with what
was answered as saved, and SQLite checks its file.

Run: .venv/bin/python -m benchmarks.review_kills [--kills 100] [--result OUT]   OUT: a copy of it is edited
"""

import argparse
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from tests.review.kills import kill_often
from tests.review.results import copy_of_result
from tests.review.servers import servers, state_of

from polypcount.report.review_file import DECISIONS


def main() -> None:
    """Edit, kill and print; exit code 1 if anything was lost or is there twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, help="what polypcount count wrote; a small one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, servers() as started:
        folder = Path(place) / "result"
        if options.result is None:
            copy_of_result(folder)
        else:
            shutil.copytree(options.result, folder)
        outcome = kill_often(started, folder, options.kills, options.seed)
        with started.start(folder).client() as client:
            version = state_of(client)["version"]
        with closing(sqlite3.connect(folder / DECISIONS)) as log:
            (rows,) = log.execute("SELECT count(*) FROM decisions").fetchone()
            (sound,) = log.execute("PRAGMA integrity_check").fetchone()
    print(
        f"{outcome.kills} kills, {outcome.made} edits, {outcome.saved} answered as saved: {outcome.lost} lost, "
        f"{outcome.twice} there twice; {outcome.unanswered} saved without an answer. The log has {rows} decisions, the "
        f"page shows version {version}; SQLite says: {sound}"
    )
    raise SystemExit(outcome.lost + outcome.twice > 0 or sound != "ok" or version < outcome.saved)


if __name__ == "__main__":
    main()
