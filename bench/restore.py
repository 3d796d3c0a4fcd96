"""R6: speed of restoring a lost table against a plain read of the same changelog: `python -m bench.restore`.

One changelog is filled once: each key is written `WRITES_PER_KEY` times, with values of the size of session rows. Then
two processes alternate (A/B/B/A). A is a stage's app with an empty data directory, from the assignment until it is
ready. B is a plain consumer (aiokafka's `getmany`; embedded: the log's own read), from the first fetch to the end. R6
is the median of B's seconds ÷ A's seconds over the pairs. This is the ratio of their MB/s, since both read the same
bytes.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import aiokafka
import click
from aiokafka import TopicPartition
from rich.console import Console
from rich.table import Table

from memstream.streams.faust.app import MAX_REQUEST, AppSettings, create_app
from memstream.streams.faust.table import open_rows
from memstream.streams.log.broker_url import embedded_folder, is_embedded, kafka_servers
from memstream.streams.log.markers import Marker, marker_entry
from memstream.streams.log.port import Log, TopicSpec
from memstream.streams.log.sqlite_log import SqliteLog
from tests.support.logs import log_at

ROOT = Path(__file__).resolve().parents[1]
TARGET = 0.3
WRITES_PER_KEY = 4
#: bytes; a session's row in the demo has 5 KB, an owner's 14 KB: smaller rows are the harder case
VALUE_BYTES = (1024, 2048, 4096)
GIVE_UP = 300.0
RAW: dict[str, Any] = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}


class Restore(TypedDict):
    """The result of `measure`: `ratio` is the median of `pairs`, the rates are medians; MB are 10⁶ bytes."""

    ratio: float
    target: float
    met: bool
    pairs: list[float]
    restore_mb_s: float
    plain_mb_s: float
    restore_entries_s: float
    entries: int
    mb: float
    partitions: int


@dataclass(frozen=True)
class Job:
    """The options of a measured process. `name` is the prefix of the app and the topics."""

    broker: str
    name: str
    partitions: int
    folder: str

    @property
    def source(self) -> str:
        return f"{self.name}-in"

    @property
    def changelog(self) -> str:
        return f"{self.name}-rows-changelog"


def entries(count: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values like a session's rows."""
    keys = max(1, count // WRITES_PER_KEY)
    text = json.dumps({"entries": [{"content": "Works at Stripe as an engineer", "n": n} for n in range(100)]})
    for n in range(count):
        head = json.dumps({"turns": n, "seen": uuid.uuid4().hex})
        yield f"acme/user-{n % keys}/s1".encode(), (head + text)[: VALUE_BYTES[n % len(VALUE_BYTES)]].encode()


async def fill(log: Log, job: Job, count: int) -> int:
    """Create the topics and fill the changelog. Return the bytes of keys and values."""
    compact = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000"}
    await log.create(
        [TopicSpec(job.source, job.partitions, 1, {}), TopicSpec(job.changelog, job.partitions, 1, compact)]
    )
    size = 0
    for number in range(job.partitions):
        key, value = marker_entry(Marker(identity="bench", whole_from=0, written_at=0))
        await log.append(job.changelog, key=key, value=value, partition=number)
    waiting: set[asyncio.Task[Any]] = set()
    for key, value in entries(count):
        waiting.add(asyncio.create_task(log.append(job.changelog, key=key, value=value)))
        size += len(key) + len(value)
        if len(waiting) >= 1000:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*waiting)
    return size


# ------------------------------------------------------------------------------------------------ measured processes
async def restore(job: Job) -> float:
    """Return the seconds from the assignment until the table is restored."""
    app = create_app(
        name=job.name, broker=job.broker, datadir=Path(job.folder), settings=AppSettings(partitions=job.partitions)
    )
    open_rows(app, "rows")
    marks: list[float] = []

    @app.agent(app.topic(job.source, **RAW), name=f"{job.name}-agent")  # type: ignore[untyped-decorator]
    async def nothing(stream: Any) -> None:
        async for _ in stream.noack().events():
            pass

    async def assigned(*_: Any, **__: Any) -> None:
        marks.append(time.perf_counter())

    app.on_partitions_assigned.connect(assigned, weak=False)
    ended = asyncio.Event()
    end = app.on_rebalance_end

    def on_rebalance_end() -> None:
        end()
        marks.append(time.perf_counter())
        ended.set()

    app.on_rebalance_end = on_rebalance_end
    await app.start()
    await asyncio.wait_for(ended.wait(), GIVE_UP)
    await app.stop()
    return marks[-1] - marks[0]


async def plain_kafka(job: Job) -> float:
    """Return the seconds from the first fetch of a plain consumer to the end of the topic."""
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=kafka_servers(job.broker), max_partition_fetch_bytes=MAX_REQUEST, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        partitions = [TopicPartition(job.changelog, number) for number in range(job.partitions)]
        ends = await consumer.end_offsets(partitions)
        left = {partition for partition in partitions if ends[partition] > 0}
        began = time.perf_counter()
        consumer.assign(partitions)
        while left:
            for partition, records in (await consumer.getmany(timeout_ms=1000)).items():
                if records[-1].offset + 1 >= ends[partition]:
                    left.discard(partition)
        return time.perf_counter() - began
    finally:
        await consumer.stop()


