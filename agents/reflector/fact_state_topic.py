"""The topic memory.facts: the state of every fact, compacted (docs/reference/topics.md).

The last record of a key must have the highest version. So the row is read just before the send, and once more
after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime

from ...adapters.ports import StoredPoint, VectorStore
from ...schemas import ids
from ...schemas.collections import FACTS as FACTS_COLLECTION
from ...schemas.errors import Fatal
from ...schemas.facts import StoredFact
from ...schemas.outcomes import OutRecord
from ...schemas.topics import FACTS
from ...streams.log.port import Log
from .messages import fact_state

ReadFacts = Callable[[], Awaitable[Mapping[str, StoredPoint]]]
SendDurably = Callable[[OutRecord], Awaitable[None]]
ROUNDS_MAX = 20
SAMPLE = 100


async def publish_state(
    fact_ids: Sequence[str],
    *,
    read: ReadFacts,
    send_durably: SendDurably,
    now: Callable[[], datetime],
) -> None:
    """Send each row as it is, until the last version sent is the stored one. `read` returns the stored rows by id.

    A row that is gone is skipped: whoever erased it writes the tombstone. Raises Fatal when rows go on changing.
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
    raise Fatal("facts change faster than their state can be sent: another writer lives")


async def check_facts_present(*, store: VectorStore, log: Log) -> None:
    """Check that Qdrant still has the facts of the log, before the collections are created.

    A fact that only the log has would start again at version 1. Raises Fatal (exit 4) with the command that repairs it
    when memory.facts has facts, and the collection is missing or has none of the first facts of the log.
    """
    if await log.partitions(FACTS.name) is None:
        return
    known = await _first_known(log)
    if not known:
        return
    if await store.exists(FACTS_COLLECTION):
        for tenant_id, fact_ids in known.items():
            if await store.get(FACTS_COLLECTION, tenant_id=tenant_id, ids=sorted(fact_ids)):
                return
    raise Fatal(
        "Qdrant has lost its facts: the collection is missing or empty while memory.facts is not. "
        "Run `memstream rebuild facts`, then start the reflector again"
    )


async def _first_known(log: Log) -> dict[str, set[str]]:
    """Return the fact ids of the first states in the log, by tenant."""
    known: dict[str, set[str]] = {}
    count = 0
    async with aclosing(log.read(FACTS.name)) as records:
        async for record in records:
            if record.key is None or record.value is None:
                continue
            tenant_id, fact_id = ids.split(record.key.decode())
            known.setdefault(tenant_id, set()).add(fact_id)
            count += 1
            if count >= SAMPLE:
                break
    return known
