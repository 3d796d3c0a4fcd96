"""The facts of one owner as one outcome has left them: its own decisions lie over what the store has.

So several changes of one turn or command see each other, and each row is written once, from the version that was
read to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals
from ...memory.facts.similarity import NearFact, cosine
from ...memory.facts.transitions import CLOSED, READABLE, Transition
from ...schemas import ids
from ...schemas.collections import FACTS
from ...schemas.errors import Fatal
from ...schemas.facts import FactState, StoredFact
from ...schemas.outcomes import OutPoint, SwapPoint, pack_vector
from ...streams.engine.retry import Calls

Vector = Sequence[float]


@dataclass(slots=True)
class _Changed:
    base_version: int | None
    """As it was read; None: it was absent."""
    fact: StoredFact
    dense: Vector | None
    """Of its text; None: the text is the stored one's."""


class FactOverlay:
    """Reads of one owner's facts, with this outcome's changes over them. Rows of other owners are seen by `of_others`
    alone."""

    def __init__(self, *, store: VectorStore, calls: Calls, tenant_id: str, owner_key: str) -> None:
        self._store = store
        self._calls = calls
        self._tenant_id = tenant_id
        self._owner_key = owner_key
        self._read: dict[str, StoredFact] = {}
        self._changed: dict[str, _Changed] = {}

    # ------------------------------------------------------------------------------------------------ reads
    async def by_ids(self, fact_ids: Iterable[str]) -> dict[str, StoredFact]:
        wanted = [each for each in dict.fromkeys(fact_ids) if ids.is_derived(each)]
        unread = [each for each in wanted if each not in self._read and each not in self._changed]
        if unread:
            found = await self._calls.call(
                "store", lambda: self._store.get(FACTS, tenant_id=self._tenant_id, ids=unread)
            )
            self._remember(found.values())
        facts = {each: fact for each in wanted if (fact := self._current(each)) is not None}
        return {each: fact for each, fact in facts.items() if fact.owner_key == self._owner_key}

    async def of_others(self, fact_ids: Iterable[str]) -> tuple[StoredFact, ...]:
        """Rows of the tenant, whosever they are, as they stand: for what is shared. Nothing of them is written."""
        wanted = [each for each in dict.fromkeys(fact_ids) if ids.is_derived(each)]
        found = await self._calls.call("store", lambda: self._store.get(FACTS, tenant_id=self._tenant_id, ids=wanted))
        return tuple(StoredFact.from_payload(each.payload) for each in found.values())

    async def of_entry(self, observation_id: str) -> StoredFact | None:
        """The fact that a working entry became: by its id, else the one whose evidence names the observation (of
        several, the newest)."""
        direct = ids.fact_id(self._owner_key, observation_id)
        fact = (await self.by_ids([direct])).get(direct)
        if fact is not None and fact.state in READABLE:
            return fact
        named = await self._matching(
            [equals("evidence[].observation_id", observation_id)],
            lambda each: any(piece.observation_id == observation_id for piece in each.evidence),
        )
        return max(named, key=lambda each: (each.recorded_at, each.fact_id), default=None)

    async def equal(self, subject: str, content_hash: str) -> StoredFact | None:
        """Same subject, same canonical text; active before pending, then the oldest."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
        )
        return min(same, key=lambda each: (each.state != "active", each.recorded_at, each.fact_id), default=None)

    async def closed(self, subject: str, content_hash: str) -> tuple[StoredFact, ...]:
        """Same subject, same canonical text, believed once and no longer; the newest first."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
            states=CLOSED,
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id), reverse=True))

    async def near(self, subject: str, dense: Vector, *, limit: int) -> tuple[NearFact, ...]:
        """The nearest of the same subject, best first."""
        where = self._where([equals("subject", subject)], READABLE)
        found = await self._calls.call(
            "store",
            lambda: self._store.nearest(
                FACTS, tenant_id=self._tenant_id, dense=dense, where=where, limit=limit + len(self._changed)
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
        return tuple(sorted(near, key=lambda each: similarity[each.fact.fact_id], reverse=True)[:limit])

    async def neighbours(
        self, subject: str, dense: Vector | None, predicates: Sequence[str], *, limit: int
    ) -> tuple[NearFact, ...]:
        """The nearest, and whatever has one of these predicates, however its words lie: a predicate that has one
        value at a time is looked up by name."""
        near = () if dense is None else await self.near(subject, dense, limit=limit)
        found = {each.fact.fact_id for each in near}
        named = await self.of_predicate(subject, predicates)
        return (*near, *(NearFact(fact) for fact in named if fact.fact_id not in found))

    async def of_predicate(self, subject: str, predicates: Sequence[str]) -> tuple[StoredFact, ...]:
        """Rows of the same subject with one of these predicates, the oldest first."""
        if not predicates:
            return ()
        same = await self._matching(
            [any_of("predicate", predicates), equals("subject", subject)],
            lambda each: each.predicate in predicates and each.subject == subject,
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id)))

    # ------------------------------------------------------------------------------------------------ changes
    def take(self, transition: Transition, dense: Vector | None = None) -> None:
        """This outcome changes a row. `dense` where its text is new."""
        fact = transition.fact
        changed = self._changed.get(fact.fact_id)
        if changed is not None:
            changed.fact = fact
            changed.dense = dense if dense is not None else changed.dense
            return
        before = self._read.get(fact.fact_id)
        if (before is None) != (transition.before is None):
            raise Fatal(f"fact {fact.fact_id} exists already: its cause was handled before, and the ledger forgot it")
        self._changed[fact.fact_id] = _Changed(before.version if before else None, fact, dense)

    async def writes(self, cause: str) -> tuple[SwapPoint, ...]:
        """One compare and set a row. The vectors of rows whose text stays are read with them."""
        lacking = [fact_id for fact_id, changed in self._changed.items() if changed.dense is None]
        stored: dict[str, StoredPoint] = {}
        if lacking:
            stored = await self._calls.call(
                "store", lambda: self._store.get(FACTS, tenant_id=self._tenant_id, ids=lacking, with_dense=True)
            )
        return tuple(
            SwapPoint(
                collection=FACTS,
                point=OutPoint(
                    id=fact_id,
                    payload=changed.fact.to_payload(),
                    dense=_packed(changed.dense if changed.dense is not None else _dense(stored, fact_id)),
                    text=changed.fact.content,
                ),
                expected_version=changed.base_version,
                cause=cause,
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
        """Rows that match, in the store or in this outcome; active and pending ones unless told otherwise."""
        where = self._where(conditions, states)
        found = await self._calls.call(
            "store", lambda: self._store.select(FACTS, tenant_id=self._tenant_id, where=where)
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
        """The first look counts: all decisions of an outcome see the same rows."""
        for each in found:
            if each.id not in self._read:
                self._read[each.id] = StoredFact.from_payload(each.payload)


def _dense(stored: dict[str, StoredPoint], fact_id: str) -> Vector | None:
    found = stored.get(fact_id)
    return None if found is None else found.dense


def _packed(dense: Vector | None) -> str | None:
    return None if dense is None else pack_vector(dense)
