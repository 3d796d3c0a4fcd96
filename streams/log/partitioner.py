"""The partition of a key: murmur2 modulo the partition count, the default of Java, aiokafka, kafka-python and KafkaJS.

murmur2 is implemented here because the light client has no Kafka library; a test compares it with aiokafka's.
Source: `org.apache.kafka.common.utils.Utils.murmur2`.
"""

from __future__ import annotations

from functools import lru_cache

KEYS_KEPT = 8_192
"""Size of the cache of partitions by key: handling one event looks its key up several times."""
SEED, FACTOR, SHIFT = 0x9747B28C, 0x5BD1E995, 24
MASK = 0xFFFFFFFF


@lru_cache(maxsize=KEYS_KEPT)
def partition_for(key: bytes, n: int) -> int:
    """Return the partition of `key` in a topic of `n` partitions.

    Raises:
        ValueError: `n` is not positive.
    """
    if n < 1:
        raise ValueError(f"a topic has at least one partition, not {n}")
    return (murmur2(key) & 0x7FFFFFFF) % n


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit MurmurHash2 of `data` with Kafka's seed."""
    hashed = SEED ^ len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * FACTOR & MASK
        word = (word ^ word >> SHIFT) * FACTOR & MASK
        hashed = (hashed * FACTOR & MASK) ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * FACTOR & MASK
    hashed = (hashed ^ hashed >> 13) * FACTOR & MASK
    return hashed ^ hashed >> 15
