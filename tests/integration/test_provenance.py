"""A fact's history and the chain back from it, over the real engine and a real log: what is told, from where the log is
read, and what is said when a bound ends the reading."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.folder_lock import FolderLock
from memstream.adapters.ports import VectorStore
from memstream.adapters.vectors.factory import open_store
from memstream.recall.bounded_log_reads import LogPolicy
from memstream.recall.provenance import VERSIONS_MAX, FactHistory, FactRef, FactTracer, ProvenanceChain
from memstream.schemas import ids
from memstream.schemas.errors import Transient
from memstream.schemas.facts import Fact, FactUpdated
from memstream.schemas.topics import FACTS, FACTS_UPDATED, OBSERVATIONS, changelog_of
from memstream.schemas.turns import Owner
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.markers import Growth, Marker, marker_entry
from memstream.streams.log.port import TopicSpec
from tests.support.fact_history import MINUTE, PastFacts
from tests.support.record_builders import observation
from tests.support.stored_memory import NOW, StoredMemory


class CountingLog:
    """The log, and how many records were read of it."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self.read_records = 0
        self.away: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def read(self, topic: str, **asked: Any) -> AsyncIterator[Any]:
        if topic in self.away:
            raise Transient("broker", "the log does not answer")
        async for record in self._log.read(topic, **asked):
            self.read_records += 1
            yield record


class World(PastFacts):
    """A tenant's facts as they come to be."""

    def __init__(self, store: VectorStore, log: EmbeddedLog) -> None:
        self.counting = CountingLog(log)
        super().__init__(store, cast(Any, self.counting))
        self.memory = StoredMemory(store)

    def tracing(self, **policy: Any) -> FactTracer:
        return FactTracer(store=self.store, log=self.log, policy=LogPolicy(**policy))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    with FolderLock(folder=tmp_path / "store") as lock:
        assert lock.try_acquire()
        address = f"embedded://{tmp_path / 'store'}"
        store = await open_store(address, embedder=HashingEmbedder().identity, holds_folder=True)
        await store.ensure()
        log = EmbeddedLog(folder=tmp_path / "log")
        await log.start()
        await log.create([TopicSpec(topic.name, 1, 1, {}) for topic in (FACTS, FACTS_UPDATED, OBSERVATIONS)])
        yield World(store, log)
        await log.close()
        await store.close()


def told(events: tuple[FactUpdated, ...]) -> list[int]:
    return [event.fact.version for event in events]


async def history(world: World, fact: Fact, tracing: FactTracer | None = None, **asked: Any) -> FactHistory:
    found = await (tracing or world.tracing()).history(FactRef("acme", fact.fact_id), **asked)
    assert found is not None
    return found


async def trace(world: World, ref: FactRef, **policy: Any) -> ProvenanceChain:
    found = await world.tracing(**policy).trace(ref)
    assert found is not None
    return found


