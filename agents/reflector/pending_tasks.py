"""Number of an owner's pending tasks, counted in the store.

Only the reflector writes tasks, and it handles an owner's events in sequence. So the store has the tasks of an event
before the next event is decided, even after a crash.
"""

from __future__ import annotations

from qdrant_client import models

from ...adapters.ports import VectorStore
from ...adapters.vectors.conditions import any_of, equals
from ...schemas.collections import TASKS
from ...schemas.edits.prospective import PENDING
from ...streams.engine.retry import Calls


async def count_pending(store: VectorStore, calls: Calls, *, tenant_id: str, owner_key: str) -> int:
    where = models.Filter(must=[equals("owner_key", owner_key), any_of("state", PENDING)])
    return await calls.call("store", lambda: store.count(TASKS, tenant_id=tenant_id, where=where))
