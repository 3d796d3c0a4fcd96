"""One stage with its real handler and a real engine in a folder; rows and topics are dictionaries.

`crash_after` ends an event as a killed worker would: durable writes stay. `killed` delivers the event again after that.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.adapters.vectors.store import QdrantStore
from memstream.schemas.base import Contract
from memstream.schemas.commands import CommandResult
from memstream.schemas.errors import Transient
from memstream.schemas.facts import Fact, FactUpdated, StoredFact
from memstream.schemas.outcomes import OutRecord
from memstream.schemas.topics import FACTS, FACTS_UPDATED, RESULTS
from memstream.streams.engine.crash_points import Step
from memstream.streams.engine.error_boundary import CrashCounter, ErrorBoundary
from memstream.streams.engine.handler import Handler, Stage
from memstream.streams.engine.lane_events import RoutedEvent, UndecodableEvent
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.retry import Calls, RetryPolicy
from memstream.streams.log.partitioner import partition_for
from memstream.streams.log.port import Position, Record

from .idle_engines import idle_engine
from .record_builders import NOW
from .table_rows import page_of

PARTITIONS = 4


class Killed(BaseException):
    """The simulated end of the worker. It is not an `Exception`, so that nothing handles it."""


class MemoryRows:
    """A table in a dictionary. `lost_after_put` makes the next put fail after it reached the local store."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.lost_after_put = False

    def row(self, key: str, *, partition: int | None = None) -> bytes | None:
        return self.rows.get(key)

    async def put(self, rows: Mapping[str, bytes | None], *, partition: int | None = None) -> None:
        for key, value in rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value

    def applied_before(self, partition: int, topic: str, source: int) -> int | None:
        return None

    def page(self, partition: int, *, prefix: str = "", after: str = "") -> Sequence[tuple[str, bytes]]:
        return page_of(self.rows, prefix=prefix, after=after)


class CrashAfter:
    """A crash point that ends the handler once, after the n-th run of one step."""

    def __init__(self, step: Step, n: int = 1) -> None:
        self.step = step
        self.left = n

    def armed(self, stage: str, step: Step) -> bool:
        return self.step == step and self.left > 0

    def passed(self, stage: str, step: Step) -> None:
        if self.armed(stage, step):
            self.left -= 1
            if self.left == 0:
                raise Killed(step)


