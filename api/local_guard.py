"""Guard of a server without tokens: only programs of this machine may use it, no web page.

A page in a browser on this machine reaches the loopback interface too. It may send requests to 127.0.0.1 (cross-site
request forgery), or give its own name the address 127.0.0.1 and then read the answers (DNS rebinding). The browser
names the page's site in both cases, in the headers Host, Origin and Sec-Fetch-Site.
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
"""Paths that any host name may ask for: they say nothing of a memory."""
HTTP_PORT = 80


class LocalGuard:
    """Middleware that refuses requests for another host and requests that a page of another site makes (403). Pages of
    `origins` may make them."""

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
        """Return why the request is refused; an empty text: it is not."""
        headers = Headers(scope=scope)
        port = (scope.get("server") or ("", None))[1]
        hosts = _local_hosts(port)
        given = headers.getlist("host")
        if len(given) != 1 or given[0].lower() not in hosts:
            return (
                "without tokens this server answers requests for localhost, 127.0.0.1 or [::1] with its port alone; "
                "name it so, or make a token with `memstream tokens new`"
            )
        origins = [origin.lower() for origin in headers.getlist("origin")]
        if origins and all(origin in self._origins for origin in origins):
            return ""
        if any(origin not in {f"{scope['scheme']}://{host}" for host in hosts} for origin in origins):
            return "the page that sent this request is of another origin; without tokens this server refuses it"
        if any(site.strip().lower() == "cross-site" for site in headers.getlist("sec-fetch-site")):
            return "a page of another site sent this request; without tokens this server refuses it"
        return ""


def _local_hosts(port: int | None) -> frozenset[str]:
    """Return the values of Host that mean this server. A client leaves out the port of its scheme."""
    hosts = {f"{name}:{port}" for name in LOCAL_NAMES} if port is not None else set(LOCAL_NAMES)
    return frozenset(hosts | set(LOCAL_NAMES) if port == HTTP_PORT else hosts)
