"""Interference with a counting worker's changelog or local table, on Kafka or on a folder."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from rocksdict import AccessType, Options, Rdict

from memstream.schemas.topics import OBSERVATIONS
from memstream.streams.log.broker_url import embedded_folder, is_embedded
from memstream.streams.log.markers import OWN_KEYS, Marker, marker_entry
from memstream.streams.log.port import Record
from memstream.streams.log.sqlite_tables import FILE
from tests.support.counting_run import CHANGELOG, CountingRun
from tests.support.logs import log_at

PARTITIONS = 2


@asynccontextmanager
async def counting(broker: str, folder: Path) -> AsyncIterator[CountingRun]:
    """Yield a run with its topics and end every worker afterwards. `broker` is an address as the worker gets it."""
    log = log_at(broker, timeout=30)
    await log.start()
    run = CountingRun(log=log, broker=broker, folder=folder, partitions=PARTITIONS)
    try:
        await run.prepare()
        yield run
    finally:
        run.close()
        await log.close()


# ------------------------------------------------------------------------------------------------ local tables
def tables_of(run: CountingRun, worker: str = "w") -> Path:
    return run.folder / worker / "tables"


def delete_tables(run: CountingRun, worker: str = "w") -> None:
    shutil.rmtree(tables_of(run, worker))


def local_rows(run: CountingRun, worker: str = "w") -> dict[bytes, bytes]:
    """Return all local rows of a worker that has ended."""
    rows: dict[bytes, bytes] = {}
    for path in sorted(tables_of(run, worker).rglob("*.db")):
        database = Rdict(str(path), options=Options(raw_mode=True), access_type=AccessType.read_only())
        rows |= {bytes(key): bytes(value) for key, value in database.items()}
        database.close()
    return {key: value for key, value in rows.items() if not key.startswith((b"__faust", OWN_KEYS.encode()))}


def restored(run: CountingRun, worker: str = "w") -> list[dict[str, str]]:
    """Return the fields of each `table_restored` line that a worker has logged so far."""
    return [
        dict(field.split("=", 1) for field in line.split("table_restored")[1].split())
        for line in run.output(worker).splitlines()
        if "table_restored" in line
    ]


# ------------------------------------------------------------------------------------------------ changelogs
async def kept(run: CountingRun) -> list[Record]:
    return await run.records(CHANGELOG)


async def append(run: CountingRun, entries: Mapping[bytes, bytes | None], partition: int) -> None:
    for key, value in entries.items():
        await run.log.append(CHANGELOG, key=key, value=value, partition=partition)


async def mark(run: CountingRun, identity: str) -> None:
    """Write the markers of an empty changelog."""
    for partition in range(PARTITIONS):
        await append(run, dict([marker_entry(Marker(identity=identity, whole_from=0, written_at=0))]), partition)


async def make_big(run: CountingRun, *, rows: int, size: int = 4096) -> dict[bytes, bytes]:
    """Add this number of rows to the changelog, evenly over the partitions, under keys that the stage never
    reads.
    """
    await mark(run, "big")
    made = {b"big#%d" % n: (b"%d " % n) * (size // len(b"%d " % n)) for n in range(rows)}
    places = list(enumerate(made.items()))
    for at in range(0, rows, 500):
        await asyncio.gather(
            *(
                run.log.append(CHANGELOG, key=key, value=value, partition=n % PARTITIONS)
                for n, (key, value) in places[at : at + 500]
            )
        )
    return made


async def make_anew(run: CountingRun) -> None:
    """Delete the changelog's topic and create it again."""
    await run.log.delete([CHANGELOG])

    async def gone() -> bool:
        return await run.log.partitions(CHANGELOG) is None

    await run.wait_for(gone, "the topic is gone")
    await run.prepare()

    async def there() -> bool:
        return await run.log.partitions(CHANGELOG) == PARTITIONS

    await run.wait_for(there, "the topic is there")


async def delete_records(run: CountingRun) -> None:
    """Delete all records of the changelog, as retention or an operator would."""
    ends = await run.log.ends(CHANGELOG)
    if is_embedded(run.broker):
        with sqlite3.connect(embedded_folder(run.broker) / FILE) as file:
            parts = file.execute(
                "SELECT part.id, next FROM part JOIN topic ON topic.id = part.topic WHERE name = ?", (CHANGELOG,)
            ).fetchall()
            for part, end in parts:
                file.execute("DELETE FROM record WHERE at >> 40 = ?", (part,))
                file.execute("UPDATE part SET first = ? WHERE id = ?", (end, part))
        return
    admin = AIOKafkaAdminClient(bootstrap_servers=run.broker.removeprefix("kafka://"))
    await admin.start()
    try:
        policy = {"cleanup.policy": "compact,delete", "max.message.bytes": str(4 << 20)}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, CHANGELOG, policy)])
        await admin.delete_records(
            {TopicPartition(CHANGELOG, n): RecordsToDelete(before_offset=end) for n, end in enumerate(ends)}
        )
    finally:
        await admin.close()


async def counted_once(run: CountingRun) -> None:
    """Check that each record came out once and in order, and that duplicates are equal in every byte. Counts are
    not checked.
    """
    forms: dict[str, set[bytes]] = defaultdict(set)
    order: dict[str, list[str]] = defaultdict(list)
    for record in await run.records(OBSERVATIONS.name):
        fields = json.loads(record.value or b"")
        name = f"{fields['key']}/{fields['id']}"
        if name not in forms:
            order[fields["key"]].append(fields["id"])
        forms[name].add(record.value or b"")
    assert order == run.sent
    assert {name for name, each in forms.items() if len(each) > 1} == set()
