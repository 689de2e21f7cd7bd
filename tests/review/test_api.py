"""What the addresses answer: nothing makes them fail, and pictures show nothing that is masked."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from PIL import Image
from schemathesis.checks import not_a_server_error

from polypcount.report import write_report
from polypcount.review import Procedure
from polypcount.review.access import Guard
from polypcount.review.app import new_app
from tests.review.results import BORDER, FRAMES, copy_of_result, frame_at, recording, report
from tests.review.servers import taken_on

HOST, TOKEN = "testserver", "a-token"


@pytest.fixture(scope="module")
def procedure(tmp_path_factory: pytest.TempPathFactory) -> Procedure:
    return Procedure(copy_of_result(tmp_path_factory.mktemp("api") / "result"))


@pytest.fixture(scope="module")
def guard(procedure: Procedure) -> Guard:
    return Guard(new_app([procedure], "folder"), TOKEN, {HOST})


@pytest.fixture(scope="module")
def api(guard: Guard) -> Any:
    return schemathesis.openapi.from_asgi("/api/openapi.json", guard, headers={"cookie": f"polypcount={TOKEN}"})


@pytest.fixture(scope="module")
def client(guard: Guard) -> Iterator[TestClient]:
    with TestClient(guard, f"http://{HOST}", cookies={"polypcount": TOKEN}) as opened:
        yield opened


def test_no_request_makes_the_server_fail(api: Any) -> None:
    asked = 0
    for operation in api.get_all_operations():
        strategy = operation.ok().as_strategy()

        @settings(max_examples=12, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
        @given(strategy)
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            answer = case.call(headers={"cookie": f"polypcount={TOKEN}"})
            case.validate_response(answer, checks=[not_a_server_error])
            assert answer.status_code not in (401, 403)

        ask()
    assert asked > 80


def pixels(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def test_frames_are_exact_and_masked(client: TestClient, procedure: Procedure) -> None:
    """In any order, each picture is that frame, and its border with the text is black."""
    home = f"/api/procedures/{procedure.id}"
    for index in (0, 5, 6, 7, 44, 30, 359, 100, 90, 91, 0, 269, 270, 1):
        answer = client.get(f"{home}/frames/{index}.jpg?width=160")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
        image, drawn = pixels(answer.content), frame_at(index).astype(np.int16)
        assert image.shape == drawn.shape
        middle = np.s_[:, 2 * BORDER : -2 * BORDER]
        errors = {
            near: np.abs(image[middle] - frame_at(near)[middle]).mean() for near in range(FRAMES) if near % 5 == 0
        }
        errors[index] = np.abs(image[middle] - drawn[middle]).mean()
        assert errors[index] < 8
        assert errors[index] <= min(errors.values()) + 0.5
        assert drawn[4:7, 1:9].mean() > 200
        assert image[:, : BORDER - 4].max() < 40
    small = pixels(client.get(f"{home}/frames/30.jpg?width=64").content)
    assert small.shape == (51, 64, 3)
    assert pixels(client.get(f"{home}/frames/30.jpg?width=4096").content).shape == (128, 160, 3)


def test_pictures_are_those_that_were_kept(client: TestClient, procedure: Procedure) -> None:
    home = f"/api/procedures/{procedure.id}"
    for item in client.get(home).json()["items"]:
        for number, kept in [*enumerate(item["pictures"]), *([("whole", item["whole"])] if item["whole"] else [])]:
            answer = client.get(f"{home}/pictures/{item['id']}/{number}.jpg")
            assert pixels(answer.content).shape[:2] == (kept["height"], kept["width"])
            left, top, right, bottom = kept["box"]
            assert -1 <= left < right <= kept["width"] + 1
            assert -1 <= top < bottom <= kept["height"] + 1
            if number == "whole" and item["kind"] == "counted":
                assert pixels(answer.content)[:, : BORDER - 4].max() < 40


def test_boxes_and_versions(client: TestClient, procedure: Procedure) -> None:
    home = f"/api/procedures/{procedure.id}"
    boxes = client.get(f"{home}/boxes?start=98&stop=101").json()["boxes"]
    assert [(row[0], row[5]) for row in boxes] == [(98, "t2"), (98, "t1"), (99, "t2"), (99, "t1"), (100, "t2")]
    version = client.get(f"{home}/version").json()
    assert {key: client.get(home).json()[key] for key in version} == version
    assert client.get("/api/procedures").json()["sums"]["counted"] == 1


def test_nothing_of_another_count_is_shown_or_decided(client: TestClient, procedure: Procedure) -> None:
    """The page of an earlier count gets the new state, and pictures by its addresses are not found."""
    home = f"/api/procedures/{procedure.id}"
    old = client.get(home).json()
    places = (f"{home}/pictures/t0/0.jpg", f"{home}/frames/7.jpg")
    kept = {"of": old["count_id"]}
    for place in places:
        assert client.get(place).headers["cache-control"] == "no-store"
        assert client.get(place, params=kept).headers["cache-control"] == "private, max-age=3600"
    write_report(report(), procedure.folder, force=True)
    new = client.get(home).json()
    assert (new["count_id"] != old["count_id"], new["version"]) == (True, old["version"])
    assert [client.get(place, params=kept).status_code for place in places] == [404, 404]
    for request, more in (("decisions", {"decision": {"kind": "merge", "polyp": 1, "other": 4}}), ("export", {})):
        answer = client.post(f"{home}/{request}", json={**taken_on(old), **more})
        assert (answer.status_code, answer.json()["state"]["count_id"]) == (409, new["count_id"])
        assert "counted again meanwhile" in answer.json()["detail"]
    assert client.get(home).json()["version"] == old["version"]
    assert not (procedure.folder / "corrected").exists()


def test_the_recording_that_is_not_there(tmp_path: Path) -> None:
    """The page works with the pictures that were kept."""
    gone = Procedure(copy_of_result(tmp_path / "gone"))
    (gone.folder / "review" / "recording.json").unlink()
    other = Procedure(copy_of_result(tmp_path / "other"), recording=recording().with_name("missing.mp4"))
    with TestClient(new_app([gone, other], "folder")) as client:
        for procedure in (gone, other):
            home = f"/api/procedures/{procedure.id}"
            assert client.get(home).json()["recording"] is False
            answer = client.get(f"{home}/frames/1.jpg")
            assert (answer.status_code, answer.json()) == (404, {"detail": "the recording is not there"})
            assert client.get(f"{home}/pictures/t0/0.jpg").status_code == 200
