"""The whole product as a user runs it: `memstream worker …` as processes, on Kafka and Qdrant or on a folder.

The model is scripted over the OpenAI protocol. `Pipeline` also reads the output, as subscribers and readers do.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import signal
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from memstream.schemas import ids
from memstream.schemas.commands import Command
from memstream.schemas.errors import Transient
from memstream.schemas.facts import Fact, FactUpdated
from memstream.schemas.topics import (
    COMMANDS,
    DEAD_LETTER_SUFFIX,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    STAGES,
    TURNS,
    StageName,
    catalogue,
    group_of,
    read_by,
)
from memstream.schemas.turns import Owner
from memstream.streams.engine.codec import tenant_of
from memstream.streams.log.broker_url import is_embedded, kafka_servers
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Record
from memstream.verification.history import Offsets
from memstream.verification.rows import TurnName
from tests.support.isolated_pipeline import isolate
from tests.support.logs import log_at
from tests.support.model_server import ModelServer
from tests.support.polling import wait_for
from tests.support.processes import CRASHED, NOTHING_FOLLOWS, Json, Processes
from tests.support.qdrant import QdrantServer
from tests.support.verification import ends_of, name_of, still_works, violations

ROOT = Path(__file__).resolve().parents[2]
MOVING = ("strength", "retrieval_count", "last_accessed_at")
"""Fields that exist in Qdrant only and change without version or event. Comparisons leave them out."""


class Pipeline(Processes):
    """A deployment with a tenant of its own, its input and its output."""

    def __init__(
        self,
        *,
        folder: Path,
        broker: str,
        qdrant: QdrantServer | None = None,
        model: ModelServer | None = None,
        env: Mapping[str, str] | None = None,
        consolidation: str = NOTHING_FOLLOWS,
        policy: str = "",
    ) -> None:
        super().__init__(
            folder=folder,
            broker=broker,
            qdrant=qdrant,
            model=model,
            env=env or {},
            consolidation=consolidation,
            policy=policy,
        )
        self.tenant = f"tenant-{uuid.uuid4().hex[:8]}"
        """Each test has its own tenant, since tests share broker and Qdrant. Reads are limited to it."""
        self._dead_letters_before: dict[str, dict[int, int]] = {}
        """The ends of the dead-letter topics before this pipeline, on a shared broker."""
        self.began: Offsets = {}
        """The ends of all topics when this pipeline began."""
        self._acknowledged: set[TurnName] = set()
        self.log = log_at(broker)

    # ------------------------------------------------------------------------------------------------ in
    async def produce(self, *turns: Json, topic: str = TURNS.name, at: datetime | None = None) -> None:
        """Produce turns as a chat service does, with the right key and partitioner. A turn without a tenant gets
        the pipeline's. `at`: the time of their records, if not now.
        """
        stamp = None if at is None else int(at.timestamp() * 1000)
        for turn in turns:
            turn.setdefault("tenant_id", self.tenant)
            key = ids.session_key(turn["tenant_id"], turn["user_id"], turn["session_id"])
            value = json.dumps(turn).encode()
            await self.log.append(topic, key=key.encode(), value=value, timestamp=stamp)
            if topic == TURNS.name and (name := name_of(value)) is not None:
                self._acknowledged.add(name)

    async def command(
        self, kind: str, *, user: str = "u1", issued_at: datetime | None = None, **args: JsonValue
    ) -> str:
        """Send a command about a user, as a tool does; return its id."""
        command = Command(
            command_id=str(uuid.uuid4()),
            kind=kind,
            tenant_id=self.tenant,
            owner=Owner(scope="user", id=user),
            args=args,
            issued_by="test",
            issued_at=issued_at or datetime.now(UTC),
        )
        await self.log.append(COMMANDS.name, key=command.key.encode(), value=command.to_bytes())
        return command.command_id

    def forget(self, *turns: Json) -> None:
        """Expect nothing of these turns: the log lost them before anybody read them."""
        self._acknowledged -= {name for turn in turns if (name := name_of(json.dumps(turn).encode())) is not None}

    # ------------------------------------------------------------------------------------------------ out
    async def settled(self, *stages: str, deadline: float = 60.0) -> None:
        """Wait until the lag of every topic that these stages read is 0, twice in a row."""
        zeros = 0

        async def lags() -> dict[str, int]:
            self._alive()
            try:
                return await self.lags(*(stages or STAGES))
            except Transient as away:  # a broker that is coming back, or has no time
                return {str(away): 1}

        def twice_zero(lags: dict[str, int]) -> bool:
            nonlocal zeros
            zeros = 0 if any(lags.values()) else zeros + 1
            return zeros == 2

        await wait_for(lags, "lag 0 twice", until=twice_zero, deadline=deadline, pause=0.2, detail=self.logs)

    def _alive(self) -> None:
        for worker in self.workers:
            assert worker.poll() in (None, 0, CRASHED, -signal.SIGKILL), f"exit {worker.returncode}\n{self.logs()}"

    async def lags(self, *stages: str) -> dict[str, int]:
        lags = {}
        for stage in stages:
            for topic in read_by(stage):  # type: ignore[arg-type]
                ends = await self.log.ends(topic.name)
                committed = await self.log.committed(group_of(stage), topic.name)
                lags[f"{stage}:{topic.name}"] = sum(end - (at or 0) for end, at in zip(ends, committed, strict=True))
        return lags

    async def records(self, topic: str) -> list[Record]:
        return [record async for record in self.log.read(topic)]

    async def fact_events(self) -> list[Record]:
        """Read memory.facts.updated, in order within an owner, also when an owner's partition has changed."""
        partitions: dict[int, list[Record]] = defaultdict(list)
        for record in await self.records(FACTS_UPDATED.name):
            partitions[record.position.partition].append(record)
        return list(heapq.merge(*partitions.values(), key=lambda record: record.timestamp))

    async def updates(self) -> list[FactUpdated]:
        """Read memory.facts.updated, in order within an owner."""
        told = [FactUpdated.read(record.value or b"") for record in await self.fact_events()]
        return [event for event in told if event.tenant_id == self.tenant]

    async def observed(self) -> list[bytes]:
        """Read the values of memory.observations, in log order."""
        values = [record.value or b"" for record in await self.records(OBSERVATIONS.name)]
        return [value for value in values if tenant_of(value) == self.tenant]

    async def begin_dead_letters(self) -> None:
        """Begin the range of `dead_letters` and of `verified` at this moment."""
        self.began = await ends_of(self.log)
        for topic in catalogue():
            if topic.name.endswith(DEAD_LETTER_SUFFIX) and await self.log.partitions(topic.name) is not None:
                self._dead_letters_before[topic.name] = dict(enumerate(await self.log.ends(topic.name)))

    async def dead_letters(self, topic: str = TURNS.name) -> list[Record]:
        """Read the dead letters since this pipeline began, by position of the refused record."""
        name = f"{topic}{DEAD_LETTER_SUFFIX}"
        found = [record async for record in self.log.read(name, start=self._dead_letters_before.get(name))]
        return sorted(found, key=refused_at)

    async def folded(self) -> dict[str, Json]:
        """Fold memory.facts.updated as a subscriber does: the highest version of each fact."""
        state: dict[str, Fact] = {}
        for event in await self.updates():
            held = state.get(event.fact.fact_id)
            if held is None or event.fact.version > held.version:
                state[event.fact.fact_id] = event.fact
        return {fact_id: comparable(fact.to_payload()) for fact_id, fact in state.items()}

    async def compacted(self) -> dict[str, Json]:
        """Read memory.facts as compaction leaves it: the last record of each key."""
        state: dict[bytes | None, Json] = {}
        partitions = await self.log.partitions(FACTS.name)
        assert partitions is not None
        for record in await self.records(FACTS.name):
            if partition_for(record.key or b"", partitions) != record.position.partition:
                continue  # from before a growth of the topics
            state[record.key] = comparable(json.loads(record.value or b"{}"))
        return {fact["fact_id"]: fact for fact in state.values() if fact.get("tenant_id") == self.tenant}

    def shown(self, *kinds: str, tenants: Sequence[str] = ()) -> dict[str, dict[str, list[Json]]]:
        """Return what `memstream show` prints, by tenant (default: this pipeline's) and kind, facts of all
        states.
        """
        wanted = [(tenant, kind) for tenant in tenants or [self.tenant] for kind in kinds]
        found = self.several(
            *(
                ["show", kind, "--tenant", tenant, *(["--state", "all"] if kind == "facts" else [])]
                for tenant, kind in wanted
            )
        )
        shown: dict[str, dict[str, list[Json]]] = defaultdict(dict)
        for (tenant, kind), rows in zip(wanted, found, strict=True):
            shown[tenant][kind] = rows
        return shown

    def stored(self) -> dict[str, Json]:
        """Return Qdrant's facts in all states. `all` leaves out the two that are shown by name alone."""
        states = ("all", "quarantined", "forgotten")
        found = self.several(*(["show", "facts", "--tenant", self.tenant, "--state", state] for state in states))
        return {row["fact_id"]: comparable(row) for rows in found for row in rows}

    async def consistent(self) -> dict[str, Json]:
        """Check that the three views agree and that every version of every fact was published in order. Return
        the facts.
        """
        await self.check_versions_published_once()
        stored = self.stored()
        assert await self.folded() == stored, "memory.facts.updated and Qdrant disagree"
        assert await self.compacted() == stored, "memory.facts and Qdrant disagree"
        return stored

    async def verified(
        self,
        *stages: StageName,
        tenant: str | None = None,
        refused_by_model: Collection[TurnName] | None = None,
        invariants: Collection[str] | None = None,
    ) -> None:
        """Check the invariants of memstream.verification for these stages (default: all) since the pipeline began.

        Call it when the pipeline has settled. A worker that has found work since then (a reminder was due, a command
        came) settles first. `invariants` limits the check, for tests that write what stages would write.
        """
        mine = tenant or self.tenant
        shared = self._qdrant is not None
        broken = None
        while broken is None or (still_works(broken) and any(worker.poll() is None for worker in self.workers)):
            if broken:
                await self.settled(*stages)
            broken = await violations(
                log=self.log,
                environment=self.environment(),
                config=self.folder / "memstream.toml",
                tenant=mine if shared or tenant else None,
                since=self.began if shared else {},
                stages=stages,
                acknowledged=[name for name in self._acknowledged if not shared or ids.split(name[0])[0] == mine],
                refused_by_model=refused_by_model,
                invariants=invariants,
            )
        assert not broken, "\n".join([f"{len(broken)} violations", *broken[:20], self.logs()])

    async def check_versions_published_once(self) -> None:
        """Check that repeated events are equal in every byte and that versions of a fact go up by one."""
        values: dict[str, set[bytes]] = defaultdict(set)
        versions: dict[str, list[int]] = defaultdict(list)
        for record in await self.fact_events():
            event = FactUpdated.read(record.value or b"")
            values[event.event_id].add(record.value or b"")
            if event.fact.version not in versions[event.fact.fact_id]:
                versions[event.fact.fact_id].append(event.fact.version)
            assert event.event_id == ids.event_id(event.fact.fact_id, event.fact.version)
        assert all(len(told) == 1 for told in values.values()), "an event came twice with different bytes"
        assert all(seen == list(range(1, len(seen) + 1)) for seen in versions.values()), versions


