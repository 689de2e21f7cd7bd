"""The addresses of the review: what the page asks for, and what it gets."""

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Query, Response
from pydantic import Field

from polypcount.errors import PolypcountError
from polypcount.review.answers import jpeg_answer, page_answer, say_plainly, values_answer, without_folders
from polypcount.review.decisions import Decision, OneLine
from polypcount.review.export import export, refuse_unknown_formats
from polypcount.review.jobs import Jobs
from polypcount.review.log import Stale
from polypcount.review.procedures import Procedure
from polypcount.review.review import Review, Snapshot
from polypcount.review.values import box_values, preview_values, similar_values, state_values
from polypcount.storage import Schema

_MOST_FRAMES = 20_000
_Id = Annotated[str, Path(pattern="^[0-9a-f]{12}$")]
_PictureName = Annotated[str, Path(pattern=r"^(whole|[0-9]{1,3})\.jpg$")]
_FrameName = Annotated[str, Path(pattern=r"^[0-9]{1,9}\.jpg$")]
_ItemName = Annotated[str, Path(pattern=r"^[tash](0|[1-9][0-9]{0,8})$")]
_Version = Annotated[int, Field(ge=0)]
_CountId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Of = Annotated[str, Query(pattern="^([0-9a-f]{16})?$")]
_COUNTED_AGAIN = "the recording was counted again meanwhile, so nothing was done; look again"


class DecisionBody(Schema):
    """A decision, taken on the state of a version of a count."""

    version: _Version
    count_id: _CountId
    author: OneLine = ""
    decision: Decision


class ExportBody(Schema):
    """What to export."""

    version: _Version
    count_id: _CountId
    author: OneLine = ""
    formats: Annotated[list[str], Field(max_length=10, default_factory=list)]


