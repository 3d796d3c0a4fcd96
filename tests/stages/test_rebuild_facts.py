"""Qdrant has lost its facts: the reflector refuses to begin anew, and memory.facts brings them back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from memstream.adapters.ports import Point, StoredPoint
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.store import QdrantStore
from memstream.agents.reflector.fact_state_topic import NEWEST, check_facts_present, publish_state
from memstream.agents.reflector.rebuild import RebuildRefused, RebuildReport, rebuild_facts
from memstream.schemas import ids
from memstream.schemas.cloudevents import MOVED_HEADER
from memstream.schemas.command_kinds import ERASE_FACTS
from memstream.schemas.commands import Command
from memstream.schemas.errors import DeploymentFault, Fatal
from memstream.schemas.facts import Fact, StoredFact
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import COMMANDS, FACTS, TURNS
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record, TopicSpec
from tests.support.embedded_stage import Bench, Killed, open_bench
from tests.support.record_builders import stored_fact
from tests.support.reflector_world import Talk, command, reflector


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    await log.create([TopicSpec(FACTS.name, 2, 1, {"cleanup.policy": "compact"})])
    yield log
    await log.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = await open_bench(tmp_path / "first", "reflector")
    bench.stage = reflector(bench)
    yield bench
    await bench.store.close()


@pytest.fixture
async def empty(tmp_path: Path, bench: Bench) -> AsyncIterator[QdrantStore]:
    """Another folder: the collections are there, with nothing in them."""
    store = await open_store(f"embedded://{tmp_path / 'second'}", embedder=bench.embedder.identity, holds_folder=True)
    yield store
    await store.close()


async def told(bench: Bench, log: EmbeddedLog) -> None:
    """What the reflector sent on memory.facts, in the log."""
    for record in bench.sent:
        if record.topic == FACTS.name:
            await log.append(FACTS.name, key=record.key, value=record.value)


async def rows(store: QdrantStore) -> dict[str, Fact]:
    found = await store.select("facts", tenant_id="acme")
    return {each.id: StoredFact.from_payload(each.payload).public() for each in found}


async def test_facts_come_back_and_a_second_time_changes_nothing(
    bench: Bench, log: EmbeddedLog, empty: QdrantStore
) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    await talk.tell("Works at Stripe", replaces_observation_id=google.observation_id)
    await told(bench, log)
    await empty.ensure("facts")
    done = await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    assert (done.written, done.kept) == (2, 0)
    assert await rows(empty) == await rows(bench.store)
    dense = (await bench.embedder.embed(["Works at Stripe"], tenant_id="acme"))[0]
    (near,) = await empty.nearest("facts", tenant_id="acme", dense=dense, limit=1)
    assert near.payload["content"] == "Works at Stripe"
    assert await rebuild_facts(log=log, store=empty, embedder=bench.embedder) == RebuildReport(read=2, kept=2)


async def test_only_lower_versions_are_replaced_and_tombstones_take_out(
    bench: Bench, log: EmbeddedLog, empty: QdrantStore
) -> None:
    talk = Talk(bench)
    google, tea = await talk.tell("Works at Google"), await talk.tell("Likes tea")
    await told(bench, log)
    await empty.ensure("facts")
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    await talk.tell("works at google")
    ahead = await rows(bench.store)
    await told(bench, log)
    tombstone = ids.fact_id("acme/user/u1", tea.observation_id)
    await log.append(FACTS.name, key=ids.fact_key("acme", tombstone).encode(), value=None)
    await log.append(FACTS.name, key=b"nonsense", value=b"{")
    done = await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    assert (done.removed, done.unreadable) == (1, 1)
    left = await rows(empty)
    assert list(left.values()) == [fact for fact in ahead.values() if fact.fact_id != tombstone]
    assert next(iter(left.values())).version == 2
    assert google.observation_id


@pytest.mark.parametrize("read_first", [0, 1], ids=["earlier partition first", "own partition first"])
async def test_what_lies_on_an_earlier_partition_brings_nothing_back(
    read_first: int, bench: Bench, log: EmbeddedLog, empty: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic has grown: the facts were copied, and one was erased since. Partitions are read in any order."""
    talk = Talk(bench)
    await talk.tell("Works at Google")
    tea = ids.fact_id("acme/user/u1", (await talk.tell("Likes tea")).observation_id)
    states = [record for record in bench.sent if record.topic == FACTS.name]
    for record in states:
        own = partition_for(record.key, 2)
        await log.append(FACTS.name, key=record.key, value=record.value, partition=1 - own)
        await log.append(FACTS.name, key=record.key, value=record.value, partition=own)
        moved = ((MOVED_HEADER, b"%d" % own),)
        await log.append(FACTS.name, key=record.key, value=None, partition=1 - own, headers=moved)
    await log.append(FACTS.name, key=ids.fact_key("acme", tea).encode(), value=None)
    of_tea = partition_for(ids.fact_key("acme", tea).encode(), 2)
    first = 1 - of_tea if read_first == 0 else of_tea
    records = sorted([record async for record in log.read(FACTS.name)], key=lambda r: r.position.partition != first)

    async def read(topic: str) -> AsyncIterator[Record]:
        for record in records:
            yield record

    monkeypatch.setattr(log, "read", read)
    await empty.ensure("facts")
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    assert [fact.content for fact in (await rows(empty)).values()] == ["Works at Google"]


