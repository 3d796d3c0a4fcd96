"""Prefix of every path if a proxy publishes this server under a path of a site (`serve --root-path /memory`).

Some proxies strip the prefix before they forward a request, others keep it. The application always sees the prefix, as
ASGI requires, so links and the OpenAPI document also contain the prefix.
"""

from __future__ import annotations

from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Scope, Send


class RootPath:
    """Middleware that adds the prefix to paths from which a proxy has stripped it."""

    def __init__(self, app: ASGIApp, *, root_path: str) -> None:
        self._app = app
        self._prefix = root_path
        self._raw_prefix = quote(root_path).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": self._prefix}
            if not f"{scope['path']}/".startswith(f"{self._prefix}/"):
                scope["raw_path"] = self._raw_prefix + (scope.get("raw_path") or quote(scope["path"]).encode())
                scope["path"] = self._prefix + scope["path"]
        await self._app(scope, receive, send)


def route_path(scope: Scope) -> str:
    """Return the path of a request without the prefix."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))
