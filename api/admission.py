"""Middleware for the limits and the timeout of every request. It is pure ASGI, so that streams are not buffered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..schemas.errors import NoShare
from .credentials import Credentials
from .limits import Limits
from .problems import Problem, headers_too_large, of_port, unavailable
from .root_path import route_path
from .shares import EVERYBODY, NOBODY, Party, Pools, SharedPool, party_of

OPEN = frozenset({"/livez", "/readyz", "/metrics"})
"""Paths that are answered under any load."""
NO_ROUTE = "none"
EVENT_STREAM = b"text/event-stream"


class HttpMetrics:
    """HTTP metrics. Their labels name routes, not paths, because paths contain ids."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "memstream_http_requests_total", "Requests answered", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "memstream_http_request_seconds", "Until the answer began", ["method", "route"], registry=registry
        )


class Admission:
    """Middleware that limits concurrent requests and their time.

    A request holds a place until its answer ends. An event stream that answers a GET gives the place back when the
    stream begins, because open streams have their own limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        metrics: HttpMetrics,
        credentials: Credentials | None = None,
        pool: SharedPool | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._credentials = credentials or Credentials(None)
        self._pool = pool or Pools.of(limits).requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(scope, send, self._metrics)
        if route_path(scope) in OPEN:
            await self._app(scope, receive, passage.send)
            return
        if _head(scope) > self._limits.header:  # the HTTP parser accepts more if the headers arrive in one piece
            await passage.refuse(headers_too_large(self._limits.header), receive)
            return
        party = await self._party(scope)
        try:
            async with self._pool.place(party) as give_back:
                await self._admitted(scope, receive, passage, give_back)
        except NoShare as none:
            if passage.begun:
                raise
            await passage.refuse(of_port(none, retry_after=self._limits.retry_seconds), receive)

    async def _admitted(self, scope: Scope, receive: Receive, passage: _Passage, give_back: Callable[[], None]) -> None:
        if scope["method"] == "GET":  # a stream that answers a POST is a tool call: it keeps its place
            passage.when_streaming = give_back
        try:
            async with asyncio.timeout(self._limits.request_seconds) as time_out:
                passage.time_out = time_out
                await self._app(scope, receive, passage.send)
        except TimeoutError:
            if passage.begun:
                raise
            why = f"no answer within {self._limits.request_seconds:g} s; the request may still take effect"
            await passage.refuse(unavailable(why, retry_after=self._limits.retry_seconds), receive)

    async def _party(self, scope: Scope) -> Party:
        """Return the party whose share the request uses. The route later refuses a request whose credential is not
        accepted."""
        try:
            caller = await self._credentials.caller_of(scope)
        except Problem:
            return NOBODY
        return EVERYBODY if self._credentials.open else party_of(caller)


def _head(scope: Scope) -> int:
    """Return the number of bytes of the address and the headers."""
    fields = sum(len(name) + len(value) for name, value in scope["headers"])
    return fields + len(scope.get("raw_path", b"")) + len(scope["query_string"])


def _is_stream(start: Message) -> bool:
    return any(name == b"content-type" and value.startswith(EVENT_STREAM) for name, value in start["headers"])


class _Passage:
    """Answer of one request. It records whether the answer has begun, and counts the request in the metrics."""

    def __init__(self, scope: Scope, send: Send, metrics: HttpMetrics) -> None:
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._since = time.perf_counter()
        self.time_out: asyncio.Timeout | None = None
        self.begun = False
        self.when_streaming: Callable[[], None] | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            if self.time_out is not None:
                self.time_out.reschedule(None)
            if self.when_streaming is not None and _is_stream(message):
                self.when_streaming()
            self._count(message["status"])
        await self._send(message)

    async def refuse(self, problem: Problem, receive: Receive) -> None:
        self.time_out = None
        await problem.response(self._scope["path"])(self._scope, receive, self.send)

    def _count(self, status: int) -> None:
        route: str = getattr(self._scope.get("route"), "path", NO_ROUTE)
        known = self._scope["method"] in _METHODS
        method: str = self._scope["method"] if known else "other"
        self._metrics.requests.labels(method, route, str(HTTPStatus(status).value)).inc()
        self._metrics.seconds.labels(method, route).observe(time.perf_counter() - self._since)


_METHODS: Mapping[str, None] = dict.fromkeys(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