async def test_it_refuses_while_a_growth_is_not_finished(bench: Bench, log: EmbeddedLog) -> None:
    await log.create([TopicSpec(TURNS.name, 1, 1, {})])  # it grows last
    with pytest.raises(RebuildRefused, match="memstream topics grow --partitions 2"):
        await rebuild_facts(log=log, store=bench.store, embedder=bench.embedder)


async def test_the_last_outcome_may_come_again_after_a_rebuild(
    bench: Bench, log: EmbeddedLog, empty: QdrantStore
) -> None:
    talk = Talk(bench)
    google = await talk.tell("Works at Google")
    record = talk.turn(talk.says("Works at Stripe", replaces_observation_id=google.observation_id))
    with pytest.raises(Killed):
        await bench.run(record, crash_after="publish")
    await told(bench, log)
    await empty.ensure("facts", "episodes")
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    before = await rows(empty)
    bench.store, old = empty, bench.store
    bench.stage = reflector(bench)
    await bench.run(record)
    assert await rows(empty) == before == await rows(old)
    await talk.tell("works at stripe")
    bench.store = old


async def test_it_refuses_while_a_reflector_works(
    bench: Bench, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def members(group: str) -> int:
        return 1 if group == "memory-reflector" else 0

    monkeypatch.setattr(log, "members", members)
    with pytest.raises(RebuildRefused, match="stop them first"):
        await rebuild_facts(log=log, store=bench.store, embedder=bench.embedder)


async def test_a_reflector_does_not_begin_anew(bench: Bench, log: EmbeddedLog, empty: QdrantStore) -> None:
    await check_facts_present(store=empty, log=log)  # nothing is known yet
    await Talk(bench).tell("Works at Google")
    await told(bench, log)
    await check_facts_present(store=bench.store, log=log)
    with pytest.raises(Fatal, match="memstream rebuild facts"):
        await check_facts_present(store=empty, log=log)
    await empty.ensure("facts")  # another worker made the collection meanwhile
    with pytest.raises(Fatal, match="memstream rebuild facts"):
        await check_facts_present(store=empty, log=log)


async def test_a_store_that_is_older_than_the_log_is_refused(
    bench: Bench, log: EmbeddedLog, empty: QdrantStore
) -> None:
    """A snapshot of the store, and everything that the log got before and after it."""
    talk = Talk(bench)
    for said in ("Works at Google", "Likes tea", "Has a dog named Rex"):
        await talk.tell(said)
    await told(bench, log)
    await empty.ensure("facts")
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)  # it is the snapshot from now on
    await check_facts_present(store=empty, log=log)
    bench.sent.clear()
    await talk.tell("works at google")  # a higher version, and no new fact
    await told(bench, log)
    with pytest.raises(DeploymentFault, match=r"lacks 1 of .*older snapshot.*memstream rebuild facts"):
        await check_facts_present(store=empty, log=log)
    await check_facts_present(store=bench.store, log=log)
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    await check_facts_present(store=empty, log=log)


async def test_an_older_state_that_is_sent_last_hides_no_loss(
    bench: Bench, log: EmbeddedLog, empty: QdrantStore
) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Google")
    await told(bench, log)
    await empty.ensure("facts")
    await rebuild_facts(log=log, store=empty, embedder=bench.embedder)
    first = [each for each in bench.sent if each.topic == FACTS.name]
    await talk.tell("works at google")
    bench.sent.extend(first)
    await told(bench, log)
    with pytest.raises(DeploymentFault, match="older snapshot"):
        await check_facts_present(store=empty, log=log)
    await check_facts_present(store=bench.store, log=log)


async def test_a_store_that_is_ahead_of_the_log_is_taken(bench: Bench, log: EmbeddedLog) -> None:
    """A crash between the row and its state: the event comes again."""
    talk = Talk(bench)
    await talk.tell("Works at Google")
    await told(bench, log)
    await talk.tell("works at google")
    await talk.tell("Likes tea")
    await check_facts_present(store=bench.store, log=log)


