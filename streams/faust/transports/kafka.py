"""Faust's Kafka transport, mended: nothing that was fetched is lost, and no worker writes what it may not own any more.

Subclass hooks where Faust has them; where it has none, methods of one object (coordinator, sender, client of aiokafka)
are wrapped. No class of theirs is changed; one name of aiokafka's fetcher is (odd_headers.py). Lines are those of
faust-streaming 0.15.3 and aiokafka 0.14.0:

- give-back: `faust/transport/consumer.py:746` drops fetched records when a rebalance comes between; their position has
  moved on, the hole is booked as a compaction gap and committed over. `KafkaConsumer.getmany` seeks back.
- frozen fetch set: `faust/transport/consumer.py:795` passes its live set of partitions; emptied by a rebalance it reads
  as "all partitions" at `aiokafka/consumer/fetcher.py:1221`. `ConsumerThread._fetch_records` passes a copy.
- lease: neither library says that membership may have lapsed (SIGSTOP, long pause, broker away). The age of the last
  accepted Heartbeat or SyncGroup, counted from when it was sent, says so (`StageApp.check_lease`).
- changelogs left alone: aiokafka fetches ahead (`aiokafka/consumer/fetcher.py:637`) of each partition that it is
  assigned, and Faust takes nothing of the changelogs: a restore reads them with a consumer of its own. So an answer of
  up to 4 MB lay in memory for each, fetched anew, and larger, after every rebalance. They are paused.
- held producer: what lies in the producer's buffer at a SIGSTOP would leave at SIGCONT on top of the new owner's
  writes (`aiokafka/producer/sender.py:277`). It is held while the lease is out.
- fencing: `aiokafka/consumer/group_coordinator.py:530` joins again as a new member with the old buffer: the process
  ends instead.
- waited for: Faust answers a rebalance for a worker that stops (`faust/app/base.py:1799`) while its last events are in
  hand: they went on although others owned their partitions, and it left without a LeaveGroup. The group waits until it
  has drained, committed and left.
- outdated commit: a commit that waits behind a JoinGroup, on one connection, is refused for the generation that ended
  with it. aiokafka takes that for the end of its membership (`aiokafka/consumer/group_coordinator.py:1117`).
- idempotent producer: a request that was lost with its connection may reach the broker after its own repetition, and
  after later writes of the same key; the broker drops it by its sequence number.
- lost sequence: for a batch that aiokafka drops (`producer/message_accumulator.py:487`, no leader and too old) it takes
  a sequence number all the same, and the broker refuses every later batch of that partition: the worker ends, its
  successor has a producer of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, ClassVar

import structlog
from aiokafka.consumer.group_coordinator import (
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from aiokafka.errors import (
    IllegalGenerationError,
    KafkaError,
    NoError,
    OutOfOrderSequenceNumber,
    RebalanceInProgressError,
    for_code,
)
from faust.exceptions import ConsumerNotStarted
from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from ...log.kafka_client import ISOLATION, back_off_metadata
from ...log.lenient_headers import read_odd_headers
from .changelog_reader import ChangelogReader
from .fast_delivery import BUFFERED_MAX, DeliversAtOnce

log = structlog.get_logger(__name__)

#: seconds to wait instead of a fetch from no partition, and between two looks at a lease that is out
PAUSE = 0.05


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread in which aiokafka's consumer and group coordinator live."""

    #: When the last Heartbeat or SyncGroup that the coordinator accepted was sent (`time.monotonic`); 0.0 before the
    #: first join. Written by this thread, read by the others.
    lease_start: float = 0.0

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = ISOLATION  # read when it starts; Faust ties it to transactions of its own
        back_off_metadata(consumer._client)
        return consumer

    async def on_start(self) -> None:
        await super().on_start()
        self._watch_membership(self._consumer._coordinator)

    def _watch_membership(self, coordinator: Any) -> None:
        do_send, do_reset = coordinator._send_req, coordinator.reset_generation
        do_rejoin = coordinator._do_rejoin_group

        # From the sending, not from the answer: after a SIGSTOP the answer to a request from before may be waiting in
        # the socket. SyncGroup counts too: it starts the session of a new generation, and a process stopped inside a
        # rebalance must not take its late answer for a fresh lease.
        async def send_req(request: Any) -> Any:
            sent = time.monotonic()
            if isinstance(request, LeaveGroupRequest):
                self.app.leaving()
            response = await do_send(request)
            if isinstance(request, OffsetCommitRequest):
                _refuse_outdated(request, response, coordinator.generation)
            if isinstance(request, HeartbeatRequest):
                accepted = for_code(response.error_code) in (NoError, RebalanceInProgressError)
            else:
                accepted = isinstance(request, SyncGroupRequest) and for_code(response.error_code) is NoError
            if accepted:
                self.lease_start = sent
            return response

        # Every way out of the group passes here, whichever request learned of it first. Others own our partitions, and
        # what is still in the producer's buffer would land on top of their writes. A leave of our own is harmless
        # after a drain; a crash leaves with the handlers still running.
        def reset_generation() -> None:
            was_member, closing = bool(coordinator.member_id and self.lease_start), coordinator._closing.done()
            do_reset()
            if was_member and not (closing and self.app.idle()):
                self.app.fenced()

        # Who leaves does not join first: a member would get partitions, and one more rebalance take them away. A static
        # one does not leave, and while it is expected to join nobody gets any.
        async def rejoin(subscription: Any) -> bool:
            leaves = coordinator._closing.done() and coordinator._group_instance_id is None
            return not leaves and bool(await do_rejoin(subscription))

        coordinator._send_req, coordinator.reset_generation = send_req, reset_generation
        coordinator._do_rejoin_group = rejoin

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        await super().on_partitions_revoked(revoked)
        if self.app.should_stop:
            # The stop drains, not the rebalance (`StageApp.on_stop`), and comes here when it has committed. Till then
            # the partitions are ours: the heartbeats go on, and nobody is given any before we have answered.
            await asyncio.wait([self._ensure_consumer()._coordinator._closing])

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self._leave_changelogs(assigned)
        await super().on_partitions_assigned(assigned, generation_id)

    def _leave_changelogs(self, assigned: set[TP]) -> None:
        # Before the first fetch: no position is known yet. Standbys are read here.
        consumer, app = self._ensure_consumer(), self.app
        left = {tp for tp in assigned if tp.topic in app.tables.changelog_topics} - app.assignor.assigned_standbys()
        consumer.pause(*(tp for tp in consumer.assignment() if tp in left))  # of aiokafka's own type

    async def _fetch_records(
        self,
        consumer: Any,
        active_partitions: Iterable[TP] | None,
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> Any:
        wanted = frozenset(active_partitions or ())
        if active_partitions is not None and not wanted:
            await asyncio.sleep(PAUSE)
            return {}
        return await super()._fetch_records(consumer, wanted, timeout=timeout, max_records=max_records)

    async def rewind(self, offsets: Mapping[TP, int]) -> None:
        """Give records back: from these offsets on they are fetched again."""
        await self.call_thread(self._rewind, offsets)

    async def _rewind(self, offsets: Mapping[TP, int]) -> None:
        # Only ever backwards, so that it cannot undo a seek to the committed offset.
        consumer = self._ensure_consumer()
        subscription = consumer._subscription.subscription
        assignment = subscription.assignment if subscription is not None else None
        for tp, offset in offsets.items():
            if assignment is None or not assignment.active or tp not in assignment.tps:
                continue  # not ours any more: whoever owns it starts from the committed offset
            state = assignment.state_value(tp)
            if state.has_valid_position and state.position > offset:
                consumer.seek(tp, offset)

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _not_ours_to_make(topic)


def _refuse_outdated(request: Any, response: Any, generation: int) -> None:
    """Raises `IllegalGenerationError` for a commit that was refused because it is of an older generation than the one
    in which the group has accepted us since. It comes again, or was another's to make; we are members all the same."""
    written_in = request._consumer_group_generation_id
    refused = {for_code(code) for _, partitions in response.topics for _, code in partitions}
    if written_in < generation and IllegalGenerationError in refused:
        log.info("commit_outdated", generation=written_in, now=generation)
        raise IllegalGenerationError(f"a commit of generation {written_in}, and {generation} has begun")


class KafkaConsumer(DeliversAtOnce, driver.Consumer):
    """Delivers every fetched record, or gives it back."""

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:
        records, active = await self._wait_next_records(timeout)
        if records is None or self.should_stop:
            return
        app, generation = self.app, self.app.consumer_generation_id
        back: dict[TP, int] = {}
        for tp, record in self.scheduler.iterate(records):
            if (
                tp not in back  # nothing may overtake what goes back
                and self.flow_active
                and app.consumer_generation_id == generation
                and (active is None or tp in active or tp in self._buffered_partitions)
            ):
                app.monitor.track_tp_end_offset(tp, self.highwater(tp))
                yield tp, self._to_message(tp, record)
            else:
                back[tp] = min(record.offset, back.get(tp, record.offset))
        if back and not self.should_stop:
            log.info("gave_records_back", offsets={f"{tp.topic}:{tp.partition}": o for tp, o in back.items()})
            try:
                await self._thread.rewind(back)
            except (KafkaError, ConsumerNotStarted) as exc:
                # In a rebalance: the new assignment starts from the committed offsets anyway.
                log.warning("give_back_failed", error=repr(exc))

    def verify_event_path(self, now: float, tp: TP) -> None:
        # Faust's look for partitions that are not fetched any more.
        if not self._is_changelog_tp(tp):
            super().verify_event_path(now, tp)

    def changelogs(self) -> ChangelogReader:
        """For a restore (`restore.Changelog`)."""
        servers = driver.server_list(self.transport.url, self.transport.default_port)
        return ChangelogReader(servers=servers, client_id=f"{self.app.conf.broker_client_id}-restore")

    # Not asked of the group's consumer: it has a fetch of idle partitions under way, which a broker answers after
    # `fetch_max_wait_ms` (1.5 s), and everything else on that connection behind it.
    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        async with self.changelogs() as reader:
            return await reader.ends(partitions)

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        async with self.changelogs() as reader:
            return await reader.starts(partitions)

    async def commit_and_end_transactions(self) -> None:
        """Faust's last commit in a stop. After a crash the consumer's thread may have ended, and nobody answers: the
        worker would hang until it is cut off. What is not committed comes again."""
        if not self.app._crashed.is_set():
            await super().commit_and_end_transactions()

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _not_ours_to_make(topic)


class KafkaProducer(driver.Producer):
    """Holds its buffer while the lease is out.

    A heartbeat that is accepted lets it go; one that is refused ends the process. In a rebalance too: before JoinGroup
    the heartbeats go on, and while JoinGroup waits there is nothing of ours that has to leave.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.buffer.max_messages = BUFFERED_MAX

    def _settings_extra(self) -> Mapping[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        back_off_metadata(producer.client)
        sender = producer._sender
        send, lease_ok = sender._send_produce_req, self.app.lease_ok

        async def send_produce_req(node_id: Any, batches: Any) -> Any:
            while not lease_ok():  # noqa: ASYNC110 - the lease comes back by the clock of another thread
                await asyncio.sleep(PAUSE)
            return await send(node_id, batches)

        sender._send_produce_req = send_produce_req
        hand_over = producer.send

        async def send_watched(*args: Any, **kwargs: Any) -> Any:
            sent = await hand_over(*args, **kwargs)
            sent.add_done_callback(self._look_at)
            return sent

        producer.send = send_watched
        return producer

    def _look_at(self, sent: asyncio.Future[Any]) -> None:
        if not sent.cancelled() and isinstance(sent.exception(), OutOfOrderSequenceNumber):
            self.app.out_of_sequence()

    async def create_topic(self, topic: str, *_: Any, **__: Any) -> None:
        return await _not_ours_to_make(topic)


class KafkaTransport(driver.Transport):
    """What `kafka://` means after `register()`."""

    Consumer: ClassVar[Any] = KafkaConsumer
    Producer: ClassVar[Any] = KafkaProducer


async def _not_ours_to_make(topic: str) -> None:
    """`memstream topics create` makes topics, with the right settings; one start in four of a worker that made its own
    said Ready and consumed nothing."""
    log.debug("topic_not_declared", topic=topic)


def register() -> None:
    """From now on `kafka://` means this transport, for every Faust app of the process."""
    read_odd_headers()
    TRANSPORTS.aliases["kafka"] = f"{__name__}:KafkaTransport"
