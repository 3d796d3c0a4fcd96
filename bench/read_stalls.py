"""Stalls: each kind of read by stages and recall, compared with the same bytes sent by a bare client."""

from __future__ import annotations

import statistics
from typing import Final

from qdrant_client import models

from memstream.adapters.ports import DenseRanking, LexicalRanking
from memstream.adapters.vectors.conditions import equals
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.schemas import ids
from memstream.schemas.collections import FACTS

from .alternation import Run, alternated
from .recall_corpus import Cue
from .recorded_requests import Recorder
from .report import Figure

TARGET_STALL: Final = 1.3
STALL_ALLOWED: Final = 0.0003
"""Seconds that a read may take in addition to the bare read."""


async def stalls(store: PeriodStore, recorder: Recorder, cue: Cue, *, runs: int, pairs: int, on: str) -> Figure:
    """Compare each kind of read with the same bytes sent by a bare client, one read at a time."""
    found: dict[str, float] = {}
    for name, read in _reads(store, cue).items():
        await read()
        with recorder.taking() as sent:
            await read()
        [request] = sent
        both = await alternated([read] * runs, [lambda request=request: recorder.repeat(request)] * runs, pairs=pairs)
        found[name] = statistics.median((ours.p50 - STALL_ALLOWED) / bare.p50 for ours, bare in both)
    return Figure(
        ratio="stall",
        what=f"(read p50 − 0.3 ms) ÷ the same bytes by a bare client, the worst of {len(found)} kinds of read",
        on=on,
        value=max(found.values()),
        target=TARGET_STALL,
        better="lower",
        detail=found,
    )


def _reads(store: PeriodStore, cue: Cue) -> dict[str, Run]:
    """Return the kinds of read that stages and recall make."""
    tenant, some = cue.whose.tenant_id, ids.links_id(cue.whose.key)
    owned = models.Filter(must=[equals("owner_key", cue.whose.key)])
    rankings = [DenseRanking(cue.vector), LexicalRanking(cue.text)]
    return {
        "by id": lambda: store.get(FACTS, tenant_id=tenant, ids=[some]),
        "few": lambda: store.select(FACTS, tenant_id=tenant, where=owned, limit=10),
        "fields": lambda: store.select(FACTS, tenant_id=tenant, where=owned, limit=10, fields=("content",)),
        "in order": lambda: store.select(FACTS, tenant_id=tenant, where=owned, order_by="recorded_at", limit=10),
        "last": lambda: store.last(FACTS, tenant_id=tenant, where=owned, order_by="recorded_at", limit=10),
        "nearest": lambda: store.nearest(FACTS, tenant_id=tenant, dense=cue.vector, where=owned, limit=10),
        "words": lambda: store.lexical(FACTS, tenant_id=tenant, text=cue.text, where=owned, limit=10),
        "search": lambda: store.search(FACTS, tenant_id=tenant, rankings=rankings, where=owned, limit=10),
        "count": lambda: store.count(FACTS, tenant_id=tenant, where=owned),
    }
