"""`memstream trace FACT_ID`: the chain back from a fact: its versions, the decisions, the observations, the turns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import TypeVar

import click
from pydantic import JsonValue, ValidationError
from qdrant_client import models

from ...recall.filters import equals
from ...schemas import ids
from ...schemas.base import Contract
from ...schemas.collections import FACTS, TURNS
from ...schemas.facts import Fact, FactUpdated, StoredFact
from ...schemas.observations import Observation, Observed
from ...schemas.topics import FACTS as FACTS_TOPIC
from ...schemas.topics import FACTS_UPDATED, OBSERVATIONS
from ...schemas.turns import Owner
from ...schemas.working import StoredMessage
from ...streams.partitioner import partition_for
from ...streams.ports import Log
from .. import options, output
from ..changes import show_change
from ..context import CommandContext, pass_context, run
from ..errors import CommandFailed, Exit
from ..settings import Settings
from ..wiring import Opened, opened

C = TypeVar("C", bound=Contract)


@dataclass(frozen=True, slots=True)
class SeenIn:
    """An observation with the turn it was made in."""

    user_id: str
    session_id: str
    turn_id: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Chain:
    """What leads to a fact. Topics forget after their retention: then `events` and `observations` begin later."""

    fact: Fact
    events: tuple[FactUpdated, ...]
    observations: tuple[SeenIn, ...]
    turns: tuple[StoredMessage, ...]

    def payload(self) -> dict[str, JsonValue]:
        return {
            "fact": self.fact.to_payload(),
            "versions": [event.fact.to_payload() for event in self.events],
            "decisions": [
                {
                    "version": event.fact.version,
                    "event_id": event.event_id,
                    "action": event.action,
                    "at": event.to_payload()["at"],
                    "reason": event.reason,
                    "decision": event.decision.to_payload() if event.decision is not None else None,
                    "cause": event.cause.to_payload(),
                }
                for event in self.events
            ],
            "observations": [
                seen.observation.to_payload()
                | {"user_id": seen.user_id, "session_id": seen.session_id, "turn_id": seen.turn_id}
                for seen in self.observations
            ],
            "turns": [message.to_payload() for message in self.turns],
        }


@click.command()
@click.argument("fact_id")
@options.tenant
@options.as_json
@pass_context
def trace(context: CommandContext, fact_id: str, tenant: str, as_json: bool) -> None:
    """Show why a fact is believed: its versions, the decisions, the observations, the turns word by word.

    With --json one object: fact, versions, decisions, observations, turns.
    """
    chain = run(_trace(context.settings, tenant, fact_id))
    if as_json:
        output.line(chain.payload())
    else:
        _tell(chain)


async def _trace(settings: Settings, tenant: str, fact_id: str) -> Chain:
    async with opened(settings, purpose="trace") as ports:
        fact = await _fact(ports, tenant, fact_id)
        if fact is None:
            raise CommandFailed(Exit.PARTLY, f"tenant {tenant} has no fact {fact_id}")
        key = fact.owner.key(tenant).encode()
        events = {
            event.fact.version: event
            async for event in _of_key(ports.log, FACTS_UPDATED.name, key, FactUpdated)
            if event.tenant_id == tenant and event.fact.fact_id == fact_id
        }
        named = {each.observation_id for each in fact.evidence}
        named |= {each for event in events.values() for each in event.cause.observation_ids}
        observations = [
            seen
            async for observed in _of_key(ports.log, OBSERVATIONS.name, key, Observed)
            if observed.tenant_id == tenant
            for seen in _seen_in(observed, named)
        ]
        places = {(each.session_id, each.turn_id): _user_of(fact.owner) for each in fact.evidence}
        places |= {(seen.session_id, seen.turn_id): seen.user_id for seen in observations}
        turns = await _turns(ports, tenant, places)
    return Chain(fact, tuple(event for _, event in sorted(events.items())), tuple(observations), tuple(turns))


async def _fact(ports: Opened, tenant: str, fact_id: str) -> Fact | None:
    """As it stands in Qdrant; else as memory.facts has it."""
    if await ports.store.exists(FACTS):
        found = await ports.store.get(FACTS, tenant_id=tenant, ids=[fact_id])
        if fact_id in found:
            return StoredFact.from_payload(found[fact_id].payload).public()
    key = ids.fact_key(tenant, fact_id).encode()
    newest: Fact | None = None
    async for fact in _of_key(ports.log, FACTS_TOPIC.name, key, Fact):
        if newest is None or fact.version >= newest.version:
            newest = fact
    return newest


async def _of_key(log: Log, topic: str, key: bytes, contract: type[C]) -> AsyncIterator[C]:
    """Records of one key, from the one partition where they lie."""
    count = await log.partitions(topic)
    if count is None:
        return
    partition = partition_for(key, count)
    first = (await log.starts(topic))[partition]
    async for record in log.read(topic, start={partition: first}):
        if record.key == key and record.value is not None:
            try:
                yield contract.read(record.value)
            except ValidationError:
                continue  # nothing that a stage of ours wrote


def _seen_in(observed: Observed, named: Iterable[str]) -> list[SeenIn]:
    return [
        SeenIn(observed.user_id, observed.session_id, observed.turn_id, observation)
        for observation in observed.observations
        if observation.observation_id in named
    ]


def _user_of(owner: Owner) -> str | None:
    return owner.id if owner.scope == "user" else None


async def _turns(ports: Opened, tenant: str, places: dict[tuple[str, str], str | None]) -> list[StoredMessage]:
    if not await ports.store.exists(TURNS):
        return []
    messages: list[StoredMessage] = []
    for (session_id, turn_id), user_id in places.items():
        conditions: list[models.Condition] = [equals("session_id", session_id), equals("turn_id", turn_id)]
        if user_id is not None:
            conditions.append(equals("user_id", user_id))
        found = await ports.store.select(TURNS, tenant_id=tenant, where=models.Filter(must=conditions))
        messages += [StoredMessage.from_payload(each.payload) for each in found]
    return sorted(messages, key=lambda each: (each.occurred_at, each.session_id, each.turn_id, each.message_index))


def _tell(chain: Chain) -> None:
    fact = chain.fact
    click.echo(f"{output.printable(fact.content)}  ({fact.state}, version {fact.version})")
    click.echo(f"  {fact.owner.scope} {fact.owner.id} · {fact.category} · confidence {fact.confidence:.2f}")
    click.echo("\nits history")
    for event in chain.events:
        show_change(event)
        if event.decision is not None:
            click.echo(f"            decided by {json.dumps(event.decision.to_payload(), ensure_ascii=False)}")
    click.echo("\nwhat was observed")
    for seen in chain.observations:
        click.echo(f"  {seen.session_id}/{seen.turn_id}: {output.printable(seen.observation.content)}")
        click.echo(f"      “{output.printable(seen.observation.evidence)}”")
    click.echo("\nwhat was said")
    for message in chain.turns:
        click.echo(f"  {message.session_id}/{message.turn_id} {message.role}: {output.printable(message.content)}")