def new_app(procedures: list[Procedure], folder_name: str) -> FastAPI:
    """The application, without its guard.

    Args:
        procedures: What can be reviewed.
        folder_name: What a list of several procedures is called.
    """
    jobs = Jobs()
    by_id = {procedure.id: procedure for procedure in procedures}

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        jobs.close()

    app = FastAPI(
        title="polypcount review", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json", lifespan=lifespan
    )
    say_plainly(app, procedures)

    def procedure_of(id: str) -> Procedure:
        if id not in by_id:
            raise HTTPException(404, "there is no such procedure")
        return by_id[id]

    def review_of(id: str) -> tuple[Procedure, Review]:
        procedure = procedure_of(id)
        if not procedure.is_counted:
            raise HTTPException(404, "this recording is not counted yet")
        return procedure, procedure.open()

    def refuse_other(review: Review, of: str) -> None:
        if of and of != review.count_id:
            raise HTTPException(404, "the recording was counted again")

    def values_of(procedure: Procedure, review: Review, moment: Snapshot) -> dict[str, Any]:
        recording = procedure.has_frames()
        return {"id": procedure.id, "name": procedure.name, **state_values(review, moment, recording=recording)}

    def newest(procedure: Procedure) -> dict[str, Any]:
        review = procedure.open()
        return values_of(procedure, review, review.moment)

    @app.get("/api/procedures")
    def list_procedures() -> Response:
        """All procedures, with what is left to do in each."""
        rows = [_row(procedure, jobs) for procedure in procedures]
        counted = [row for row in rows if row["state"] == "counted"]
        sums = {
            "counted": len(counted),
            "polyps": sum(row["count"] for row in counted),
            "questions": sum(row["questions"] for row in counted),
        }
        return values_answer({"folder": folder_name, "sums": sums, "procedures": rows})

    @app.post("/api/procedures/{id}/count")
    def start_counting(id: _Id) -> Response:
        """Count a recording that is not counted yet."""
        procedure = procedure_of(id)
        if procedure.is_counted or procedure.recording is None:
            raise HTTPException(400, "this recording is counted already")
        jobs.start(id, procedure.recording, procedure.folder)
        return values_answer(_row(procedure, jobs))

    @app.delete("/api/procedures/{id}/count")
    def stop_counting(id: _Id) -> Response:
        """Stop counting a recording."""
        procedure = procedure_of(id)
        jobs.stop(id)
        return values_answer(_row(procedure, jobs))

    @app.get("/api/procedures/{id}")
    def get_state(id: _Id) -> Response:
        """The whole state of a review."""
        procedure, review = review_of(id)
        return values_answer(values_of(procedure, review, review.moment))

    @app.get("/api/procedures/{id}/version")
    def get_version(id: _Id) -> Response:
        """What changes with each decision, and with each count."""
        _, review = review_of(id)
        return values_answer({"version": review.log.version, "count_id": review.count_id})

    @app.post("/api/procedures/{id}/decisions")
    def decide(id: _Id, body: DecisionBody) -> Response:
        """Take a decision; it is on the disk when this answers."""
        procedure, review = review_of(id)
        if review.count_id != body.count_id:
            return values_answer({"detail": _COUNTED_AGAIN, "state": newest(procedure)}, 409)
        try:
            moment = review.decide(body.decision, body.version, body.author)
        except Stale as problem:
            return values_answer({"detail": str(problem), "state": newest(procedure)}, 409)
        return values_answer(values_of(procedure, review, moment))

    @app.get("/api/procedures/{id}/regroup")
    def show_regrouping(id: _Id) -> Response:
        """What grouping again would change."""
        _, review = review_of(id)
        return values_answer(preview_values(review, review.moment))

    @app.get("/api/procedures/{id}/similar/{item}")
    def get_similar(id: _Id, item: _ItemName, polyp: Annotated[bool, Query()] = False) -> Response:
        """What else looks like a tracklet, or like the whole polyp that it belongs to."""
        _, review = review_of(id)
        moment = review.moment
        _refuse_unknown(item, moment)
        return values_answer(similar_values(review, moment, item, whole=polyp))

    @app.get("/api/procedures/{id}/boxes")
    def get_boxes(
        id: _Id, start: Annotated[int, Query(ge=0, lt=2**31)], stop: Annotated[int, Query(ge=0, lt=2**31)]
    ) -> Response:
        """The boxes of some frames."""
        _, review = review_of(id)
        if not start <= stop <= start + _MOST_FRAMES:
            raise HTTPException(400, f"start must be at most stop, and stop at most {_MOST_FRAMES:,} frames later")
        return values_answer({"boxes": box_values(review.data, review.moment.state, start, stop)})

    @app.get("/api/procedures/{id}/pictures/{item}/{name}", response_class=Response)
    def get_picture(id: _Id, item: _ItemName, name: _PictureName, of: _Of = "") -> Response:
        """A picture of a tracklet. of: The count that it must belong to; only then may a browser keep it."""
        _, review = review_of(id)
        refuse_other(review, of)
        views, whole = review.data.pictures_of(item)
        number = name.removesuffix(".jpg")
        picture = whole if number == "whole" else views[int(number)] if int(number) < len(views) else None
        if picture is None:
            raise HTTPException(404, "there is no such picture")
        return jpeg_answer(review.data.jpeg(picture), keep=bool(of))

    @app.get("/api/procedures/{id}/frames/{name}", response_class=Response)
    def get_frame(
        id: _Id, name: _FrameName, width: Annotated[int, Query(ge=16, le=4096)] = 720, of: _Of = ""
    ) -> Response:
        """A frame of the recording. of: The count that it must belong to; only then may a browser keep it."""
        procedure, review = review_of(id)
        refuse_other(review, of)
        frames = procedure.frames()
        if frames is None:
            raise HTTPException(404, "the recording is not there")
        index = int(name.removesuffix(".jpg"))
        if index >= review.data.frame_count:
            raise HTTPException(404, "there is no such frame")
        return jpeg_answer(frames.jpeg(index, width), keep=bool(of))

    @app.post("/api/procedures/{id}/export")
    def write_export(id: _Id, body: ExportBody) -> Response:
        """Write the corrected count into the folder of the count."""
        procedure, review = review_of(id)
        moment = review.moment
        if review.count_id != body.count_id:
            return values_answer({"detail": _COUNTED_AGAIN, "state": newest(procedure)}, 409)
        if moment.version != body.version:
            detail = "another decision was taken meanwhile; look at it, then export again"
            return values_answer({"detail": detail, "state": values_of(procedure, review, moment)}, 409)
        refuse_unknown_formats(body.formats)
        try:
            folder, files = export(review, moment, body.formats, body.author, procedure.recording)
        except Stale as problem:
            return values_answer({"detail": str(problem), "state": newest(procedure)}, 409)
        return values_answer({"folder": folder.name, "files": files, "count": moment.count})

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return page_answer("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    def page_file(name: str) -> Response:
        return page_answer(name)

    return app


def _row(procedure: Procedure, jobs: Jobs) -> dict[str, Any]:
    """A procedure in the list."""
    job = jobs.get(procedure.id)
    row: dict[str, Any] = {"id": procedure.id, "name": procedure.name, "progress": None, "message": ""}
    row["counted"] = procedure.is_counted
    row |= dict.fromkeys(("count", "original_count", "interval", "questions"))
    row |= {"decisions": 0, "reviewed": False}
    if row["counted"]:
        try:
            review = procedure.open()
            moment = review.moment
        except PolypcountError as problem:
            return {**row, "state": "failed", "message": without_folders(str(problem), [procedure])}
        return {
            **row,
            "name": procedure.name,
            "state": "counted",
            "count": moment.count,
            "original_count": review.count_values["count"],
            "interval": moment.interval,
            "questions": len(moment.questions),
            "decisions": len(moment.state.done),
            "reviewed": bool(moment.state.done) and not moment.questions,
        }
    if job is None or job.state in ("stopped", "done"):
        return {**row, "state": "not counted"}
    if job.state == "failed":
        return {**row, "state": "failed", "message": without_folders(job.message, [procedure])}
    message = "waiting" if job.state == "waiting" else ""
    return {**row, "state": "counting", "progress": job.share, "message": message}


def _refuse_unknown(item: str, moment: Snapshot) -> None:
    if item not in moment.state.polyp_of:
        raise HTTPException(404, "there is no such tracklet")
