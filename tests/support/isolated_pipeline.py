"""Isolation of a pipeline on a shared broker from what earlier tests left there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from memstream.schemas.topics import STAGES, StageName, changelog_of, group_of, read_by
from memstream.streams.log.markers import OWN_KEYS, Marker, marker_entry
from memstream.streams.log.port import Log
from tests.support.polling import wait_for
from tests.support.verification import ends_of

GONE_WITHIN = 40.0
"""Seconds until killed workers have left their group."""
EMPTY_WITHIN = 15.0
"""Seconds until the broker accepts a commit for a group without members."""


async def isolate(log: Log, servers: Sequence[str]) -> None:
    """Move every group to the end of its topics and empty its table.

    A row of an earlier test may wait for its model, and a worker reminds itself of it. After this call, workers, models
    and crash points meet only events of this pipeline.
    """
    for stage in STAGES:
        await _gone(log, stage)
    ends = await ends_of(log)
    if not any(end for of_topic in ends.values() for end in of_topic.values()):
        return  # nobody was here before
    for stage in STAGES:
        wanted = {
            TopicPartition(topic.name, partition): end
            for topic in read_by(stage)
            for partition, end in ends[topic.name].items()
        }
        consumer = AIOKafkaConsumer(
            bootstrap_servers=list(servers),
            group_id=group_of(stage),
            enable_auto_commit=False,
            request_timeout_ms=5_000,
        )
        await consumer.start()
        try:
            consumer.assign(list(wanted))
            await _commit(consumer, wanted)
        finally:
            await consumer.stop()
        await _empty_table(log, stage)
        await _begin_changelog(log, stage)


async def _gone(log: Log, stage: StageName) -> None:
    """Wait until killed workers of earlier tests have left the group; nobody else may commit for it before."""
    group = group_of(stage)
    what = f"an empty group {group}"
    await wait_for(lambda: log.members(group), what, until=lambda members: not members, deadline=GONE_WITHIN, pause=0.2)


async def _begin_changelog(log: Log, stage: StageName) -> None:
    """Write a marker into each partition that has none.

    Without it a worker would take the offsets committed before it ever ran for a sign that its changelog was lost.
    """
    changelog = changelog_of(stage)
    if changelog is None:
        return
    for partition, end in enumerate(await log.ends(changelog.name)):
        if end == 0:
            key, value = marker_entry(Marker(identity=uuid.uuid4().hex, whole_from=0, written_at=0))
            await log.append(changelog.name, key=key, value=value, partition=partition)


async def _empty_table(log: Log, stage: StageName) -> None:
    """Write a tombstone for every row of the stage's changelog."""
    changelog = changelog_of(stage)
    if changelog is None:
        return
    there: dict[tuple[int, bytes], bool] = {}
    async for record in log.read(changelog.name):
        if record.key is not None and not record.key.startswith(OWN_KEYS.encode()):
            there[record.position.partition, record.key] = record.value is not None
    rows = [row for row, has_value in there.items() if has_value]
    await asyncio.gather(
        *(log.append(changelog.name, key=key, value=None, partition=partition) for partition, key in rows)
    )


async def _commit(consumer: AIOKafkaConsumer, offsets: dict[TopicPartition, int]) -> None:
    """Commit as a consumer outside the group; the broker accepts that once the group is empty."""

    async def refused() -> KafkaError | None:
        try:
            await consumer.commit(offsets)
        except KafkaError as error:
            return error
        return None

    await wait_for(refused, "the commit", until=lambda error: error is None, deadline=EMPTY_WITHIN, pause=0.1)
