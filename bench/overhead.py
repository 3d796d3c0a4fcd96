"""A stage without prompts, models and stores: it waits for the time of a model call and forwards the value.

As a process, `python -m bench.overhead JSON`, it shows the cost of lanes, table, sends and commits. With `table`, it
also writes a row with the outcome for each record, as the real stages do.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from memstream.cli.output import logs
from memstream.schemas.outcomes import Outcome, OutRecord, Source
from memstream.schemas.topics import Topic, changelog_name
from memstream.streams.engine.decision import Rows, StageDecision
from memstream.streams.engine.lane_events import QueuedEvents, RoutedEvent
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.retry import Calls
from memstream.streams.faust.app import AppSettings
from memstream.streams.faust.runner import RunnerSettings, StageRunner
from memstream.streams.faust.table import open_rows
from memstream.streams.faust.worker import run_worker
from memstream.streams.log.port import Record, TopicSpec
from tests.support.logs import log_at

from .world import Worker, World

SLEPT = "slept"
"""Header of output records: seconds that the stage waited."""
TABLE = "rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    name: str
    """Name of the stage, which has its own group, folder and changelog."""
    broker: str
    folder: str
    source: str
    sink: str
    partitions: int
    in_flight: int = 64
    table: bool = False
    pause: float = 0.0


class Row(BaseModel):
    count: int = 0
    last: Outcome | None = None


class Echo:
    """A stage that forwards each value under the same key."""

    name: Literal["observer"] = "observer"

    def __init__(self, *, source: str, sink: str, table: bool, pause: float) -> None:
        self.reads = (Topic(source, "any", "delete", None, (), ()),)
        self._sink = sink
        self._table = table
        self._pause = pause

    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[str]:
        key = (record.key or b"").decode()
        return RoutedEvent(key, key)

    def last(self, work: str, rows: Rows) -> StageDecision | None:
        raw = rows.row(work) if self._table else None
        row = Row() if raw is None else Row.model_validate_json(raw)
        return None if row.last is None else StageDecision(row.last, work, raw)

    async def decide(
        self, work: str, record: Record, rows: Rows, queued: QueuedEvents[str]
    ) -> AsyncIterator[StageDecision]:
        position = record.position
        raw = rows.row(work) if self._table else None
        row = Row() if raw is None else Row.model_validate_json(raw)
        source = Source(topic=position.topic, partition=position.partition, offset=position.offset, id=work)
        if row.last is not None and row.last.source == source:
            return
        began = time.time()
        if self._pause:
            await asyncio.sleep(self._pause)
        slept = str(time.time() - began).encode()
        sent = OutRecord(topic=self._sink, key=record.key, value=record.value, headers=((SLEPT, slept),))
        outcome = Outcome(source=source, records=(sent,))
        if self._table:
            yield StageDecision(outcome, work, Row(count=row.count + 1, last=outcome).model_dump_json().encode())
        else:
            yield StageDecision(outcome)

    async def store(self, outcome: Outcome) -> None:
        return None

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    def retain(self, partitions: frozenset[int]) -> None:
        return None

    async def end_rows(self, partition: int, rows: Rows) -> None:
        return None

    async def rediscover(self, partition: int, rows: Rows) -> None:
        return None

    async def background(self) -> None:
        return None


async def start(world: World, options: Options) -> Worker:
    """Create the changelog's topic, then start the process."""
    if options.table:
        changelog = changelog_name(options.name, TABLE)
        await world.log.create([TopicSpec(changelog, world.partitions, 1, {"cleanup.policy": "compact"})])
    return world.process(["bench.overhead", json.dumps(asdict(options))], options.name)


async def run(options: Options) -> int:
    client = log_at(options.broker)
    await client.start()

    def build_stage(runner: StageRunner) -> Echo:
        if options.table:
            runner.rows = open_rows(runner.app, TABLE)
        return Echo(source=options.source, sink=options.sink, table=options.table, pause=options.pause)

    runner = StageRunner(
        name=options.name,
        settings=RunnerSettings(
            broker=options.broker,
            datadir=Path(options.folder) / options.name,
            app=AppSettings(partitions=options.partitions, session_timeout=6),
            in_flight=options.in_flight,
        ),
        log_client=client,
        calls=Calls(),
        metrics=StageMetrics(Metrics(CollectorRegistry()), options.name),
        build_stage=build_stage,
    )
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    try:
        return await run_worker([runner], stopping=stopping)
    finally:
        await client.close()


if __name__ == "__main__":
    logs.configure()
    sys.exit(asyncio.run(run(Options(**json.loads(sys.argv[1])))))