def plain_embedded(job: Job) -> float:
    """Return the seconds to read the changelog from the log on disk."""
    opened = SqliteLog(folder=embedded_folder(job.broker))
    opened.start()
    topic = opened.topic(job.changelog)
    assert topic is not None
    began = time.perf_counter()
    for part in topic.parts:
        at, end = 0, opened.end(part)
        while at < end:
            _, at = opened.read(part, at, end)
    seconds = time.perf_counter() - began
    opened.stop()
    return seconds


async def measured(kind: str, job: Job) -> float:
    """Measure in a separate process. Return its seconds."""
    command = [sys.executable, "-m", "bench.restore", "--process", kind, "--job", json.dumps(asdict(job))]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = await asyncio.wait_for(process.communicate(), GIVE_UP)
    except TimeoutError:
        process.kill()
        raise click.ClickException(f"{kind}: not done after {GIVE_UP:.0f} s") from None
    if process.returncode:
        raise click.ClickException(f"{kind} ended with {process.returncode}: {err.decode()[-2000:]}")
    return float(out.decode().splitlines()[-1])


# ------------------------------------------------------------------------------------------------ the measurement
async def measure(*, broker: str, folder: Path, pairs: int = 5, entries: int = 40_000, partitions: int = 4) -> Restore:
    """Measure R6 on `broker` (`kafka://…` or `embedded:///folder`). `folder` is for the tables and is not deleted."""
    job = Job(broker, f"bench-{uuid.uuid4().hex[:8]}", partitions, "")
    log = log_at(broker)
    await log.start()
    try:
        size = await fill(log, job, entries)
        restores: list[float] = []
        plains: list[float] = []
        for pair in range(pairs):
            for kind in ("restore", "plain") if pair % 2 == 0 else ("plain", "restore"):
                seconds = await measured(kind, Job(broker, job.name, partitions, str(folder / f"{job.name}-{pair}")))
                (restores if kind == "restore" else plains).append(seconds)
        await log.delete([job.source, job.changelog])
    finally:
        await log.close()
    ratios = [plain / restore for restore, plain in zip(restores, plains, strict=True)]
    ratio, mb = statistics.median(ratios), size / 1e6
    return {
        "ratio": ratio,
        "target": TARGET,
        "met": ratio >= TARGET,
        "pairs": ratios,
        "restore_mb_s": mb / statistics.median(restores),
        "plain_mb_s": mb / statistics.median(plains),
        "restore_entries_s": entries / statistics.median(restores),
        "entries": entries,
        "mb": mb,
        "partitions": partitions,
    }


def show(name: str, found: Restore) -> None:
    table = Table(
        title=f"R6, {name}: {found['entries']} entries, {found['mb']:.0f} MB, {found['partitions']} partitions"
    )
    for column in ("restore MB/s", "plain MB/s", "entries/s", "ratio", "pairs", "target"):
        table.add_column(column)
    pairs = " ".join(f"{each:.2f}" for each in found["pairs"])
    table.add_row(
        f"{found['restore_mb_s']:.1f}",
        f"{found['plain_mb_s']:.1f}",
        f"{found['restore_entries_s']:.0f}",
        f"{found['ratio']:.2f}",
        pairs,
        f"≥ {TARGET}",
    )
    Console(width=110).print(table)


@click.command()
@click.option("--broker", default="embedded", show_default=True, help="kafka://host:port, or embedded.")
@click.option("--entries", default=40_000, show_default=True)
@click.option("--pairs", default=5, show_default=True)
@click.option("--partitions", default=4, show_default=True)
@click.option("--json", "as_json", is_flag=True)
@click.option("--process", hidden=True)
@click.option("--job", "job_json", hidden=True)
def main(
    broker: str, entries: int, pairs: int, partitions: int, as_json: bool, process: str | None, job_json: str | None
) -> None:
    """Restore a table, read its changelog plainly, and compare the times."""
    if process is not None and job_json is not None:
        job = Job(**json.loads(job_json))
        if process == "restore":
            Path(job.folder).mkdir(parents=True, exist_ok=True)
            click.echo(asyncio.run(restore(job)))
        else:
            click.echo(plain_embedded(job) if is_embedded(job.broker) else asyncio.run(plain_kafka(job)))
        return
    with tempfile.TemporaryDirectory(prefix="memstream-bench-") as folder:
        where = f"embedded://{folder}/log" if broker == "embedded" else broker
        found = asyncio.run(
            measure(broker=where, folder=Path(folder), pairs=pairs, entries=entries, partitions=partitions)
        )
    if as_json:
        click.echo(json.dumps(found))
    else:
        show("embedded" if broker == "embedded" else "Kafka", found)


if __name__ == "__main__":
    main()
