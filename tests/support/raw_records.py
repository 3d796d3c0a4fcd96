"""Records that aiokafka's producer would refuse to write and Kafka's broker takes."""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from memstream.streams.log.port import Position

GZIP = 1
"""The code of each compression in a batch."""
NONE = 0
BATCH_MAX = 1 << 20
Header = tuple[bytes, bytes | None]
Odd = tuple[bytes | None, bytes | None, Sequence[Header]]
"""Key, value, and headers whose names are bytes."""


class _Name(str):
    """A header name that is written as these bytes."""

    def __new__(cls, raw: bytes) -> _Name:
        name = super().__new__(cls, raw.decode("latin-1"))
        name.raw = raw
        return name

    raw: bytes

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return self.raw


def _builder(records: Sequence[Odd], compression: int) -> _DefaultRecordBatchBuilderPy:
    builder = _DefaultRecordBatchBuilderPy(2, compression, 0, -1, -1, 0, BATCH_MAX)
    for offset, (key, value, headers) in enumerate(records):
        assert builder.append(offset, None, key, value, [(_Name(name), content) for name, content in headers])
    return builder


def batch_of(records: Sequence[Odd], *, compression: int = NONE) -> bytes:
    """Return one batch as it is stored on a broker's disk."""
    return bytes(_builder(records, compression).build())


async def send_odd(
    server: str, topic: str, partition: int, records: Sequence[Odd], *, compression: int = NONE
) -> list[Position]:
    """Write these records as one batch; return their positions."""
    producer = AIOKafkaProducer(
        bootstrap_servers=server, max_batch_size=BATCH_MAX, compression_type="gzip" if compression else None
    )
    await producer.start()
    try:
        batch = producer.create_batch()
        for key, value, _ in records:
            batch.append(timestamp=None, key=key, value=value)
        batch._builder = _builder(records, compression)
        first = await (await producer.send_batch(batch, topic, partition=partition))
    finally:
        await producer.stop()
    return [Position(topic, partition, first.offset + n) for n in range(len(records))]
