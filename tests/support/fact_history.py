"""Facts with a history: rows in the store, events and observations in the log, as the stages write them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from memstream.adapters.ports import Point, VectorStore
from memstream.schemas import ids
from memstream.schemas.collections import FACTS
from memstream.schemas.facts import Evidence, Fact, FactCause, FactUpdated, StoredFact
from memstream.schemas.observations import Observation, Observed
from memstream.schemas.topics import FACTS_UPDATED, OBSERVATIONS
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Log

from .record_builders import observation, stored_fact
from .stored_memory import NOW, StoredMemory

MINUTE = timedelta(minutes=1)


class PastFacts:
    """Writes facts with their history. Each fact comes from session s1 of a user, from turns t1, t2 … a minute
    apart.
    """

    def __init__(self, store: VectorStore, log: Log) -> None:
        self.store = store
        self.log = log
        self._embedder = StoredMemory(store).embedder

    async def fact(
        self,
        content: str,
        versions: int = 1,
        *,
        tenant: str = "acme",
        user: str = "u1",
        owner: Owner | None = None,
        stored: bool = True,
        **changes: Any,
    ) -> StoredFact:
        """Write a fact that was stated `versions` times."""
        owner = owner or Owner(scope="user", id=user)
        key = owner.key(tenant)
        session = ids.session_key(tenant, user, "s1")
        cause = observation(content, session=session).observation_id
        whose = {"tenant_id": tenant, "owner": owner, "owner_key": key, "fact_id": ids.fact_id(key, cause)}
        fact = stored_fact(content).model_copy(update=whose | changes)
        before: Fact | None = None
        for version in range(1, versions + 1):
            turn, at = f"t{version}", NOW + version * MINUTE
            said = observation(content, turn=turn, session=session)
            evidence = Evidence(
                turn_id=turn, session_id="s1", observation_id=said.observation_id, occurred_at=at, quote=content
            )
            kept = fact.evidence[: version - 1]
            fact = fact.model_copy(update={"version": version, "evidence": (*kept, evidence), "recorded_at": NOW})
            await self.observed(said, fact, turn=turn, number=version, at=at, user=user)
            await self.event(fact, before, said.observation_id, at)
            before = fact.public()
        if stored:
            await self.put(fact)
        return fact

    async def put(self, fact: StoredFact) -> None:
        [dense] = await self._embedder.embed([fact.content], tenant_id=fact.tenant_id)
        await self.store.put(FACTS, [Point(fact.fact_id, fact.to_payload(), dense=dense, text=fact.content)])

    async def event(self, fact: StoredFact, before: Fact | None, observation_id: str, at: datetime) -> None:
        event = FactUpdated(
            event_id=ids.event_id(fact.fact_id, fact.version),
            action="new" if before is None else "reinforced",
            at=at,
            tenant_id=fact.tenant_id,
            owner=fact.owner,
            fact=fact.public(),
            before=before,
            cause=FactCause(observation_ids=(observation_id,)),
        )
        await self.append(FACTS_UPDATED.name, fact, event.to_bytes(), at)

    async def observed(
        self, said: Observation, fact: StoredFact, *, turn: str, number: int, at: datetime, user: str = "u1"
    ) -> None:
        record = Observed(
            tenant_id=fact.tenant_id,
            owner=fact.owner,
            user_id=user,
            session_id="s1",
            turn_id=turn,
            turn_number=number,
            occurred_at=at,
            observations=(said,),
        )
        await self.append(OBSERVATIONS.name, fact, record.to_bytes(), at)

    async def append(self, topic: str, whose: StoredFact, value: bytes, at: datetime) -> None:
        stamp = int(at.timestamp() * 1_000)
        await self.log.append(topic, key=whose.owner_key.encode(), value=value, timestamp=stamp)

    async def noise(self, topic: str, count: int, at: datetime, key: str = "acme/user/another") -> None:
        """Append records of another user."""
        for _ in range(count):
            await self.log.append(topic, key=key.encode(), value=b"{}", timestamp=int(at.timestamp() * 1_000))
