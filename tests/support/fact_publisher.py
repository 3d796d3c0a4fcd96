"""The reflector's side of a subscription: fact changes on the log, in the reflector's order and with its bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from memstream.agents.reflector.messages import fact_state, fact_updated
from memstream.memory.facts.transitions import Transition
from memstream.schemas import ids
from memstream.schemas.facts import Decision, FactCause, StoredFact
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import FACTS, FACTS_UPDATED
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Log, TopicSpec
from tests.support.record_builders import NOW, stored_fact

PublishedFact = tuple[str, int]
"""fact id and version"""


async def make_topics(log: Log, *, partitions: int) -> None:
    await log.create(
        [
            TopicSpec(FACTS_UPDATED.name, partitions, 1, FACTS_UPDATED.settings()),
            TopicSpec(FACTS.name, partitions, 1, FACTS.settings()),
        ]
    )


@dataclass
class FactPublisher:
    """Publishes fact changes. `change` is a whole publish step; `event` and `state` are its halves; `again`
    repeats an event.
    """

    log: Log
    tenant: str = "acme"
    published: list[PublishedFact] = field(default_factory=list)
    """Each change once, in publishing order."""
    _facts: dict[str, StoredFact] = field(default_factory=dict)
    _events: list[OutRecord] = field(default_factory=list)

    async def change(self, name: str = "tea", *, user: str = "u1") -> PublishedFact:
        published = await self.event(name, user=user)
        await self.state(name, user=user)
        return published

    async def event(self, name: str = "tea", *, user: str = "u1") -> PublishedFact:
        """Publish the event of the next version of the fact `name`."""
        key = f"{user}/{name}"
        before = self._facts.get(key)
        if before is None:
            owner = Owner(scope="user", id=user)
            fact = stored_fact(
                name,
                changes={
                    "tenant_id": self.tenant,
                    "owner": owner,
                    "owner_key": owner.key(self.tenant),
                    "fact_id": ids.fact_id(owner.key(self.tenant), name),
                },
            )
        else:
            fact = before.model_copy(update={"version": before.version + 1})
        self._facts[key] = fact
        change = Transition("new" if before is None else "reinforced", fact, before, "", Decision(stage="admit"))
        event = fact_updated(change, cause=FactCause(turn_ids=("t1",)), at=NOW + timedelta(seconds=fact.version))
        self._events.append(event)
        self.published.append((fact.fact_id, fact.version))
        await self._append(event)
        return self.published[-1]

    async def state(self, name: str = "tea", *, user: str = "u1") -> None:
        await self._append(fact_state(self._facts[f"{user}/{name}"].public(), at=NOW))

    async def again(self, back: int = 1) -> None:
        """Publish the event of `back` changes ago once more, equal in every byte."""
        await self._append(self._events[-back])

    def states(self) -> dict[str, int]:
        return {fact.fact_id: fact.version for fact in self._facts.values()}

    async def _append(self, record: OutRecord) -> None:
        await self.log.append(record.topic, key=record.key, value=record.value, headers=record.headers)
