"""The real server on a real port, asked by whoever should not, and in ways in which it should not be."""

import json
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.review.results import copy_of_result
from tests.review.servers import Server, servers, state_of, taken_on

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; ",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_result(tmp_path_factory.mktemp("a person's name") / "result")


@pytest.fixture(scope="module")
def server(result: Path) -> Iterator[Server]:
    with servers() as started:
        yield started.start(result)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def home(client: httpx.Client) -> str:
    return f"/api/procedures/{state_of(client)['id']}"


def refuse_leaks(answer: httpx.Response) -> None:
    """Whatever was asked: the headers are there, and nothing of this machine."""
    for name, value in HEADERS.items():
        assert answer.headers[name].startswith(value), (answer.url, name)
    assert "cache-control" in answer.headers
    text = answer.text if "image" not in answer.headers.get("content-type", "") else ""
    assert "Traceback" not in text
    assert not re.search(r"/(tmp|home|root|usr|work|etc)/|a person's name|\.py\b", text), text[:300]


def raw(server: Server, request: bytes) -> tuple[int, str]:
    """Send bytes as they are; the status and the whole answer."""
    port = int(server.home.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
            head, _, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            if length and len(body) >= int(length[1]):
                break
    return int(answer.split()[1]), answer.decode("latin-1")


def test_only_who_has_the_address_gets_in(server: Server) -> None:
    token = server.address.rpartition("=")[2]
    assert len(token) > 40
    with httpx.Client(base_url=server.home, timeout=60) as stranger:
        for path in ("/", "/?token=", "/?token=wrong", "/?token=%ff%00", f"/?other={token}", "/api/procedures"):
            answer = stranger.get(path)
            assert (answer.status_code, answer.text) == (401, "open the address that polypcount review has printed")
            refuse_leaks(answer)
            assert "set-cookie" not in answer.headers
        assert stranger.post(f"/?token={token}").status_code == 401
        assert stranger.get(f"/api/procedures?token={token}").status_code == 401
        for cookie in ("polypcount=", f"polypcount={token}", f"other={token}", "=;=,\x01", f"polypcount-1={token}"):
            assert stranger.get("/api/procedures", headers={"cookie": cookie}).status_code == 401
        welcome = stranger.get(server.address)
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/")
        port = server.home.rpartition(":")[2]
        assert welcome.headers["set-cookie"] == f"polypcount-{port}={token}; HttpOnly; SameSite=Strict; Path=/"
        page = stranger.get("/")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        refuse_leaks(page)
        assert stranger.get(server.address).status_code == 303  # so that the token leaves the address again


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"host": "127.0.0.1:1"}, 403),
        ({"host": "[::1]:{port}"}, 403),
        ({"host": "localhost:{port}"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "https://127.0.0.1:{port}"}, 403),
        ({"origin": "http://127.0.0.1:{port}"}, 200),
        ({"cookie": ""}, 401),
        ({"cookie": 'prefs={"a": 1}; {own}; version=2'}, 200),  # other programs of this machine have cookies too
    ],
)
def test_hosts_and_origins(server: Server, client: httpx.Client, headers: dict[str, str], status: int) -> None:
    port = server.home.rpartition(":")[2]
    own = {"cookie": "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)}
    changed = {name: value.replace("{port}", port).replace("{own}", own["cookie"]) for name, value in headers.items()}
    sent = {**own, **changed}
    with httpx.Client(base_url=server.home, timeout=60) as fresh:
        answer = fresh.get("/api/procedures", headers=sent)
    assert answer.status_code == status
    refuse_leaks(answer)


def test_other_forms_of_http(server: Server, client: httpx.Client) -> None:
    cookie = "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)
    host = server.home.removeprefix("http://")
    head = f"Cookie: {cookie}\r\n"
    assert raw(server, f"GET /api/procedures HTTP/1.0\r\n{head}\r\n".encode())[0] == 403  # no Host
    assert raw(server, f"GET /api/procedures HTTP/1.0\r\nHost: {host}\r\n{head}\r\n".encode())[0] == 200
    assert raw(server, f"GET /api/procedures HTTP/1.1\r\n{head}\r\n".encode())[0] in (400, 403)
    twice = f"GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n{head}\r\n"
    assert raw(server, twice.encode())[0] in (400, 403)
    assert raw(server, f"GET http://evil.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())[0] in (400, 401, 404)
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eHg=\r\n"
    status, answer = raw(server, f"GET /api/procedures HTTP/1.1\r\nHost: {host}\r\n{upgrade}\r\n".encode())
    assert (status, "traceback" in answer.lower()) == (401, False)
    assert raw(server, b"\x16\x03\x01\x00\xff\xff\r\n\r\n")[0] == 400
    long = b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n"
    assert raw(server, long)[0] in (400, 414, 431)


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page/%2fetc%2fpasswd",
        "/page//etc/passwd",
        "/page/app.py",
        "/page/nothing.js",
        "/page/index.html%00.js",
        "/page/..",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/api/procedures/../../etc",
        "/api/procedures/000000000000",
        "/docs",
        "/redoc",
        "/count.json",
        "/result/count.json",
    ],
)
def test_paths_that_lead_elsewhere(server: Server, client: httpx.Client, path: str) -> None:
    cookie = "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar)
    host = server.home.removeprefix("http://")
    status, answer = raw(server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
    assert status in (404, 422), answer
    assert "content-security-policy: default-src 'none'" in answer
    assert "root:" not in answer
    assert "import " not in answer


def test_what_does_not_exist(client: httpx.Client, home: str) -> None:
    asked = {
        "/pictures/t9/whole.jpg": 404,
        "/pictures/t0/99.jpg": 404,
        "/pictures/s0/0.jpg": 404,
        "/pictures/x0/0.jpg": 422,
        "/pictures/t01/0.jpg": 422,
        "/pictures/..%2f..%2fcount/0.jpg": 404,
        "/pictures/t0/0.png": 422,
        "/frames/360.jpg": 404,
        "/frames/999999999.jpg": 404,
        "/frames/9999999999.jpg": 422,
        "/frames/-1.jpg": 422,
        "/frames/1e1.jpg": 422,
        "/frames/1.jpg?width=0": 422,
        "/frames/1.jpg?width=99999": 422,
        "/frames/1.jpg?width=x": 422,
        "/frames/%D9%A3.jpg": 422,
        "/similar/t9": 404,
        "/similar/t0%0a": 422,
        "/boxes": 422,
        "/boxes?start=5&stop=1": 400,
        "/boxes?start=0&stop=999999": 400,
        "/boxes?start=0&stop=99999999999": 422,
        "/nothing": 404,
    }
    for path, status in asked.items():
        answer = client.get(home + path)
        assert answer.status_code == status, (path, answer.text)
        assert len(answer.json()["detail"]) > 5
        refuse_leaks(answer)
    for method, path in (
        ("PUT", home),
        ("DELETE", home),
        ("POST", home),
        ("PATCH", "/"),
        ("TRACE", "/"),
        ("GET", "/x"),
    ):
        answer = client.request(method, path)
        assert answer.status_code in (404, 405)
        refuse_leaks(answer)
    assert client.head("/").status_code in (200, 405)
    assert client.options(home).status_code == 405
    assert client.delete(f"{home}/count").status_code == 200
    assert client.post(f"{home}/count").json() == {"detail": "this recording is counted already"}


def test_bodies_that_are_no_decision(server: Server, client: httpx.Client, home: str) -> None:
    url, seen = f"{home}/decisions", taken_on(state_of(client))
    version, undo = seen["version"], {**seen, "decision": {"kind": "undo"}}

    def body(**decision: Any) -> dict[str, Any]:
        return {**seen, "decision": decision}

    describe = {"kind": "describe", "polyp": 1}
    bad: list[Any] = [
        None,
        [],
        "text",
        {},
        seen,
        *({**undo, "version": wrong} for wrong in ("0", -1, True, 0.5)),
        *({**undo, "count_id": wrong} for wrong in ("", "../../etc/passwd", 5, "A" * 16)),
        {"version": version, "decision": {"kind": "undo"}},
        {**body(kind="undo"), "more": 1},
        {**body(kind="undo"), "author": "x" * 101},
        {**body(kind="undo"), "author": 5},
        {**body(kind="undo"), "author": "\ud800"},
        body(),
        body(kind="drop table"),
        body(kind="\ud800"),
        body(kind="undo", **{"\udcff": 1}),
        body(kind=["undo"]),
        body(kind="merge", polyp=1),
        body(kind="merge", polyp=1, other=10**30),
        body(kind="merge", polyp=1, other="2"),
        body(kind="move", items=[], polyp=1),
        body(kind="move", items=["t0"] * 20_001, polyp=1),
        body(kind="move", items=["../../etc/passwd"], polyp=1),
        body(kind="move", items=["t0\n"], polyp=1),
        body(kind="split", polyp=1, frame=2**31),
        body(kind="add", frame=1, box=[1, 2, 3]),
        body(kind="add", frame=1, box=[1, 2, 1e300, 4]),
        body(**describe, name="x" * 101),
        body(**describe, note="\ud83d"),
        body(**describe, size_mm=-1),
        body(**describe, size_mm="large"),
        body(kind="regroup", polyp_of={"\ud800": 1}),
        body(kind="regroup", polyp_of={"t0": -1}),
    ]
    for values in bad:
        answer = client.post(url, content=json.dumps(values), headers={"content-type": "application/json"})
        assert answer.status_code == 422, (values, answer.text)
        assert len(answer.json()["detail"]) < 400
        refuse_leaks(answer)
    for text in (
        b"{",
        b"\xff\xfe",
        b'{"version": 1e999, "decision": {"kind": "undo"}}',
        b'{"version": ' + b"1" * 5000 + b', "decision": {"kind": "undo"}}',
        b'{"version": NaN, "decision": {"kind": "undo"}}',
        b"[" * 100_000,
        b"",
    ):
        answer = client.post(url, content=text, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 422), text[:40]
        refuse_leaks(answer)
    answer = client.post(url, content=json.dumps(body(kind="undo")), headers={"content-type": "text/plain"})
    assert answer.status_code == 422  # what a form of another site could send
    for stale in (version + 1, 10**4000):
        answer = client.post(url, json={**undo, "version": stale})
        assert (answer.status_code, answer.json()["state"]["version"]) == (409, version)
    assert state_of(client)["version"] == version


def test_bodies_that_are_too_large(server: Server, client: httpx.Client, home: str) -> None:
    url, large = f"{home}/decisions", b" " * (1 << 20) + b"x"

    def pieces() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * (1 << 15)

    for content in (large, pieces()):
        answer = client.post(url, content=content, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.text) == (413, "more than 1,048,576 bytes were sent")
        refuse_leaks(answer)
    host, cookie = server.home.removeprefix("http://"), next(iter(client.cookies.jar))
    head = f"POST {url} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie.name}={cookie.value}\r\n"
    assert raw(server, f"{head}Content-Length: 99999999999\r\n\r\n".encode() + large)[0] == 413
    assert raw(server, f"{head}Content-Length: -1\r\n\r\n".encode())[0] == 400


def test_hostile_names_are_only_text(client: httpx.Client, home: str) -> None:
    """They come back as they are; the page shows them as text."""
    for name in (
        "<script>alert(1)</script>",
        "'; DROP TABLE decisions; --",
        '"><img src=x onerror=alert(1)>',
        "\u202e\u0000é",
    ):
        state = state_of(client)
        decision = {"kind": "describe", "polyp": 1, "name": name, "note": f"{name}\nand\x1b[2J"}
        answer = client.post(f"{home}/decisions", json={**taken_on(state), "author": name, "decision": decision})
        assert answer.status_code == 200
        refuse_leaks(answer)
        assert answer.headers["content-type"] == "application/json"
        polyp = answer.json()["polyps"][0]
        assert (polyp["name"], polyp["note"]) == (name.replace("\0", " "), f"{name}\nand [2J".replace("\0", " "))
        assert answer.json()["decisions"][-1]["author"] == name.replace("\0", " ")
    seen = taken_on(answer.json())
    answer = client.post(f"{home}/export", json={**seen, "author": name, "formats": ["../x"]})
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "'../x' is no format for export; there are: coco, mot, cvat",
    )
    answer = client.post(f"{home}/export", json={**seen, "version": 0, "formats": []})
    assert answer.status_code == 409


def test_the_page_is_whole(client: httpx.Client) -> None:
    """Every file that the page names is there, with its own type."""
    names = re.findall(r'(?:href|src)="(/page/[^"]+)"', client.get("/").text)
    kinds = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
    for name in [*names, "/page/api.js"]:
        answer = client.get(name)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kinds[Path(name).suffix])
        refuse_leaks(answer)
    assert {Path(name).suffix for name in names} == set(kinds)
