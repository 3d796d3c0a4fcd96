"""The baseline of overhead and CPU: aiokafka alone, consume → produce → commit, in a separate process.

    python -m bench.baseline JSON

The guarantee is at least once: an offset is committed after the broker has the output record.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import asdict, dataclass

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from .world import Worker, World

COMMIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    name: str
    servers: str
    source: str
    sink: str


def start(world: World, options: Options) -> Worker:
    return world.process(["bench.baseline", json.dumps(asdict(options))], options.name)


async def run(options: Options) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = AIOKafkaConsumer(
        options.source,
        bootstrap_servers=options.servers,
        group_id=options.name,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = AIOKafkaProducer(bootstrap_servers=options.servers, acks="all", enable_idempotence=True)
    await consumer.start()
    await producer.start()
    done: dict[TopicPartition, int] = {}
    committed = loop.time()
    try:
        while not stopping.is_set():
            batches = await consumer.getmany(timeout_ms=100)
            sent = [
                await producer.send(options.sink, record.value, key=record.key)
                for records in batches.values()
                for record in records
            ]
            if sent:
                await asyncio.gather(*sent)
            done |= {tp: records[-1].offset + 1 for tp, records in batches.items()}
            if done and loop.time() - committed > COMMIT_SECONDS:
                await consumer.commit(done)
                done, committed = {}, loop.time()
        if done:
            await consumer.commit(done)
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    asyncio.run(run(Options(**json.loads(sys.argv[1]))))
