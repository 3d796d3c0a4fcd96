"""Read-your-writes overlay over the stored facts of one owner.

The overlay has the changes of one outcome on top of the rows in the store. So each decision sees the changes of earlier
decisions of the same outcome. An outcome is for one turn, for several turns decided together, or for one command. A row
that changes several times is written once, with its last version. The write expects the row version that was read from
the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from qdrant_client import models

from ...adapters.ports import StoredPoint, VectorStore
from ...adapters.vectors.conditions import any_of, equals, has_time
from ...memory.facts.namesakes import RELATION_SLOTS
from ...memory.facts.similarity import NearFact, cosine
from ...memory.facts.statements import Statement
from ...memory.facts.subject_names import NAME_SLOTS, NAMES_MAX, USER, NameFact, SubjectNames
from ...memory.facts.transitions import CLOSED, READABLE, Transition, has_ended
from ...schemas import ids
from ...schemas.collections import FACTS
from ...schemas.errors import Fatal
from ...schemas.facts import FactState, StoredFact
from ...schemas.outcomes import OutPoint, SwapPoint
from ...streams.engine.retry import Calls
from .forget_requests import ForgetRequest

Vector = Sequence[float]
Subjects = tuple[str, ...]
"""All names of a subject."""
FEW: Final = 8
"""Limit of the first read for an owner who may have no facts. When the read finds fewer rows, all rows of the owner are
known. Otherwise, the relevant rows are read next."""
SIMILARITY_DIGITS: Final = 6
"""Decimal digits of similarities. The store uses 32-bit floats and this module 64-bit floats; equally near facts must
compare as equal."""
SLOT_ROWS: Final = 20
"""Maximum number of facts of one slot that a statement is compared with, besides the nearest facts."""
LOOK_MORE: Final = 3
"""Maximum number of additional nearest rows to read. Earlier changes of the same outcome may close some of the nearest
rows; the additional rows replace them."""


@dataclass(slots=True)
class _Changed:
    base_version: int | None
    """The version that was read, or None when there was no row."""
    fact: StoredFact
    dense: Vector | None
    """The vector of a new text, or None when the text is unchanged."""
    cause: str
    """The cause of the last change, as stored in the row's `applied`."""


@dataclass(frozen=True, slots=True)
class FactLook:
    """A lookup for one statement: the fact of an observation and, with a `dense` vector, the equal fact, the nearest
    facts, and facts with one of its predicates or slots."""

    statement: Statement
    observation_id: str | None = None
    dense: Vector | None = None
    predicates: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    limit: int = 0
    """Number of nearest facts to compare."""


@dataclass(slots=True)
class _Nearest:
    """The nearest rows of the store to a vector. `asked`: the requested number of rows.

    A result with fewer rows has all readable rows of the subject.
    """

    found: Sequence[StoredPoint]
    asked: int