class Clock:
    """A clock that advances one second with each reading."""

    def __init__(self) -> None:
        self.moment = NOW + timedelta(days=1)

    def __call__(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


class Bench:
    """The parts of one stage. The test builds `stage` from them."""

    stage: Stage[Any]

    def __init__(self, *, store: QdrantStore, folder: Path, stage_name: str) -> None:
        self.store = store
        self.embedder = HashingEmbedder()
        self.rows = MemoryRows()
        self.now = Clock()
        self.metrics = StageMetrics(Metrics(CollectorRegistry()), stage_name)
        self.calls = Calls(retry=RetryPolicy(first=0.001, cap=0.001))
        self.sent: list[OutRecord] = []
        self.refused: list[str] = []
        self.covered: list[Record] = []
        """Events that were done together with one before them."""
        self._folder = folder
        self._offsets: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int] = {}

    async def send_durably(self, record: OutRecord) -> None:
        self.sent.append(record)

    async def _send(self, record: OutRecord) -> Awaitable[object]:
        self.sent.append(record)
        return asyncio.sleep(0)

    def record(self, topic: str, key: str, value: Contract | bytes, **fields: Any) -> Record:
        """Return the next record of its partition."""
        partition = fields.pop("partition", partition_for(key.encode(), PARTITIONS))
        offset = self._offsets.get((topic, partition), 0)
        self._offsets[topic, partition] = offset + 1
        raw = value if isinstance(value, bytes) else value.to_bytes()
        return Record(Position(topic, partition, offset), key.encode(), raw, **fields)

    def committed(self, topic: str, partition: int) -> int | None:
        return self._committed.get((topic, partition))

    async def run(
        self, record: Record, *, crash_after: Step | None = None, nth: int = 1, ahead: Sequence[Record] = ()
    ) -> None:
        """Process one event to its end, or to the step after whose n-th run the worker is killed. `ahead`: events of
        its lane that are queued meanwhile."""

        async def cover(count: int) -> None:
            self.covered += ahead[:count]
            for each in ahead[:count]:
                self._commit(each)

        handler = Handler(
            stage=self.stage,
            rows=self.rows,
            calls=self.calls,
            boundary=ErrorBoundary(crashes=CrashCounter(self._folder)),
            send=self._send,
            metrics=self.metrics,
            crash=CrashAfter(crash_after, nth) if crash_after else None,  # type: ignore[arg-type]
            committed=self.committed,
            ahead=lambda: ((each, handler.route(each)) for each in ahead),
            cover=cover,
        )
        routed = handler.route(record)
        if isinstance(routed, UndecodableEvent):
            self.refused.append(routed.poison.reason)
            return
        assert isinstance(routed, RoutedEvent)
        await handler.handle(record, routed)
        self._commit(record)

    async def run_together(self, records: Sequence[Record]) -> None:
        """Process events of one lane, all of which are queued from the begin."""
        left = list(records)
        while left:
            first, *left = left
            await self.run(first, ahead=left)
            left = [each for each in left if each not in self.covered]

    def _commit(self, record: Record) -> None:
        where = (record.position.topic, record.position.partition)
        self._committed[where] = max(self._committed.get(where, 0), record.position.offset + 1)

    async def killed(self, record: Record, step: Step) -> None:
        """Kill the worker after `step` and deliver the event again."""
        try:
            await self.run(record, crash_after=step)
        except Killed:
            await self.run(record)
            return
        raise AssertionError(f"the crash point {step} was not passed")

    async def deaths(self, record: Record, step: Step) -> AsyncIterator[int]:
        """Kill the worker after the first run of `step`, deliver the event again, kill after the second run, and so on
        until the event is done. Yield after each death."""
        for nth in itertools.count(1):
            try:
                await self.run(record, crash_after=step, nth=nth)
            except Killed:
                yield nth
            else:
                return

    # ------------------------------------------------------------------------------------------------ looking
    def values(self, topic: str) -> list[bytes]:
        return [record.value or b"" for record in self.sent if record.topic == topic]

    def events(self) -> list[FactUpdated]:
        return [FactUpdated.read(value) for value in self.values(FACTS_UPDATED.name)]

    def actions(self) -> list[tuple[str, str]]:
        return [(event.action, event.fact.content) for event in self.events()]

    def results(self) -> list[CommandResult]:
        return [CommandResult.read(value) for value in self.values(RESULTS.name)]

    def changes(self) -> list[dict[str, Any]]:
        """The changes in the last command result."""
        result = self.results()[-1].result
        assert result is not None
        return json.loads(json.dumps(result["changes"]))  # type: ignore[no-any-return]

    async def facts(self, tenant: str = "acme") -> dict[str, StoredFact]:
        """The stored facts by content."""
        found = await self.store.select("facts", tenant_id=tenant)
        rows = [StoredFact.from_payload(each.payload) for each in found]
        return {row.content: row for row in rows}

    async def agree(self, tenant: str = "acme") -> None:
        """Check that the folded events, the last states on memory.facts and the store agree."""
        folded: dict[str, Fact] = {}
        for event in self.events():
            known = folded.get(event.fact.fact_id)
            if event.tenant_id == tenant and (known is None or known.version < event.fact.version):
                assert event.fact.version == (known.version + 1 if known else 1)
                assert event.before == known
                folded[event.fact.fact_id] = event.fact
        states = [Fact.read(value) for value in self.values(FACTS.name)]
        last = {state.fact_id: state for state in states if state.tenant_id == tenant}
        stored = {row.fact_id: row.public() for row in (await self._rows(tenant))}
        assert folded == last == stored

    async def _rows(self, tenant: str) -> list[StoredFact]:
        found = await self.store.select("facts", tenant_id=tenant)
        return [StoredFact.from_payload(each.payload) for each in found]


async def open_bench(folder: Path, stage_name: str, *, url: str = "") -> Bench:
    """Open a bench. `url`: of its store; by default the store is an embedded one. `folder` has the stage's files."""
    embedder = HashingEmbedder().identity
    if url:
        store = await open_store(url, embedder=embedder, holds_folder=True)
    else:
        store = PeriodStore(engine=idle_engine(), embedder=embedder)
    await store.ensure("facts", "episodes", "turns", "blocks", "tasks", "groups")
    return Bench(store=store, folder=folder / "deaths", stage_name=stage_name)


class AwayFor:
    """A call that fails `times` times and then passes."""

    def __init__(self, component: str, times: int) -> None:
        self.component = component
        self.times = times

    def __call__(self) -> None:
        if self.times > 0:
            self.times -= 1
            raise Transient(self.component, "away")
