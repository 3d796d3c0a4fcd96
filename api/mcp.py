"""`/mcp`: the tools, resources and the prompt over streamable HTTP, with the tokens of the other routes.

Every request carries its credential and its identity in headers, so no state stays between requests, and any server
answers any of them. The session may also come in `_meta` of a request.
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
from ..tools.mcp_server import ContextPort, MemoryResource, MemoryServer, RequestContext, session_of_meta
from ..tools.tool_port import ToolIdentity, ToolPort
from .credentials import Credentials, bearer_token
from .limits import Limits
from .memberships import Memberships, check_identity
from .request_body import inflated
from .revocation import Held
from .shares import Pools, party_of
from .tool_identity import identity_of

PATH: Final = "/mcp"
SCOPE: Final = "memory:read"
"""The scope that a connection needs. A tool that writes needs memory:write as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServices:
    """What stands behind MCP."""

    tools: ToolPort
    contexts: ContextPort
    resources: Sequence[MemoryResource]
    now: Callable[[], datetime]


class McpEndpoint:
    """The routes: the path, and the path with a slash at its end. `running` has to be entered while the server runs."""

    def __init__(
        self,
        services: McpServices,
        *,
        pools: Pools,
        memberships: Memberships,
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
        """Answer a request whose credential may read. Raises Problem for others, as the other routes do."""
        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        scope["route"] = self._route  # for metrics and the audit trail; only the framework's own routes set it
        caller = self._credentials.caller(bearer_token(headers))
        state["caller"] = caller.name  # for the audit trail, should the request be denied
        caller.require(SCOPE)
        identity = identity_of(caller, headers)
        await check_identity(self._memberships, caller, identity)
        state["tool_identity"] = identity
        party, streams = party_of(caller, identity.tenant_id), self._pools.streams

        def place(leave: Callable[[], None]) -> AbstractAsyncContextManager[object]:
            return streams.place(party, leave=leave) if scope["method"] == "GET" else nullcontext()

        if scope["method"] == "POST":
            scope, receive = await inflated(scope, receive, limit=self._limit)
        held = Held(lambda: self._credentials.holds(caller), place)
        await held.run(self._manager.handle_request, scope, receive, send)


class _Endpoint:
    """An ASGI application, as a route takes it for every method."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.answer(scope, receive, send)


async def _identify(context: RequestContext) -> ToolIdentity:
    """Return the identity that `answer` found, with the session of the request's `_meta`."""
    request = context.request
    assert isinstance(request, Request)  # the transport is HTTP
    identity: ToolIdentity = request.state.tool_identity
    session_id = session_of_meta(context.meta)
    return identity if session_id is None else replace(identity, session_id=session_id)