class FactOverlay:
    """Reader of one owner's facts with the changes of this outcome. Only `of_others` reads other owners' facts."""

    def __init__(
        self,
        *,
        store: VectorStore,
        calls: Calls,
        tenant_id: str,
        owner_key: str,
        requests: tuple[ForgetRequest, ...] = (),
    ) -> None:
        self.requests = requests
        """The owner's requests to forget, with the requests of this outcome. The owner's row gets them."""
        self._store = store
        self._calls = calls
        self.tenant_id = tenant_id
        self._owner_key = owner_key
        self._read: dict[str, StoredFact] = {}
        self._changed: dict[str, _Changed] = {}
        self._has_all = False
        """True when all readable rows of the owner were read."""
        self._hashes: set[str] = set()
        self._predicates: set[tuple[Subjects, str]] = set()
        self._slots: set[tuple[Subjects, str]] = set()
        self._observations: set[str] = set()
        """Keys for which all readable rows were read: canonical texts, (subjects, predicate), (subjects, slot) pairs,
        observations."""
        self._nearest: dict[tuple[Subjects, str], _Nearest] = {}
        """The nearest rows by subjects and text."""
        self._has_names = False
        """True when the facts about names were read."""

    # ------------------------------------------------------------------------------------------------ reads
    async def look(self, looks: Sequence[FactLook], *, may_be_new: bool) -> None:
        """Read the rows to compare with these statements, in one request.

        `may_be_new`: the owner may have no facts yet. A small read then checks this first.
        """
        if not looks:
            return
        if may_be_new and await self._has_few():
            self._has_all = True
            if not self._read:
                return
        subjects = {each.statement.subject: await self._subjects(each.statement.subject) for each in looks}
        compared = {
            (subjects[each.statement.subject], each.statement.content): each for each in looks if each.dense is not None
        }
        reads: list[Callable[[], Awaitable[Sequence[StoredPoint]]]] = []
        if not self._has_all:
            reads.append(partial(self._select, self._any_of(looks, subjects)))
        asked: list[tuple[tuple[Subjects, str], int]] = []
        for place, (key, each) in enumerate(compared.items()):
            assert each.dense is not None
            # earlier looks may close some of the nearest rows
            asked.append((key, each.limit + min(place, LOOK_MORE)))
            reads.append(partial(self._ask_near, key[0], each.dense, asked[-1][1]))

        async def all_reads() -> list[Sequence[StoredPoint]]:
            return await asyncio.gather(*(read() for read in reads))

        answers = await self._calls.call("store", all_reads)
        for found in answers:
            self._remember(found)
        if asked:
            nearest = zip(asked, answers[-len(asked) :], strict=True)
            self._nearest = {key: _Nearest(found, limit) for (key, limit), found in nearest}
        for each in looks:
            if each.observation_id is not None:
                self._observations.add(each.observation_id)
            if each.dense is not None:
                self._hashes.add(each.statement.content_hash)
                self._predicates |= {(subjects[each.statement.subject], name) for name in each.predicates}
                self._slots |= {(subjects[each.statement.subject], name) for name in each.slots}

    async def relations(self) -> tuple[StoredFact, ...]:
        """Return the owner's facts that somebody has a relation to the user, also closed ones. A correction is not
        among them."""
        found = await self._matching(
            [any_of("slot", RELATION_SLOTS), equals("subject", USER)],
            lambda each: each.slot in RELATION_SLOTS and each.subject == USER,
            states=("active", "pending", "superseded", "expired", "forgotten"),
            limit=NAMES_MAX,
        )
        return tuple(found)

    async def _subjects(self, subject: str) -> Subjects:
        """Return all names of a subject, by the facts about names and the changes of this outcome."""
        if subject == USER:
            return (subject,)
        named = await self._matching(
            [any_of("slot", NAME_SLOTS)],
            lambda each: each.slot in NAME_SLOTS,
            states=("active",),
            was_read=self._has_all or self._has_names,
            limit=NAMES_MAX,
        )
        self._has_names = True
        names = SubjectNames.of(NameFact(each.subject, each.value, each.denied, each.trust) for each in named)
        return names.all_of(subject)

    async def _has_few(self) -> bool:
        """Read some of the owner's facts. Return whether the owner has no other facts."""
        found = await self._calls.call("store", partial(self._select, [], limit=FEW))
        self._remember(found)
        return len(found) < FEW

    def _any_of(self, looks: Sequence[FactLook], names: Mapping[str, Subjects]) -> list[models.Condition]:
        """Return the condition that matches the rows of these lookups, without the nearest rows."""
        named = [each.observation_id for each in looks if each.observation_id is not None]
        compared = [each for each in looks if each.dense is not None]
        conditions: list[models.Condition] = []
        if named:
            direct = [ids.fact_id(self._owner_key, each) for each in named]
            conditions += [models.HasIdCondition(has_id=direct), any_of("evidence[].observation_id", named)]
        if compared:
            conditions.append(any_of("content_hash", [each.statement.content_hash for each in compared]))
        subjects = list(dict.fromkeys(name for each in compared for name in names[each.statement.subject]))
        if predicates := list(dict.fromkeys(name for each in compared for name in each.predicates)):
            conditions.append(models.Filter(must=[any_of("predicate", predicates), any_of("subject", subjects)]))
        if slots := list(dict.fromkeys(name for each in compared for name in each.slots)):
            conditions.append(models.Filter(must=[any_of("slot", slots), any_of("subject", subjects)]))
        return [models.Filter(should=conditions)]

    async def by_ids(self, fact_ids: Iterable[str]) -> dict[str, StoredFact]:
        """Return the owner's facts with these ids, in any state."""
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
        """Return facts of any owner of the tenant, as stored. Only sharing uses these facts; they are never written."""
        wanted = [each for each in dict.fromkeys(fact_ids) if ids.is_derived(each)]
        found = await self._calls.call("store", lambda: self._store.get(FACTS, tenant_id=self.tenant_id, ids=wanted))
        return tuple(StoredFact.from_payload(each.payload) for each in found.values())

    async def of_observation(self, observation_id: str) -> StoredFact | None:
        """Return the fact made from an observation, or else the newest fact with the observation as evidence."""
        direct = ids.fact_id(self._owner_key, observation_id)
        was_read = self._has_all or observation_id in self._observations
        fact = self._current(direct) if was_read else (await self.by_ids([direct])).get(direct)
        if fact is not None and fact.state in READABLE:
            return fact
        named = await self._matching(
            [equals("evidence[].observation_id", observation_id)],
            lambda each: any(piece.observation_id == observation_id for piece in each.evidence),
            was_read=was_read,
        )
        return max(named, key=lambda each: (each.recorded_at, each.fact_id), default=None)

    async def equal(self, statement: Statement) -> StoredFact | None:
        """Return the fact with the statement's subject and canonical text that has not ended when the statement begins.

        If several facts match, an active fact has priority over a pending fact, then an older fact over a newer fact.
        """
        subjects, content_hash = await self._subjects(statement.subject), statement.content_hash
        found = await self._matching(
            [equals("content_hash", content_hash), any_of("subject", subjects)],
            lambda each: each.content_hash == content_hash and each.subject in subjects,
            was_read=self._has_all or content_hash in self._hashes,
        )
        same = [each for each in found if not has_ended(each, statement.begins)]
        return min(same, key=lambda each: (each.state != "active", each.recorded_at, each.fact_id), default=None)

    async def quarantined(self, subject: str, content_hash: str) -> StoredFact | None:
        """Return the oldest quarantined fact with this subject and canonical text."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
            states=("quarantined",),
        )
        return min(same, key=lambda each: (each.recorded_at, each.fact_id), default=None)

    async def closed(self, subject: str, content_hash: str) -> tuple[StoredFact, ...]:
        """Return the closed facts with this subject and canonical text, newest first."""
        same = await self._matching(
            [equals("content_hash", content_hash), equals("subject", subject)],
            lambda each: each.content_hash == content_hash and each.subject == subject,
            states=CLOSED,
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id), reverse=True))

    async def closed_by(self, fact_id: str) -> tuple[StoredFact, ...]:
        """Return the rows that this fact replaced or corrected and that are still closed."""
        closed = await self._matching(
            [equals("superseded_by", fact_id)],
            lambda each: each.superseded_by == fact_id,
            states=("superseded", "invalidated"),
        )
        return tuple(closed)

    async def pinned(self) -> tuple[StoredFact, ...]:
        """Return the pinned facts, oldest first."""
        found = await self._matching([has_time("pinned_at")], lambda each: each.is_pinned, states=("active",))
        return tuple(sorted(found, key=lambda each: (each.recorded_at, each.fact_id)))

    async def near(self, statement: Statement, dense: Vector, *, limit: int) -> tuple[NearFact, ...]:
        """Return the nearest facts of the statement's subject, best first, then by id.

        `dense`: the statement's vector.
        """
        subjects = await self._subjects(statement.subject)
        found = self._known_nearest(subjects, statement, limit)
        if found is None:
            more = limit + len(self._changed)
            found = await self._calls.call("store", partial(self._ask_near, subjects, dense, more))
            self._remember(found)
        similarity = {each.id: round(each.score, SIMILARITY_DIGITS) for each in found if each.score is not None}
        for fact_id, changed in self._changed.items():
            if changed.dense is not None:
                similarity[fact_id] = round(cosine(dense, changed.dense), SIMILARITY_DIGITS)
        rows = ((self._current(fact_id), score) for fact_id, score in similarity.items())
        near = [
            NearFact(fact, score)
            for fact, score in rows
            if fact is not None and fact.subject in subjects and self._mine(fact, READABLE)
        ]
        return tuple(sorted(near, key=lambda each: (-similarity[each.fact.fact_id], each.fact.fact_id))[:limit])

    def _known_nearest(self, subjects: Subjects, statement: Statement, limit: int) -> Sequence[StoredPoint] | None:
        """Return the nearest rows if they were read before, otherwise None.

        Return None too when changes of these rows may bring other rows among the nearest.
        """
        if self._has_all and not self._read:
            return ()
        known = self._nearest.get((subjects, statement.content))
        if known is None:
            return None
        unchanged = sum(each.id not in self._changed for each in known.found)
        return known.found if len(known.found) < known.asked or unchanged >= limit else None

    async def neighbours(
        self,
        statement: Statement,
        dense: Vector | None,
        predicates: Sequence[str],
        slots: Sequence[str],
        *,
        limit: int,
    ) -> tuple[NearFact, ...]:
        """Return the nearest facts of the statement's subject, all facts with one of these predicates, and the newest
        `SLOT_ROWS` facts of each of these slots.

        A predicate and a slot are looked up by name, because the texts of two values may not be similar.
        """
        near = () if dense is None else await self.near(statement, dense, limit=limit)
        found = {each.fact.fact_id for each in near}
        named = (
            *await self.of_predicate(statement.subject, predicates),
            *await self.of_slots(statement.subject, slots),
        )
        others = {fact.fact_id: NearFact(fact) for fact in named if fact.fact_id not in found}
        return (*near, *others.values())

    async def of_predicate(self, subject: str, predicates: Sequence[str]) -> tuple[StoredFact, ...]:
        """Return the facts of this subject with one of these predicates, oldest first."""
        if not predicates:
            return ()
        subjects = await self._subjects(subject)
        same = await self._matching(
            [any_of("predicate", predicates), any_of("subject", subjects)],
            lambda each: each.predicate in predicates and each.subject in subjects,
            was_read=self._has_all or all((subjects, name) in self._predicates for name in predicates),
        )
        return tuple(sorted(same, key=lambda each: (each.recorded_at, each.fact_id)))

    async def of_slots(self, subject: str, slots: Sequence[str]) -> tuple[StoredFact, ...]:
        """Return the newest `SLOT_ROWS` facts of this subject in each of these slots, oldest first. Rows of old
        collections have no slot; `of_predicate` finds them."""
        if not slots:
            return ()
        subjects = await self._subjects(subject)
        same = await self._matching(
            [any_of("slot", slots), any_of("subject", subjects)],
            lambda each: each.slot in slots and each.subject in subjects,
            was_read=self._has_all or all((subjects, name) in self._slots for name in slots),
        )
        ordered = sorted(same, key=lambda each: (each.recorded_at, each.fact_id))
        kept = {each.fact_id for name in slots for each in [row for row in ordered if row.slot == name][-SLOT_ROWS:]}
        return tuple(each for each in ordered if each.fact_id in kept)

    # ------------------------------------------------------------------------------------------------ changes
    def change(self, transition: Transition, dense: Vector | None = None, *, cause: str) -> None:
        """Apply a change to a fact in the overlay. `dense`: the vector of a new text.

        `cause`: the new entry in `applied`.

        Raises Fatal for a new fact whose row already exists.
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
            raise Fatal(
                f"fact {fact.fact_id} exists already: its cause was handled before, and the ledger no longer knows it"
            )
        self._changed[fact.fact_id] = _Changed(before.version if before else None, fact, dense, cause)

    async def writes(self, vectors: Mapping[str, Vector] | None = None) -> tuple[SwapPoint, ...]:
        """Return one compare-and-set write per changed row.

        The vector of an unchanged text comes from `vectors`, which has this outcome's vectors by text, or else from the
        store.
        """
        for changed in self._changed.values():
            if changed.dense is None and vectors:
                changed.dense = vectors.get(changed.fact.content)
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
    def _where(self, conditions: Sequence[models.Condition], states: Sequence[FactState]) -> models.Filter:
        state = any_of("state", states)
        return models.Filter(must=[equals("owner_key", self._owner_key), state, *conditions])

    async def _select(
        self,
        conditions: Sequence[models.Condition],
        *,
        states: Sequence[FactState] = READABLE,
        limit: int | None = None,
    ) -> Sequence[StoredPoint]:
        where = self._where(conditions, states)
        return await self._store.select(FACTS, tenant_id=self.tenant_id, where=where, limit=limit)

    async def _ask_near(self, subjects: Subjects, dense: Vector, limit: int) -> Sequence[StoredPoint]:
        where = self._where([any_of("subject", subjects)], READABLE)
        return await self._store.nearest(FACTS, tenant_id=self.tenant_id, dense=dense, where=where, limit=limit)

    async def _matching(
        self,
        conditions: Sequence[models.Condition],
        matches: Callable[[StoredFact], bool],
        *,
        states: Sequence[FactState] = READABLE,
        was_read: bool = False,
        limit: int | None = None,
    ) -> list[StoredFact]:
        """Return the facts that match, with the changes of this outcome. `matches` evaluates `conditions` in memory.

        `was_read`: True when all matching rows of the store were read before.
        """
        candidates: Iterable[str]
        if was_read:
            candidates = dict.fromkeys([*self._read, *self._changed])
        else:
            found = await self._calls.call("store", partial(self._select, conditions, states=states, limit=limit))
            self._remember(found)
            candidates = dict.fromkeys([*(each.id for each in found), *self._changed])
        facts = [fact for each in candidates if (fact := self._current(each)) is not None]
        return [fact for fact in facts if self._mine(fact, states) and matches(fact)]

    def _mine(self, fact: StoredFact, states: Sequence[FactState]) -> bool:
        return fact.state in states and fact.owner_key == self._owner_key

    def _current(self, fact_id: str) -> StoredFact | None:
        changed = self._changed.get(fact_id)
        return changed.fact if changed is not None else self._read.get(fact_id)

    def _remember(self, found: Iterable[StoredPoint]) -> None:
        """Keep the first version of each row that was read, so that all decisions of an outcome see the same rows."""
        for each in found:
            if each.id not in self._read:
                self._read[each.id] = StoredFact.from_payload(each.payload)


def _dense(stored: dict[str, StoredPoint], fact_id: str) -> Vector | None:
    found = stored.get(fact_id)
    return None if found is None else found.dense
