"""The floor of R3′: a plain aiokafka loop that makes only the calls that a stage must make.

    python -m bench.floor < OPTIONS

For each record it sends the model's request, one read and one write of the store, then the records of the outcome
(including the changelog's), with the bytes that the stage sent for one turn. It keeps no state and makes no decision.
OPTIONS are JSON; it prints the milliseconds of processor time per record.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import aiohttp
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from pydantic import TypeAdapter

COMMIT_SECONDS = 0.5
WARM_UP = 100
"""Number of records before the processor time counts."""


class Request(NamedTuple):
    """A request as the stage sent it."""

    method: str
    url: str
    body: str

    @property
    def headers(self) -> dict[str, str]:
        return {"content-type": "application/json", "authorization": "Bearer scripted", "accept-encoding": "identity"}


class Sent(NamedTuple):
    """A record with its bytes as code points (latin-1)."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    name: str
    """Name of its consumer group."""
    servers: str
    source: str
    sink: str
    start: Sequence[int]
    """Offset of each partition of the source."""
    records: int
    in_flight: int
    requests: Sequence[Request]
    sent: Sequence[Sent]


OPTIONS: Final = TypeAdapter(Options)
"""Adapter of `Options` from and to JSON."""


async def run(options: Options) -> float:
    """Run the loop. Return the processor time per record in ms."""
    producer = AIOKafkaProducer(
        bootstrap_servers=options.servers, acks="all", enable_idempotence=True, linger_ms=5, max_batch_size=262_144
    )
    consumer = AIOKafkaConsumer(bootstrap_servers=options.servers, group_id=options.name, enable_auto_commit=False)
    partitions = [TopicPartition(options.source, number) for number in range(len(options.start))]
    requests = [(each.method, each.url, each.body.encode(), each.headers) for each in options.requests]
    sent = [(each.key.encode("latin-1"), each.value.encode("latin-1")) for each in options.sent]

    async def handle() -> None:
        for method, url, body, headers in requests:
            async with http.request(method, url, data=body, headers=headers) as answer:
                said = await answer.read()
                assert answer.status == 200, said
        delivered = [await producer.send(options.sink, value, key=key) for key, value in sent]
        await asyncio.gather(*delivered)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await producer.start()
        await consumer.start()
        try:
            consumer.assign(partitions)
            for partition, offset in zip(partitions, options.start, strict=True):
                consumer.seek(partition, offset)
            began, seen, committed = 0.0, 0, time.monotonic()
            while seen < options.records:
                batches = await consumer.getmany(timeout_ms=100, max_records=options.in_flight)
                async with asyncio.TaskGroup() as group:
                    for records in batches.values():
                        for _ in records:
                            if seen == WARM_UP:
                                began = time.process_time()
                            seen += 1
                            group.create_task(handle())
                if time.monotonic() - committed > COMMIT_SECONDS:
                    await consumer.commit()
                    committed = time.monotonic()
            await consumer.commit()
            return (time.process_time() - began) / (seen - WARM_UP) * 1e3
        finally:
            await consumer.stop()
            await producer.stop()


if __name__ == "__main__":
    print(asyncio.run(run(OPTIONS.validate_json(sys.stdin.read()))))
