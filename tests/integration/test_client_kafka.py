"""The client on a real broker: turns on the right partition, changes of facts through restarts of everything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from memstream.client import BEGINNING, NOW, STATE, Memory, Misconfigured, TooLarge, Unavailable, Update, connect
from memstream.schemas import ids
from memstream.schemas.topics import FACTS_UPDATED, TURNS
from memstream.streams.log.kafka import KafkaLog
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import TopicSpec
from tests.support.fact_publisher import FactPublisher, PublishedFact, make_topics
from tests.support.kafka import Broker, free_port

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]
PARTITIONS = 4
DEADLINE = 60.0


@pytest.fixture
async def log(own_kafka: Broker) -> AsyncIterator[KafkaLog]:
    made = KafkaLog(servers=[own_kafka.bootstrap], timeout=20)
    await made.start()
    await make_topics(made, partitions=PARTITIONS)
    await made.create([TopicSpec(TURNS.name, PARTITIONS, 1, TURNS.settings())])
    yield made
    await made.close()


def address(broker: Broker) -> str:
    return f"kafka://{broker.bootstrap}"


def turn(n: int, **fields: object) -> dict[str, object]:
    said = [{"role": "user", "content": f"number {n}"}]
    return {
        "tenant_id": "acme",
        "user_id": f"u/{n}",
        "session_id": "s 1",
        "turn_id": f"t{n}",
        "messages": said,
    } | fields


def names(updates: list[Update]) -> list[PublishedFact]:
    return [(update.fact.fact_id, update.fact.version) for update in updates]


async def test_turns_lie_where_their_key_says_byte_for_byte(log: KafkaLog, own_kafka: Broker) -> None:
    async with connect(address(own_kafka)) as memory:
        places = await asyncio.gather(*(memory.produce(turn(n, mood="fine")) for n in range(20)))
        found = {record.position: record async for record in log.read(TURNS.name)}
        assert len(set(places)) == 20
        for n, place in enumerate(places):
            key = ids.session_key("acme", f"u/{n}", "s 1")
            record = found[place]
            assert record.key == key.encode()
            assert place.partition == partition_for(key.encode(), PARTITIONS)
            assert b'"mood":"fine"' in (record.value or b"")
            assert dict(record.headers)["ce_id"] == ids.turn_cause(key, f"t{n}").encode()
        said = [turn(n, user_id="u1", session_id="s1") for n in range(50)]
        in_order = await asyncio.gather(*(memory.produce(each) for each in said))
        assert [place.offset for place in in_order] == sorted(place.offset for place in in_order)
        with pytest.raises(TooLarge):
            await memory.produce(turn(1, messages=[{"role": "user", "content": "x" * 300_000}]))


async def test_a_broker_that_is_not_there_is_named_in_time() -> None:
    before = time.monotonic()
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1"):
        async with connect(f"kafka://127.0.0.1:{free_port()}", timeout=2):
            pass
    assert time.monotonic() - before < 20


async def test_without_topics_the_command_is_named(own_kafka: Broker) -> None:
    async with connect(address(own_kafka)) as memory:
        with pytest.raises(Misconfigured, match="topics create"):
            await memory.produce(turn(1))


async def test_nothing_is_missing_or_double_through_restarts_of_subscriber_and_broker(
    log: KafkaLog, own_kafka: Broker
) -> None:
    """A worker tells changes and some of them again; the broker is killed in the middle; the subscriber begins again
    from its position time after time."""
    publisher = FactPublisher(log)
    for n in range(30):
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
    got: list[PublishedFact] = []
    position = BEGINNING

    async def subscribe(until: int) -> None:
        nonlocal position
        async with (
            asyncio.timeout(DEADLINE),
            connect(address(own_kafka)) as memory,
            aclosing(memory.updates(after=position, tenant_id="acme")) as told,
        ):
            while len(got) < until:
                update = await anext(told)
                got.append((update.fact.fact_id, update.fact.version))
                assert update.position is not None
                position = update.position

    await subscribe(13)
    await publisher.again(25)  # told to this subscriber before its restart
    await subscribe(20)
    following = asyncio.create_task(subscribe(60))
    while len(got) < 30:
        await asyncio.sleep(0.05)
    await asyncio.to_thread(own_kafka.kill)
    await asyncio.to_thread(own_kafka.start)
    await publisher.again(1)
    for n in range(30):
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
        await publisher.again(3)
    await following
    assert sorted(got) == sorted(publisher.published)
    assert len(set(got)) == 60


async def test_the_compacted_state_then_what_follows_it(log: KafkaLog, own_kafka: Broker) -> None:
    publisher = FactPublisher(log)
    for n in range(40):
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")
    telling = asyncio.create_task(_tell(publisher, 40))
    got: list[PublishedFact] = []
    async with (
        asyncio.timeout(DEADLINE),
        connect(address(own_kafka)) as memory,
        aclosing(memory.updates(after=STATE)) as told,
    ):
        while len(publisher.published) < 80 or dict(got) != publisher.states():
            update = await anext(told)
            got.append((update.fact.fact_id, update.fact.version))
    await telling
    assert len(got) == len(set(got))
    for fact_id in publisher.states():
        versions = [version for each, version in got if each == fact_id]
        assert versions == list(range(versions[0], versions[-1] + 1)), "no change after the state is missing"


async def _tell(publisher: FactPublisher, changes: int) -> None:
    for n in range(changes):
        await publisher.change(f"fact {n % 7}", user=f"u{n % 5}")


# ----------------------------------------------------------------------------------------------------------- groups
class Member:
    """A member of a group; `got` is what its handler was called with."""

    def __init__(self, memory: Memory, got: list[PublishedFact], *, failing_at: int | None = None) -> None:
        self.got = got
        self._failing_at = failing_at
        self.task = asyncio.create_task(memory.handle("billing", self._handle, tenant_id="acme"))

    async def _handle(self, update: Update) -> None:
        if self._failing_at is not None and len(self.got) >= self._failing_at:
            raise ZeroDivisionError("the handler's own")
        await asyncio.sleep(0)
        self.got.append((update.fact.fact_id, update.fact.version))

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def reached(got: list[PublishedFact], n: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(got) < n:
            await asyncio.sleep(0.05)


async def test_a_group_goes_on_where_its_handler_succeeded(log: KafkaLog, own_kafka: Broker) -> None:
    publisher = FactPublisher(log)
    for n in range(20):
        await publisher.change(f"fact {n % 3}", user=f"u{n % 4}")
    got: list[PublishedFact] = []
    async with connect(address(own_kafka)) as memory:
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(Member(memory, got, failing_at=8).task, DEADLINE)
        assert len(got) == 8
        await publisher.again(20)
        first = Member(memory, got)
        await reached(got, 20)
        second = Member(memory, got)  # a rebalance in the middle of the work
        for n in range(20):
            await publisher.change(f"fact {n % 3}", user=f"u{n % 4}")
            await publisher.again(2)
        await reached(got, 40)
        await first.end()
        await publisher.change("last")
        await reached(got, 41)
        await second.end()
    assert sorted(got) == sorted(publisher.published)


async def test_a_group_that_began_now_misses_nothing_while_nobody_of_it_is_there(
    log: KafkaLog, own_kafka: Broker
) -> None:
    """What it passed over is committed too, so that it never lies behind what the log still holds."""
    ours, theirs = FactPublisher(log), FactPublisher(log, tenant="globex")
    await ours.change("before")
    got: list[PublishedFact] = []

    async def at_the_ends() -> bool:
        return await log.committed("audit", FACTS_UPDATED.name) == await log.ends(FACTS_UPDATED.name)

    async with connect(address(own_kafka)) as memory:

        async def handler(update: Update) -> None:
            got.append((update.fact.fact_id, update.fact.version))

        def member() -> asyncio.Task[None]:
            return asyncio.create_task(memory.handle("audit", handler, after=NOW, tenant_id="acme"))

        for _ in range(2):
            task = member()
            await met(at_the_ends)
            for n in range(5):
                await theirs.change(user=f"u{n}")
            await met(at_the_ends)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert got == []
        missed = await ours.change("after")
        task = member()
        await reached(got, 1)
        task.cancel()
        assert got == [missed]


async def met(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_a_group_on_a_log_in_a_folder_is_refused(tmp_path: Path) -> None:
    async def handler(update: Update) -> None:
        raise AssertionError

    async with connect(f"embedded://{tmp_path / 'log'}") as memory:
        with pytest.raises(Misconfigured, match="position"):
            await memory.handle("billing", handler)
