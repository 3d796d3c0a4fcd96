"""A hostile tenant takes all that it can get over a real socket. Another tenant always gets its place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from memstream.api.app import new_followers
from memstream.api.credentials import Credentials, digest
from memstream.api.limits import Limits
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.topics import FACTS_UPDATED
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import NoCommands, app_over, bearer, entry, served
from tests.support.polling import wait_for
from tests.support.sse import streaming

pytestmark = pytest.mark.slow

SCOPES: Any = ("turns:write", "memory:read", "memory:write", "memory:admin")
TOKENS = Credentials(
    (
        *(entry(f"bad-{n}", tenants=("bad",), scopes=SCOPES) for n in range(4)),
        entry("good", tenants=("good",), scopes=SCOPES),
    )
)
LIMITS = Limits(
    requests=12,
    requests_per_tenant=6,
    requests_per_token=4,
    streams=8,
    streams_per_tenant=4,
    streams_per_token=3,
    heartbeat_seconds=0.3,
    connections_per_address=512,
)
TURN = {"user_id": "u1", "session_id": "s1", "turn_id": "t1", "messages": [{"role": "user", "content": "Hello."}]}


class Waiting(NoCommands):
    """Commands whose results come when `over` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()

    async def ask(self, command: Command, *, patience: float) -> CommandResult | None:
        self.asked.append((command, patience))
        if command.tenant_id == "bad":
            await self.over.wait()
        return None


def told_to_wait(answer: httpx.Response) -> bool:
    assert answer.status_code == 429, answer.text
    assert answer.json()["type"] == "urn:memstream:problem:too-many-requests"
    return int(answer.headers["Retry-After"]) >= 1


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=30, limits=httpx.Limits(max_connections=None)) as http:
        yield http


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/reflect", {"user_id": "u1"}),
        ("/v1/facts", {"user_id": "u1", "content": "x"}),
        ("/v1/tools/fact_remember", {"content": "x"}),
        ("/v1/tools/memory_reflect", {}),
    ],
)
async def test_waits_for_commands(path: str, body: dict[str, Any]) -> None:
    commands, about = Waiting(), {"X-Memstream-User": "u1"}
    limits = Limits()
    async with served(app_over(commands=commands, credentials=TOKENS)) as url, client(url) as http:

        async def post(token: str) -> httpx.Response:
            return await http.post(path, json=body, headers=bearer(token) | about)

        asked = [asyncio.create_task(post(f"bad-{n % 4}")) for n in range(limits.commands_per_tenant)]
        await wait_for(lambda: len(commands.asked) == limits.commands_per_tenant, "the hostile requests")
        assert told_to_wait(await post("bad-0"))
        assert (await post("good")).status_code in (200, 202)
        commands.over.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} <= {200, 202}


async def test_slow_bodies() -> None:
    async with served(app_over(credentials=TOKENS, limits=LIMITS), limits=LIMITS) as url, client(url) as http:
        where = urlsplit(url)
        writers: list[asyncio.StreamWriter] = []
        answers: list[asyncio.Task[bytes]] = []
        for n in range(16):
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            head = f"POST /v1/turns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer bad-{n % 4}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())
            writers.append(writer)
            answers.append(asyncio.create_task(reader.readline()))
        refused = len(answers) - LIMITS.requests_per_tenant
        await wait_for(lambda: sum(each.done() for each in answers) == refused, "the refusals")
        assert {each.result() for each in answers if each.done()} == {b"HTTP/1.1 429 Too Many Requests\r\n"}
        assert told_to_wait(await http.post("/v1/turns", json=TURN, headers=bearer("bad-0")))
        assert (await http.post("/v1/turns", json=TURN, headers=bearer("good"))).status_code == 202
        for writer in writers:
            writer.close()
        for each in answers:
            each.cancel()

        async def served_again() -> int:
            return (await http.post("/v1/turns", json=TURN, headers=bearer("bad-0"))).status_code

        assert await wait_for(served_again, "the places of closed connections", until=lambda status: status == 202)


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path)
    await made.start()
    await made.create([TopicSpec(FACTS_UPDATED.name, 1, 1, {})])
    yield made
    await made.close()


async def test_streams(log: EmbeddedLog) -> None:
    followers = new_followers(log, LIMITS)
    app = app_over(log=log, followers=followers, credentials=TOKENS, limits=LIMITS)
    async with served(app, limits=LIMITS, followers=followers) as url, client(url) as http, AsyncExitStack() as stack:
        opened = 0
        for n in range(16):
            try:
                await stack.enter_async_context(streaming(url, headers=bearer(f"bad-{n % 4}")))
                opened += 1
            except httpx.HTTPStatusError as refused:
                assert told_to_wait(refused.response)  # noqa: PT017 - some are let in
        assert opened == LIMITS.streams_per_tenant
        assert told_to_wait(await http.get("/v1/facts/updates", headers=bearer("bad-0")))
        for _ in range(LIMITS.streams_per_token):
            await stack.enter_async_context(streaming(url, headers=bearer("good")))


async def test_streams_of_several_hostile_tenants_make_room(log: EmbeddedLog) -> None:
    tenants = [f"t{n}" for n in range(3)]
    tokens = Credentials(tuple(entry(each, tenants=(each,)) for each in tenants))
    few = Limits(streams=6, streams_per_tenant=3, streams_per_token=3, heartbeat_seconds=0.3)
    followers = new_followers(log, few)
    app = app_over(log=log, followers=followers, credentials=tokens, limits=few)
    async with served(app, limits=few, followers=followers) as url, AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(streaming(url, headers=bearer(tenant)))
            for tenant in tenants[:2]
            for _ in range(3)
        ]
        async with asyncio.timeout(20):
            await stack.enter_async_context(streaming(url, headers=bearer("t2")))
        assert (await streams[-1].ended()).json["reason"] == "busy"


async def test_the_stream_of_a_token_that_expires_ends(log: EmbeddedLog) -> None:
    time, end = datetime(2027, 1, 31, 11, 59, tzinfo=UTC), datetime(2027, 1, 31, 12, tzinfo=UTC)
    tokens = Credentials([entry("t").model_copy(update={"expires_at": end}), entry("stays")], now=lambda: time)
    followers = new_followers(log, LIMITS)
    app = app_over(log=log, followers=followers, credentials=tokens, limits=LIMITS)
    async with (
        served(app, limits=LIMITS, followers=followers) as url,
        streaming(url, headers=bearer("t")) as expires,
        streaming(url, headers=bearer("stays")) as stays,
    ):
        time = end
        async with asyncio.timeout(10):
            assert (await expires.ended()).json["reason"] == "unauthorized"
        assert all(block.event != "end" for block in stays.blocks)
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            async with streaming(url, headers=bearer("t")):
                pass


async def test_the_streams_of_a_removed_token_end(log: EmbeddedLog) -> None:
    entries = [entry("gone", tenants=("bad",)), entry("stays", tenants=("good",))]
    tokens = Credentials(entries)
    followers = new_followers(log, LIMITS)
    app = app_over(log=log, followers=followers, credentials=tokens, limits=LIMITS)
    async with (
        served(app, limits=LIMITS, followers=followers) as url,
        streaming(url, headers=bearer("gone")) as gone,
        streaming(url, headers=bearer("stays")) as stays,
    ):
        entries[:] = [each for each in entries if each.sha256 != digest("gone")]
        async with asyncio.timeout(10):
            assert (await gone.ended()).json["reason"] == "unauthorized"
        assert all(block.event != "end" for block in stays.blocks)
        with pytest.raises(httpx.HTTPStatusError, match="401"):
            async with streaming(url, headers=bearer("gone")):
                pass
