"""`GET /v1/export`: every record of an owner or a tenant as a stream, in the format of docs/reference/export.md."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Final

import structlog
from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.types import Message, Receive, Scope, Send

from ..recall.export.encoding import MEDIA_TYPES, closing, further, opening
from ..recall.export.exporter import MemoryExporter
from ..recall.export.request import ExportCursor, ExportRequest
from ..schemas.errors import StageError
from ..schemas.export import ExportFormat
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .owner_params import Ceiling, Whose
from .problems import invalid_field
from .revocation import Held
from .shares import Party, Pools, party_of

log = structlog.get_logger(__name__)

ADDRESS_CURSOR_MAX: Final = 4_000
"""Maximum length of a cursor in an address: the ends of some 200 partitions. With it an address is within the server's
limit, also when each character is percent-encoded. A longer cursor gets no line."""


class ExportQuery(Whose):
    """Selection and format of an export."""

    format: ExportFormat = "ndjson"
    ceiling: Ceiling = "internal"
    embeddings: Annotated[bool, Field(description="With the vectors of facts, episodes and messages.")] = False
    conversations: Annotated[bool, Field(description="With the turns of the session log.")] = True
    cursors: Annotated[
        bool, Field(description="Add a line of the kind `cursor` after each page. Only with the format ndjson.")
    ] = False
    cursor: Annotated[
        str | None,
        Field(
            max_length=ADDRESS_CURSOR_MAX,
            description="The last line `cursor` of an interrupted export, with the same parameters: continue after it.",
        ),
    ] = None

    def request(self, caller: Caller) -> ExportRequest:
        """Check the parameters against the credential. Raises Problem."""
        tenant_id, owner = self.tenant_of(caller), self.owner_or_all(caller)
        caller.check_ceiling(self.ceiling, tenant_id, owner)
        for name in ("cursors", "cursor"):
            if getattr(self, name) and self.format != "ndjson":
                raise invalid_field(name, "needs the format ndjson")
        return ExportRequest(
            tenant_id,
            owner=owner,
            ceiling=self.ceiling,
            embeddings=self.embeddings,
            conversations=self.conversations,
            removed="memory:admin" in caller.scopes,
        )


class _ClientStopped(Exception):
    """The client reads no longer."""


class ExportResponse(StreamingResponse):
    """Stream of an export. It holds a place among the streams that read older events, because it reads much."""

    def __init__(
        self,
        body: AsyncIterator[bytes],
        *,
        media_type: str,
        held: Held,
        send_seconds: float,
        status_code: int = HTTPStatus.OK,
    ) -> None:
        super().__init__(body, media_type=media_type, status_code=status_code)
        self._held = held
        self._send_seconds = send_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def bounded(message: Message) -> None:
            try:
                async with asyncio.timeout(self._send_seconds):
                    await send(message)
            except TimeoutError:
                raise _ClientStopped from None

        try:
            await self._held.run(super().__call__, scope, receive, bounded)
        except* _ClientStopped:
            log.warning("stream_cut_off", why=f"the client read nothing for {self._send_seconds:g} s")


async def body(
    exporter: MemoryExporter, request: ExportRequest, query: ExportQuery, start: ExportCursor
) -> AsyncIterator[bytes]:
    """Yield the text of an export. If the store or the log fails, the text ends without its line `end`."""
    if query.cursor is None:
        yield opening(query.format, exporter.header(request, start))
        if query.cursors:
            yield _cursor_line(start, request)
    at = start
    try:
        async with aclosing(exporter.pages(request, start)) as pages:
            async for page in pages:
                at = page.cursor
                yield further(query.format, page.lines) + (_cursor_line(at, request) if query.cursors else b"")
    except StageError as error:
        log.warning("export_stopped", tenant_id=request.tenant_id, kind=at.kind, why=str(error))
        return
    yield closing(query.format, exporter.end(at))


def _cursor_line(cursor: ExportCursor, request: ExportRequest) -> bytes:
    token = cursor.token(request)
    return json.dumps({"kind": "cursor", "cursor": token}).encode() + b"\n" if len(token) <= ADDRESS_CURSOR_MAX else b""


def router(*, exporter: MemoryExporter, pools: Pools, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["export"])
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get(
        "/v1/export",
        summary="Export memory",
        response_class=ExportResponse,
        responses={
            200: {
                "content": {each: {"schema": {"type": "string"}} for each in MEDIA_TYPES.values()},
                "description": "The export. It is complete if its last line has the kind `end`.",
            }
        },
    )
    async def export(query: Annotated[ExportQuery, Query()], caller: Caller = reader) -> ExportResponse:
        """Returns every record that the caller may see, as of the start of the request. Other records are counted in
        the line `end`. Removed episodes and procedures need the scope memory:admin."""
        request = query.request(caller)
        start = await _start(exporter, request, query.cursor)
        log.info("export_began", tenant_id=request.tenant_id, who=caller.name, continued=query.cursor is not None)
        party = party_of(caller, request.tenant_id)
        held = Held(lambda: credentials.holds(caller), lambda leave: _places(pools, party, leave))
        return ExportResponse(
            body(exporter, request, query, start),
            media_type=MEDIA_TYPES[query.format],
            held=held,
            send_seconds=limits.stream_send_seconds,
        )

    return routes


async def _start(exporter: MemoryExporter, request: ExportRequest, cursor: str | None) -> ExportCursor:
    if cursor is None:
        return await exporter.begin(request)
    try:
        return ExportCursor.read(cursor, request)
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None


@asynccontextmanager
async def _places(pools: Pools, party: Party, leave: Callable[[], None]) -> AsyncIterator[None]:
    pool: Callable[..., AbstractAsyncContextManager[object]]
    async with AsyncExitStack() as stack:
        for pool in (pools.streams.place, pools.catching_up.place):
            await stack.enter_async_context(pool(party, leave=leave))
        yield
