"""Routes of the console: sign-in, the files, the start page, and the pages of the screens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Depends, Request
from prometheus_client import CollectorRegistry
from starlette.responses import RedirectResponse, Response

from ...recall.context import ContextService
from ...recall.profile import ProfileReader
from ...recall.provenance import FactTracer
from ...recall.recall_reports import RecallReports
from ...recall.record_reader import RecordReader
from ...recall.service import RecallPort
from ...recall.turn_trace import TurnTracer
from ...streams.engine.metrics import OTHER_TENANTS
from ...streams.log.fanout import TopicFanout
from ..credentials import Caller, Credentials, caller_with, note_caller
from ..dead_letters import DeadLetters
from ..edits import EditSender
from ..problems import Problem, audit_denied, not_found
from ..recall import LimitOf
from ..reviews import FactReviews
from ..updates import UpdateStreams
from ..worker_health import Readiness
from . import fact_pages, held_pages, lab_pages, letter_pages, live, trail_pages
from .figures import ReadOldest, oldest_of, tenant_figures
from .pages import FOLDER, ConsolePages, address, console_root
from .sign_in import PATH, check_same_site, checked_token, forget, read_form, remember, return_path
from .trail_pages import ReadLags, known_lags

STATIC: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def router(
    pages: ConsolePages,
    *,
    record_reader: RecordReader,
    profiles: ProfileReader,
    fact_tracer: FactTracer,
    recall_reports: RecallReports,
    turn_tracer: TurnTracer,
    lags: ReadLags,
    oldest: ReadOldest,
    readiness: Readiness,
    registry: CollectorRegistry,
    recall: RecallPort,
    contexts: ContextService,
    limit: LimitOf,
    now: Callable[[], datetime],
    edits: EditSender,
    reviews: FactReviews,
    dead_letters: DeadLetters,
    streams: UpdateStreams,
    turn_followers: TopicFanout,
    credentials: Credentials,
) -> APIRouter:
    allowed: Caller = Depends(caller_with(credentials, "memory:read"))

    async def signed_in(request: Request, caller: Caller = allowed) -> Caller:
        request.state.console_caller = caller  # for the error page
        return caller

    reader: Caller = Depends(signed_in)
    routes = APIRouter(prefix=PATH, route_class=pages.route_class(), include_in_schema=False)
    files = {name: (FOLDER / "static" / name).read_bytes() for name in STATIC}

    @routes.get("")
    async def start(request: Request, caller: Caller = reader) -> Response:
        found = await known_lags(lags)
        return pages.page(
            request,
            "start.html",
            caller=caller,
            tenants=sorted(caller.tenants or ()),
            figures=tenant_figures(registry, caller.tenants),
            further=OTHER_TENANTS,
            parts=readiness(),
            lags=found,
            oldest=await oldest_of(oldest, found),
            is_empty=bool(found) and not any(each.sent for each in found),
        )

    @routes.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in files:
            raise not_found(f"the console has no file {name}")
        return Response(files[name], media_type=STATIC[name])

    @routes.get("/sign-in")
    async def form(request: Request) -> Response:
        if credentials.open:
            return RedirectResponse(console_root(request), HTTPStatus.SEE_OTHER)
        return _sign_in_page(request, HTTPStatus.OK, ended="ended" in request.query_params)

    @routes.post("/sign-in")
    async def sign_in(request: Request) -> Response:
        check_same_site(request)
        fields = await read_form(request)
        token = fields.get("token", "").strip()
        note_caller(request.scope["state"], None)  # not the caller of an earlier sign-in, whose cookie is here
        try:
            known = await credentials.admit(checked_token(token))
            note_caller(request.scope["state"], known)
            known.require("memory:read")
        except Problem as problem:
            audit_denied(problem, request)
            return _sign_in_page(request, problem.status, why=problem.detail, next_page=fields.get("next"))
        path = return_path(fields.get("next"))
        response = RedirectResponse(console_root(request).removesuffix(PATH) + path, HTTPStatus.SEE_OTHER)
        remember(response, token, request)
        return response

    @routes.post("/sign-out")
    async def sign_out(request: Request) -> Response:
        await pages.forms.form(request)
        response = RedirectResponse(address(console_root(request), "sign-in", {}), HTTPStatus.SEE_OTHER)
        forget(response, request)
        return response

    def _sign_in_page(
        request: Request, status: HTTPStatus, *, why: str = "", ended: bool = False, next_page: str | None = None
    ) -> Response:
        given = next_page or request.query_params.get("next")
        return pages.page(
            request, "sign_in.html", caller=None, status=status, why=why, ended=ended, next_page=return_path(given)
        )

    routes.include_router(
        fact_pages.router(
            pages,
            reader,
            record_reader=record_reader,
            profiles=profiles,
            fact_tracer=fact_tracer,
            recall_reports=recall_reports,
            edits=edits,
            reviews=reviews,
            followers=streams.followers,
        )
    )

    routes.include_router(held_pages.router(pages, reader, record_reader=record_reader, edits=edits))

    routes.include_router(letter_pages.router(pages, reader, dead_letters=dead_letters))

    routes.include_router(
        trail_pages.router(
            pages,
            reader,
            record_reader=record_reader,
            turn_tracer=turn_tracer,
            lags=lags,
            followers=turn_followers,
        )
    )

    routes.include_router(
        lab_pages.router(
            pages,
            reader,
            recall=recall,
            contexts=contexts,
            profiles=profiles,
            record_reader=record_reader,
            limit=limit,
            now=now,
        )
    )

    routes.include_router(live.router(reader, streams=streams, turns=replace(streams, followers=turn_followers)))

    @routes.get("/{rest:path}")
    async def unknown(request: Request, rest: str, caller: Caller = reader) -> Response:
        if not rest:
            return RedirectResponse(console_root(request), HTTPStatus.SEE_OTHER)
        raise not_found("the console has no such page; begin at its start page")

    return routes
