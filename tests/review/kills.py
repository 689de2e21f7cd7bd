"""Kills a server at random moments while somebody edits, and says what became of the edits."""

import random
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.review.servers import Servers, state_of, taken_on

MOST_BEFORE = 5  # edits that are saved before a kill


@dataclass(frozen=True)
class Outcome:
    """What became of the edits.

    Attributes:
        kills: How often the server was killed.
        saved: Edits that the page showed as saved.
        lost: Those of them that the log does not have.
        twice: Edits that the log has more than once.
        unanswered: Edits without an answer that are in the log all the same.
        made: All edits.
    """

    kills: int
    saved: int
    lost: int
    twice: int
    unanswered: int
    made: int


def edit(number: int) -> dict[str, Any]:
    """A decision that is always possible and changes something."""
    if number % 3 == 0:
        return {"kind": "describe", "polyp": 1, "name": f"edit {number}"}
    return {"kind": "hint", "fewest": number % 5, "most": 5 + number % 7}


def kill_often(servers: Servers, folder: Path, kills: int, seed: int = 0) -> Outcome:
    """Edit the count in a folder, one decision after the other, and kill the server so many times.

    As the page does, whoever edits looks at the new state where no answer came, and decides again what is not in it.
    """
    chance, number = random.Random(seed), 0
    saved, unanswered = set[str](), set[str]()
    for _ in range(kills):
        server = servers.start(folder)
        before, share = chance.randint(1, MOST_BEFORE), chance.uniform(0, 1.2)
        killer: threading.Timer | None = None
        try:
            with server.client() as client:
                state = state_of(client)
                seen = {one["author"] for one in state["decisions"]}
                number += f"edit {number}" in seen  # it was saved, and only the answer was lost
                last = number + before
                while True:
                    name, begun = f"edit {number}", time.monotonic()
                    unanswered.add(name)
                    body = {**taken_on(state), "author": name, "decision": edit(number)}
                    answer = client.post(f"/api/procedures/{state['id']}/decisions", json=body)
                    state = answer.raise_for_status().json()
                    saved.add(name)
                    unanswered.discard(name)
                    number += 1
                    if number == last:  # somewhere within the next edit, which takes about as long
                        killer = threading.Timer(share * (time.monotonic() - begun), server.kill)
                        killer.start()
        except httpx.TransportError:
            pass
        finally:
            if killer is not None:
                killer.join()
            server.kill()
    kept = Counter(authors(folder))
    return Outcome(
        kills,
        len(saved),
        sum(1 for name in saved if not kept[name]),
        sum(1 for times in kept.values() if times > 1),
        sum(1 for name in unanswered if kept[name]),
        len(saved | unanswered),
    )


def authors(folder: Path) -> list[str]:
    """Who took each decision of a log, in order."""
    database = sqlite3.connect(folder / "decisions.sqlite")
    try:
        return [author for (author,) in database.execute("SELECT author FROM decisions ORDER BY number")]
    finally:
        database.close()
