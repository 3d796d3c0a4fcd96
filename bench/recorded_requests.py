"""Recorder of the raw requests to a Qdrant server, for repetition by a bare client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import aiohttp
from qdrant_client import AsyncQdrantClient
from yarl import URL

from memstream.adapters.vectors.server.remote import RestTransport


class SentRequest(NamedTuple):
    method: str
    url: URL
    content: bytes | None
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        return self.url.path


class _Session:
    """A session of the transport that records its requests."""

    def __init__(self, session: aiohttp.ClientSession, taken: list[list[SentRequest]]) -> None:
        self._session = session
        self._taken = taken

    def request(self, method: str, url: URL, *, data: bytes | None, headers: Mapping[str, str]) -> Any:
        for each in self._taken:
            each.append(SentRequest(method, url, data, headers))
        return self._session.request(method, url, data=data, headers=headers)

    async def close(self) -> None:
        await self._session.close()


@dataclass(slots=True)
class Recorder:
    """Recorder of a client's requests. It can repeat them over its own connections."""

    bare: aiohttp.ClientSession
    _taken: list[list[SentRequest]] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def of(cls, client: AsyncQdrantClient, server: str) -> AsyncIterator[Self]:
        transport = client.http.client
        assert isinstance(transport, RestTransport), "the client has a transport of its own"
        async with aiohttp.ClientSession(headers={"Accept-Encoding": "identity"}) as bare:
            recorder = cls(bare)
            transport._session = _Session(transport._opened(), recorder._taken)  # type: ignore[assignment]
            try:
                yield recorder
            finally:
                await client.close()

    @contextmanager
    def taking(self) -> Iterator[list[SentRequest]]:
        """Yield a list to which the requests of the block are added."""
        sent: list[SentRequest] = []
        self._taken.append(sent)
        try:
            yield sent
        finally:
            self._taken.remove(sent)

    async def repeat(self, request: SentRequest) -> bytes:
        """Send a request again and return the body of its answer."""
        async with self.bare.request(
            request.method, request.url, data=request.content, headers=request.headers
        ) as answer:
            body = await answer.read()
            assert answer.status == 200, body
            return body
