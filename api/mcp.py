"""`/mcp`: MCP tools, resources and prompt over streamable HTTP, with the same tokens as the other routes.

Every request has its credential and its identity in headers. The server keeps no state between requests, so any server
can answer any request. A request may also name the session in `_meta`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .. import __version__
from ..recall.context import ContextService
from ..recall.record_reader import RecordReader
from ..tools.mcp_server import MemoryResource, MemoryServer, RequestContext, session_of_meta
from ..tools.tool_port import ToolIdentity, ToolPort
from .credentials import Credentials
from .limits import Limits
from .memberships import check_identity
from .request_body import inflated
from .revocation import Held
from .shares import Pools, party_of
from .tool_identity import identity_of

PATH: Final = "/mcp"
SCOPE: Final = "memory:read"
"""Scope that every request needs. A tool that writes also needs memory:write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServices:
    """Services that MCP calls."""

    tools: ToolPort
    contexts: ContextService
    resources: Sequence[MemoryResource]
    now: Callable[[], datetime]


class McpEndpoint:
    """Routes of MCP: the path, with and without a trailing slash. `running` must be entered while the server runs."""

    def __init__(
        self,
        services: McpServices,
        *,
        pools: Pools,
        memberships: RecordReader,
        credentials: Credentials,
        limits: Limits,
    ) -> None:
        self._route = Route(PATH, endpoint=_Endpoint(self), include_in_schema=False)
        self.routes = (self._route, Route(f"{PATH}/", endpoint=_Endpoint(self), include_in_schema=False))
        self._pools = pools
        self._memberships = memberships
        self._credentials = credentials
        self._limit = limits.body
        server = MemoryServer(
            tools=services.tools,
            contexts=services.contexts,
            resources=services.resources,
            identify=_identify,
            now=services.now,
            version=__version__,
        ).server()
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=limits.body)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose credential may read. Raises Problem for any other request."""
        headers = Headers(scope=scope)
        scope["route"] = self._route  # for metrics and the audit log; the framework sets it only for its own routes
        caller = await self._credentials.caller_of(scope)
        caller.require(SCOPE)
        identity = identity_of(caller, headers)
        await check_identity(self._memberships, caller, identity)
        scope["state"]["tool_identity"] = identity
        party, streams = party_of(caller, identity.tenant_id), self._pools.streams

        def place(leave: Callable[[], None]) -> AbstractAsyncContextManager[object]:
            return streams.place(party, leave=leave) if scope["method"] == "GET" else nullcontext()

        if scope["method"] == "POST":
            scope, receive = await inflated(scope, receive, limit=self._limit)
        held = Held(lambda: self._credentials.holds(caller), place)
        await held.run(self._manager.handle_request, scope, receive, send)


class _Endpoint:
    """ASGI application of both routes. Starlette passes every method to an ASGI application, but only GET to a
    function."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.answer(scope, receive, send)


async def _identify(context: RequestContext) -> ToolIdentity:
    """Return the identity that `answer` found. A session in the request's `_meta` replaces the header's session."""
    request = context.request
    assert isinstance(request, Request)  # the transport is HTTP
    identity: ToolIdentity = request.state.tool_identity
    session_id = session_of_meta(context.meta)
    return identity if session_id is None else replace(identity, session_id=session_id)
