"""A worker of the counting stage as a process: `python -m tests.support.counting_worker JSON`.

It writes each point into SQLite (`sink`), so that a test sees what a killed worker has done. While the folder has a
file `wedge`, the store refuses the key in that file; while it has a file `hold`, records with that value wait.

Option `held_bytes`: bytes of records that it holds. Option `slow_restore`: seconds to wait after each batch of a
restore. Option `file_limit`: the greatest size of its files in bytes, as on a full disk. Option `clock_ahead`: the
seconds by which its clock is ahead of the broker's. Option `still`: seconds without a move of the event loop that end
the worker.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from faust.types import TP
from prometheus_client import CollectorRegistry

from memstream.api.worker_health import served
from memstream.schemas.errors import Transient
from memstream.schemas.topics import STAGES
from memstream.streams.engine.crash_points import CrashPoint
from memstream.streams.engine.hangs import HangWatch
from memstream.streams.engine.lanes import HELD_BYTES
from memstream.streams.engine.metrics import Metrics, StageMetrics
from memstream.streams.engine.process_exit import UNREACHABLE
from memstream.streams.engine.retry import Calls, RetryPolicy
from memstream.streams.faust import bulk_load, recovery
from memstream.streams.faust.app import AppSettings
from memstream.streams.faust.bulk_load import BulkLoad, ChangelogSource
from memstream.streams.faust.bulk_writes import Entry
from memstream.streams.faust.runner import RunnerSettings, StageRunner
from memstream.streams.faust.worker import run_watched
from tests.support.counting_stage import Counting
from tests.support.logs import log_at

log = structlog.get_logger(__name__)


@dataclass
class SlowChangelog:
    """A changelog source that waits after each batch of a restore and writes a note about it."""

    changelog: ChangelogSource
    pause: float

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Entry], int]:
        entries, after = await self.changelog.read(tp, offset, timeout)
        log.info("restore_batch", partition=tp.partition, offset=offset, entries=len(entries))
        await asyncio.sleep(self.pause)
        return entries, after


def slow_restore(pause: float) -> None:
    """Slow down the restores of this process, so that a test can interrupt one."""

    async def load(wanted: BulkLoad, *, changelog: ChangelogSource, **rest: Any) -> int:
        return await bulk_load.load(wanted, changelog=SlowChangelog(changelog, pause), **rest)

    recovery.load = load  # type: ignore[assignment]


def set_clock_ahead(seconds: float) -> None:
    """Send records with the time of a clock that is ahead. aiokafka takes the time in compiled code."""
    send = AIOKafkaProducer.send

    async def ahead(self: Any, topic: str, *args: Any, **rest: Any) -> Any:
        return await send(self, topic, *args, **{**rest, "timestamp_ms": int((time.time() + seconds) * 1000)})

    AIOKafkaProducer.send = ahead


async def main(options: dict[str, str]) -> int:
    broker = options["broker"]
    if pause := float(options.get("slow_restore", "0")):
        slow_restore(pause)
    if ahead := float(options.get("clock_ahead", "0")):
        set_clock_ahead(ahead)
    if limit := int(options.get("file_limit", "0")):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write is refused instead
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    folder = Path(options["folder"])
    sink_file = sqlite3.connect(folder / "sink.db", isolation_level=None)
    sink_file.execute("PRAGMA journal_mode=WAL")
    sink_file.execute("PRAGMA busy_timeout=5000")
    sink_file.execute("CREATE TABLE IF NOT EXISTS point (id TEXT, payload TEXT)")
    wedge = folder / "wedge"

    def sink(point_id: str, payload: dict[str, object]) -> None:
        if wedge.exists() and wedge.read_text() == payload["key"]:
            raise Transient("store", "wedged")
        sink_file.execute("INSERT INTO point VALUES (?, ?)", (point_id, json.dumps(payload)))

    client = log_at(broker)
    try:
        await client.start()
    except Transient:  # the broker is away
        return UNREACHABLE
    crash = CrashPoint.parse(options["crash"], stages=STAGES) if options.get("crash") else None
    metrics = Metrics(CollectorRegistry())
    counted = StageMetrics(metrics, "observer")
    runner = StageRunner(
        name="observer",
        settings=RunnerSettings(
            broker=broker,
            datadir=folder / options.get("worker", "w"),
            app=AppSettings(
                partitions=int(options["partitions"]),
                session_timeout=float(options.get("session", 3)),
                worker_id=options.get("worker_id"),
            ),
            in_flight=int(options.get("in_flight", 64)),
            held_bytes=int(options.get("held_bytes", HELD_BYTES)),
            crash=crash,
        ),
        log_client=client,
        calls=Calls(retry=RetryPolicy(first=0.1, cap=1.0), on_retry=counted.retried),
        metrics=counted,
        build_stage=lambda runner: Counting(sink=sink, pause=float(options.get("pause", "0")), hold=folder / "hold"),
    )
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    port = int(options.get("health", "0"))
    async with served(port=port, registry=metrics.registry, readiness=lambda: {"observer": runner.ready()}):
        still = options.get("still")
        watch = HangWatch(runner.hang_folder, **({"still": int(still), "processor": float(still) + 3} if still else {}))
        code = await run_watched([runner], stopping=stopping, watch=watch)
    await client.close()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(json.loads(sys.argv[1]))))