class TestTrace:
    async def test_the_chain_from_the_fact_to_what_was_said(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 3)
        await world.fact("Likes tea", 2)
        for number in (1, 2, 3):
            await world.memory.message("I work at Stripe", turn=f"t{number}", occurred_at=NOW + number * MINUTE)
        await world.memory.message("I work at Stripe too", turn="t1", user="u2")
        await world.memory.message("I work at Stripe", turn="t9")
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert (chain.fact, told(chain.events), chain.missing) == (fact.public(), [1, 2, 3], ())
        assert [(seen.turn_id, seen.observation.content) for seen in chain.observations] == [
            (f"t{number}", "Works at Stripe") for number in (1, 2, 3)
        ]
        assert [(each.turn_id, each.user_id) for each in chain.turns] == [(f"t{number}", "u1") for number in (1, 2, 3)]

    async def test_an_event_that_came_twice_is_told_once(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 2)
        await world.event(fact, fact.public(), "x", NOW + 9 * MINUTE)
        assert told((await trace(world, FactRef("acme", fact.fact_id))).events) == [1, 2]

    async def test_what_was_said_before_the_topics_grew_is_told(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 2)
        for topic in (FACTS_UPDATED, OBSERVATIONS):
            await world.log.add_partitions(topic.name, 4)
        growth = Growth(partitions=1, until={})
        marker = Marker(identity="progress", whole_from=0, written_at=0, partitions=4, growths=(growth,))
        changelog = changelog_of("consolidation")
        assert changelog is not None
        await world.log.create([TopicSpec(changelog.name, 4, 1, {})])
        key, value = marker_entry(marker)
        await world.log.append(changelog.name, key=key, value=value, partition=0)
        after = fact.model_copy(update={"version": 3})
        await world.event(after, fact.public(), "x", NOW + 9 * MINUTE)
        await world.put(after)
        assert await world.log.ends(FACTS_UPDATED.name) == (2, 0, 1, 0)
        tracing = world.tracing()
        chain = await tracing.trace(FactRef("acme", fact.fact_id))
        assert chain is not None
        assert (told(chain.events), chain.missing) == ([1, 2, 3], ())
        assert [seen.turn_id for seen in chain.observations] == ["t1", "t2"]
        first = await history(world, fact, tracing, limit=2)
        assert told(first.events) == [1, 2]
        assert told((await history(world, fact, tracing, limit=2, cursor=first.next)).events) == [3]

    async def test_only_for_its_tenant_and_owner_and_up_to_the_ceiling(self, world: World) -> None:
        fact = await world.fact("Has a pin of 1234", sensitivity="secret")
        secret = FactRef("acme", fact.fact_id, ceiling="secret")
        assert await world.tracing().trace(secret) is not None
        for ref in (
            FactRef("acme", fact.fact_id),
            FactRef("rival", fact.fact_id, ceiling="secret"),
            FactRef("acme", fact.fact_id, Owner(scope="user", id="u2").__eq__, "secret"),
        ):
            assert await world.tracing().trace(ref) is None
            assert await world.tracing().history(ref) is None

    async def test_of_an_open_fact_what_was_secret_is_left_out(self, world: World) -> None:
        fact = await world.fact("Works at Stripe")
        await world.memory.message("I work at Stripe, my pin is 1234", turn="t1", sensitivity="secret")
        said = observation("Works at Stripe", turn="t1", sensitivity="secret")
        await world.observed(said, fact, turn="t1", number=1, at=NOW + MINUTE)
        hidden = fact.model_copy(update={"version": 2, "sensitivity": "secret"})
        await world.event(hidden, fact.public(), said.observation_id, NOW + 2 * MINUTE)
        open_again = fact.model_copy(update={"version": 3})
        await world.event(open_again, hidden.public(), said.observation_id, NOW + 3 * MINUTE)
        await world.put(open_again)
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert (told(chain.events), chain.turns, chain.turns_gone) == ([1], (), ())
        assert told((await trace(world, FactRef("acme", fact.fact_id, ceiling="secret"))).events) == [1, 2, 3]

    async def test_what_no_stage_wrote_is_read_over(self, world: World) -> None:
        fact = await world.fact("Works at Stripe")
        for topic in (FACTS_UPDATED.name, OBSERVATIONS.name):
            for value in (b"", b"{", b"[]", b"\xff", b'{"event_id": 1}'):
                await world.append(topic, fact, value, NOW + MINUTE)
        fact = await world.fact("Works at Stripe", 2)
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert (told(chain.events), chain.missing) == ([1, 2], ())


class TestBounds:
    async def test_the_log_is_read_from_when_the_fact_began(self, world: World) -> None:
        for topic in (FACTS_UPDATED.name, OBSERVATIONS.name):
            await world.noise(topic, 50, NOW - timedelta(hours=3))
        fact = await world.fact("Works at Stripe", 2)
        await world.noise(FACTS_UPDATED.name, 50, NOW + timedelta(hours=3))
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert (told(chain.events), len(chain.observations)) == ([1, 2], 2)
        assert world.counting.read_records == 4, "neither what lies before nor what lies behind"

    async def test_what_a_wrong_clock_put_before_is_found(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 2)
        late = fact.model_copy(update={"recorded_at": NOW + timedelta(hours=5)})
        for topic in (FACTS_UPDATED.name, OBSERVATIONS.name):
            await world.noise(topic, 1, NOW + timedelta(hours=6))
        await world.put(late)
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert (told(chain.events), len(chain.observations), chain.missing) == ([1, 2], 2, ())

    async def test_evidence_from_the_year_1_is_looked_for_from_the_start(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 1)
        long_ago = fact.evidence[0].model_copy(update={"occurred_at": datetime.min.replace(tzinfo=UTC)})
        await world.put(fact.model_copy(update={"evidence": (long_ago,)}))
        assert len((await trace(world, FactRef("acme", fact.fact_id))).observations) == 1

    async def test_a_bound_is_named_and_the_rest_is_told(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 1)
        await world.noise(FACTS_UPDATED.name, 30, NOW + MINUTE)
        more = fact.model_copy(update={"version": 2})
        await world.event(more, fact.public(), "x", NOW + 2 * MINUTE)
        await world.put(more)
        chain = await trace(world, FactRef("acme", fact.fact_id), records=20)
        assert [(each.part, each.why) for each in chain.missing] == [
            (part, f"stopped in {topic.name}: 20 records were read")
            for part, topic in (("history", FACTS_UPDATED), ("observations", OBSERVATIONS))
        ]
        assert (chain.fact.version, told(chain.events), world.counting.read_records) == (2, [1], 22)

    async def test_a_log_that_is_away_is_named(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 2)
        world.counting.away = {FACTS_UPDATED.name}
        chain = await trace(world, FactRef("acme", fact.fact_id))
        assert [each.part for each in chain.missing] == ["history"]
        assert (chain.events, len(chain.observations)) == ((), 2), "the evidence names them"


