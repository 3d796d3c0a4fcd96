"""Longest block of a worker's event loop when it is assigned a table of many keys: `python -m bench.assignment N`.

Each stage gets N keys in 12 partitions of a real RocksDB; one key in a hundred has waiting work. The figures are the
longest gap between two runs of the event loop (which answers `/livez`), and the time until every reminder is set: once
with a complete index, once with a table of an earlier version, which has no index.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from faust.types import TP, RecordMetadata
from rocksdict import WriteBatch

from memstream.agents.common.recent_results import RecentResults
from memstream.agents.consolidation.rows import PendingRun, ProgressRow
from memstream.agents.observer.rows import SessionRow, WaitingTurn
from memstream.agents.reflector.rows import LedgerRow
from memstream.agents.reflector.timers import TaskTimer, TaskTimers
from memstream.memory.upkeep.consolidation import Counters
from memstream.schemas.outcomes import Outcome, Source
from memstream.schemas.turns import turn_value
from memstream.streams.engine.decision import Rows
from memstream.streams.engine.handler import Stage
from memstream.streams.faust.table import open_rows
from memstream.streams.log.partitioner import partition_for
from tests.support.consolidation_world import Consolidating
from tests.support.embedded_stage import open_bench
from tests.support.faust_fakes import ScriptedProducer, stage_app
from tests.support.observer_world import ObserverWorld
from tests.support.record_builders import NOW, OWNER
from tests.support.reflector_world import reflector

PARTITIONS = 12
EVERY = 100
"""One key in `EVERY` has waiting work."""
LAST = Outcome(
    source=Source(topic="memory.turns", partition=0, offset=1, id="t"),
)
SIZE = RecentResults(kept=("x" * 1_500,))
"""Content that gives a row a realistic size."""


def observer_rows(n: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield the key that decides the partition, the row's key and its value."""
    plain = SessionRow(last=LAST, results=SIZE).to_bytes()
    waits = SessionRow(last=LAST, results=SIZE, waiting_next=1, waiting_last="t").to_bytes()
    for each in range(n):
        key = f"acme/u{each}/s"
        yield key, key, waits if each % EVERY == 0 else plain
        if each % EVERY == 0:
            yield key, f"{key}/0", _waiting_turn(f"u{each}")


def _waiting_turn(user_id: str) -> bytes:
    turn = turn_value(
        {
            "tenant_id": "acme",
            "user_id": user_id,
            "session_id": "s",
            "turn_id": "t",
            "messages": [{"role": "user", "content": "I like tea."}],
            "occurred_at": NOW.isoformat(),
        }
    )
    return WaitingTurn(
        turn_id="t", topic="memory.turns", partition=0, offset=1, timestamp=1, key=None, value=turn, deferred_at=NOW
    ).to_bytes()


def reflector_rows(n: int) -> Iterator[tuple[str, str, bytes]]:
    plain = LedgerRow(last=LAST, results=SIZE).to_bytes()
    timers = TaskTimers(timers=(TaskTimer(task_id="t", due_at=NOW + timedelta(days=900)),)).to_bytes()
    for each in range(n):
        key = f"acme/user/u{each}"
        yield key, key, plain
        if each % EVERY == 0:
            yield key, f"{key}/tasks", timers


def consolidation_rows(n: int) -> Iterator[tuple[str, str, bytes]]:
    plain, waits = (
        ProgressRow(
            last=LAST,
            results=SIZE,
            counters=Counters(episodes=1, turns=3),
            waiting=PendingRun(tenant_id="acme", owner=OWNER, run_id="r") if waiting else None,
        ).to_bytes()
        for waiting in (False, True)
    )
    for each in range(n):
        key = f"acme/user/u{each}"
        yield key, key, waits if each % EVERY == 0 else plain


class Acknowledged(ScriptedProducer):
    """A producer whose broker acknowledges immediately."""

    async def drain(self) -> None:
        offset = 0
        while True:
            for future in list(self.sent):
                offset += 1
                topic, partition = future.message.channel.get_topic_name(), future.message.partition
                await future.message.channel._finalize_message(
                    future, RecordMetadata(topic, partition, TP(topic, partition), offset)
                )
            self.sent.clear()
            await asyncio.sleep(0.001)


async def longest_gap(work: Awaitable[None]) -> tuple[float, float]:
    """Return the longest time between two runs of the loop during `work`, and the duration of `work`, in seconds."""
    gap, last, running = 0.0, time.perf_counter(), True

    async def probe() -> None:
        nonlocal gap, last
        while running:
            await asyncio.sleep(0)
            now = time.perf_counter()
            gap, last = max(gap, now - last), now
            await asyncio.sleep(0.005)

    task = asyncio.create_task(probe())
    await asyncio.sleep(0.05)
    began = time.perf_counter()
    gap = 0.0
    await work
    took = time.perf_counter() - began
    await asyncio.sleep(0.02)
    running = False
    await task
    return gap, took


async def take_over(stage: Any, rows: Rows) -> None:
    """Let the stage take over all partitions."""
    for partition in range(PARTITIONS):
        await stage.rediscover(partition, rows)


async def measure(
    name: str, n: int, folder: Path, made: Callable[[int], Iterator[tuple[str, str, bytes]]], stage: Callable[[], Any]
) -> None:
    app = stage_app(folder, partitions=PARTITIONS)
    app.conf.tabledir.mkdir(parents=True)
    producer = Acknowledged()
    app._producer = producer
    rows = open_rows(app, "rows")
    batches: Mapping[int, Any] = {each: WriteBatch(raw_mode=True) for each in range(PARTITIONS)}
    for key, row_key, value in made(n):
        batches[partition_for(key.encode(), PARTITIONS)].put(row_key.encode(), value)
    for partition, batch in batches.items():
        rows._table.data._db_for_partition(partition).write(batch)
    draining = asyncio.create_task(producer.drain())
    gc.collect()
    gc.freeze()
    for what in ("table without an index", "again"):
        gap, took = await longest_gap(take_over(stage(), rows))
        print(f"{name:14} {n:7} keys  {what:24} longest gap {gap:7.3f} s, all {took:7.2f} s", flush=True)
    draining.cancel()


async def main(n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        await measure("observer", n, path / "o", observer_rows, lambda: ObserverWorld(partitions=PARTITIONS).observer)
        bench = await open_bench(path / "bench", "consolidation")
        await measure("reflector", n, path / "r", reflector_rows, lambda: cast(Stage[Any], reflector(bench)))
        await measure("consolidation", n, path / "c", consolidation_rows, lambda: Consolidating(bench).stage)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