async def test_a_row_that_an_erasure_has_deleted_is_not_missed(bench: Bench, log: EmbeddedLog) -> None:
    """A crash between the deletion and the tombstone: the command comes again. The state before is the erased form."""
    await Talk(bench).tell("Likes tea")
    [before] = (await rows(bench.store)).values()
    args = {"user_id": "u1", "session_id": "s1"}
    await bench.run(command(bench, command_id="e1", kind=ERASE_FACTS, args=args))
    [erased] = (await rows(bench.store)).values()
    assert (erased.content, erased.state, erased.evidence) == ("[erased]", "forgotten", ())
    following = Command.read(bench.values(COMMANDS.name)[-1])
    with pytest.raises(Killed):
        await bench.run(bench.record(COMMANDS.name, following.key, following), crash_after="store")
    assert await rows(bench.store) == {}
    await told(bench, log)
    await check_facts_present(store=bench.store, log=log)
    stale = StoredFact(**before.model_dump(), owner_key=before.owner.key("acme"))
    [vector] = await bench.embedder.embed([stale.content], tenant_id="acme")
    await bench.store.put("facts", [Point(stale.fact_id, stale.to_payload(), vector, stale.content)])
    with pytest.raises(DeploymentFault, match="older snapshot"):
        await check_facts_present(store=bench.store, log=log)


@pytest.mark.parametrize("after", [0, 3, 2 * NEWEST + 20], ids=["nothing", "foreign records", "many foreign records"])
async def test_what_is_no_state_hides_no_loss(bench: Bench, log: EmbeddedLog, empty: QdrantStore, after: int) -> None:
    await Talk(bench).tell("Works at Google")
    await told(bench, log)
    for n in range(after):
        await log.append(FACTS.name, key=b"nonsense", value=b"{", partition=n % 2)
    await empty.ensure("facts")
    await check_facts_present(store=bench.store, log=log)
    with pytest.raises(DeploymentFault, match="memstream rebuild facts"):
        await check_facts_present(store=empty, log=log)


async def test_an_erased_fact_that_is_back_is_refused(bench: Bench, log: EmbeddedLog) -> None:
    tea = ids.fact_id("acme/user/u1", (await Talk(bench).tell("Likes tea")).observation_id)
    await told(bench, log)
    await log.append(FACTS.name, key=ids.fact_key("acme", tea).encode(), value=None)
    with pytest.raises(DeploymentFault, match=tea):
        await check_facts_present(store=bench.store, log=log)
    await rebuild_facts(log=log, store=bench.store, embedder=bench.embedder)
    await check_facts_present(store=bench.store, log=log)


async def test_a_fact_that_a_growth_has_moved_is_judged_by_its_new_partition(bench: Bench, log: EmbeddedLog) -> None:
    await Talk(bench).tell("Works at Google")
    for record in [each for each in bench.sent if each.topic == FACTS.name]:
        own = partition_for(record.key, 2)
        moved = ((MOVED_HEADER, b"%d" % own),)
        await log.append(FACTS.name, key=record.key, value=None, partition=1 - own, headers=moved)
        await log.append(FACTS.name, key=record.key, value=record.value, partition=own)
    await check_facts_present(store=bench.store, log=log)


async def test_only_the_ends_of_the_partitions_are_read(
    bench: Bench, log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Talk(bench).tell("Works at Google")
    for _ in range(2 * NEWEST):
        await told(bench, log)
    read, seen = log.read, []

    async def counted(topic: str, *, start: Mapping[int, int] | None = None) -> AsyncIterator[Record]:
        async for record in read(topic, start=start):
            seen.append(record)
            yield record

    monkeypatch.setattr(log, "read", counted)
    await log.append(FACTS.name, key=bench.sent[-1].key, value=bench.sent[-1].value)
    await check_facts_present(store=bench.store, log=log)
    assert len(seen) == NEWEST


async def test_the_state_that_is_sent_last_is_what_stands(bench: Bench) -> None:
    """A worker that was presumed dead wakes up between our look and our send."""
    await Talk(bench).tell("Works at Google")
    (row,) = (await bench.facts()).values()
    bench.sent.clear()

    async def send(record: OutRecord) -> None:
        bench.sent.append(record)
        if len(bench.sent) == 1:  # another changes the row before our record is in the log
            changed = stored_fact(row.content).model_copy(update={**dict(row), "version": 2, "applied": ("other",)})
            await bench.store.set_payload(
                "facts", tenant_id="acme", ids=[row.fact_id], fields={"version": changed.version}
            )

    async def read() -> Mapping[str, StoredPoint]:
        return await bench.store.get("facts", tenant_id="acme", ids=[row.fact_id])

    await publish_state([row.fact_id], read=read, send_durably=send, now=bench.now)
    assert [Fact.read(record.value or b"").version for record in bench.sent] == [1, 2]
