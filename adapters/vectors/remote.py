"""Client of a Qdrant server: qdrant-client over aiohttp.

qdrant-client and `ServerEngine` build requests and decode answers; this module sends them. Over httpx, which
qdrant-client uses itself, a request costs two to five times as much: it searches its whole pool for each request and
release, and parses address, headers and cookies each time (docs/adr/0010-qdrant-client-on-aiohttp.md).
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import httpx
import structlog
from pydantic import ValidationError
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.common.response_parsing import parse_response
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from yarl import URL

from ...schemas.hosts import is_loopback
from .server_engine import ServerEngine

log = structlog.get_logger(__name__)

CONNECTIONS: Final = 64
KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept. The server closes it after 5."""
PORT: Final = 6333
JSON: Final = {"Content-Type": "application/json"}
DONE: Final = frozenset({200, 201, 202})
NOT_OURS: Final = frozenset({401, 403})
"""Statuses of another process that now uses the port of the former server."""
BUSY: Final = 429
UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""aiohttp asks for compression by itself. A real server sends a compressed answer in two segments, and the second waits
for a delayed acknowledgement: 43 ms instead of 0.3 (docs/adr/0010-qdrant-client-on-aiohttp.md)."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address and key of a Qdrant server. `ca`: the certificates that a TLS server's own is checked against, in a PEM
    file; None: the system's."""

    url: str
    api_key: str | None = None
    ca: Path | None = None

    @property
    def base(self) -> str:
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else PORT)
        return f"{parts.scheme}://{_host(parts.hostname)}:{port}{parts.path.rstrip('/')}"

    @property
    def headers(self) -> Mapping[str, str]:
        return {} if self.api_key is None else {"api-key": self.api_key}


def _host(name: str | None) -> str:
    return f"[{name}]" if name is not None and ":" in name else name or "localhost"


Look = Callable[[], Address | None]
"""Returns the present address of a server that may move. None: it is unknown."""


class RestTransport:
    """Transport between the client's API and the server; it replaces the client's own `AsyncApiClient`.

    A request may take `seconds` from its first byte to the last byte of the answer. When the server does not answer or
    refuses the key, `look` is asked for its present address, and later requests go there. The request that noticed it
    still fails, and its caller tries again.
    """

    def __init__(self, *, address: Address, seconds: float, look: Look) -> None:
        self._address = address
        self._base, self._headers = address.base, address.headers
        self._seconds = seconds
        self._look = look
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        *,
        type_: Any,
        method: str,
        url: str,
        path_params: Mapping[str, object] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content: str | None = None,
    ) -> Any:
        """Send a request as the client's own transport does, and return the answer as `type_`. Errors are those that
        the client raises."""
        path = url.format(**{name: quote(str(value), safe="") for name, value in (path_params or {}).items()})
        body = await self.send(
            method, path, params=params, headers=headers or {}, content=None if content is None else content.encode()
        )
        try:
            return parse_response(body, type_)
        except ValidationError as error:
            raise ResponseHandlingException(error) from error

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] = JSON,
        content: bytes | None = None,
    ) -> bytes:
        """Send a request and return the body of its answer. Errors are those of qdrant-client."""
        query = f"?{urlencode(params)}" if params else ""
        try:
            async with self._opened().request(
                method,
                URL(f"{self._base}{path}{query}", encoded=True),
                data=content,
                headers={**self._headers, **headers},
            ) as response:
                body = await response.read()
        except TimeoutError as error:
            self._look_again()
            raise ResponseHandlingException(TimeoutError(f"no whole answer within {self._seconds:g} s")) from error
        except (aiohttp.ClientError, OSError) as error:
            self._look_again()
            raise ResponseHandlingException(error) from error
        if response.status in DONE:
            return body
        if response.status in NOT_OURS:
            self._look_again()
        if response.status == BUSY and (after := response.headers.get("Retry-After")):
            raise ResourceExhaustedResponse(_said(body), after)  # type: ignore[arg-type]  # it reads it
        raise UnexpectedResponse(response.status, response.reason or "", body, httpx.Headers(dict(response.headers)))

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session. It is opened with the first request, in the event loop of that request."""
        if self._session is None:
            trusted = True if self._address.ca is None else ssl.create_default_context(cafile=self._address.ca)
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE, ssl=trusted)
            timeout = aiohttp.ClientTimeout(total=self._seconds)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), headers=UNCOMPRESSED
            )
        return self._session

    def _look_again(self) -> None:
        found = self._look()
        if found is not None and found != self._address:
            log.info("qdrant_moved", url=found.url)
            self._address = found
            self._base, self._headers = found.base, found.headers


def _said(body: bytes) -> str:
    """Return the message of a busy server."""
    try:
        said = json.loads(body)
    except ValueError:
        return ""
    status = said.get("status") if isinstance(said, dict) else None
    return str(status.get("error", "")) if isinstance(status, dict) else ""


def remote_engine(address: Address, *, seconds: float, look: Look = lambda: None) -> ServerEngine:
    """Build an engine that connects with its first call."""
    on_this_machine = is_loopback(urlsplit(address.url).hostname or "")
    return ServerEngine(
        requests=RestTransport(address=address, seconds=seconds, look=look),
        url=address.base,
        api_key=None if on_this_machine else address.api_key,  # the client warns when a key goes over plain HTTP
        check_compatibility=False,
    )
