"""The observer on the stage harness: a scripted model, points in a dictionary, turns and commands by the word.

world = ObserverWorld(observing({"I work at Google": [{"content": "Works at Google"}]}))
await world.deliver(world.turn("I work at Google."))
world.working(), world.observed()
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from pydantic import JsonValue
from qdrant_client import models

from memstream.adapters.ports import Completion, CompletionRequest, NewWindow, Point, StoredPoint, Usage, VectorStore
from memstream.agents.observer.rows import SessionRow, WaitingTurn, session_of_waiting_key
from memstream.agents.observer.stage import Observer
from memstream.agents.observer.turn_source import TurnSource
from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.tenant_policies import TenantPolicies
from memstream.schemas import ids
from memstream.schemas.commands import Command, CommandResult, SessionRef
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.observations import Observed
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.periods import Period
from memstream.schemas.topics import COMMANDS_SESSION, OBSERVATIONS, RESULTS, TURNS
from memstream.schemas.turns import turn_value
from memstream.streams.engine.breaker import BreakerPolicy
from memstream.streams.engine.retry import Calls, RetryPolicy
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import PartitionBacklog, Record

from .blind_judge import Judge, always_yes, answers
from .model_server import Answer, Ask, Script, nothing
from .openai_bodies import OBSERVATION
from .prompt_view import view
from .record_builders import NOW
from .stage_harness import Kill, StageHarness, Topics

A = TypeVar("A")
SESSION = ("acme", "u1", "s1")
LETTERS = TURNS.name + ".dlq"
TIMESTAMP = 1_795_168_800_000


class Points:
    """The methods of a vector store that observer and recorder use, over dictionaries."""

    def __init__(self) -> None:
        self.collections: dict[str, dict[str, Point]] = {}
        self.calls = 0

    def of(self, collection: str) -> dict[str, Point]:
        return self.collections.setdefault(collection, {})

    def writes_together(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def exists(self, collection: str) -> bool:
        """Return False: this store answers no filters."""
        return False

    async def insert(self, collection: str, points: Sequence[Point]) -> None:
        self.calls += 1
        for point in points:
            self.of(collection).setdefault(point.id, point)

    async def put(self, collection: str, points: Sequence[Point]) -> None:
        self.calls += 1
        self.of(collection).update({point.id: point for point in points})

    async def delete(self, collection: str, *, tenant_id: str, ids: Sequence[str]) -> None:
        self.calls += 1
        for each in ids:
            point = self.of(collection).get(each)
            if point is not None and point.payload["tenant_id"] == tenant_id:
                del self.of(collection)[each]

    async def rewindow(self, collection: str, *, tenant_id: str, points: Sequence[NewWindow]) -> None:
        self.calls += 1
        for each in points:
            stands = self.of(collection).get(each.id)
            if stands is not None and stands.payload["tenant_id"] == tenant_id:
                text, window = each.text or stands.text, each.window or stands.window
                nearby = stands.nearby if each.text is None else each.nearby
                self.of(collection)[each.id] = replace(stands, text=text, nearby=nearby, window=window)

    async def last(
        self, collection: str, *, tenant_id: str, where: models.Filter, order_by: str, limit: int
    ) -> list[StoredPoint]:
        """Return the last points by `order_by`. It knows the conditions of the recorder: equal, below, not equal."""
        self.calls += 1
        found = [
            StoredPoint(point.id, point.payload, collection=collection)
            for point in self.of(collection).values()
            if point.payload["tenant_id"] == tenant_id
            and point.payload.get(order_by) is not None
            and all(_holds(each, point.payload) for each in cast(list[Any], where.must))
            and not any(_holds(each, point.payload) for each in cast(list[Any], where.must_not))
        ]
        return sorted(found, key=lambda each: -cast(int, each.payload[order_by]))[:limit]

    async def get(
        self, collection: str, *, tenant_id: str, ids: Sequence[str], with_dense: bool = False
    ) -> dict[str, StoredPoint]:
        self.calls += 1
        found = {each: self.of(collection)[each] for each in ids if each in self.of(collection)}
        assert all(point.payload["tenant_id"] == tenant_id for point in found.values())
        return {each: StoredPoint(each, point.payload, collection=collection) for each, point in found.items()}

    async def periods(self, collection: str, *, opened: bool = False) -> tuple[Period, ...]:
        return ()

    async def open_period(self, collection: str, period: Period, *, newest: Period) -> str:
        """All periods are one here."""
        return collection


def _holds(condition: models.FieldCondition, payload: Mapping[str, JsonValue]) -> bool:
    value = payload.get(condition.key)
    if isinstance(condition.match, models.MatchValue):
        return value == condition.match.value
    assert isinstance(condition.range, models.Range)
    assert condition.range.lt is not None
    return isinstance(value, int) and value < condition.range.lt


class ScriptedModel:
    """`Completions` without HTTP. The script may raise what the port may raise."""

    model = "scripted"
    costs_money = True
    by_rules = False

    def __init__(self, script: Script) -> None:
        self.script = script
        self.judge: Judge = always_yes
        """Answers blind questions about evidence. It may raise what the port may raise."""
        self.blind: list[str] = []
        """The last message of each blind question. They are not in `asks`."""
        self.asks: list[Ask] = []

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        if request.task == "evidence":
            self.blind.append(request.messages[-1].content)
            return Completion(request.parse(answers(self.blind[-1], self.judge)), self.model, Usage(1, 3, 2))
        messages = tuple((message.role, message.content) for message in request.messages)
        ask = Ask(
            number=len(self.asks) + 1,
            task=request.task,
            model=self.model,
            messages=messages,
            response_format="json_schema",
            prompt=view(messages),
            seen_before=0,
            headers={},
            body={"response_format": {"json_schema": {"schema": request.json_schema}}},
        )
        self.asks.append(ask)
        answer = cast(JsonValue, self.script(ask))
        return Completion(request.parse(answer), self.model, Usage(calls=1, input_tokens=10, output_tokens=5))

    async def close(self) -> None:
        return None


class Clock:
    """The test's clock in seconds. Each reading of `now` is a millisecond later."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return NOW + timedelta(seconds=self.seconds, milliseconds=self._looks)

    def monotonic(self) -> float:
        return self.seconds


