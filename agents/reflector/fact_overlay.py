"""Read-your-writes overlay on the stored facts of one owner.

The changes of one outcome lie over the rows of the store. So several changes of one turn or command, and those of turns
that are decided together, see each other, and each row is written once, from the version that was read to the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals
from ...memory.facts.similarity import NearFact, cosine
from ...memory.facts.statements import Statement
from ...memory.facts.transitions import CLOSED, READABLE, Transition, has_ended
from ...schemas import ids
from ...schemas.collections import FACTS
from ...schemas.errors import Fatal
from ...schemas.facts import FactState, StoredFact
from ...schemas.outcomes import OutPoint, SwapPoint
from ...streams.engine.retry import Calls

Vector = Sequence[float]


@dataclass(slots=True)
class _Changed:
    base_version: int | None
    """The version that was read; None: there was no row."""
    fact: StoredFact
    dense: Vector | None
    """The vector of a new text; None: the text has not changed."""
    cause: str
    """Of the last change; the row has it in `applied`."""


class FactOverlay:
    """Reads one owner's facts, with the changes of this outcome over them. Only `of_others` reads facts of others."""

    def __init__(self, *, store: VectorStore, calls: Calls, tenant_id: str, owner_key: str) -> None:
        self._store = store
        self._calls = calls
        self.tenant_id = tenant_id
        self._owner_key = owner_key
        self._read: dict[str, StoredFact] = {}
        self._changed: dict[str, _Changed] = {}

    # ------------------------------------------------------------------------------------------------ reads
    async def by_ids(self, fact_ids: Iterable[str]) -> dict[str, StoredFact]:
        """Return those of these facts that the owner has, in any state."""
        wanted = [each for each in dict.fromkeys(fact_ids) if ids.is_derived(each)]
        unread = [each for each in wanted if each not in self._read and each not in self._changed]
        if unread:
            found = await self._calls.call(
                "store", lambda: self._store.get(FACTS, tenant_id=self.tenant_id, ids=unread)
            )
            self._remember(found.values())
        facts = {each: fact for each in wanted if (fact := self._current(each)) is not None}
        return {each: fact for each, fact in facts.items() if fact.owner_key == self._owner_key}

    async def of_others(self, fact_ids: Iterable[str]) -> tuple[StoredFact, ...]:
        """Return facts of the tenant, of any owner, as the store has them. Sharing reads them; nothing writes them."""
        wanted = [each for each in dict.fromkeys(fact_ids) if ids.is_derived(each)]
        found = await self._calls.call("store", lambda: self._store.get(FACTS, tenant_id=self.tenant_id, ids=wanted))
        return tuple(StoredFact.from_payload(each.payload) for each in found.values())

    async def of_observation(self, observation_id: str) -> StoredFact | None:
        """Return the fact that was made of an observation, else the newest one whose evidence names it."""
        direct = ids.fact_id(self._owner_key, observation_id)
        fact = (await self.by_ids([direct])).get(direct)
        if fact is not None and fact.state in READABLE:
            return fact
        named = await self._matching(
            [equals("evidence[].observation_id", observation_id)],
            lambda each: any(piece.observation_id == observation_id for piece in each.evidence),
        )
        return max(named, key=lambda each: (each.recorded_at, each.fact_id), default=None)

    async def equal(self, statement: Statement) -> StoredFact | None:
        """Return the fact of this subject with this canonical text that has not ended when the statement begins:
        active before pending, then the oldest."""
        subject, content_hash = statement.subject, statement.content_hash
        found = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
        )
        same = [each for each in found if not has_ended(each, statement.begins)]
        return min(same, key=lambda each: (each.state != "active", each.recorded_at, each.fact_id), default=None)

    async def quarantined(self, subject: str, content_hash: str) -> StoredFact | None:
        """Return the oldest quarantined fact of this subject with this canonical text."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
            states=("quarantined",),
        )
        return min(same, key=lambda each: (each.recorded_at, each.fact_id), default=None)

    async def closed(self, subject: str, content_hash: str) -> tuple[StoredFact, ...]:
        """Return the closed facts of this subject with this canonical text, newest first."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
            states=CLOSED,
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id), reverse=True))

    async def near(self, subject: str, dense: Vector, *, limit: int) -> tuple[NearFact, ...]:
        """Return the nearest facts of this subject, best first, equal ones by their ids."""
        where = self._where([equals("subject", subject)], READABLE)
        found = await self._calls.call(
            "store",
            lambda: self._store.nearest(
                FACTS, tenant_id=self.tenant_id, dense=dense, where=where, limit=limit + len(self._changed)
            ),
        )
        self._remember(found)
        similarity = {each.id: each.score for each in found if each.score is not None}
        for fact_id, changed in self._changed.items():
            if changed.dense is not None:
                similarity[fact_id] = cosine(dense, changed.dense)
        rows = ((self._current(fact_id), score) for fact_id, score in similarity.items())
        near = [
            NearFact(fact, score)
            for fact, score in rows
            if fact is not None and fact.subject == subject and self._mine(fact, READABLE)
        ]
        return tuple(sorted(near, key=lambda each: (-similarity[each.fact.fact_id], each.fact.fact_id))[:limit])

    async def neighbours(
        self, subject: str, dense: Vector | None, predicates: Sequence[str], *, limit: int
    ) -> tuple[NearFact, ...]:
        """Return the nearest facts of this subject, and all that have one of these predicates.

        A predicate with one value at a time is looked up by its name: the texts of two values need not be near.
        """
        near = () if dense is None else await self.near(subject, dense, limit=limit)
        found = {each.fact.fact_id for each in near}
        same_predicate = await self.of_predicate(subject, predicates)
        return (*near, *(NearFact(fact) for fact in same_predicate if fact.fact_id not in found))

    async def of_predicate(self, subject: str, predicates: Sequence[str]) -> tuple[StoredFact, ...]:
        """Return the facts of this subject with one of these predicates, oldest first."""
        if not predicates:
            return ()
        same = await self._matching(
            [any_of("predicate", predicates), equals("subject", subject)],
            lambda each: each.predicate in predicates and each.subject == subject,
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id)))

    # ------------------------------------------------------------------------------------------------ changes
    def change(self, transition: Transition, dense: Vector | None = None, *, cause: str) -> None:
        """Put a change over the stored row. `dense`: the vector of a new text. `cause`: the one in the row's `applied`.

        Raises Fatal for a new fact whose row exists already.
        """
        fact = transition.fact
        changed = self._changed.get(fact.fact_id)
        if changed is not None:
            changed.fact = fact
            changed.dense = dense if dense is not None else changed.dense
            changed.cause = cause
            return
        before = self._read.get(fact.fact_id)
        if (before is None) != (transition.before is None):
            raise Fatal(f"fact {fact.fact_id} exists already: its cause was handled before, and the ledger forgot it")
        self._changed[fact.fact_id] = _Changed(before.version if before else None, fact, dense, cause)

    async def writes(self) -> tuple[SwapPoint, ...]:
        """Return one compare and set for each changed row. Vectors of unchanged texts are read from the store."""
        without_vector = [fact_id for fact_id, changed in self._changed.items() if changed.dense is None]
        stored: dict[str, StoredPoint] = {}
        if without_vector:
            stored = await self._calls.call(
                "store", lambda: self._store.get(FACTS, tenant_id=self.tenant_id, ids=without_vector, with_dense=True)
            )
        return tuple(
            SwapPoint(
                collection=FACTS,
                point=OutPoint(
                    id=fact_id,
                    payload=changed.fact.to_payload(),
                    dense=changed.dense if changed.dense is not None else _dense(stored, fact_id),
                    text=changed.fact.content,
                ),
                expected_version=changed.base_version,
                cause=changed.cause,
            )
            for fact_id, changed in self._changed.items()
        )

    # ------------------------------------------------------------------------------------------------ within
    def _where(self, conditions: Sequence[models.FieldCondition], states: Sequence[FactState]) -> models.Filter:
        state = any_of("state", states)
        return models.Filter(must=[equals("owner_key", self._owner_key), state, *conditions])

    async def _matching(
        self,
        conditions: Sequence[models.FieldCondition],
        matches: Callable[[StoredFact], bool],
        *,
        states: Sequence[FactState] = READABLE,
    ) -> list[StoredFact]:
        """Return facts that match in the store or in the changes. `matches` repeats `conditions` in memory."""
        where = self._where(conditions, states)
        found = await self._calls.call(
            "store", lambda: self._store.select(FACTS, tenant_id=self.tenant_id, where=where)
        )
        self._remember(found)
        candidates = dict.fromkeys([each.id for each in found] + list(self._changed))
        facts = [fact for each in candidates if (fact := self._current(each)) is not None]
        return [fact for fact in facts if self._mine(fact, states) and matches(fact)]

    def _mine(self, fact: StoredFact, states: Sequence[FactState]) -> bool:
        return fact.state in states and fact.owner_key == self._owner_key

    def _current(self, fact_id: str) -> StoredFact | None:
        changed = self._changed.get(fact_id)
        return changed.fact if changed is not None else self._read.get(fact_id)

    def _remember(self, found: Iterable[StoredPoint]) -> None:
        """Keep the rows as they were read first, so that all decisions of an outcome see the same rows."""
        for each in found:
            if each.id not in self._read:
                self._read[each.id] = StoredFact.from_payload(each.payload)


def _dense(stored: dict[str, StoredPoint], fact_id: str) -> Vector | None:
    found = stored.get(fact_id)
    return None if found is None else found.dense
