"""A group whose committed offset lies beyond the end of its log (a topic made anew, a cluster restored from an older
copy): the worker stops with advice instead of beginning again at the start, or waiting for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from memstream.schemas.topics import TURNS, group_of
from tests.support.kafka import Broker
from tests.support.pipeline import Pipeline, running, wait_for
from tests.support.polling import has_ended

pytestmark = pytest.mark.kafka


@pytest.mark.long
async def test_the_worker_stops_and_says_what_to_do(tmp_path: Path, own_kafka: Broker) -> None:
    pipeline = Pipeline(folder=tmp_path, broker=f"kafka://{own_kafka.bootstrap}", env={"MEMSTREAM_PARTITIONS": "2"})
    async with running(pipeline):
        consumer = AIOKafkaConsumer(
            bootstrap_servers=own_kafka.bootstrap, group_id=group_of("recorder"), enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([TopicPartition(TURNS.name, 0)])
        await consumer.commit({TopicPartition(TURNS.name, 0): 500})
        await consumer.stop()
        worker = pipeline.spawn("recorder")
        await wait_for(worker.poll, "the worker to stop", until=has_ended, deadline=60)
        assert worker.returncode == 4
        assert "reset the group's offsets" in pipeline.logs()
        assert (await pipeline.log.committed(group_of("recorder"), TURNS.name))[0] == 500, "nothing was committed"
