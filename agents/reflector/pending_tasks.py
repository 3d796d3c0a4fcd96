"""How many tasks of an owner are still to be done.

The store is asked. The reflector alone writes tasks, and an owner's events are handled one after the other: what an
event decided is in the store before the next one is decided, also after a crash.
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
