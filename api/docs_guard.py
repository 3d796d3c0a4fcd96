"""Guard of `/docs` and `/openapi.json`: with a token file, these paths need a token, too."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from .credentials import Credentials
from .problems import Problem, audit_denied
from .root_path import route_path

DOCUMENTS: Final = "/openapi.json"
PAGES: Final = "/docs"


class DocsGuard:
    """Middleware that answers 401 to a request for the documentation without a known token. Any scope is enough."""

    def __init__(self, app: ASGIApp, *, credentials: Credentials) -> None:
        self._app = app
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _describes(route_path(scope)):
            try:
                await self._credentials.caller_of(scope)
            except Problem as problem:
                audit_denied(problem, Request(scope), route=route_path(scope))
                await problem.response(scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _describes(path: str) -> bool:
    return path in (DOCUMENTS, PAGES) or path.startswith(f"{PAGES}/")
