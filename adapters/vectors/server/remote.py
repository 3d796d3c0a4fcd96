"""Client of a Qdrant server: qdrant-client over aiohttp.

qdrant-client and `ServerEngine` build requests and decode answers; this module sends the requests. qdrant-client itself
uses httpx, where a request costs two to five times as much: httpx searches its whole connection pool at the start and
the end of each request, and parses address, headers and cookies (docs/adr/0010-qdrant-client-on-aiohttp.md).
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

log = structlog.get_logger(__name__)

CONNECTIONS: Final = 64
KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept. The server closes it after 5 seconds."""
PORT: Final = 6333
JSON: Final = {"Content-Type": "application/json"}
DONE: Final = frozenset({200, 201, 202})
NOT_OURS: Final = frozenset({401, 403})
"""Status codes of a wrong key. They may mean that the server was restarted on another port, and another process now
uses the old port."""
BUSY: Final = 429
UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""Header that turns off compression, because aiohttp requests it by default. A real server sends a compressed answer in
two segments, and the second segment waits for a delayed acknowledgement: 43 ms instead of 0.3 ms
(docs/adr/0010-qdrant-client-on-aiohttp.md)."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address and key of a Qdrant server. `ca` is a PEM file with the certificates for verifying the server's TLS
    certificate; None: the system's certificates."""

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
"""Callable that returns the current address of a server that may move. None: the address is unknown."""


class RestTransport:
    """Transport between the client's API and the server. It replaces the client's own `AsyncApiClient`.

    A request may take `seconds`, from the connection to the last byte of the answer. When the server does not answer or
    rejects the key, `look` returns the current address for later requests. The failed request is not repeated here; its
    caller repeats it.
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
        """Send a request like the client's own transport, and return the answer as `type_`. Raise the client's
        errors."""
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
        """Send a request and return the body of its answer. Raise the errors of qdrant-client."""
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
            raise ResponseHandlingException(TimeoutError(f"no complete answer within {self._seconds:g} s")) from error
        except (aiohttp.ClientError, OSError) as error:
            self._look_again()
            raise ResponseHandlingException(error) from error
        if response.status in DONE:
            return body
        if response.status in NOT_OURS:
            self._look_again()
        if response.status == BUSY and (after := response.headers.get("Retry-After")):
            raise ResourceExhaustedResponse(_said(body), after)  # type: ignore[arg-type]  # it parses the text
        raise UnexpectedResponse(response.status, response.reason or "", body, httpx.Headers(dict(response.headers)))

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session. The first request opens it, in its own event loop."""
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
    """Return the error message of a busy server."""
    try:
        said = json.loads(body)
    except ValueError:
        return ""
    status = said.get("status") if isinstance(said, dict) else None
    return str(status.get("error", "")) if isinstance(status, dict) else ""
