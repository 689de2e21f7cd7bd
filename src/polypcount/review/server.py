"""The server of the review: on this machine only, for one browser."""

import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from polypcount.errors import DataError, first_line
from polypcount.review.access import Guard
from polypcount.review.app import new_app
from polypcount.review.procedures import Procedure

HERE = "127.0.0.1"
_USUAL_PORT = 80  # browsers leave it out
_SECONDS_TO_END = 5  # for requests that are being answered when the process is stopped


def serve(
    procedures: list[Procedure],
    folder: Path,
    *,
    host: str = HERE,
    port: int = 0,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve the page until the process is stopped.

    Args:
        procedures: What can be reviewed.
        folder: The folder they are in.
        host: Address to listen on.
        port: Port to listen on, 0 for any that is free.
        ready: Called with the address of the page once it can be opened.

    Raises:
        DataError: The address or the port cannot be used.
    """
    import uvicorn

    listening = _listen(host, port)
    number = int(listening.getsockname()[1])
    token = secrets.token_urlsafe(32)
    guard = Guard(new_app(procedures, folder.name), token, _own_names(host, number), cookie=f"polypcount-{number}")
    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        ws="none",
        timeout_graceful_shutdown=_SECONDS_TO_END,
    )
    server = uvicorn.Server(config)
    ready(f"http://{_in_address(host)}:{number}/?token={token}")
    try:
        # Matrices are small: on a busy machine, several threads of BLAS wait longer for each other than they save.
        with threadpool_limits(1, "blas"):
            server.run(sockets=[listening])
    finally:
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as problem:
        raise DataError(f"{host} is no address of this machine: {first_line(problem)}", mend="host") from None
    if ipaddress.ip_address(address[0]).is_unspecified:  # then Host could not be checked
        raise DataError(f"{host} stands for all addresses of this machine; give one of them", mend="host")
    listening = socket.socket(family, kind)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(64)
    except OSError as problem:
        listening.close()
        raise DataError(f"port {port} of {host} cannot be used: {first_line(problem)}", mend="port") from None
    return listening


def _own_names(host: str, port: int) -> set[str]:
    """What Host may be."""
    # Browsers send names in small letters, and IPv6 addresses in their shortest form.
    names = {HERE, "localhost"} if host in (HERE, "localhost") else {_in_address(host), _in_address(host).lower()}
    with contextlib.suppress(ValueError):
        names.add(_in_address(str(ipaddress.ip_address(host))))
    return {f"{name}:{port}" for name in names} | (names if port == _USUAL_PORT else set())


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host
