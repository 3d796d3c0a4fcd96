"""The partitioner compared with that of the Kafka library."""

from __future__ import annotations

import aiokafka.partitioner
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.streams.log.partitioner import murmur2, partition_for


@given(st.binary(max_size=64))
def test_murmur2_is_that_of_the_kafka_library(key: bytes) -> None:
    assert murmur2(key) == aiokafka.partitioner.murmur2(key)


@given(st.binary(max_size=64), st.integers(1, 64))
def test_a_key_gets_the_partition_that_the_kafka_library_chooses(key: bytes, n: int) -> None:
    assert partition_for(key, n) == aiokafka.partitioner.DefaultPartitioner()(key, list(range(n)), [])


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(b"key", 0)
