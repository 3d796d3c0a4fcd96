"""Sign-in of the console: a token in a cookie, and the protection of forms against other sites.

The cookie has the token itself, so each request checks the token like the REST API: expiry and revocation take effect
immediately, on any server. Scripts cannot read the cookie, and the browser sends it only to `/console`, and only from
pages of this site.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..credentials import bearer_token
from ..problems import forbidden, invalid_field, too_large, unsupported_media_type
from ..root_path import route_path

PATH: Final = "/console"
COOKIE: Final = "memstream_console"
CSRF: Final = "csrf"
"""Name of the form field with the token against cross-site request forgery."""
TOKEN_MAX: Final = 3_800
"""Maximum length of a token. Browsers drop cookies of more than 4 096 bytes."""
FORM_MAX: Final = 64 * 1024
"""Maximum number of bytes of a form."""
FIELDS_MAX: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")
_PURPOSE: Final = b"memstream console form"


def of_console(path: str) -> bool:
    return path == PATH or path.startswith(f"{PATH}/")


class CookieSignIn:
    """Middleware that reads the console's cookie as a bearer token. It does so only for paths of the console, so a page
    of another site cannot use the cookie for the REST API."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and of_console(route_path(scope)):
            headers = Headers(scope=scope)
            token = _cookie(headers)
            if token is not None and "authorization" not in headers:
                changed = MutableHeaders(raw=list(scope["headers"]))
                changed["authorization"] = f"Bearer {token}"
                scope = {**scope, "headers": changed.raw}
        await self._app(scope, receive, send)


def _cookie(headers: Headers) -> str | None:
    """Return the token in the cookie, or None. Cookies of other programs may have any form."""
    found = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    return found if len(found) <= TOKEN_MAX and _TOKEN.fullmatch(found) else None


def checked_token(given: str) -> str:
    """Return a token from the form, or "" if the text has characters that no token has (RFC 6750). Raises Problem if
    the cookie cannot keep it."""
    if len(given) > TOKEN_MAX:
        raise invalid_field("token", f"has more than {TOKEN_MAX} characters, and a browser does not keep such a cookie")
    return given if _TOKEN.fullmatch(given) else ""


def remember(response: Response, token: str, request: Request) -> None:
    """Set the cookie. It ends with the browser."""
    response.set_cookie(
        COOKIE, token, path=_cookie_path(request), httponly=True, samesite="strict", secure=behind_tls(request)
    )


def forget(response: Response, request: Request) -> None:
    response.delete_cookie(
        COOKIE, path=_cookie_path(request), httponly=True, samesite="strict", secure=behind_tls(request)
    )


def _cookie_path(request: Request) -> str:
    return str(request.scope.get("root_path", "")) + PATH


def behind_tls(request: Request) -> bool:
    """Return whether the browser uses TLS. A proxy may end TLS, so the origin of the page is checked, too."""
    schemes = (request.url.scheme, request.headers.get("x-forwarded-proto", ""), request.headers.get("origin", ""))
    return any(each.lower().partition(":")[0].strip() == "https" for each in schemes)


class FormGuard:
    """Check of forms: each form has a token that only a page of this console knows.

    The token is derived from the credential. Without tokens it is derived from a random key of the process.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def token(self, request: Request) -> str:
        credential = bearer_token(request.headers)
        key = self._key if credential is None else credential.encode("utf-8", "surrogatepass")
        return hmac.new(key, _PURPOSE, hashlib.sha256).hexdigest()

    async def form(self, request: Request) -> dict[str, str]:
        """Read a form and check its token. Raises Problem (403)."""
        check_same_site(request)
        fields = await read_form(request)
        if not hmac.compare_digest(fields.pop(CSRF, "").encode(), self.token(request).encode()):
            raise forbidden("this form is from an older sign-in or another site; load the page again and repeat")
        return fields


def check_same_site(request: Request) -> None:
    """Refuse a form of another site. Raises Problem (403). The browser names the page's site in its headers."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        same = site in ("same-origin", "none")
    else:
        origin = request.headers.get("origin")
        same = origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
    if not same:
        raise forbidden("a page of another site sent this form; open the console itself and repeat")


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form. Empty and blank fields are left out. Raises Problem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise unsupported_media_type("send a form, with Content-Type: application/x-www-form-urlencoded")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_MAX:
            raise too_large(f"the form has more than {FORM_MAX} bytes; shorten its text")
    try:
        pairs = parse_qsl(body.decode(), max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:
        raise invalid_field("form", f"is not a form in UTF-8 with at most {FIELDS_MAX} fields") from None
    return {name: value.replace("\r\n", "\n") for name, value in pairs if value.strip()}


def return_path(given: str | None) -> str:
    """Return the page to show after sign-in: a path of the console, or else its start page."""
    if given is None or not given.isprintable() or "\\" in given or len(given) > FORM_MAX:
        return PATH
    try:
        parts = urlsplit(given)
    except ValueError:
        return PATH
    inside = of_console(parts.path) and ".." not in unquote(parts.path).split("/")
    return given if inside and not parts.scheme and not parts.netloc else PATH
