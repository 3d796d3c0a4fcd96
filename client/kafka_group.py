"""The changes of facts for a consumer group of Kafka: members share the partitions, what was handled is committed.

The guarantee of updates.py holds for a group as long as its members end in order or are rebalanced: a rebalance waits
for the handler. A member that is killed between the end of its handler and the commit leaves that one update to come
again, as with every group: a handler writes by (fact_id, version), or keeps the position itself with what it writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from ..schemas.topics import FACTS_UPDATED
from ..schemas.turns import Owner
from ..streams.log.kafka_client import ISOLATION, back_off_metadata, stop_consumer
from ..streams.log.lenient_headers import read_odd_headers
from ..streams.log.port import Log
from .errors import ClientError, Misconfigured, PositionLost, Unavailable, translated
from .updates import BEGINNING, LOOK_BACK, NOW, Handler, Seen, Update, UpdateFilter

FETCH_WAIT = 200
"""Milliseconds that one fetch waits for records."""
COMMIT_PAUSE = 0.2
"""Seconds between two tries to commit while the broker is away."""
logger = structlog.get_logger(__name__)


class KafkaGroup(ConsumerRebalanceListener):  # type: ignore[misc]
    """One member of the group `group`. A group without a commit begins at `after`, BEGINNING or NOW."""

    def __init__(
        self,
        *,
        log: Log,
        servers: Sequence[str],
        group: str,
        after: str = BEGINNING,
        timeout: float,
        look_back: int = LOOK_BACK,
    ) -> None:
        if after not in (BEGINNING, NOW):
            raise Misconfigured(f"a group begins at {BEGINNING!r} or {NOW!r}, and goes on where it has committed")
        self._log, self._servers, self._group, self._after = log, list(servers), group, after
        self._timeout, self._look_back = timeout, look_back
        self._handling = asyncio.Lock()
        """Held from the beginning of a handler to the end of its commit."""
        self._assignment = 0
        """Counts rebalances."""
        self._begin: dict[TopicPartition, int] = {}
        """What lies before was told to the group already, and is read, from `_known_from`, to know it. `_passed`: up to
        where records were handled, or were of others; it is committed when they were."""
        self._known_from: dict[TopicPartition, int] = {}
        self._passed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._seen = Seen()
        self._failed: ClientError | None = None
        """Of the rebalance: aiokafka would only log it."""

    async def run(self, handler: Handler, *, tenant_id: str | None = None, owner: Owner | None = None) -> None:
        """See `Group.run`."""
        read_odd_headers()
        wanted = UpdateFilter(tenant_id, owner)
        self._consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            client_id="memstream-client",
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            request_timeout_ms=int(self._timeout * 1000),
        )
        back_off_metadata(self._consumer._client)
        self._consumer.subscribe([FACTS_UPDATED.name], listener=self)
        try:
            with self._reached("join the group"):
                async with asyncio.timeout(self._timeout):
                    await self._consumer.start()
            while self._failed is None:
                await self._take(wanted, handler)
            raise self._failed
        finally:
            await stop_consumer(self._consumer)

    async def _take(self, wanted: UpdateFilter, handler: Handler) -> None:
        """One fetch. What a rebalance overtook is not handled: it comes again, here or elsewhere."""
        assignment = self._assignment
        with self._reached("fetch"):
            batches = await self._consumer.getmany(timeout_ms=FETCH_WAIT)
        for tp, batch in batches.items():
            for raw in batch:
                async with self._handling:
                    if assignment != self._assignment or tp not in self._begin:
                        self._begin_again(batches)
                        return
                    await self._one(tp, raw, wanted, handler)
                    self._passed[tp] = max(self._begin[tp], raw.offset + 1)
        async with self._handling:
            if assignment == self._assignment:
                for tp, offset in list(self._passed.items()):
                    if offset > self._committed.get(tp, -1):
                        await self._commit(tp, offset)

    def _begin_again(self, partitions: Collection[TopicPartition]) -> None:
        """With those that are (still, or again) this member's. What was handled since is known."""
        for tp in partitions:
            if tp in self._begin:
                self._consumer.seek(tp, self._known_from[tp])

    async def _one(self, tp: TopicPartition, raw: Any, wanted: UpdateFilter, handler: Handler) -> None:
        event = wanted.event(raw.value, where=f"{tp.partition}:{raw.offset}")
        is_new = event is not None and self._seen.is_new(event.fact)
        if event is not None and is_new and raw.offset >= self._begin[tp]:
            await handler(Update(event.fact, event, None))
            await self._commit(tp, raw.offset + 1)

    async def _commit(self, tp: TopicPartition, offset: int) -> None:
        while True:
            try:
                await self._consumer.commit({tp: offset})
                self._committed[tp] = offset
                return
            except (CommitFailedError, IllegalStateError):
                logger.warning("update_goes_to_another_member", partition=tp.partition, offset=offset)
                return
            except KafkaError as error:
                logger.warning("commit_failed", error=repr(error))
                await asyncio.sleep(COMMIT_PAUSE)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """The handler that runs ends, and its commit, before others get the partitions."""
        async with self._handling:
            self._assignment += 1
            for places in (self._begin, self._passed, self._committed):
                places.clear()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        try:
            with translated():
                begin = await self._places(assigned)
        except ClientError as error:
            self._failed = error
            return
        self._assignment += 1
        self._seen = Seen()
        for tp, (first, offset) in begin.items():
            self._begin[tp] = self._passed[tp] = offset  # committed at once: a group that began now goes on from here
            self._known_from[tp] = max(first, offset - self._look_back)
        self._begin_again(assigned)

    async def _places(self, assigned: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """The first offset that is held, and the one where the group goes on. Asked through the log: the consumer would
        wait for the rebalance that waits for this. Raises PositionLost."""
        topic = FACTS_UPDATED.name
        firsts, ends = await self._log.starts(topic), await self._log.ends(topic)
        committed = await self._log.committed(self._group, topic)
        found: dict[TopicPartition, tuple[int, int]] = {}
        for tp in assigned:
            first, end, offset = firsts[tp.partition], ends[tp.partition], committed[tp.partition]
            if offset is None:
                offset = first if self._after == BEGINNING else end
            if not first <= offset <= end:
                held = f"{topic}:{tp.partition} holds {first} to {end}"
                raise PositionLost(f"{held}, the group {self._group} is at {offset}: fold the state, then reset it")
            found[tp] = first, offset
        return found

    @contextmanager
    def _reached(self, what: str) -> Iterator[None]:
        try:
            yield
        except (KafkaError, OSError, TimeoutError) as error:
            servers = ",".join(self._servers)
            raise Unavailable(f"{what}: {type(error).__name__} {error} (kafka://{servers})") from error
