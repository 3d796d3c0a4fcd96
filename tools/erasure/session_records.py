"""Records of one session in the store: for the dry run of an erasure, and for the check after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from qdrant_client import models

from ...adapters.ports import Payload, VectorStore
from ...adapters.vectors.conditions import equals
from ...memory.facts.retractions import is_given_in
from ...schemas.collections import ARCHIVE, EPISODES, FACTS, HOLDINGS, TASKS, TURNS, WORKING
from ...schemas.commands import SessionRef
from ...schemas.facts import StoredFact

NAMED: Final = (TURNS, WORKING, HOLDINGS, EPISODES, ARCHIVE, TASKS)
"""Collections whose records name their user and session."""


async def count_session_records(store: VectorStore, *, tenant_id: str, session: SessionRef) -> Mapping[str, int]:
    """Return the number of records that name the session, by collection. Facts count by their evidence."""
    named = (equals("user_id", session.user_id), equals("session_id", session.session_id))
    counts = {name: len(await _records(store, name, named, tenant_id)) for name in NAMED}
    facts = await _records(store, FACTS, [equals("evidence[].session_id", session.session_id)], tenant_id)
    return {**counts, FACTS: sum(_rests_on(StoredFact.from_payload(each), session) for each in facts)}


def _rests_on(fact: StoredFact, session: SessionRef) -> bool:
    return any(
        is_given_in(each, fact.owner, user_id=session.user_id, session_id=session.session_id) for each in fact.evidence
    )


async def _records(
    store: VectorStore, collection: str, named: Iterable[models.Condition], tenant_id: str
) -> list[Payload]:
    if not await store.exists(collection):
        return []
    found = await store.select(collection, tenant_id=tenant_id, where=models.Filter(must=[*named]))
    return [each.payload for each in found]
