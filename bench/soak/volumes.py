"""The sizes of topic records, table rows and Qdrant points (docs/explanation/size-and-cost.md)."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from bench.soak.traffic import TENANTS
from bench.soak.world import World
from memstream.schemas.collections import COLLECTIONS
from memstream.schemas.topics import STAGES, TABLES, TOPICS, changelog_name
from memstream.streams.log.port import Log, Record
from tests.support.verification import store_of


@dataclass(frozen=True, slots=True)
class Size:
    """Sizes of `count` items: `mean` and `most` in bytes, including key, value and headers."""

    name: str
    count: int
    mean: float
    most: int


async def volumes(world: World) -> list[Size]:
    """Measure the records of topics and changelogs, the live rows of each table, and the payloads of points."""
    log = world.log()
    await log.start()
    try:
        sizes = [_size(topic.name, [_bytes(each) async for each in log.read(topic.name)]) for topic in TOPICS]
        for stage in STAGES:
            for table in [TABLES[stage]] if stage in TABLES else []:
                sizes += await _table(log, changelog_name(stage, table))
    finally:
        await log.close()
    return sizes + await _points(world)


async def _table(log: Log, name: str) -> list[Size]:
    if await log.partitions(name) is None:
        return []
    records: list[int] = []
    rows: dict[tuple[int, bytes | None], int] = {}
    async for record in log.read(name):
        records.append(_bytes(record))
        rows[record.position.partition, record.key] = _bytes(record) if record.value is not None else 0
    by_kind: dict[str, list[int]] = defaultdict(list)
    for (_, key), size in rows.items():
        if size:
            by_kind[f"rows of {name}, keys of {(key or b'').count(b'/') + 1} parts"].append(size)
    return [_size(name, records), *(_size(kind, by_kind[kind]) for kind in sorted(by_kind))]


async def _points(world: World) -> list[Size]:
    async with store_of(world.environment()) as store:
        payloads: dict[str, list[int]] = defaultdict(list)
        for collection in COLLECTIONS:
            if not await store.exists(collection.name):  # a collection is created when it is first needed
                continue
            for tenant in TENANTS:
                found = await store.select(collection.name, tenant_id=tenant)
                payloads[f"points of {collection.name}"] += [len(json.dumps(each.payload)) for each in found]
    return [_size(name, each) for name, each in payloads.items()]


def _bytes(record: Record) -> int:
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value) for name, value in record.headers)
    )


def _size(name: str, each: Iterable[int]) -> Size:
    every = list(each)
    return Size(name, len(every), statistics.fmean(every) if every else 0.0, max(every, default=0))
