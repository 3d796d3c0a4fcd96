"""Faust's Kafka transport with corrections: no fetched record is lost, and no worker writes after it lost its lease.

The corrections override methods where Faust allows this. Elsewhere they wrap methods of one object (aiokafka's
coordinator, sender or client). No library class is changed, except two names in aiokafka's fetcher
(lenient_headers.py). Line numbers refer to faust-streaming 0.15.3 and aiokafka 0.14.0:

- Give-back: `faust/transport/consumer.py:746` drops fetched records when a rebalance begins before their delivery. The
  position is already past these records, so Faust treats the hole as compaction and commits past the hole. Here
  `KafkaConsumer.getmany` seeks back to the records.
- Fixed fetch set: `faust/transport/consumer.py:795` passes its live set of partitions. If a rebalance empties the set,
  `aiokafka/consumer/fetcher.py:1221` treats the empty set as "all partitions". `ConsumerThread._fetch_records` passes a
  copy.
- Room: a partition is fetched only while the lanes have room for it (lane_feed.py). Each record comes with the range of
  offsets before it that have no record, as far as the fetches prove this (coverage.py).
- Lease: neither library notices that the membership may have expired (SIGSTOP, long pause, broker outage). Here the age
  of the last accepted Heartbeat or SyncGroup is measured from the sending of the request (`StageApp.check_lease`).
- Never idle: aiokafka leaves the group when there was no fetch for `max_poll_interval_ms`
  (`consumer/group_coordinator.py:791`, 1 000 s by Faust's default). A spare worker fetches nothing. A worker without
  room fetches nothing either, for example during a long outage of the store. Both workers are healthy, so this
  transport lets aiokafka always see a running fetch.
- Paused changelogs: aiokafka prefetches each assigned partition (`aiokafka/consumer/fetcher.py:637`), but Faust reads
  no record of the changelogs, because the bulk load has a separate consumer. A response of up to 4 MB per partition
  would stay in memory, and would be fetched again after every rebalance. So changelogs are paused.
- Blind acceptance: a broker that is still loading a group accepts every heartbeat, also from a removed member. An
  expired lease is renewed only after a request that such a broker refuses (OffsetFetch).
- Held producer: after SIGSTOP and SIGCONT the producer would send its buffered records after the writes of the
  partition's new owner (`aiokafka/producer/sender.py:277`). Here the producer's sends wait while the lease is expired.
- Takeover: Kafka lets a second process take the place of a static member and notifies neither process. Here the second
  process waits until the lease of the first process has ended, before it learns its partitions (takeover.py).
- Fencing: when the group has removed a member, `aiokafka/consumer/group_coordinator.py:530` joins again as a new member
  and keeps the producer's buffer. Here the process ends.
- Rebalance during a stop: Faust takes part in a rebalance (`faust/app/base.py:1799`) while a stopping worker still
  handles its last events. The events would continue although other workers own the partitions, and no LeaveGroup would
  be sent. Here the group waits until the worker has drained, committed and left.
- Refused by the group: aiokafka reports a permanent error (another protocol, an access rule, a record that is too
  large) only at the next fetch (`aiokafka/consumer/group_coordinator.py:353`). A worker without partitions never
  fetches, so it would stay alive and idle. Here the worker ends.
- Outdated commit: a commit that waits behind a JoinGroup on one connection is refused, because its generation has
  ended. aiokafka treats this refusal as the end of its membership (`aiokafka/consumer/group_coordinator.py:1117`). Here
  the commit only fails.
- Idempotent producer: a request on a lost connection may reach the broker late, after its own retry and after later
  writes of the same key. With an idempotent producer, the broker drops the late request by its sequence number.
- Lost sequence: when the partition of an old batch has no leader, aiokafka drops the batch
  (`producer/message_accumulator.py:487`), but does not use its sequence number again. The broker then refuses every
  later batch of this partition. Here the worker ends, and the restarted worker has a new producer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar

import structlog
from aiokafka.consumer.group_coordinator import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from aiokafka.errors import (
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    NoError,
    OutOfOrderSequenceNumber,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from aiokafka.protocol.commit import OffsetFetchRequest
from faust.exceptions import ConsumerNotStarted, ProducerSendError
from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from ....schemas.errors import Transient
from ...log.kafka_access import missing_right
from ...log.kafka_client import ISOLATION
from ...log.lenient_headers import decode_headers_leniently
from .changelog_reader import ChangelogReader
from .coverage import Coverage
from .lane_feed import AsksLanes, left_of, to_come
from .takeover import Takeover

log = structlog.get_logger(__name__)

#: seconds to wait when there is no partition to fetch, and between two checks of an expired lease
PAUSE = 0.05


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread in which aiokafka's consumer and group coordinator run."""

    #: The time at which the last accepted Heartbeat or SyncGroup was sent (`time.monotonic`); 0.0 before the first
    #: join. Written by this thread, read by other threads.
    lease_start: float = 0.0
    #: True while this process waits for the end of the lease of another process with the same worker id. Written by
    #: this thread, read by other threads.
    taking_over: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._coverage = Coverage()
        self._never_idle = ExitStack()
        """Context of a fetch that never ends, so that aiokafka does not leave the group of an idle worker."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # The consumer reads this value when it starts. Faust sets it only for its own transactions.
        consumer._isolation_level = ISOLATION
        self.app.access.prepare(consumer._client)
        self._never_idle.close()
        self._never_idle.enter_context(consumer._subscription.fetch_context())
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        self._watch_membership(self._consumer._coordinator)

    def _watch_membership(self, coordinator: Any) -> None:
        do_send, do_reset = coordinator._send_req, coordinator.reset_generation
        do_rejoin, do_push_error = coordinator._do_rejoin_group, coordinator._push_error_to_user

        takeover = self._takeover()

        # The lease starts at the sending of a request, not at its response: after a SIGSTOP the response to an older
        # request may wait in the socket. SyncGroup counts, too, because it starts the session of a new generation, and
        # a process that was stopped during a rebalance must not treat its late response as a new lease.
        async def send_req(request: Any) -> Any:
            if isinstance(request, JoinGroupRequest) and takeover is not None and not coordinator.member_id:
                await takeover.before_join(do_send)
            proven = not isinstance(request, HeartbeatRequest) or await self._is_proven(coordinator.group_id, do_send)
            sent = time.monotonic()
            if isinstance(request, LeaveGroupRequest):
                self.app.leaving()
            response = await do_send(request)
            if isinstance(request, OffsetCommitRequest):
                _refuse_outdated(request, response, coordinator.generation)
            if isinstance(request, HeartbeatRequest):
                accepted = proven and for_code(response.error_code) in (NoError, RebalanceInProgressError)
            else:
                accepted = isinstance(request, SyncGroupRequest) and for_code(response.error_code) is NoError
            if accepted:
                self.lease_start = sent
            if accepted and isinstance(request, SyncGroupRequest) and takeover is not None:
                self.taking_over = takeover.waits
                await takeover.after_join(
                    coordinator.member_id,
                    lease=self.app.lease_limit(),
                    pause=self.app.conf.broker_heartbeat_interval,
                    beat=beat,
                )
                self.taking_over = False
            return response

        async def beat(seconds: float) -> bool:
            await asyncio.wait([coordinator._closing], timeout=seconds)
            if coordinator._closing.done():
                return False
            with suppress(KafkaError):  # the broker is away; this worker's own lease then expires
                request = HeartbeatRequest(coordinator.group_id, coordinator.generation, coordinator.member_id)
                if for_code((await send_req(request)).error_code) is UnknownMemberIdError:
                    coordinator.reset_generation()
                    return False
            return True

        # Called whenever the membership ends, for any request that found this out. Other workers then own the
        # partitions, and the producer's buffered records would overwrite the records of these workers. A LeaveGroup of
        # this worker is harmless after a drain. After a crash it is not, because events are still being handled.
        def reset_generation() -> None:
            was_member, closing = bool(coordinator.member_id and self.lease_start), coordinator._closing.done()
            do_reset()
            if was_member and not (closing and self.app.idle()):
                self.app.fenced()

        # A worker that is leaving does not rejoin: it would get partitions, and another rebalance would take them away.
        # A static member does not leave, and the group waits for its join.
        async def rejoin(subscription: Any) -> bool:
            leaves = coordinator._closing.done() and coordinator._group_instance_id is None
            return not leaves and bool(await do_rejoin(subscription))

        def push_error(error: BaseException) -> Any:
            refused = group_refusal(self.app.conf.id, error)
            asyncio.run_coroutine_threadsafe(self.app.crash(refused), self.parent_loop)
            return do_push_error(error)

        coordinator._send_req, coordinator.reset_generation = send_req, reset_generation
        coordinator._do_rejoin_group, coordinator._push_error_to_user = rejoin, push_error

    async def _is_proven(self, group: str, send: Callable[[Any], Awaitable[Any]]) -> bool:
        """Return whether an accepted heartbeat will prove the membership: always before the lease expires, because the
        broker cannot have removed the member yet; later if the broker has loaded the group."""
        if not self.lease_start or time.monotonic() - self.lease_start <= self.app.lease_limit():
            return True
        return for_code((await send(OffsetFetchRequest(group, []))).error_code) is NoError

    def _takeover(self) -> Takeover | None:
        conf = self.app.conf
        if not conf.consumer_group_instance_id:
            return None
        return Takeover(group=conf.id, instance_id=conf.consumer_group_instance_id, folder=Path(conf.datadir))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        await super().on_partitions_revoked(revoked)
        if self.app.should_stop:
            # During a stop, `StageApp.on_stop` drains, and closes the coordinator after its commit. Until then this
            # worker owns the partitions: heartbeats continue, and no other worker gets a partition.
            await asyncio.wait([self._ensure_consumer()._coordinator._closing])

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._pause_changelogs(assigned)
        await super().on_partitions_assigned(assigned, generation_id)

    def _pause_changelogs(self, assigned: set[TP]) -> None:
        # Called before the first fetch. Standbys are not paused, because the group's consumer reads them.
        consumer, app = self._ensure_consumer(), self.app
        active = assigned - app.assignor.assigned_standbys()
        changelogs = {tp for tp in active if tp.topic in app.tables.changelog_topics}
        # `pause` needs aiokafka's own type of topic and partition, which `assignment` returns.
        consumer.pause(*(tp for tp in consumer.assignment() if tp in changelogs))

    async def _fetch_records(
        self,
        consumer: Any,
        active_partitions: Iterable[TP] | None,
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Any:
        """Return the next records; wait at most `timeout` seconds for the first one.

        Each record comes with its `follows` (coverage.py): there is no record from this offset up to the record.
        """
        active = frozenset(active_partitions or ())
        if active_partitions is not None and not active:
            await asyncio.sleep(PAUSE)
            return {}
        end = time.monotonic() + (timeout or 0.0)
        while True:
            wanted = frozenset(filter(self.consumer.has_room, active))
            found = await self._fetched(consumer, wanted, max_records) if wanted else {}
            left = end - time.monotonic()
            if found or left <= 0 or consumer._closed or not self.consumer.flow_active:
                return found
            waiter = consumer._fetcher._create_fetch_waiter()
            _, pending = await asyncio.wait([waiter], timeout=left)
            for late in pending:
                late.cancel()

    async def _fetched(self, consumer: Any, wanted: frozenset[TP], max_records: int | None) -> Any:
        """Return the records that aiokafka has fetched, without waiting. Positions move only past returned records."""
        subscription, states = consumer._subscription, {}
        assignment = getattr(subscription.subscription, "assignment", None)
        if assignment is None or subscription.reassignment_in_progress:
            self._coverage.clear()  # positions change while aiokafka waits for the end of the rebalance
        else:
            states = {tp: assignment.state_value(tp) for tp in consumer._fetcher._records if tp in wanted}
        starts = {tp: state.position for tp, state in states.items() if state is not None and state.has_valid_position}
        found = await super()._fetch_records(consumer, wanted, timeout=0, max_records=max_records)
        covered: dict[Any, list[tuple[Any, int]]] = {}
        for tp, start in starts.items():  # needed even if the response had only transaction markers
            covered[tp] = self._coverage.extended(tp, start, states[tp].position, found.get(tp, ()))
        for tp, records in found.items():
            if tp not in covered:
                covered[tp] = [(record, record.offset) for record in records]
        return {tp: records for tp, records in covered.items() if records}

    def fetch_again(self) -> None:
        """Wake a waiting fetch, so that it checks again which partitions have room. Called from another thread."""
        if self._consumer is not None and self.thread_loop.is_running():
            self.thread_loop.call_soon_threadsafe(self._wake_fetches)

    def _wake_fetches(self) -> None:
        for waiter in list(self._ensure_consumer()._fetcher._fetch_waiters):
            if not waiter.done():
                waiter.set_result(None)

    async def rewind(self, offsets: Mapping[TP, int]) -> None:
        """Give records back: the next fetches begin at these offsets."""
        await self.call_thread(self._rewind, offsets)

    async def _rewind(self, offsets: Mapping[TP, int]) -> None:
        # Seeks only backwards, so that it cannot undo a seek to the committed offset.
        consumer = self._ensure_consumer()
        subscription = consumer._subscription.subscription
        assignment = subscription.assignment if subscription is not None else None
        for tp, offset in offsets.items():
            if assignment is None or not assignment.active or tp not in assignment.tps:
                continue  # another worker owns the partition now, and starts from the committed offset
            state = assignment.state_value(tp)
            if state.has_valid_position and state.position > offset:
                consumer.seek(tp, offset)

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _create_nothing(topic)


def group_refusal(group: str, error: BaseException) -> Transient:
    """Return the error that ends a worker when its consumer group refuses it. The supervisor restarts the worker."""
    if (lacking := missing_right(error)) is not None:
        return lacking
    if isinstance(error, InconsistentGroupProtocolError):
        why = f"another program is a member of the consumer group {group}, and uses another assignment protocol"
        remedy = f"find it: kafka-consumer-groups --describe --members --group {group}; end that program"
    else:
        why = f"the consumer group {group}: {error!r}"
        remedy = "see the log of the broker: an access rule, or a group larger than its message.max.bytes"
    refused = Transient("broker", why, remedy=remedy)
    refused.__cause__ = error
    return refused


def _refuse_outdated(request: Any, response: Any, generation: int) -> None:
    """Raise `IllegalGenerationError` for a refused commit of a generation older than the current one.

    The worker is still a member. If it still owns the partition, the commit is repeated.
    """
    written_in = request._consumer_group_generation_id
    refused = {for_code(code) for _, partitions in response.topics for _, code in partitions}
    if written_in < generation and IllegalGenerationError in refused:
        log.info("commit_outdated", generation=written_in, now=generation)
        raise IllegalGenerationError(f"a commit of generation {written_in}, but generation {generation} has begun")


class KafkaConsumer(AsksLanes, driver.Consumer):
    """A consumer that delivers every fetched record, or gives it back."""

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        records, active = await self._wait_next_records(timeout)
        if records is None or self.should_stop:
            return
        app, generation = self.app, self.app.consumer_generation_id
        given_back: dict[TP, int] = {}
        left = left_of(records)
        for tp, (record, follows) in self.scheduler.iterate(records):
            left[tp] -= 1
            if (
                tp not in given_back  # after a given-back record, all later records of its partition are given back
                and self.flow_active
                and app.consumer_generation_id == generation
                and (active is None or tp in active or tp in self._buffered_partitions)
            ):
                app.monitor.track_tp_end_offset(tp, highwater := self.highwater(tp))
                message = self._to_message(tp, record)
                message.follows, message.left = follows, to_come(left[tp], record.offset, highwater)
                yield tp, message
            else:
                given_back[tp] = min(record.offset, given_back.get(tp, record.offset))
        if given_back and not self.should_stop:
            log.info("gave_records_back", offsets={f"{tp.topic}:{tp.partition}": o for tp, o in given_back.items()})
            try:
                await self._thread.rewind(given_back)
            except (KafkaError, ConsumerNotStarted) as exc:
                # A rebalance is running; the new assignment starts from the committed offsets.
                log.warning("give_back_failed", error=repr(exc))

    def verify_event_path(self, now: float, tp: TP) -> None:
        # Faust checks here for partitions that are no longer fetched. For a partition without room this is intended.
        if not self._is_changelog_tp(tp) and self.has_room(tp):
            super().verify_event_path(now, tp)

    def has_room_again(self) -> None:
        """Fetch immediately from a partition for which the lanes had no room."""
        self._thread.fetch_again()

    def changelogs(self) -> ChangelogReader:
        """Return the reader for a bulk load (`bulk_load.ChangelogSource`)."""
        return ChangelogReader(access=self.app.access, client_id=f"{self.app.conf.broker_client_id}-restore")

    # These two methods do not use the group's consumer. The broker answers its fetch of idle partitions only after
    # `fetch_max_wait_ms` (1.5 s), and every other request on the same connection waits for this answer.
    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        async with self.changelogs() as reader:
            return await reader.ends(partitions)

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        async with self.changelogs() as reader:
            return await reader.starts(partitions)

    async def commit_and_end_transactions(self) -> None:
        """Commit at the end of a stop, but not after a crash.

        After a crash the consumer's thread may have ended, and a commit would hang until the exit timer ends the
        worker. Events that are not committed are delivered again.
        """
        if not self.app._crashed.is_set():
            await super().commit_and_end_transactions()

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _create_nothing(topic)


class KafkaProducer(driver.Producer):
    """A producer that holds its buffer while the lease is expired.

    An accepted heartbeat releases the buffer. A refused heartbeat ends the process. This also works during a rebalance:
    heartbeats continue until JoinGroup is sent, and no record has to be sent while JoinGroup waits for its answer.
    """

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        self.app.access.prepare(producer.client)
        sender = producer._sender
        send, lease_ok = sender._send_produce_req, self.app.lease_ok

        async def send_produce_req(node_id: Any, batches: Any) -> Any:
            while not lease_ok():  # noqa: ASYNC110 - another thread renews the lease
                await asyncio.sleep(PAUSE)
            return await send(node_id, batches)

        sender._send_produce_req = send_produce_req
        producer_send = producer.send

        async def send_watched(*args: Any, **kwargs: Any) -> Any:
            sent = await producer_send(*args, **kwargs)
            sent.add_done_callback(self._check_sent)
            return sent

        producer.send = send_watched
        return producer

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> asyncio.Future[Any]:
        """Send a record as Faust's method does, without Faust's unused signal and its transactions."""
        stamp = None if timestamp is None else int(timestamp * 1000.0)
        if isinstance(headers, Mapping):
            headers = list(headers.items())
        try:
            return await self._ensure_producer().send(  # type: ignore[no-any-return]
                topic, value, key=key, partition=partition, timestamp_ms=stamp, headers=headers
            )
        except KafkaError as error:
            raise ProducerSendError(f"Error while sending: {error!r}") from error

    def _check_sent(self, sent: asyncio.Future[Any]) -> None:
        if not sent.cancelled() and isinstance(sent.exception(), OutOfOrderSequenceNumber):
            self.app.out_of_sequence()

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _create_nothing(topic)


class KafkaTransport(driver.Transport):
    """The transport of `kafka://` addresses after `register()`."""

    Consumer: ClassVar[Any] = KafkaConsumer
    Producer: ClassVar[Any] = KafkaProducer


async def _create_nothing(topic: str) -> None:
    """Create no topic: `memstream topics create` creates topics with the correct settings.

    When workers created the topics, one worker start in four reported Ready and consumed nothing.
    """
    log.debug("topic_not_declared", topic=topic)


def register() -> None:
    """Register `KafkaTransport` for `kafka://` addresses of every Faust app in the process."""
    decode_headers_leniently()
    TRANSPORTS.aliases["kafka"] = f"{__name__}:KafkaTransport"
