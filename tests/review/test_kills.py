"""Servers that are killed, and several that are used at once: nothing that was saved is lost or there twice."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.kills import authors, edit, kill_often
from tests.review.servers import Servers, servers, state_of, taken_on

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and SIGKILL")


@pytest.fixture(scope="module")
def started() -> Iterator[Servers]:
    with servers() as each:
        yield each


def test_a_killed_server_loses_no_saved_decision(started: Servers, result: Path) -> None:
    outcome = kill_often(started, result, kills=4, seed=3)
    assert outcome.saved > 0
    assert (outcome.kills, outcome.lost, outcome.twice) == (4, 0, 0)
    with started.start(result).client() as client:
        state = state_of(client)
    assert state["version"] == len(authors(result)) >= outcome.saved


def test_several_people_at_two_servers(started: Servers, result: Path) -> None:
    """Each decides again where another was faster. All end in the same state, with each decision once."""
    homes, refused = [started.start(result), started.start(result)], [0, 0, 0, 0]

    def work(person: int) -> None:
        with homes[person % 2].client() as client:
            state = state_of(client)
            for number in range(6):
                while True:
                    name = f"person {person}, {number}"
                    body = {**taken_on(state), "author": name, "decision": edit(100 * person + number)}
                    answer = client.post(f"/api/procedures/{state['id']}/decisions", json=body)
                    if answer.status_code == 200:
                        state = answer.json()
                        break
                    assert answer.status_code == 409
                    assert "another decision was taken meanwhile" in answer.json()["detail"]
                    state = answer.json()["state"]
                    refused[person] += 1

    people = [threading.Thread(target=work, args=(person,)) for person in range(4)]
    for each in people:
        each.start()
    for each in people:
        each.join(120)
    assert sum(refused) > 0
    assert sorted(authors(result)) == sorted(f"person {person}, {number}" for person in range(4) for number in range(6))
    states = []
    for server in homes:
        with server.client() as client:
            states.append(state_of(client))
    assert states[0] == states[1]
    assert [one["author"] for one in states[0]["decisions"]] == authors(result)