class ObserverWorld:
    """One observer whose process may be killed. `session` is (tenant, user, session), by default SESSION."""

    def __init__(
        self,
        script: Script = nothing,
        *,
        policy: MemoryPolicy | None = None,
        tenants: Mapping[str, Mapping[str, Any]] | None = None,
        partitions: int = 1,
        breaker: BreakerPolicy | None = None,
        store: object | None = None,
        source: TurnSource | None = None,
        breakers_by_test_clock: bool = False,
    ) -> None:
        self.model = ScriptedModel(script)
        self.points = Points()
        self.clock = Clock()
        self.topics = Topics()
        self.partitions = partitions
        self.policy = policy or MemoryPolicy(observe=ObservePolicy(patience=0.02))
        self.tenants = tenants or {}
        self._store = store or self.points
        self._source = source
        self.unread: int | None = 0
        """Turns of the partition that the worker has not fetched yet; None means unknown."""
        self.held = 0
        self._delivered = 0
        self.committed: int | None = None
        """The committed offset of every partition, for the end of rows."""
        self.harness = StageHarness(
            name="observer",
            make=self._make,
            calls=lambda: Calls(
                retry=RetryPolicy(first=0.001, cap=0.001),
                breaker=breaker or BreakerPolicy(failures=1_000_000, refusals=1_000_000),
                clock=self.clock.monotonic if breakers_by_test_clock else time.monotonic,
            ),
        )

    def _make(self, harness: StageHarness) -> Observer:
        self.policies = TenantPolicies(self.policy)
        for tenant, table in self.tenants.items():
            self.policies.set(tenant, table)
        return Observer(
            store=cast(VectorStore, self._store),
            completions=self.model,
            calls=harness.calls,
            metrics=harness.metrics,
            send_durably=harness.send_durably,
            policies=self.policies,
            partitions=self.partitions,
            ahead=lambda partition: None if self.unread is None else PartitionBacklog(self.unread, self.held),
            now=self.clock.now,
            secrets=SecretFilter(self.policy.privacy),
            source=self._source,
            monotonic=self.clock.monotonic,
            committed=lambda topic, partition: self.committed,
        )

    @property
    def observer(self) -> Observer:
        return cast(Observer, self.harness.stage)

    # ------------------------------------------------------------------------------------------------ in
    def turn(
        self,
        text: str | Sequence[Mapping[str, Any]] | None = "Hello.",
        turn_id: str = "t1",
        *,
        session: tuple[str, str, str] = SESSION,
        key: bytes | str | None = "",
        partition: int | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
        timestamp: int = TIMESTAMP,
        **fields: Any,
    ) -> Record:
        """Return the next record of its partition. `text` is the user's text, or the messages."""
        tenant, user, name = session
        messages: Any = [{"role": "user", "content": text}] if isinstance(text, str) else list(text or ())
        value = turn_value(
            {
                "tenant_id": tenant,
                "user_id": user,
                "session_id": name,
                "turn_id": turn_id,
                "messages": messages,
            }
            | fields
        )
        return self.record(
            TURNS.name, session, value, key=key, partition=partition, headers=headers, timestamp=timestamp
        )

    def command(
        self, command_id: str = "c1", kind: str = "observe", *, session: tuple[str, str, str] = SESSION, **fields: Any
    ) -> Record:
        tenant, user, name = session
        command = Command(
            command_id=command_id,
            kind=kind,
            tenant_id=tenant,
            session=SessionRef(user_id=user, session_id=name),
            issued_at=NOW,
            **fields,
        )
        return self.record(COMMANDS_SESSION.name, session, command.to_bytes())

    def record(
        self,
        topic: str,
        session: tuple[str, str, str],
        value: bytes | None,
        *,
        key: bytes | str | None = "",
        partition: int | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
        timestamp: int = TIMESTAMP,
    ) -> Record:
        right = ids.session_key(*session).encode()
        raw = right if isinstance(key, str) else key
        where = partition_for(right, self.partitions) if partition is None else partition
        return self.topics.record(topic, raw, value, partition=where, headers=headers, timestamp=timestamp)

    def again(self, out: OutRecord) -> Record:
        """Return a record that the stage sent (a re-sent turn, a reminder) as input."""
        assert out.key is not None
        return self.topics.record(
            out.topic,
            out.key,
            out.value,
            partition=partition_for(out.key, self.partitions),
            headers=out.headers,
            timestamp=TIMESTAMP if out.timestamp is None else out.timestamp,
        )

    async def deliver(self, *records: Record, ahead: Sequence[Record] = ()) -> None:
        """Deliver events. `ahead`: what is queued behind each of them."""
        for record in records:
            await self.harness.deliver(record, ahead=ahead)

    async def run(self, records: Sequence[Record], *, kill: Kill | None = None, together: bool = False) -> None:
        await self.harness.run(records, kill=kill, together=together)

    async def deliver_rest(self) -> int:
        """Deliver the commands that the stage sent, and those that it sends then, each once. Return how many."""
        sent = self.harness.on(COMMANDS_SESSION.name)
        while self._delivered < len(sent):
            await self.deliver(self.again(sent[self._delivered]))
            self._delivered += 1
            sent = self.harness.on(COMMANDS_SESSION.name)
        return self._delivered

    # ------------------------------------------------------------------------------------------------ looking
    def row(self, session: tuple[str, str, str] = SESSION) -> SessionRow:
        raw = self.harness.rows.local.get(ids.session_key(*session))
        return SessionRow() if raw is None else SessionRow.model_validate_json(raw)

    def waiting(self) -> list[str]:
        """Keys of the waiting rows."""
        return sorted(key for key in self.harness.rows.local if session_of_waiting_key(key) is not None)

    def waiting_turns(self) -> list[WaitingTurn]:
        return [WaitingTurn.model_validate_json(self.harness.rows.local[key]) for key in self.waiting()]

    def working(self, session: tuple[str, str, str] = SESSION) -> list[str]:
        """Contents in the session's row, by salience."""
        return [entry.content for entry in self.row(session).working.entries]

    def projected(self, session: tuple[str, str, str] = SESSION) -> list[str]:
        """Contents in Qdrant, sorted."""
        fields = ("tenant_id", "user_id", "session_id")
        mine = dict(zip(fields, session, strict=True))
        points = self.points.of("working").values()
        return sorted(str(p.payload["content"]) for p in points if all(p.payload[f] == mine[f] for f in fields))

    def observed(self) -> list[Observed]:
        """The records of memory.observations, each once."""
        return [Observed.read(value or b"") for value in self.harness.once(OBSERVATIONS.name).values()]

    def contents(self) -> list[list[str]]:
        return [[each.content for each in record.observations] for record in self.observed()]

    def results(self) -> list[CommandResult]:
        return [CommandResult.read(value or b"") for value in self.harness.once(RESULTS.name).values()]

    def dead_letters(self) -> list[dict[str, str]]:
        """Headers of the dead letters, in order, each position once."""
        found = [{name: value.decode() for name, value in out.headers} for out in self.harness.on(LETTERS)]
        return list({(each["kafka_dlt-original-offset"], each["memstream-reason"]): each for each in found}.values())

    def counted(self) -> Counter[str]:
        """The stage's counters by name."""
        metrics = self.harness.metrics._metrics
        return Counter(
            {
                sample.labels["what"]: int(sample.value)
                for family in metrics.counted.collect()
                for sample in family.samples
                if sample.name.endswith("_total")
            }
        )

    async def reminders(self) -> list[OutRecord]:
        """The reminders that the stage would send now."""
        before = len(self.harness.on(COMMANDS_SESSION.name))
        for record in self.observer._deferred.due(1_000):
            await self.harness.send_durably(record)
        return self.harness.on(COMMANDS_SESSION.name)[before:]


