"""Guard of a server without tokens: only programs on this machine may use it, but no web page.

A page in a browser on this machine also reaches the loopback interface. It may send requests to 127.0.0.1 (cross-site
request forgery), or resolve its own host name to 127.0.0.1 and read the answers (DNS rebinding). In both cases the
browser names the page's site in the headers Host, Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from .problems import audit_denied, forbidden
from .root_path import route_path

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
PROBES = frozenset({"/livez", "/readyz"})
"""Paths that are allowed under any host name: their answers contain no memory."""
HTTP_PORT = 80


class LocalGuard:
    """Middleware that refuses (403) requests for another host, and requests from pages of another site.

    Pages of `origins` are allowed.
    """

    def __init__(self, app: ASGIApp, *, origins: Collection[str] = ()) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and route_path(scope) not in PROBES and (why := self._foreign(scope)):
            problem = forbidden(why)
            audit_denied(problem, Request(scope))
            await problem.response(scope["path"])(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _foreign(self, scope: Scope) -> str:
        """Return the reason to refuse the request, or "" to allow it."""
        headers = Headers(scope=scope)
        port = (scope.get("server") or ("", None))[1]
        hosts = _local_hosts(port)
        given = headers.getlist("host")
        if len(given) != 1 or given[0].lower() not in hosts:
            return (
                "without tokens this server answers only requests for localhost, 127.0.0.1 or [::1] with its port; "
                "use such an address, or create a token with `memstream tokens new`"
            )
        origins = [origin.lower() for origin in headers.getlist("origin")]
        if origins and all(origin in self._origins for origin in origins):
            return ""
        if any(origin not in {f"{scope['scheme']}://{host}" for host in hosts} for origin in origins):
            return "a page of another origin sent this request; without tokens this server refuses it"
        if any(site.strip().lower() == "cross-site" for site in headers.getlist("sec-fetch-site")):
            return "a page of another site sent this request; without tokens this server refuses it"
        return ""


def _local_hosts(port: int | None) -> frozenset[str]:
    """Return the values of Host that name this server. A client omits the default port of the scheme."""
    hosts = {f"{name}:{port}" for name in LOCAL_NAMES} if port is not None else set(LOCAL_NAMES)
    return frozenset(hosts | set(LOCAL_NAMES) if port == HTTP_PORT else hosts)