class TestHistory:
    async def test_pages_by_version_begin_where_the_last_ended(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 7)
        pages: list[list[int]] = []
        cursor: str | None = None
        while True:
            page = await history(world, fact, limit=3, cursor=cursor)
            pages.append(told(page.events))
            assert page.missing == ()
            if (cursor := page.next) is None:
                break
        assert pages == [[1, 2, 3], [4, 5, 6], [7]]
        assert world.counting.read_records == 7

    async def test_what_the_log_forgot_is_no_page_without_end(self, world: World) -> None:
        fact = await world.fact("Works at Stripe", 2)
        known = fact.model_copy(update={"version": 5})
        await world.put(known)
        first = await history(world, fact, limit=3)
        second = await history(world, fact, limit=3, cursor=first.next)
        assert (told(first.events), told(second.events), second.next) == ([1, 2], [], None)

    async def test_bounds(self, world: World) -> None:
        fact = await world.fact("Works at Stripe")
        other = await world.fact("Likes tea", 9)
        cursor = (await history(world, other, limit=1)).next
        for limit in (0, VERSIONS_MAX + 1):
            with pytest.raises(ValueError, match=f"1 to {VERSIONS_MAX} versions"):
                await history(world, fact, limit=limit)
        for wrong in (cursor, "", "x", "é", "bnVsbA", "A" * 1_000):
            with pytest.raises(ValueError, match="cursor"):
                await history(world, fact, cursor=wrong)


class TestWithoutTheStore:
    """Qdrant has no facts yet: the compacted topic has them."""

    @pytest.fixture
    async def bare(self, tmp_path: Path, world: World) -> AsyncIterator[World]:
        with FolderLock(folder=tmp_path / "bare") as lock:
            assert lock.try_acquire()
            address = f"embedded://{tmp_path / 'bare'}"
            store = await open_store(address, embedder=HashingEmbedder().identity, holds_folder=True)
            bare = World(store, world.counting._log)
            yield bare
            await store.close()

    async def publish(self, world: World, fact: Fact, value: bytes | None) -> None:
        key = ids.fact_key(fact.tenant_id, fact.fact_id).encode()
        await world.log.append(FACTS.name, key=key, value=value)

    async def test_the_last_record_of_the_key_counts(self, bare: World) -> None:
        fact = await bare.fact("Works at Stripe", 2, stored=False)
        await self.publish(bare, fact, fact.public().to_bytes())
        chain = await trace(bare, FactRef("acme", fact.fact_id))
        assert (chain.fact, told(chain.events), chain.turns) == (fact.public(), [1, 2], ())
        assert [turn_id for _, turn_id in chain.turns_gone] == ["t1", "t2"]
        assert await bare.tracing().trace(FactRef("rival", fact.fact_id)) is None
        assert await bare.tracing().trace(FactRef("acme", fact.fact_id, Owner(scope="user", id="u2").__eq__)) is None

    async def test_what_was_erased_is_gone(self, bare: World) -> None:
        fact = await bare.fact("Works at Stripe", stored=False)
        await self.publish(bare, fact, fact.public().to_bytes())
        await self.publish(bare, fact, None)
        assert await bare.tracing().trace(FactRef("acme", fact.fact_id)) is None

    async def test_not_found_within_bounds_is_not_said_to_be_absent(self, bare: World) -> None:
        await bare.noise(FACTS.name, 10, NOW)
        with pytest.raises(Transient, match="5 records were read"):
            await bare.tracing(records=5).trace(FactRef("acme", "0c96a090-a211-564a-a764-a4b400c046ae"))


async def test_where_the_store_has_facts_the_log_is_not_searched_for_others(world: World) -> None:
    assert await world.tracing().trace(FactRef("acme", "0c96a090-a211-564a-a764-a4b400c046ae")) is None
    assert world.counting.read_records == 0
