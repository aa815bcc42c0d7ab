"""What the live page answers to which address."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from fastapi.responses import StreamingResponse as Streamed
from pydantic import BaseModel, Field

from leadline.app.watch.state import state_of
from leadline.app.watch.views import locked
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.faces.web.access import COOKIE, COOKIE_DAYS, PageAccess, PageGuard
from leadline.faces.web.pages import LivePages, asset_of
from leadline.faces.web.prometheus import CONTENT_TYPE, exposition
from leadline.stores.incidents import Marker

if TYPE_CHECKING:
    from leadline.app.watch.watching import Watch

LOOK_EVERY_S = 1.0  # for something new
BEAT_EVERY_S = 15.0  # so that proxies and browsers keep the connection
MARK_BYTES_MAX = 10_000
FRAGMENT = "x-leadline-fragment"

_Text = Annotated[str, Query(max_length=1000)]


class MarkRequest(BaseModel):
    """A change that somebody tells of, such as a deployment."""

    text: str = Field(min_length=1, max_length=500)
    entity: str = Field(default="", max_length=500)
    kind: str = Field(default="deployment", min_length=1, max_length=40)


def application(watch: Watch, access: PageAccess, over: threading.Event) -> PageGuard:
    """The pages of a watch, guarded.

    Args:
        watch: that runs.
        access: who may ask.
        over: set when the server ends.
    """
    pages = LivePages(watch)
    # The documentation that FastAPI would serve loads scripts from elsewhere.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(LeadlineError, lambda _, error: _failed(pages, error))
    wrong = "The address has a value that cannot be. Choose one of the page's own."
    app.add_exception_handler(RequestValidationError, lambda _, __: HTMLResponse(pages.problem(wrong), 422))
    app.add_exception_handler(404, lambda _, __: HTMLResponse(pages.problem("There is no such page."), 404))
    _add_pages(app, pages)
    _add_login(app, pages, access)
    _add_data(app, watch, access)

    @app.get("/events")
    async def events() -> Streamed:
        return Streamed(_changes(pages, over), media_type="text/event-stream")

    return PageGuard(app, access, pages.login)


def _failed(pages: LivePages, error: Exception) -> Response:
    status = 404 if isinstance(error, UsageError) else 503
    return HTMLResponse(pages.problem(str(error)), status)


def _add_pages(app: FastAPI, pages: LivePages) -> None:
    @app.get("/")
    def now(request: Request) -> HTMLResponse:
        return _html(pages.now(is_part=_is_part(request)))

    @app.get("/estate")
    def estate(request: Request, find: _Text = "") -> HTMLResponse:
        return _html(pages.estate(find, is_part=_is_part(request)))

    @app.get("/entity")
    def entity(request: Request, name: _Text) -> HTMLResponse:
        return _html(pages.entity(name, is_part=_is_part(request)))

    @app.get("/incidents")
    def incidents(request: Request) -> HTMLResponse:
        return _html(pages.incidents(is_part=_is_part(request)))

    @app.get("/incidents/{number}")
    def incident(request: Request, number: str) -> HTMLResponse:
        return _html(pages.incident(number, is_part=_is_part(request)))

    @app.get("/incidents/{number}/capture.parquet")
    def capture(number: str) -> Response:
        path = pages.capture(number)
        return FileResponse(path, filename=path.name, media_type="application/vnd.apache.parquet")

    @app.get("/top")
    def top(
        request: Request,
        metric: _Text = "",
        minutes: Annotated[float, Query(gt=0, le=5_300_000)] = 5.0,
        by: _Text = "p95",
    ) -> HTMLResponse:
        return _html(pages.top(metric, minutes, by, is_part=_is_part(request)))

    @app.get("/sources")
    def sources(request: Request) -> HTMLResponse:
        return _html(pages.sources(is_part=_is_part(request)))

    @app.get("/assets/{name}")
    def asset(name: str) -> Response:
        text, media_type = asset_of(name)
        return Response(text, media_type=media_type, headers={"Cache-Control": "max-age=86400"})


def _add_login(app: FastAPI, pages: LivePages, access: PageAccess) -> None:
    @app.get("/login")
    def login(token: _Text = "") -> Response:
        if not access.token:
            return RedirectResponse("/", 303)
        if not token:
            return HTMLResponse(pages.login())
        if not access.knows(token):
            return HTMLResponse(pages.login(is_wrong=True), 401)
        answer = RedirectResponse("/", 303)
        age_s = COOKIE_DAYS * 86_400
        # Lax: a link in a mail opens the page, and nothing that a request of a browser can do changes anything.
        answer.set_cookie(COOKIE, access.cookie(), age_s, httponly=True, samesite="lax", secure=access.is_tls)
        return answer


def _add_data(app: FastAPI, watch: Watch, access: PageAccess) -> None:
    @app.get("/metrics")
    def metrics() -> PlainTextResponse:
        return PlainTextResponse(exposition(watch), media_type=CONTENT_TYPE)

    @app.get("/api/state")
    def state() -> JSONResponse:
        with locked(watch):
            return JSONResponse(state_of(watch))

    @app.post("/api/mark", status_code=201)
    async def mark(request: Request) -> JSONResponse:
        if not access.token:
            return JSONResponse({"error": "Set a token for the page first: page.password_file in watch.yaml."}, 403)
        if not access.has_bearer(request.headers):
            return JSONResponse({"error": "Give the token as `Authorization: Bearer TOKEN`."}, 401)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MARK_BYTES_MAX:
                return JSONResponse({"error": f"More than {MARK_BYTES_MAX} bytes."}, 413)
        try:
            change = MarkRequest.model_validate_json(body)
        except ValueError:
            return JSONResponse({"error": 'Expected {"text": "...", "entity": "vm:db01", "kind": "deployment"}.'}, 422)
        marker = Marker(time.time_ns(), change.kind, change.entity, change.text)
        await asyncio.to_thread(watch.incidents.mark, marker)
        return JSONResponse({"time_ns": marker.time_ns}, 201)


async def _changes(pages: LivePages, over: threading.Event) -> AsyncIterator[str]:
    """A line whenever the pages would show something else."""
    known, sent_s = "", 0.0
    while not over.is_set():
        version = await asyncio.to_thread(pages.version)
        if version != known:
            known, sent_s = version, time.monotonic()
            yield f"event: change\ndata: {json.dumps({'version': version})}\n\n"
        elif time.monotonic() - sent_s > BEAT_EVERY_S:
            sent_s = time.monotonic()
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_EVERY_S)


def _is_part(request: Request) -> bool:
    return FRAGMENT in request.headers


def _html(text: str) -> HTMLResponse:
    return HTMLResponse(text)
