"""A worker of the counting stage as a process of its own: `python -m tests.support.counting_worker JSON`.

Writes each point into SQLite (`sink`), so that a test sees what a killed worker has done. While there is a file `wedge`
in the folder, the store refuses the key in it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from memstream.schemas.errors import Transient
from memstream.schemas.topics import STAGES
from memstream.streams.addresses import embedded_folder, is_embedded, kafka_servers
from memstream.streams.app import AppSettings
from memstream.streams.crash import CrashPoint
from memstream.streams.embedded_log import EmbeddedLog
from memstream.streams.health import served
from memstream.streams.kafka_log import KafkaLog
from memstream.streams.metrics import Metrics, StageMetrics
from memstream.streams.retry import Calls, RetryPolicy
from memstream.streams.runner import RunnerSettings, StageRunner, run_worker
from tests.support.counting import Counting


async def main(options: dict[str, str]) -> int:
    broker = options["broker"]
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

    client = (
        EmbeddedLog(folder=embedded_folder(broker)) if is_embedded(broker) else KafkaLog(servers=kafka_servers(broker))
    )
    await client.start()
    crash = CrashPoint.parse(options["crash"], stages=STAGES) if options.get("crash") else None
    runner = StageRunner(
        name="observer",
        settings=RunnerSettings(
            broker=broker,
            datadir=folder / options.get("worker", "w"),
            app=AppSettings(
                partitions=int(options["partitions"]), session_timeout=3, worker_id=options.get("worker_id")
            ),
            crash=crash,
        ),
        log_client=client,
    )
    metrics = Metrics(CollectorRegistry())
    counted = StageMetrics(metrics, "observer")
    calls = Calls(retry=RetryPolicy(first=0.1, cap=1.0), on_retry=counted.retried)
    runner.attach(Counting(sink=sink, pause=float(options.get("pause", "0"))), calls=calls, metrics=counted)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    port = int(options.get("health", "0"))
    async with served(port=port, registry=metrics.registry, readiness=lambda: {"observer": runner.ready()}):
        code = await run_worker([runner], stopping=stopping)
    await client.close()
    return code


if __name__ == "__main__":
    sys.exit(asyncio.run(main(json.loads(sys.argv[1]))))
