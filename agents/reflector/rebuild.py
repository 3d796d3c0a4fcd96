"""`memstream rebuild facts`: restore Qdrant's facts from memory.facts, which keeps their state without time limit.

Texts are embedded again. A row is written only when it is missing or has a lower version. A tombstone deletes the row.
Episodes and turns are not in memory.facts, so this command does not restore them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ...adapters.ports import Embedder, Point, VectorStore
from ...schemas.collections import FACTS as FACTS_COLLECTION
from ...schemas.errors import Fatal
from ...schemas.facts import Fact, StoredFact
from ...schemas.topics import FACTS, TURNS, group_of
from ...streams.log.partition_count import grow_advice
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Log
from ..common.store_writes import rebuilt_mark
from .fact_state_topic import decoded

BATCH = 256


class RebuildRefused(Exception):
    """The rebuild cannot start. Exit code 2.

    A reflector is running, and two writers of facts would conflict; or an increase of the partition count is not
    complete, so memory.facts has states of one fact in two partitions.
    """


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Numbers of rows.

    `read`: states from the log; in each batch of records, only the newest state of a fact counts. `kept`: rows that
    were up to date. `removed`: facts with a tombstone. `unreadable`: skipped records.
    """

    read: int = 0
    written: int = 0
    kept: int = 0
    removed: int = 0
    unreadable: int = 0


async def rebuild_facts(
    *,
    log: Log,
    store: VectorStore,
    embedder: Embedder,
    progress: Callable[[RebuildReport], None] = lambda done: None,
) -> RebuildReport:
    """Rebuild all facts. The collections must exist. Raises RebuildRefused, Transient, Fatal."""
    partitions = await log.partitions(FACTS.name)
    if partitions is None:
        raise Fatal(f"there is no topic {FACTS.name}: nothing to rebuild from. Run `memstream topics check`")
    members = await log.members(group_of("reflector"))
    if members:
        raise RebuildRefused(
            f"{members} worker(s) of the reflector are running: stop them first (they write the rows that a rebuild "
            "would write)"
        )
    if await log.partitions(TURNS.name) not in (None, partitions):  # memory.turns grows last
        raise RebuildRefused(
            f"{FACTS.name} and {TURNS.name} have different partition counts: " + grow_advice(partitions)
        )
    done = RebuildReport()
    batch: dict[tuple[str, str], Fact | None] = {}
    async for record in log.read(FACTS.name):
        if record.key is not None and partition_for(record.key, partitions) != record.position.partition:
            continue  # from before a partition increase: the new partition has its state, or it was erased
        try:
            key, fact = decoded(record)
        except ValueError:
            done = replace(done, unreadable=done.unreadable + 1)
            continue
        known = batch.get(key)
        if fact is None or known is None or fact.version >= known.version:
            batch[key] = fact
        if len(batch) >= BATCH:
            done = await _write(batch, done, store=store, embedder=embedder)
            progress(done)
            batch = {}
    done = await _write(batch, done, store=store, embedder=embedder)
    progress(done)
    return done


async def _write(
    batch: Mapping[tuple[str, str], Fact | None], done: RebuildReport, *, store: VectorStore, embedder: Embedder
) -> RebuildReport:
    by_tenant: dict[str, dict[str, Fact | None]] = {}
    for (tenant_id, fact_id), fact in batch.items():
        by_tenant.setdefault(tenant_id, {})[fact_id] = fact
    for tenant_id, facts in by_tenant.items():
        erased = [fact_id for fact_id, fact in facts.items() if fact is None]
        if erased:
            await store.delete(FACTS_COLLECTION, tenant_id=tenant_id, ids=erased)
        stored = await store.get(FACTS_COLLECTION, tenant_id=tenant_id, ids=list(facts))
        versions = {each: StoredFact.from_payload(found.payload).version for each, found in stored.items()}
        states = [fact for fact in facts.values() if fact is not None]
        outdated = [fact for fact in states if versions.get(fact.fact_id, 0) < fact.version]
        if outdated:
            vectors = await embedder.embed([fact.content for fact in outdated], tenant_id=tenant_id)
            points = [
                _point(fact, vector, embedder.identity.name) for fact, vector in zip(outdated, vectors, strict=True)
            ]
            await store.insert(FACTS_COLLECTION, [point for point in points if point.id not in versions])
            for fact, point in zip(outdated, points, strict=True):
                if fact.fact_id in versions:
                    await store.compare_and_set(
                        FACTS_COLLECTION,
                        point,
                        expected_version=versions[fact.fact_id],
                        cause=rebuilt_mark(fact.version),
                    )
        done = replace(
            done,
            read=done.read + len(states),
            written=done.written + len(outdated),
            kept=done.kept + len(states) - len(outdated),
            removed=done.removed + len(erased),
        )
    return done


def _point(fact: Fact, vector: list[float], embedder: str) -> Point:
    row = StoredFact.from_payload(
        {
            **fact.to_payload(),
            "embedder": embedder,
            "owner_key": fact.owner.key(fact.tenant_id),
            "applied": [rebuilt_mark(fact.version)],
        }
    )
    return Point(id=fact.fact_id, payload=row.to_payload(), dense=vector, text=fact.content)
