"""Statements that memory has of given turns: of facts in every state, and of episodes, also removed ones."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from qdrant_client import models

from ..adapters.ports import Payload, VectorStore
from ..adapters.vectors.conditions import any_of
from ..schemas.collections import EPISODES, FACTS
from .filters import SessionTurn, in_turns

_FACT_FIELDS: Final = ("content", *(f"evidence[].{name}" for name in ("session_id", "turn_id", "quote")))
_EPISODE_FIELDS: Final = ("content", "session_id", "turn_id", "evidence")


async def statements_of(
    store: VectorStore, tenant_id: str, owner_keys: Sequence[str], turns: Collection[SessionTurn]
) -> Mapping[SessionTurn, Sequence[str]]:
    """Return the statements and their quotes by turn. Raises the store's errors."""
    if not turns:
        return {}
    found = await asyncio.gather(
        *(
            _select(store, collection, tenant_id, [any_of("owner_key", owner_keys), *in_turns(turns, path)], fields)
            for collection, path, fields in (
                (FACTS, "evidence[].", _FACT_FIELDS),
                (EPISODES, "", _EPISODE_FIELDS),
            )
        )
    )
    statements: defaultdict[SessionTurn, list[str]] = defaultdict(list)
    for payload in (each for part in found for each in part):
        for turn, text in _texts(payload):
            if turn in turns:
                statements[turn].append(text)
    return statements


async def _select(
    store: VectorStore, collection: str, tenant_id: str, must: list[models.Condition], fields: Sequence[str]
) -> list[Payload]:
    if not await store.exists(collection):
        return []
    where = models.Filter(must=must)
    found = await store.select(collection, tenant_id=tenant_id, where=where, fields=fields)
    return [each.payload for each in found]


def _texts(payload: Payload) -> Iterator[tuple[SessionTurn, str]]:
    """Yield each turn of a fact or an episode with a text: the statement, and the quote of the turn."""
    content, evidence = str(payload.get("content") or ""), payload.get("evidence")
    if isinstance(evidence, list):
        for each in evidence:
            if isinstance(each, dict):
                turn = (str(each.get("session_id")), str(each.get("turn_id")))
                yield from ((turn, content), (turn, str(each.get("quote") or "")))
    else:
        turn = (str(payload.get("session_id")), str(payload.get("turn_id")))
        yield from ((turn, content), (turn, str(evidence or "")))
