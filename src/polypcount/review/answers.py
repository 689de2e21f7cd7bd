"""How the server answers: values, pictures, files of the page, and errors in one sentence."""

import contextlib
import json
import os
import re
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as AnyHTTPException

from polypcount.errors import PolypcountError
from polypcount.review.procedures import Procedure

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_LONGEST = 300  # characters of a message about a malformed request, which may repeat what was sent
_FOLDERS = re.compile(r"(?<![\w.:])/(?:[^\s/]+/)+")


def values_answer(values: Any, status: int = 200) -> Response:
    """Values as JSON. Half characters, as in file names that are not valid text, are escaped."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def jpeg_answer(data: bytes, *, keep: bool) -> Response:
    """A picture. keep: Whether the browser may keep it, since another count has other addresses."""
    caching = "private, max-age=3600" if keep else "no-store"
    return Response(data, media_type="image/jpeg", headers={"cache-control": caching})


def page_answer(name: str) -> Response:
    """A file of the page: only names that are there, so no path leads elsewhere."""
    files = {entry.name: entry for entry in resources.files(__package__).joinpath("page").iterdir()}
    suffix = f".{name.rpartition('.')[2]}"
    if name not in files or suffix not in _TYPES:
        raise HTTPException(404, "there is no such file")
    return Response(files[name].read_bytes(), media_type=_TYPES[suffix])


def without_folders(message: str, procedures: Iterable[Procedure]) -> str:
    """A message without folders, which may name a patient or a person; names of files stay."""
    places = set[Path]()
    for one in procedures:
        with contextlib.suppress(PolypcountError):
            places |= {place.parent for place in (one.folder, one.recording, one.source()[0]) if place is not None}
    for place in sorted(map(str, places), key=len, reverse=True):
        message = message.replace(os.path.join(place, ""), "")
    return _FOLDERS.sub("", message)


def say_plainly(app: FastAPI, procedures: Iterable[Procedure]) -> None:
    """Answer errors with one sentence, without folders and without a traceback."""

    @app.exception_handler(PolypcountError)
    async def not_possible(_: Request, problem: PolypcountError) -> Response:
        return values_answer({"detail": without_folders(str(problem), procedures)}, 400)

    @app.exception_handler(AnyHTTPException)
    async def refused(_: Request, problem: AnyHTTPException) -> Response:
        answer = values_answer({"detail": problem.detail}, problem.status_code)
        answer.headers.update(problem.headers or {})
        return answer

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        return values_answer({"detail": f"{where}: {first['msg']}".lstrip(": ")[:_LONGEST]}, 422)

    @app.exception_handler(Exception)
    async def fault(_: Request, __: Exception) -> Response:
        return values_answer({"detail": "a fault in polypcount; the terminal says more"}, 500)
