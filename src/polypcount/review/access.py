"""Who may talk to the server: only the page that it has served itself, in the browser that was given the address."""

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

LARGEST_BODY = 1 << 20
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Guard:
    """Lets requests of the own page through, and answers all others itself.

    - Host must be one of the server's own names: other names that lead here are those of another site.
    - Origin, where the browser sends one, must be the server's own.
    - The cookie must hold the token. The first address has it as `?token=`; the answer sets the cookie and leads on to
      an address without it.
    - A body may have up to 1 MB.

    Args:
        app: What answers the requests that are let through.
        token: A random text.
        hosts: Values of Host that are the server's own, such as "127.0.0.1:8000".
        cookie: Name of the cookie. Browsers send cookies to all ports of a machine, so each server needs its own name.
    """

    def __init__(self, app: App, token: str, hosts: Iterable[str], cookie: str = "polypcount") -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)
        self._cookie = cookie

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "") not in self._hosts:
            await _answer(send, 403, "this address is not one of the review's own")
        elif "origin" in headers and headers["origin"] not in {f"http://{host}" for host in self._hosts}:
            await _answer(send, 403, "the request comes from another page")
        elif self._has_token(scope):
            cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(send, 303, "", [(b"location", b"/"), (b"set-cookie", cookie.encode())])
        elif not self._has_cookie(headers):
            await _answer(send, 401, "open the address that polypcount review has printed")
        elif (body := await _body(receive)) is None:
            await _answer(send, 413, f"more than {LARGEST_BODY:,} bytes were sent")
        else:
            await self._app(scope, _after(body, receive), _with_headers(send))

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        # Other programs of this machine may have set cookies too, also some that cannot be parsed.
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _has_token(self, scope: MutableMapping[str, Any]) -> bool:
        """Whether it is the first address, which has the token."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return scope["method"] == "GET" and scope["path"] == "/" and self._is_token(given)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())


async def _body(receive: Receive) -> Message | None:
    """The whole body as one message, or that the connection has ended; None for a body that is too large."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return {"type": "http.request", "body": b"".join(parts)}


def _after(body: Message, receive: Receive) -> Receive:
    """Gives the body first, and then what comes after it."""
    first = [body]

    async def take() -> Message:
        return first.pop() if first else await receive()

    return take


def _with_headers(send: Send) -> Send:
    async def give(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *_HEADERS]
            if b"cache-control" not in own:
                message["headers"].append((b"cache-control", b"no-store"))
        await send(message)

    return give


async def _answer(send: Send, status: int, text: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    body = text.encode()
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    start = {"type": "http.response.start", "status": status, "headers": [*plain, *headers]}
    give = _with_headers(send)
    await give(start)
    await give({"type": "http.response.body", "body": body})
