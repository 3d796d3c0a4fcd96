"""Where a key lies: murmur2 modulo the partition count, the default of Java, aiokafka, kafka-python and KafkaJS."""

from __future__ import annotations

from aiokafka.partitioner import murmur2


def partition_for(key: bytes, n: int) -> int:
    """The partition of `key` in a topic of `n` partitions.

    Raises:
        ValueError: `n` is not positive.
    """
    if n < 1:
        raise ValueError(f"a topic has at least one partition, not {n}")
    return int(murmur2(key) & 0x7FFFFFFF) % n
