"""The client against a real server on a real socket: changes of facts through restarts of both; without async."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import cast

import pytest

from memstream.adapters.ports import VectorStore
from memstream.api.app import new_followers
from memstream.api.credentials import Credentials
from memstream.api.limits import Limits
from memstream.cli.wiring.server import Server, server_config
from memstream.client import (
    BEGINNING,
    NOW,
    Memory,
    Misconfigured,
    PositionLost,
    TooLarge,
    Unavailable,
    Update,
    connect,
    connect_blocking,
)
from memstream.schemas.topics import TURNS
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.fanout import TopicFanout
from memstream.streams.log.offsets import Offsets
from memstream.streams.log.port import TopicSpec
from tests.support.api_server import OPEN, app_over, entry
from tests.support.fact_publisher import FactPublisher, PublishedFact, make_topics
from tests.support.kafka import free_port

LIMITS = Limits(heartbeat_seconds=0.2, drain_seconds=1.0)
DEADLINE = 40.0


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    made = EmbeddedLog(folder=tmp_path / "log")
    await made.start()
    await make_topics(made, partitions=3)
    await made.create([TopicSpec(TURNS.name, 3, 1, TURNS.settings())])
    yield made
    await made.close()


class NoStore:
    """In which nothing was ever put."""

    async def exists(self, collection: str) -> bool:
        return False


@asynccontextmanager
async def served(
    log: EmbeddedLog, *, port: int = 0, credentials: Credentials = OPEN, followers: TopicFanout | None = None
) -> AsyncIterator[str]:
    """A server on this port; ends as SIGTERM ends it."""
    followers = new_followers(log, LIMITS) if followers is None else followers
    app = app_over(
        log=log, store=cast(VectorStore, NoStore()), limits=LIMITS, followers=followers, credentials=credentials
    )
    with socket.create_server(("127.0.0.1", port), reuse_port=False) as listening:
        server = Server(server_config(app, LIMITS))
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            followers.close()
            server.should_exit = True
            await serving


def name(update: Update) -> PublishedFact:
    return update.fact.fact_id, update.fact.version


async def take(memory: Memory, n: int, *, after: str, **asked: object) -> list[Update]:
    found: list[Update] = []
    async with asyncio.timeout(DEADLINE), aclosing(memory.updates(after=after, **asked)) as told:  # type: ignore[arg-type]
        while len(found) < n:
            found.append(await anext(told))
    return found


async def test_nothing_is_missing_or_double_through_restarts_of_subscriber_and_server(log: EmbeddedLog) -> None:
    publisher = FactPublisher(log)
    for n in range(20):
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
    got: list[PublishedFact] = []
    position = BEGINNING
    port = free_port()

    async def subscribe(until: int) -> None:
        nonlocal position
        async with (
            asyncio.timeout(DEADLINE),
            connect(f"http://127.0.0.1:{port}") as memory,
            aclosing(memory.updates(after=position, tenant_id="acme")) as told,
        ):
            while len(got) < until:
                update = await anext(told)
                got.append(name(update))
                assert update.position is not None
                position = update.position

    async with served(log, port=port):
        await subscribe(9)
        await publisher.again(18)  # told to this subscriber before its restart
        await subscribe(13)
        following = asyncio.create_task(subscribe(40))
        while len(got) < 20:
            await asyncio.sleep(0.01)
        await publisher.again(1)
    for n in range(10):  # nobody serves
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
    async with served(log, port=port):
        for n in range(10):
            await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
            await publisher.again(3)
        await following
    assert sorted(got) == sorted(publisher.published)
    assert len(set(got)) == 40


async def test_who_follows_from_now_on_misses_nothing_while_the_server_is_away(log: EmbeddedLog) -> None:
    """The first connection gives the place, with no change yet; the next begins there."""
    publisher = FactPublisher(log)
    await publisher.change("before")
    port = free_port()
    async with (
        asyncio.timeout(DEADLINE),
        connect(f"http://127.0.0.1:{port}") as memory,
        aclosing(memory.updates(after=NOW, tenant_id="acme")) as told,
    ):
        followers = new_followers(log, LIMITS)
        async with served(log, port=port, followers=followers):
            first = asyncio.ensure_future(anext(told))
            while not followers.readers:
                await asyncio.sleep(0.02)
        await publisher.change("meanwhile")
        async with served(log, port=port):
            assert name(await first) == publisher.published[-1]


async def test_positions_of_the_log_and_of_a_server_are_one(log: EmbeddedLog, tmp_path: Path) -> None:
    publisher = FactPublisher(log)
    for n in range(9):
        await publisher.change(f"fact {n % 2}", user=f"u{n % 3}")
    async with served(log) as url, connect(url) as over_http, connect(f"embedded://{tmp_path / 'log'}") as over_log:
        got: list[PublishedFact] = []
        position = BEGINNING
        for memory in (over_http, over_log, over_http):
            found = await take(memory, 3, after=position, tenant_id="acme")
            got += map(name, found)
            position = found[-1].position or ""
    assert sorted(got) == sorted(publisher.published)


async def test_only_what_was_asked_for_and_what_comes_next(log: EmbeddedLog) -> None:
    ours, theirs = FactPublisher(log), FactPublisher(log, tenant="globex")
    async with served(log) as url, connect(url) as memory:
        await theirs.change()
        await ours.change(user="u2")
        wanted = await ours.change(user="u1")
        owner = Owner(scope="user", id="u1")
        assert list(map(name, await take(memory, 1, after=BEGINNING, tenant_id="acme", owner=owner))) == [wanted]
        async with asyncio.timeout(DEADLINE), aclosing(memory.updates(after=NOW, tenant_id="acme")) as told:
            first = asyncio.ensure_future(anext(told))
            while not first.done():
                await ours.change(user="u1")
                await asyncio.sleep(0.02)
            assert (await first).fact.version > 1


async def test_a_log_that_goes_less_far_back_is_looked_into_as_far_as_it_goes(log: EmbeddedLog) -> None:
    """The server says 410 to a place before the first record that is held."""

    class Shortened(EmbeddedLog):
        async def starts(self, topic: str) -> tuple[int, ...]:
            return tuple(min(2, end) for end in await self.ends(topic))

    publisher = FactPublisher(log)
    for _ in range(4):
        await publisher.change()
    shortened = Shortened(folder=log._folder)
    await shortened.start()
    try:
        partition = next(p for p, end in enumerate(await log.ends("memory.facts.updated")) if end)
        places = Offsets(tuple(3 if p == partition else 0 for p in range(3)))
        async with served(shortened) as url, connect(url) as memory:
            assert (
                list(map(name, await take(memory, 1, after=places.token(), tenant_id="acme")))
                == publisher.published[3:]
            )
            with pytest.raises(PositionLost):
                await take(memory, 1, after=Offsets((0, 0, 0)).token(), tenant_id="acme")
            with pytest.raises(PositionLost):
                await take(memory, 1, after=Offsets((9, 9, 9)).token(), tenant_id="acme")
    finally:
        await shortened.close()


async def test_a_log_that_was_made_anew_has_lost_the_position(log: EmbeddedLog) -> None:
    """A place beyond its end, although those that one looks back to may lie on it."""
    told = await FactPublisher(log).change()
    async with served(log) as url, connect(url) as memory:
        with pytest.raises(PositionLost):
            await take(memory, 1, after=Offsets((9, 9, 9)).token(), tenant_id="acme")
        (update,) = await take(memory, 1, after=BEGINNING, tenant_id="acme")
        assert name(update) == told


async def test_who_may_not_is_told_at_once(log: EmbeddedLog) -> None:
    async with served(log, credentials=Credentials([entry("mst_right")])) as url:
        async with connect(url, token="mst_wrong") as memory:
            with pytest.raises(Misconfigured, match="unknown token"):
                await take(memory, 1, after=NOW, tenant_id="acme")
        async with connect(url, token="mst_right") as memory:
            with pytest.raises(Misconfigured, match="tenant"):
                await take(memory, 1, after=NOW, tenant_id="globex")
            told = await FactPublisher(log).change()
            assert list(map(name, await take(memory, 1, after=BEGINNING))) == [told]


async def test_no_server_is_told_in_time() -> None:
    async with connect(f"http://127.0.0.1:{free_port()}", timeout=0.5) as memory:
        with pytest.raises(Unavailable):
            await take(memory, 1, after=NOW)
        with pytest.raises(Misconfigured, match="position"):
            await memory.handle("billing", lambda update: asyncio.sleep(0))


# ---------------------------------------------------------------------------------------------------- without async
@contextmanager
def serving(log_folder: Path) -> Iterator[str]:
    """A server in a thread."""
    ready, stop = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        log = EmbeddedLog(folder=log_folder)
        await log.start()
        async with served(log) as url:
            urls.append(url)
            ready.set()
            await asyncio.to_thread(stop.wait)
        await log.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(DEADLINE)
        yield urls[0]
    finally:
        stop.set()
        thread.join(DEADLINE)


async def test_without_async_the_same_calls_within_a_running_loop_too(log: EmbeddedLog, tmp_path: Path) -> None:
    publisher = FactPublisher(log)
    for _ in range(3):
        await publisher.change()
    turn = {"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1"}
    turn |= {"messages": [{"role": "user", "content": "hello"}]}  # type: ignore[dict-item]

    def use(address: str, api: str) -> None:
        with connect_blocking(address, api=api) as memory:
            assert memory.produce(turn).topic == TURNS.name
            with pytest.raises(TooLarge):
                memory.produce({**turn, "mood": "x" * 300_000})
            told = memory.updates(after=BEGINNING, tenant_id="acme")
            assert [name(next(told)) for _ in range(3)] == publisher.published
            told.close()  # type: ignore[attr-defined]
            assert memory.recall("tea", tenant="acme", user="u1").items == ()
            assert memory.digest(tenant="acme", user="u1") is None
        assert not [thread for thread in threading.enumerate() if thread.name == "memstream-client"]

    with serving(tmp_path / "log") as url:
        for address in (url, f"embedded://{tmp_path / 'log'}"):
            use(address, url)  # blocks this loop, as code without async does
            await asyncio.to_thread(use, address, url)