# ------------------------------------------------------------------------------------------------ a model that is away
def item(turn: str, content: str, evidence: str = "very plain word", **fields: Any) -> dict[str, Any]:
    """An item about the subject `word`, so that a quote with a word carries any content."""
    return {**OBSERVATION, "turn": turn, "subject": "word", "content": content, "evidence": evidence, **fields}


class AwayModel:
    """A model that fails for tenants in `away`. `answers` go by number of the answered ask; after them it
    observes nothing.
    """

    def __init__(self, *answers: list[dict[str, Any]]) -> None:
        self.away: set[str] = set()
        self.answers = list(answers)
        self.shown: list[list[str]] = []
        """The texts of each answered call."""

    def __call__(self, ask: Ask) -> Answer:
        texts = list(ask.turns.values())
        if any(name in text for name in self.away for text in texts):
            raise Transient("model", "away")
        if any("poison" in text for text in texts):
            self.shown.append(["refused", *texts])
            raise Poison("refused_by_model", "unusable")
        self.shown.append(texts)
        return {"observations": list[JsonValue](self.answers.pop(0) if self.answers else [])}


def policy(**fields: Any) -> MemoryPolicy:
    return MemoryPolicy(observe=ObservePolicy(**{"patience": 0.02, "together": 8} | fields))


async def deferred(model: AwayModel, *texts: str, **fields: Any) -> ObserverWorld:
    """Return a world with a session whose turns t1, t2 … all wait."""
    world = ObserverWorld(model, policy=fields.pop("policy", policy()), **fields)
    model.away = {"word"}
    for n, text in enumerate(texts, 1):
        await world.deliver(world.turn(text, f"t{n}"))
    assert world.observed() == []
    model.away = set()
    return world
