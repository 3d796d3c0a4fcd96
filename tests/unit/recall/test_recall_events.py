"""Publishing of recalls: no reader waits for it, only ids and a hash leave the process, and losses are counted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from memstream.recall.context import ContextRequest, ContextService
from memstream.recall.recall_events import (
    AnsweredRecall,
    LogRecallPublisher,
    PublisherMetrics,
    PublishingRecall,
    records_of,
)
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecalledMemory, RecallResult
from memstream.schemas import ids
from memstream.schemas.errors import Fatal, Transient
from memstream.schemas.recall import RECALLED_MAX, RecalledItem, RecallReport
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Log

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ANA, HOME = Owner(scope="user", id="ana"), Owner(scope="group", id="home")


def answered(
    cue: str | None = "my  Secret plans", items: int = 2, owners: tuple[Owner, ...] = (ANA,)
) -> AnsweredRecall:
    named = [("semantic", ids.fact_id("acme/user/ana", str(n))) for n in range(items)]
    return AnsweredRecall("acme", owners, cue, cast(Any, named), NOW)


class FakeLog:
    """A log with `append` only. While `hold` is not set, `append` does not return."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes, RecallReport, dict[str, bytes]]] = []
        self.error: Exception | None = None
        self.calls = 0
        self.hold: asyncio.Event | None = None
        self.came = asyncio.Event()

    async def append(self, topic: str, *, key: bytes, value: bytes, headers: Any) -> None:
        self.calls += 1
        self.came.set()
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            raise self.error
        self.records.append((topic, key, RecallReport.read(value), dict(headers)))


class World:
    def __init__(self, **fields: Any) -> None:
        self.log = FakeLog()
        self.registry = CollectorRegistry()
        self.publisher = LogRecallPublisher(
            log=cast(Log, self.log), metrics=PublisherMetrics.on(self.registry), **fields
        )

    def dropped(self, why: str) -> float:
        return self.registry.get_sample_value("memstream_recalled_dropped_total", {"why": why}) or 0.0

    def sent(self) -> float:
        return self.registry.get_sample_value("memstream_recalled_sent_total") or 0.0


async def test_ids_ranks_and_a_hash_of_the_cue_and_nothing_more() -> None:
    world = World()
    async with world.publisher.running():
        world.publisher.publish(answered())
    [(topic, key, published, headers)] = world.log.records
    assert (topic, key) == ("memory.recalled", b"acme/user/ana")
    assert published.cue_hash == ids.content_hash("my secret plans")
    assert [(item.tier, item.rank) for item in published.items] == [("semantic", 0), ("semantic", 1)]
    assert headers["ce_type"] == b"memstream.recalled.v1"
    assert headers["ce_id"].decode() == published.recall_id
    assert b"plans" not in published.to_bytes()
    assert world.sent() == 1


def test_without_a_cue_there_is_no_hash_and_without_items_no_record() -> None:
    [published] = records_of(answered(cue=None))
    assert published.cue_hash is None
    assert records_of(answered(items=0)) == []


def test_each_owner_whose_memory_was_read_is_told_the_same_recall() -> None:
    ana, home = records_of(answered(owners=(ANA, HOME)))
    assert (ana.owner, home.owner) == (ANA, HOME)
    assert ana.recall_id == home.recall_id


def test_an_answer_beyond_the_bound_is_cut() -> None:
    [published] = records_of(answered(items=RECALLED_MAX + 5))
    assert len(published.items) == RECALLED_MAX


async def test_a_reader_never_waits_and_what_does_not_fit_is_dropped_and_counted() -> None:
    world = World(waiting_max=3)
    world.log.hold = asyncio.Event()
    async with world.publisher.running():
        world.publisher.publish(answered())
        await asyncio.wait_for(world.log.came.wait(), 5)  # the record hangs in the log now
        for _ in range(5):
            world.publisher.publish(answered())
        assert world.dropped("full") == 2
        world.log.hold.set()
    assert world.sent() == 4


@pytest.mark.parametrize("error", [Transient("broker", "away"), Fatal("there is no topic memory.recalled")], ids=str)
async def test_while_the_log_is_away_nothing_is_tried_twice_and_nobody_is_held_up(error: Exception) -> None:
    world = World(pause=3_600)
    world.log.error = error
    async with world.publisher.running():
        for _ in range(4):
            world.publisher.publish(answered())
        await asyncio.wait_for(world.log.came.wait(), 5)
        for _ in range(3):
            world.publisher.publish(answered())
    assert world.log.calls == 1
    assert world.dropped("away") == 7


async def test_an_answer_waits_for_others_and_the_end_waits_for_none() -> None:
    """Each append of a log in a folder waits for the disk; appends at the same time wait once."""
    world = World(linger=3_600)
    async with world.publisher.running():
        for _ in range(3):
            world.publisher.publish(answered())
            for _ in range(10):
                await asyncio.sleep(0)
        assert world.log.calls == 0
    assert world.sent() == 3


async def test_after_the_pause_it_goes_on() -> None:
    world = World(pause=0)
    world.log.error = Transient("broker", "away")
    async with world.publisher.running():
        world.publisher.publish(answered())
        await asyncio.wait_for(world.log.came.wait(), 5)
        world.log.error = None
        world.publisher.publish(answered())
    assert (world.sent(), world.dropped("away")) == (1, 1)


class RecordingRecall:
    """`RecallPort` and `RecallPublisher` in one, with the answers that it published."""

    def __init__(self, *contents: str) -> None:
        self.published: list[AnsweredRecall] = []
        self.items = tuple(
            RecalledMemory(
                item=RecalledItem(
                    tier="working",
                    id=ids.fact_id("acme/user/ana", content),
                    content=content,
                    score=1.0,
                    subject="user",
                    category="task",
                    parts={},
                ),
                match=1.0,
                ranks=(),
                reranked=None,
                sources=(),
                sensitivity="internal",
                role=None,
            )
            for content in contents
        )

    async def recall(self, request: RecallRequest, *, now: datetime) -> RecallResult:
        return RecallResult(tuple(each for each in self.items if each.item.tier in request.tiers), ())

    def publish(self, answered: AnsweredRecall) -> None:
        self.published.append(answered)


async def test_an_answer_is_told_with_whose_memory_it_was() -> None:
    memory = RecordingRecall("Buy milk", "Call Bob")
    request = RecallRequest(tenant_id="acme", owner=ANA, groups=("home", "home"), cue="  what next ")
    await PublishingRecall(inner=memory, publisher=memory).recall(request, now=NOW)
    [published] = memory.published
    assert (published.tenant_id, published.owners, published.cue, published.at) == (
        "acme",
        (ANA, HOME),
        "what next",
        NOW,
    )
    assert published.items == tuple(("working", each.item.id) for each in memory.items)


async def test_a_context_tells_what_it_showed_and_not_what_it_looked_through() -> None:
    memory = RecordingRecall("Buy milk", "word " * 200)
    asked = ContextRequest(tenant_id="acme", owner=ANA, max_tokens=120, asked_by="eva")
    context = await ContextService(recall=memory, publisher=memory).context(asked, now=NOW)
    shown = context.shown["working"]
    assert shown == (memory.items[0].item.id,)
    assert [identity for published in memory.published for _, identity in published.items] == list(shown)
    assert [each.asked_by for published in memory.published for each in records_of(published)] == ["eva"]
    empty = RecordingRecall()
    await ContextService(recall=empty, publisher=empty).context(asked, now=NOW)
    assert empty.published == []
