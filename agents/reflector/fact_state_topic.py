"""The topic memory.facts: the state of every fact, compacted (docs/reference/topics.md).

The last record of a key must have the highest version. So a row is read immediately before its state is sent, and again
after the send. A row that has changed is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from ...adapters.ports import StoredPoint, VectorStore
from ...memory.facts.erasures import is_erased_form
from ...schemas import ids
from ...schemas.base import explain
from ...schemas.collections import FACTS as FACTS_COLLECTION
from ...schemas.errors import DeploymentFault, Fatal
from ...schemas.facts import Fact, StoredFact
from ...schemas.outcomes import OutRecord
from ...schemas.topics import FACTS
from ...streams.log.partitioner import partition_for
from ...streams.log.port import Log, Record
from .messages import fact_state

ReadFacts = Callable[[], Awaitable[Mapping[str, StoredPoint]]]
SendDurably = Callable[[OutRecord], Awaitable[None]]
ROUNDS_MAX = 20
NEWEST = 256
"""Number of records at the end of each partition that are compared with the store. The last record is not enough:
concurrent events may write their rows in one order and send the states in another order. A worker applies 256 events
concurrently."""


async def publish_state(
    fact_ids: Sequence[str],
    *,
    read: ReadFacts,
    send_durably: SendDurably,
    now: Callable[[], datetime],
) -> None:
    """Send each row's state until the last sent version is the stored version. `read` returns the stored rows by id.

    A deleted row is skipped: the code that erases it writes the tombstone. Raises Fatal when rows do not stop changing.
    """
    sent: dict[str, int] = {}
    for _ in range(ROUNDS_MAX):
        found = await read()
        rows = [StoredFact.from_payload(found[each].payload) for each in fact_ids if each in found]
        changed = [row for row in rows if sent.get(row.fact_id, 0) < row.version]
        if not changed:
            return
        await asyncio.gather(*(send_durably(fact_state(row.public(), at=now())) for row in changed))
        sent |= {row.fact_id: row.version for row in changed}
    raise Fatal("facts change faster than their state can be sent: another writer is active")


async def check_facts_present(*, store: VectorStore, log: Log) -> None:
    """Check that Qdrant has the newest facts of the log, before the collections are created.

    A row is written before its state is sent, so an intact store has every state of the log or a newer one. A row in
    the form of an erased fact may be deleted already, because its tombstone follows the deletion. A store
    that lacks some of these states was emptied, or was restored from a snapshot older than the log. In that store, a
    fact would restart at a lower version, and two events would have the same id. Raises DeploymentFault (exit 4) with
    the repair command.
    """
    partitions = await log.partitions(FACTS.name)
    if partitions is None:
        return
    newest = await _newest(log, partitions)  # read the log first: later states are in the store already
    if not newest:
        return
    if not await store.exists(FACTS_COLLECTION):
        raise _lost("the collection is missing while memory.facts is not empty")
    behind = await _behind(store, newest)
    if behind:
        raise _lost(
            f"it lacks {len(behind)} of the {len(newest)} newest states in memory.facts, the first of the fact "
            f"{behind[0]}: it is empty, or an older snapshot was restored"
        )


def _lost(why: str) -> DeploymentFault:
    return DeploymentFault(
        f"Qdrant has lost facts: {why}. Stop the reflector, run `memstream rebuild facts`, then start it again"
    )


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest state of a fact in the log. `version`: 0 for a tombstone. `leaves`: the fact is in erased form."""

    version: int = 0
    leaves: bool = False

    def fits(self, stored: int) -> bool:
        """Return whether a store may have this version of the row; 0: it has no row."""
        if self.version == 0 or stored == 0:
            return stored == 0 and (self.version == 0 or self.leaves)
        return stored >= self.version


async def _newest(log: Log, partitions: int) -> dict[tuple[str, str], _Newest]:
    """Return the newest states in the last records of each partition, by tenant id and fact id.

    Earlier records are read when no last record of a partition is usable: they are not facts, or an increase of the
    partition count moved their facts to other partitions.
    """
    starts, ends = await log.starts(FACTS.name), await log.ends(FACTS.name)
    newest: dict[tuple[str, str], _Newest] = {}
    left, window = {partition for partition in range(partitions) if starts[partition] < ends[partition]}, NEWEST
    while left:
        begin = {partition: max(starts[partition], ends[partition] - window) for partition in left}
        found: set[int] = set()
        async with aclosing(log.read(FACTS.name, start=begin)) as records:
            async for record in records:
                if record.key is None or partition_for(record.key, partitions) != record.position.partition:
                    continue  # from before a partition increase: the fact's new partition has its state
                try:
                    key, fact = decoded(record)
                except ValueError:
                    continue  # a rebuild skips it too
                newest[key] = _after(newest.get(key, _Newest()), fact)
                found.add(record.position.partition)
        left = {partition for partition in left - found if begin[partition] > starts[partition]}
        window *= 8
    return newest


def _after(before: _Newest, fact: Fact | None) -> _Newest:
    """Return the newest state after one more record."""
    if fact is None:
        return _Newest()
    return before if fact.version < before.version else _Newest(fact.version, is_erased_form(fact))


async def _behind(store: VectorStore, newest: Mapping[tuple[str, str], _Newest]) -> list[str]:
    """Return the ids of facts that are older in the store, missing, or present although they were erased."""
    of_tenant: dict[str, list[str]] = {}
    for tenant_id, fact_id in newest:
        of_tenant.setdefault(tenant_id, []).append(fact_id)
    rows = await asyncio.gather(
        *(store.get(FACTS_COLLECTION, tenant_id=tenant_id, ids=fact_ids) for tenant_id, fact_ids in of_tenant.items())
    )
    behind: list[str] = []
    for (tenant_id, fact_ids), found in zip(of_tenant.items(), rows, strict=True):
        for fact_id in fact_ids:
            row = found.get(fact_id)
            stored = 0 if row is None else StoredFact.from_payload(row.payload).version
            if not newest[tenant_id, fact_id].fits(stored):
                behind.append(fact_id)
    return behind


def decoded(record: Record) -> tuple[tuple[str, str], Fact | None]:
    """Return the key's tenant and fact id, and the state or None for a tombstone. Raises ValueError."""
    tenant_id, fact_id = ids.split((record.key or b"").decode())
    if record.value is None:
        return (tenant_id, fact_id), None
    try:
        fact = Fact.read(record.value)
    except ValidationError as error:
        raise ValueError(explain(error)) from None
    if (fact.tenant_id, fact.fact_id) != (tenant_id, fact_id):
        raise ValueError("the key belongs to another fact")
    return (tenant_id, fact_id), fact
