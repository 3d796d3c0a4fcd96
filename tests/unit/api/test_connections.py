"""Silent and slow clients take no place from others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from memstream.api.limits import Limits
from memstream.cli.wiring.http_connections import FEWEST, connections_that_fit
from tests.support.api_server import app_over, served

pytestmark = pytest.mark.slow

FEW = Limits(connections=8, connections_per_address=4, header_seconds=0.4)
PATIENT = Limits(connections=8, connections_per_address=4, header_seconds=60.0)
HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def of(cls, stack: AsyncExitStack, url: str) -> Client:
        parts = urlsplit(url)
        client = cls(*await asyncio.open_connection(parts.hostname, parts.port))
        stack.callback(client.writer.close)
        return client

    async def ended(self) -> bool:
        """Wait until the server closes the connection."""
        async with asyncio.timeout(20):
            await self.reader.read()
            return self.reader.at_eof()


@pytest.mark.parametrize("sent", [b"", HEAD, b"G"])
async def test_a_connection_whose_headers_do_not_end_is_closed(sent: bytes) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=FEW), limits=FEW))
        client = await Client.of(stack, url)
        client.writer.write(sent)
        assert await client.ended()


async def test_dripping_bytes_does_not_move_the_deadline() -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=FEW), limits=FEW))
        client = await Client.of(stack, url)
        ended = asyncio.create_task(client.ended())
        async with asyncio.timeout(20):
            while not ended.done():
                client.writer.write(b"x")
                await asyncio.wait((ended,), timeout=0.05)


async def test_the_headers_of_a_second_request_have_the_deadline_too() -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=FEW), limits=FEW))
        client = await Client.of(stack, url)
        client.writer.write(HEAD + b"\r\n")
        assert (await client.reader.readline()).startswith(b"HTTP/1.1 200")
        client.writer.write(HEAD)
        assert await client.ended()


async def test_a_connection_outlives_the_pause_of_a_load_balancer() -> None:
    assert Limits().idle_seconds > 60, "the usual pause of load balancers"
    patient = Limits(idle_seconds=1.0)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=patient), limits=patient))
        client = await Client.of(stack, url)
        client.writer.write(HEAD + b"\r\n")
        answer = await client.reader.readuntil(b"ok\n")
        assert b"keep-alive: timeout=1\r\n" in answer.lower(), "a client learns when the connection ends"
        assert await client.ended()


async def test_silent_connections_shut_nobody_out() -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=PATIENT), limits=PATIENT))
        silent = [await Client.of(stack, url) for _ in range(3 * PATIENT.connections)]
        for path in ("/livez", "/openapi.json"):
            async with httpx.AsyncClient() as client:
                assert (await client.get(f"{url}{path}")).status_code == 200
        assert await silent[0].ended(), "the one that has waited longest makes room"
        assert not silent[-1].reader.at_eof()


async def test_a_connection_with_a_request_in_work_stays() -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(app_over(limits=PATIENT), limits=PATIENT))
        busy = await Client.of(stack, url)
        body = b'{"tenant_id": "acme"'
        head = b"POST /v1/turns HTTP/1.1\r\nHost: " + url.removeprefix("http://").encode() + b"\r\n"
        busy.writer.write(head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1))
        busy.writer.write(body)
        async with httpx.AsyncClient() as client:  # answered after the head above was read
            assert (await client.get(f"{url}/livez")).status_code == 200
        for _ in range(3 * PATIENT.connections):
            await Client.of(stack, url)
        busy.writer.write(b"}")
        async with asyncio.timeout(20):
            assert (await busy.reader.readline()).startswith(b"HTTP/1.1 422")


def test_connections_fit_into_the_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    limits = (1_024, 1_200)
    monkeypatch.setattr("resource.getrlimit", lambda which: limits)
    monkeypatch.setattr("resource.setrlimit", lambda which, pair: given.append(pair))
    assert connections_that_fit(100) == 100
    assert given == []
    assert connections_that_fit(1_024) == 1_200 - 256
    assert given == [(1_200, 1_200)]
    limits = (100, 100)
    assert connections_that_fit(1_024) == FEWEST
