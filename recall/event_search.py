"""Look-up of the event by which a cue names a time: before I moved (docs/design/recall.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from qdrant_client import models

from ..adapters.ports import LexicalRanking, StoredPoint, VectorStore
from ..adapters.vectors.conditions import any_of
from ..memory.recall.cue_times import CueTime, related_time
from ..memory.recall.event_times import EventClause, moment_of_event
from ..schemas.collections import FACTS
from .deadline import EVENT, DeadlineReads
from .filters import event_facts
from .payloads import EVENT_FIELDS, dated_fact
from .request import RecallRequest

EVENT_SHARE: Final = 0.25
"""The share of the patience. All searches wait for the time that the event names."""
_BY_WORDS: Final = 20
"""Number of facts that are found by the words of the event."""
_BY_SLOT: Final = 100
"""Maximum number of facts that are compared with the event."""


async def find_event_time(
    clause: EventClause, *, store: VectorStore, request: RecallRequest, now: datetime, parts: DeadlineReads
) -> CueTime | None:
    """Return the time that the clause names. Return None when no fact of the owner states the event, and when the store
    does not answer: then the cue names no time."""
    if request.owner.scope != "user":
        return None
    rows = await parts.ask(EVENT, lambda: _candidates(clause, store, request), share=EVENT_SHARE)
    present = request.past or now
    moment = moment_of_event(clause, [dated_fact(each.payload) for each in rows or ()], now=present)
    return None if moment is None else related_time(moment, clause.relation, now=present, zone=request.zone)


async def _candidates(clause: EventClause, store: VectorStore, request: RecallRequest) -> Sequence[StoredPoint]:
    """Return the facts with words of the event, and the facts with a slot of its words."""
    readable = event_facts(request)
    ranking = LexicalRanking(clause.text)
    (found,) = await store.search(
        FACTS, tenant_id=request.tenant_id, rankings=[ranking], where=readable, limit=_BY_WORDS
    )
    likely: list[models.Condition] = [models.HasIdCondition(has_id=[each.id for each in found])]
    if clause.slots:
        likely += [any_of("slot", sorted(clause.slots)), any_of("predicate", sorted(clause.predicates))]
    return await store.select(
        FACTS,
        tenant_id=request.tenant_id,
        where=models.Filter(must=[readable, models.Filter(should=likely)]),
        limit=_BY_SLOT,
        fields=EVENT_FIELDS,
    )
