"""Reading changelogs on Kafka for a restore: a consumer of its own, beside the one that is in the group.

The group's consumer cannot read one partition fast: its fetcher has one request to a broker under way, and as soon as
the wanted partition's records are in hand it asks for those of all others, of which an idle one makes the broker wait
(`fetch_max_wait_ms`, 1.5 s in Faust) before the next request may go out. A restore took 25 MB/s so, and 0.12 of a plain
read.

Here a partition is paused but while it is read: a fetch behind what was wanted finds nothing there, the broker holds it
for `fetch_max_wait_ms`, and the fetch of the next partition waits behind it on the same connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError
from faust.types import TP

from ....schemas.errors import Transient
from ...log.kafka_client import ISOLATION, back_off_metadata, stop_consumer

log = structlog.get_logger(__name__)

FETCH_BYTES: Final = 4 * 1024 * 1024
"""Of one partition in one answer; a larger record comes alone all the same."""
FETCH_WAIT_MS: Final = 200
PAUSE: Final = 0.2
"""Seconds between two tries to reach a broker."""


class ChangelogReader:
    """`restore.Changelog`, from the first `read` to the end of the `with` block. It reads one partition at a time."""

    def __init__(self, *, servers: Sequence[str], client_id: str) -> None:
        self._servers = list(servers)
        self._client_id = client_id
        self._consumer: AIOKafkaConsumer | None = None
        self._at: tuple[TP, int] | None = None

    async def __aenter__(self) -> ChangelogReader:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._consumer is not None:
            await stop_consumer(self._consumer)

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[Sequence[Any], int]:
        """Records from `offset` on, and the offset to read on from. None after `timeout` seconds, also while the broker
        is away. Raises Transient for what a broker refuses."""
        partition = TopicPartition(tp.topic, tp.partition)
        try:
            consumer = await self._open()
            if self._at is None or self._at[0] != tp:
                consumer.assign([partition])
            if self._at != (tp, offset):
                consumer.seek(partition, offset)
            consumer.resume(partition)
            found = await consumer.getmany(timeout_ms=int(timeout * 1000))
            after = await consumer.position(partition)
            consumer.pause(partition)
        except KafkaConnectionError as away:
            log.warning("changelog_not_read", topic=tp.topic, partition=tp.partition, why=str(away))
            await asyncio.sleep(PAUSE)
            return [], offset
        except KafkaError as error:
            raise Transient("broker", f"{tp.topic}[{tp.partition}] cannot be read: {error!r}") from error
        self._at = (tp, after)
        return found.get(partition, []), after

    async def starts(self, tps: Iterable[TP]) -> dict[TP, int]:
        """The first offset that is kept of each. Waits for a broker that is away; raises Transient."""
        return await self._offsets(await self._reached(), AIOKafkaConsumer.beginning_offsets, tps)

    async def ends(self, tps: Iterable[TP]) -> dict[TP, int]:
        """The offset of each one's next record. Waits for a broker that is away; raises Transient."""
        return await self._offsets(await self._reached(), AIOKafkaConsumer.end_offsets, tps)

    async def _offsets(self, consumer: AIOKafkaConsumer, ask: Callable[..., Any], tps: Iterable[TP]) -> dict[TP, int]:
        wanted = [TopicPartition(tp.topic, tp.partition) for tp in tps]
        try:
            for topic in {each.topic for each in wanted}:
                await consumer._client.add_topic(topic)  # else the question fails, and is asked again 0.1 s later
            found = await ask(consumer, wanted)
        except KafkaError as error:
            raise Transient("broker", f"it does not say where changelogs begin and end: {error!r}") from error
        return {TP(each.topic, each.partition): offset for each, offset in found.items()}

    async def _reached(self) -> AIOKafkaConsumer:
        while True:
            try:
                return await self._open()
            except KafkaConnectionError as away:
                log.warning("broker_not_reached", why=str(away))
                await asyncio.sleep(PAUSE)

    async def _open(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._servers,
                client_id=self._client_id,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level=ISOLATION,
                fetch_max_wait_ms=FETCH_WAIT_MS,
                max_partition_fetch_bytes=FETCH_BYTES,
            )
            back_off_metadata(consumer._client)
            try:
                await consumer.start()
            except BaseException:
                await stop_consumer(consumer)
                raise
            self._consumer = consumer
        return self._consumer
