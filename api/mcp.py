"""`/mcp`: the tools, resources and the prompt over streamable HTTP, with the tokens of the other routes.

Every request carries its credential and its identity in headers, so no state stays between requests, and any server
answers any of them. The session may also come in `_meta` of a request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
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
from .credentials import Credentials
from .limits import Limits
from .problems import Problem
from .tool_identity import identity_of

PATH: Final = "/mcp"
SCOPE: Final = "memory:read"
"""The scope that a connection needs. A tool that writes needs memory:write as well."""
_BEARER: Final = "bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServices:
    """What stands behind MCP."""

    tools: ToolPort
    contexts: ContextPort
    resources: Sequence[MemoryResource]
    now: Callable[[], datetime]


class McpEndpoint:
    """The route. `running` has to be entered while the server runs."""

    def __init__(self, services: McpServices, *, credentials: Credentials, limits: Limits) -> None:
        self._credentials = credentials
        server = MemoryServer(
            tools=services.tools,
            contexts=services.contexts,
            resources=services.resources,
            identify=_identify,
            now=services.now,
            version=__version__,
        ).server()
        self._manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=limits.body)

    @property
    def route(self) -> Route:
        return Route(PATH, endpoint=_Endpoint(self), include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            yield

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose credential may read. Others get problem details."""
        headers = Headers(scope=scope)
        try:
            caller = self._credentials.caller(_token(headers))
            caller.require(SCOPE)
            identity = identity_of(caller, headers)
        except Problem as problem:
            await problem.response(scope["path"])(scope, receive, send)
            return
        scope.setdefault("state", {})["tool_identity"] = identity
        await self._manager.handle_request(scope, receive, send)


class _Endpoint:
    """An ASGI application, as a route takes it for every method."""

    def __init__(self, endpoint: McpEndpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.answer(scope, receive, send)


def _token(headers: Headers) -> str | None:
    given = headers.get("authorization", "")
    return given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else None


async def _identify(context: RequestContext) -> ToolIdentity:
    """Return the identity that `answer` found, with the session of the request's `_meta`."""
    request = context.request
    assert isinstance(request, Request)  # the transport is HTTP
    identity: ToolIdentity = request.state.tool_identity
    session_id = session_of_meta(context.meta)
    return identity if session_id is None else replace(identity, session_id=session_id)
