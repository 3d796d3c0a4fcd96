"""Changes of facts for a Kafka consumer group: members share the partitions and commit handled updates.

The guarantee of updates.py holds for a group when members stop cleanly or are rebalanced: a rebalance waits for the
handler. If a member is killed between its handler and the commit, the update is delivered again, as in every Kafka
group. So a handler must write idempotently by (fact_id, version), or store the position together with its data.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from ..schemas.topics import FACTS_UPDATED
from ..schemas.turns import Owner
from ..streams.log.kafka_access import KafkaAccess, missing_right
from ..streams.log.kafka_client import ISOLATION, stop_consumer
from ..streams.log.kafka_security import PLAINTEXT, KafkaSecurity
from ..streams.log.lenient_headers import decode_headers_leniently
from ..streams.log.port import Log
from .errors import ClientError, Misconfigured, PositionLost, Unavailable, translate_errors
from .updates import BEGINNING, LOOK_BACK, NOW, Handler, Seen, Update, UpdateFilter

FETCH_WAIT = 200
"""Milliseconds that one fetch waits for records."""
COMMIT_PAUSE = 0.2
"""Seconds between two attempts to commit while the broker is unavailable."""
logger = logging.getLogger(__name__)


class KafkaGroup(ConsumerRebalanceListener):  # type: ignore[misc]
    """Member of the consumer group `group`. A group without commits begins at `after`: BEGINNING or NOW."""

    def __init__(
        self,
        *,
        log: Log,
        servers: Sequence[str],
        security: KafkaSecurity = PLAINTEXT,
        group: str,
        after: str = BEGINNING,
        timeout: float,
        look_back: int = LOOK_BACK,
    ) -> None:
        if after not in (BEGINNING, NOW):
            raise Misconfigured(f"a group begins at {BEGINNING!r} or {NOW!r} and continues after its last commit")
        self._log, self._group, self._after = log, group, after
        self._access = KafkaAccess(servers, security)
        self._timeout, self._look_back = timeout, look_back
        self._handling = asyncio.Lock()
        """Locked while a handler runs and its update is committed."""
        self._assignment = 0
        """Number of rebalances."""
        self._begin: dict[TopicPartition, int] = {}
        """The first unhandled offset of each partition. Records between `_known_from` and this offset are read only to
        learn which versions were handled. `_passed` is the offset to commit: the offset after the last record that was
        handled or filtered out."""
        self._known_from: dict[TopicPartition, int] = {}
        self._passed: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._seen = Seen()
        self._failed: ClientError | None = None
        """Error of a rebalance. `run` raises it, because aiokafka would only log it."""

    async def run(self, handler: Handler, *, tenant_id: str | None = None, owner: Owner | None = None) -> None:
        """Join the group and handle changes; see `Group.run`."""
        decode_headers_leniently()
        selection = UpdateFilter(tenant_id, owner)
        self._consumer: Any = AIOKafkaConsumer(
            bootstrap_servers=self._access.servers,
            client_id="memstream-client",
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=ISOLATION,
            request_timeout_ms=int(self._timeout * 1000),
        )
        self._access.prepare(self._consumer._client)
        self._consumer.subscribe([FACTS_UPDATED.name], listener=self)
        try:
            with self._broker_call("join the group"):
                async with asyncio.timeout(self._timeout):
                    await self._consumer.start()
            while self._failed is None:
                await self._take(selection, handler)
            raise self._failed
        finally:
            await stop_consumer(self._consumer)

    async def _take(self, selection: UpdateFilter, handler: Handler) -> None:
        """Handle the records of one fetch. After a rebalance, skip the rest of the records, because the new owners of
        the partitions read them."""
        assignment = self._assignment
        with self._broker_call("fetch"):
            batches = await self._consumer.getmany(timeout_ms=FETCH_WAIT)
        for tp, batch in batches.items():
            for raw in batch:
                async with self._handling:
                    if assignment != self._assignment or tp not in self._begin:
                        self._begin_again(batches)
                        return
                    await self._handle(tp, raw, selection, handler)
                    self._passed[tp] = max(self._begin[tp], raw.offset + 1)
        async with self._handling:
            if assignment == self._assignment:
                for tp, offset in list(self._passed.items()):
                    if offset > self._committed.get(tp, -1):
                        await self._commit(tp, offset)

    def _begin_again(self, partitions: Collection[TopicPartition]) -> None:
        """Move the partitions that this member still owns back to `_known_from`, to read them again. `_seen` skips
        handled versions."""
        for tp in partitions:
            if tp in self._begin:
                self._consumer.seek(tp, self._known_from[tp])

    async def _handle(self, tp: TopicPartition, raw: Any, selection: UpdateFilter, handler: Handler) -> None:
        event = selection.event(raw.value, where=f"{tp.partition}:{raw.offset}")
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
                logger.warning("update_goes_to_another_member: partition %d, offset %d", tp.partition, offset)
                return
            except KafkaError as error:
                logger.warning("commit_failed: %r", error)
                await asyncio.sleep(COMMIT_PAUSE)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Wait for the running handler and its commit before other members get the partitions."""
        async with self._handling:
            self._assignment += 1
            for offsets in (self._begin, self._passed, self._committed):
                offsets.clear()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        try:
            with translate_errors():
                begin = await self._start_offsets(assigned)
        except ClientError as error:
            self._failed = error
            return
        self._assignment += 1
        self._seen = Seen()
        for tp, (first, offset) in begin.items():
            self._begin[tp] = self._passed[tp] = offset  # committed after the next fetch, so the group has a commit
            self._known_from[tp] = max(first, offset - self._look_back)
        self._begin_again(assigned)

    async def _start_offsets(self, assigned: Collection[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return each partition's first offset in the log and the offset where the group continues.

        The calls use the log, not the consumer: consumer calls wait for the rebalance, which waits for this method.
        Raises PositionLost.
        """
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
                raise PositionLost(f"{held}, the group {self._group} is at {offset}: read STATE, then reset the group")
            found[tp] = first, offset
        return found

    @contextmanager
    def _broker_call(self, what: str) -> Iterator[None]:
        """Raise Unavailable if the broker does not answer, and Misconfigured if it refuses this client."""
        try:
            yield
        except (KafkaError, OSError, TimeoutError) as error:
            refused = self._access.refusal or missing_right(error)
            if refused is not None:
                raise Misconfigured(f"{what}: {refused} ({refused.remedy})") from error
            servers = ",".join(self._access.servers)
            raise Unavailable(f"{what}: {type(error).__name__} {error} (kafka://{servers})") from error
