"""Frame of every answer under `/console`: the security headers, and a page for each error, also for an error that no
route of the console has raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..problems import MEDIA_TYPE, ProblemDetails, internal
from ..root_path import route_path
from .pages import ConsolePages
from .sign_in import PATH, of_console

CONTENT_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""The pages have no inline script or style, and no part from another origin. Trusted Types without a policy keep the
script from setting markup."""
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with a form
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
KEPT: Final = ("Retry-After", "Allow")
"""Headers that a page keeps from the answer that it replaces."""
STREAM: Final = f"{PATH}/updates"
FILES: Final = f"{PATH}/static/"


class Frame:
    """Middleware that adds the headers, and replaces problem details by a page. The stream and the files keep them,
    because no person reads their errors."""

    def __init__(self, app: ASGIApp, *, pages: ConsolePages) -> None:
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = route_path(scope) if scope["type"] == "http" else ""
        if not of_console(path):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})  # the routes note the caller here
        has_page = path != STREAM and not path.startswith(FILES)
        answer = _Answer(send, has_page=has_page)
        try:
            await self._app(scope, receive, answer.send)
        except Exception:
            if has_page and not answer.begun:
                problem = internal().details(scope["path"])
                await self._pages.error(Request(scope), problem, retry_after=None)(scope, receive, answer.framed)
            raise  # the server logs it with its traceback
        if answer.replaced is not None:
            old = Headers(raw=answer.replaced["headers"])
            problem = ProblemDetails.model_validate_json(answer.body)
            page = self._pages.error(Request(scope), problem, retry_after=old.get("Retry-After"))
            page.headers.update({name: old[name] for name in KEPT if name in old})
            await page(scope, receive, answer.framed)


class _Answer:
    """Answer of one request. It keeps problem details instead of sending them, if a page replaces them."""

    def __init__(self, send: Send, *, has_page: bool) -> None:
        self._send = send
        self._has_page = has_page
        self.begun = False
        self.replaced: Message | None = None
        """Start of the answer that a page replaces."""
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._has_page and _is_problem(message):
            self.replaced = message
        elif self.replaced is None:
            await self.framed(message)
        else:
            self.body += message.get("body", b"")

    async def framed(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(raw=list(message["headers"]))
            headers.update(HEADERS)
            message = {**message, "headers": headers.raw}
        await self._send(message)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type") == MEDIA_TYPE
