"""A Qdrant server, by qdrant-client on aiohttp's connections.

httpx looks through its whole pool at each request and each release, which costs more the more are under way; with
`httpx-aiohttp` under the client a request costs a quarter (ADR 0010).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx
import structlog
from httpx_aiohttp import AiohttpTransport
from qdrant_client import AsyncQdrantClient

log = structlog.get_logger(__name__)

LIMITS: Final = httpx.Limits(
    max_connections=64,
    max_keepalive_connections=64,
    keepalive_expiry=4.0,  # seconds that an idle connection is kept: the server closes it after 5
)
PORT: Final = 6333
NOT_OURS: Final = frozenset({401, 403})
"""What another process says that was given the port of the one before."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Qdrant is reached, and by which key."""

    url: str
    api_key: str | None = None


Look = Callable[[], Address | None]
"""Where a server that may move is now; None when nobody knows."""


class Connections(AiohttpTransport):
    """What lies between the client and the server.

    A request has `seconds` from its first byte to the answer's last; the client's own limit is for each read, which a
    trickle of bytes escapes. `look` is asked when the server does not answer or refuses the key: from then on requests
    go where it says. The request that found out fails all the same, and its caller tries again.
    """

    def __init__(self, *, address: Address, seconds: float, look: Look) -> None:
        super().__init__(limits=LIMITS)
        self._first = self._address = address
        self._seconds = seconds
        self._look = look

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._address != self._first:
            _send_to(self._address, request)
        try:
            async with asyncio.timeout(self._seconds):
                response = await super().handle_async_request(request)
                await response.aread()
        except httpx.HTTPError:
            self._look_again()
            raise
        except TimeoutError as error:
            self._look_again()
            raise httpx.ReadTimeout(f"no whole answer within {self._seconds:g} s", request=request) from error
        if response.status_code in NOT_OURS:
            self._look_again()
        return response

    def _look_again(self) -> None:
        found = self._look()
        if found is not None and found != self._address:
            log.info("qdrant_moved", url=found.url)
            self._address = found


def _send_to(address: Address, request: httpx.Request) -> None:
    parts = urlsplit(address.url)
    request.url = request.url.copy_with(scheme=parts.scheme, host=parts.hostname, port=parts.port or PORT)
    request.headers["host"] = request.url.netloc.decode()
    if address.api_key is not None:
        request.headers["api-key"] = address.api_key


def remote_engine(address: Address, *, seconds: float, look: Look = lambda: None) -> AsyncQdrantClient:
    """Connects with the first call."""
    parts = urlsplit(address.url)
    on_this_machine = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return AsyncQdrantClient(
        url=address.url,
        port=None if parts.port is None and parts.scheme == "https" else PORT,
        # As a header on this machine: as `api_key` the client warns that http is not safe, which here it is.
        api_key=None if on_this_machine else address.api_key,
        headers={"api-key": address.api_key} if on_this_machine and address.api_key else None,
        timeout=int(seconds),
        check_compatibility=False,
        transport=Connections(address=address, seconds=seconds, look=look),
    )