def refused_at(letter: Record) -> tuple[int, int]:
    """Return partition and offset of the record that became this dead letter."""
    headers = dict(letter.headers)
    return int(headers["kafka_dlt-original-partition"]), int(headers["kafka_dlt-original-offset"])


def comparable(fact: Json) -> Json:
    return {name: value for name, value in fact.items() if name not in MOVING}


@contextlib.asynccontextmanager
async def running(pipeline: Pipeline) -> AsyncIterator[Pipeline]:
    """Create topics, open the log and isolate the pipeline; kill everything at the end."""
    await pipeline.log.start()
    try:
        pipeline.cli("topics", "create")
        if not is_embedded(pipeline.broker):
            await isolate(pipeline.log, kafka_servers(pipeline.broker))
        await pipeline.begin_dead_letters()
        yield pipeline
    finally:
        pipeline.kill()
        await pipeline.log.close()


def turn(text: str, n: int, *, session: str = "s1", user: str = "u1", **fields: Any) -> Json:
    """Return a turn with one user message, a minute after the one before. `produce` adds the pipeline's tenant."""
    return {
        "user_id": user,
        "session_id": session,
        "turn_id": f"t{n}",
        "messages": [{"role": "user", "content": text}],
        "occurred_at": f"2026-11-20T10:{n % 60:02d}:00Z",
    } | fields


def actions(updates: Sequence[FactUpdated]) -> list[tuple[str, str]]:
    """Return (action, content) of each event once, in log order."""
    seen: set[str] = set()
    told: list[tuple[str, str]] = []
    for event in updates:
        if event.event_id not in seen:
            seen.add(event.event_id)
            told.append((event.action, event.fact.content))
    return told
