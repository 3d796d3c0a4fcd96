"""The Faust app of a stage: settings that lose no record, a lease on the partitions, a time limit on the shutdown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faust
import structlog
from faust.exceptions import ConsumerNotStarted, ProducerSendError

from ...schemas.errors import AccessRefused, Fatal, Transient
from ..engine.process_exit import (
    UNREACHABLE,
    ExitProcess,
    ExitTimer,
    LeaseLost,
    end_process,
    exit_code_for,
    tell_end,
    tell_thrown_out,
)
from ..log.broker_url import embedded_folder, is_embedded, kafka_servers
from ..log.kafka_access import REFUSED_MAX, KafkaAccess, missing_right
from ..log.kafka_security import PLAINTEXT, KafkaSecurity
from ..log.markers import Marker, some_marker
from ..log.partition_count import CountCheck
from ..log.port import Drainable, Log
from .assignor import StageAssignor
from .recovery import StageTableManager
from .table import DurableTable
from .transports import kafka

log = structlog.get_logger(__name__)

#: bytes; also `max.message.bytes` of changelogs and dead letters
MAX_REQUEST = 4 * 1024 * 1024
#: maximum bytes of one partition in one fetch response; a larger record is still returned, alone. After an outage, a
#: worker holds up to FETCH_BYTES for each of its partitions in memory before it handles the records
FETCH_BYTES = 256 * 1024
#: maximum bytes of one partition in one producer request; a larger record is still sent, alone. The limit is well below
#: the 1 MiB that a topic accepts by default. With 16 KiB, a request had only a few rows, and the other rows of the
#: partition waited for the next request
BATCH_BYTES = 256 * 1024
#: seconds
REQUEST_TIMEOUT = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AppSettings:
    """The settings that differ between deployments. Times in seconds.

    With `worker_id` the group membership is static: a restart within the session causes no rebalance. The partitions of
    a dead worker get a new owner after `session_timeout`; a live worker sends at least three heartbeats in that time.
    """

    partitions: int = 12
    replication: int = 1
    session_timeout: float = 20.0
    worker_id: str | None = None
    rebalance_timeout: float = 60.0
    standby_replicas: int = 0
    buffer_maxsize: int = 256
    crash_grace: float = 20.0
    stop_grace: float = 60.0
    security: KafkaSecurity = PLAINTEXT
    """TLS and SASL of the connections to Kafka."""

    def __post_init__(self) -> None:
        if not 1.0 <= self.session_timeout <= REQUEST_TIMEOUT:
            raise Fatal(
                f"MEMSTREAM_SESSION_TIMEOUT={self.session_timeout:g}: expected 1 to {REQUEST_TIMEOUT:.0f} seconds"
            )
        if self.partitions < 1 or self.replication < 1:
            raise Fatal("a topic has at least one partition and one replica")

    @property
    def heartbeat_interval(self) -> float:
        """Return the seconds between two heartbeats."""
        return min(3.0, self.session_timeout / 3)


class StageApp(faust.App):
    """A Faust app with a lease on its partitions and a time limit on its shutdown.

    The runner sets `lanes`. They are drained before partitions are revoked and before the worker stops.
    """

    lanes: Drainable | None = None
    #: Servers and credentials of the app's Kafka clients; None with the embedded log.
    access: KafkaAccess | None = None
    #: Called when the committed offsets of an assignment are known, before its first event. The runner sets it.
    assignment_begins: Callable[[], None] = staticmethod(lambda: None)
    #: Client of the log for the check of the partition count, because the consumer's metadata may be outdated. The
    #: runner sets this client. Without a client, the partition count is not checked.
    log_client: Log | None = None
    #: topics that the stage reads
    sources: tuple[str, ...] = ()
    #: seconds after which a crash (`crash_grace`) or a stop (`stop_grace`) that hangs ends the process
    crash_grace: float = 20.0
    stop_grace: float = 60.0
    exit_process: ExitProcess = staticmethod(end_process)

    _fenced: bool = False
    _lease_limit: float | None = None
    _crash_timer: ExitTimer | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.on_partitions_revoked.connect(self._drain_revoked, weak=False)

    # ----------------------------------------------------------------- lease
    def lease_age(self) -> float:
        """Return the age of the last accepted heartbeat in seconds; 0.0 before the first join and when embedded."""
        start = float(getattr(getattr(self._consumer, "_thread", None), "lease_start", 0.0))
        return time.monotonic() - start if start else 0.0

    def lease_limit(self) -> float:
        """Return the lease age in seconds above which other workers may own these partitions.

        For a dynamic member this is the session time-out. A static member can lose its place earlier: a second process
        with the same id takes its place immediately. The member notices this at its next heartbeat, so its limit is at
        most two heartbeat intervals.
        """
        if self._lease_limit is None:  # cached: looking up a Faust setting takes 5 µs, and every record needs it
            conf = self.conf
            session = float(conf.broker_session_timeout)
            static = bool(conf.consumer_group_instance_id)
            self._lease_limit = min(session, 2 * float(conf.broker_heartbeat_interval)) if static else session
        return self._lease_limit

    def lease_ok(self) -> bool:
        """Return whether this worker certainly owns its partitions."""
        return not self._fenced and self.lease_age() <= self.lease_limit()

    def check_lease(self) -> None:
        """Check the lease. Called before every table write and every send.

        Raises:
            LeaseLost: other workers may own these partitions; nothing may be written.
        """
        if self._fenced:
            raise LeaseLost("this process has left the consumer group")
        if not self.lease_ok():
            raise LeaseLost(f"no answer from the group coordinator for {self.lease_age():.1f} s")

    def idle(self) -> bool:
        """Return whether no event is being handled."""
        return self.lanes is None or self.lanes.idle()

    def leaving(self) -> None:
        """Forbid further writes if events are being handled. Called in the consumer's thread before LeaveGroup."""
        if not self.idle():
            self._fenced = True

    def fenced(self) -> None:
        """End the process, because the group has removed this worker, or the worker left the group after a crash.

        Called in the consumer's thread. A clean stop would send the records in the producer's buffer, although other
        workers may own the partitions. So the process ends without a stop.
        """
        self._fenced = True  # set first, because logging may block, and the producer runs in another thread
        if self.crash_reason is not None:
            tell_end(self.crash_reason)
            self.exit_process(exit_code_for(self.crash_reason))
        else:
            conf = self.conf
            tell_thrown_out(
                app=conf.id,
                silent=self.lease_age(),
                session=float(conf.broker_session_timeout),
                worker_id=conf.consumer_group_instance_id,
            )
            self.exit_process(UNREACHABLE)

    def refused(self, refusal: AccessRefused) -> None:
        """Crash, because the brokers have refused the credentials for REFUSED_MAX seconds. Called in any thread.

        The environment of a process cannot change, so only a new process can get another password from there.
        """

        async def crash() -> None:
            if not self._crashed.is_set():
                why = f"refused for {REFUSED_MAX:.0f} s: {refusal}"
                await self.crash(AccessRefused("broker", why, remedy=refusal.remedy))

        self.loop.call_soon_threadsafe(lambda: self.add_future(crash()))

    def out_of_sequence(self) -> None:
        """Crash, because the broker refuses all further records of the producer on a partition (invalid sequence)."""
        if not self._crashed.is_set():
            lost = Transient("broker", "the producer's sequence numbers of a partition are invalid after an outage")
            self.add_future(self.crash(lost))

    # ----------------------------------------------------------------- partition count
    async def check_count(self) -> None:
        """Check that the stage's topics and changelogs have the partition count of this worker.

        Raises:
            CountChanged: one of them has another count.
            Transient: the log does not answer.
        """
        if self.log_client is not None:
            check = CountCheck(self.log_client, partitions=int(self.conf.topic_partitions))
            await check.confirm(*self.sources, *self.tables.changelog_topics)

    async def some_marker(self, changelog: str) -> Marker | None:
        """Return a marker of any partition of a changelog. Raises Transient."""
        return None if self.log_client is None else await some_marker(self.log_client, changelog)

    # ----------------------------------------------------------------- ready
    def ready(self) -> bool:
        """Return whether events flow: `why_not_ready` has no reason, and this worker has partitions."""
        return not self.why_not_ready() and bool(self.assigned())

    def why_not_ready(self) -> str:
        """Return the reason why events do not flow, or "" if events flow.

        For a group member without a partition the result is "", too: the member is a spare worker, which takes over
        when another worker leaves.
        """
        if self._crashed.is_set():
            return f"it ends: {self.crash_reason}"
        if self.should_stop:
            return "it was asked to stop: it finishes the events in flight and takes no new events"
        if not self.lease_ok():
            return f"no answer from Kafka for {self.lease_age():.0f} s: {self._why_away()}"
        if getattr(getattr(self._consumer, "_thread", None), "taking_over", False):
            return "another process had this MEMSTREAM_WORKER_ID, and its lease has not expired"
        if not self._is_member() and self.access is not None and self.access.refusal is not None:
            return self._why_away()
        if not self.assigned() and not self._is_member():
            return "waiting for partitions: it has not joined its consumer group yet"
        if self.rebalancing:
            return "its consumer group is assigning partitions"
        if self.in_recovery or not self.tables.actives_ready:
            return "its table is being read from the changelog"
        return ""

    def _why_away(self) -> str:
        refusal = self.access.refusal if self.access is not None else None
        if refusal is not None:
            return f"{refusal} ({refusal.remedy})"
        return "is it up, and MEMSTREAM_BROKER right?"

    def _is_member(self) -> bool:
        """Return whether the group has accepted this worker since its start. Always False with the embedded log."""
        return float(getattr(getattr(self._consumer, "_thread", None), "lease_start", 0.0)) > 0

    def assigned(self) -> frozenset[tuple[str, int]]:
        """Return the (topic, partition) pairs that this worker reads now."""
        if self._consumer is None:
            return frozenset()
        try:
            assignment = self._consumer.assignment()
        except ConsumerNotStarted:
            return frozenset()
        return frozenset((tp.topic, tp.partition) for tp in assignment)

    # ----------------------------------------------------------------- drain and end
    async def _drain_revoked(self, app: Any, revoked: Any, **_: Any) -> None:
        # At this point the flow is suspended, Faust's queues are empty, and the group waits for this worker.
        if self.lanes is not None:
            await self.lanes.drain(frozenset((tp.topic, tp.partition) for tp in revoked))

    def _on_rebalance_when_stopped(self) -> None:
        """Do nothing. Faust's own method would close the consumer from another thread, in the middle of the drain.

        The consumer's thread delays the rebalance until the stop has reached the consumer
        (`transports.kafka.ConsumerThread`).
        """

    def _crash(self, reason: BaseException) -> None:
        # Overrides `_crash` and not `crash`, because a child service that crashes calls only `_crash` of its parents.
        first = not self._crashed.is_set()
        reason = without_faust(reason)
        super()._crash(reason)
        if first and self.crash_grace:
            self._crash_timer = ExitTimer(self.crash_grace, reason=reason, exit_process=self.exit_process)

    async def stop(self) -> None:
        """Drain, commit and leave the group. The process ends after `stop_grace` seconds even if this hangs."""
        if self._stopped.is_set():
            return  # another call of `stop` stops the app and cancels the timers
        timer = None
        if self.stop_grace and not self._crashed.is_set():
            timer = ExitTimer(self.stop_grace, reason=None, exit_process=self.exit_process)
        await super().stop()
        for done in (timer, self._crash_timer):
            if done is not None:
                done.cancel()

    async def on_stop(self) -> None:
        if self.lanes is not None and self._consumer is not None:
            self.consumer.stop_flow()
            self.flow_control.suspend()
            self.flow_control.clear()
            await self.lanes.finish()
            await self.lanes.drain(self.assigned())
            await self.lanes.close()
        await super().on_stop()

    async def _producer_flush(self, logger: Any) -> None:
        # After a crash the waiting records are not sent: their events are delivered again.
        if not self._crashed.is_set():
            await super()._producer_flush(logger)


def create_app(*, name: str, broker: str, datadir: Path, settings: AppSettings) -> StageApp:
    """Create the app of one stage. Nothing is connected yet.

    Args:
        name: app id, consumer group and prefix of the changelogs, `memory-<stage>`.
        broker: `kafka://host:port[,host:port]` or `embedded:///folder`.
        datadir: a folder that no other stage or worker uses.

    Raises:
        Fatal: the broker's address has neither of these forms.
    """
    access = None
    if is_embedded(broker):
        from .transports.embedded import embedded_url, register  # imported only where it is used

        register()
        url = embedded_url(embedded_folder(broker))
    else:
        kafka.register()
        access = KafkaAccess(kafka_servers(broker), settings.security)
        url = ";".join(f"kafka://{server}" for server in access.servers)
    app = StageApp(
        name,
        broker=url,
        store="rocksdb://",
        datadir=str(datadir),
        Table=DurableTable,
        TableManager=StageTableManager,
        PartitionAssignor=StageAssignor,
        topic_partitions=settings.partitions,
        topic_replication_factor=settings.replication,
        topic_disable_leader=True,
        broker_session_timeout=settings.session_timeout,
        broker_heartbeat_interval=settings.heartbeat_interval,
        broker_rebalance_timeout=settings.rebalance_timeout,
        broker_request_timeout=REQUEST_TIMEOUT,
        broker_commit_interval=0.5,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=5000,
        consumer_group_instance_id=settings.worker_id or None,
        consumer_max_fetch_size=FETCH_BYTES,
        producer_acks=-1,
        producer_request_timeout=30.0,
        producer_max_batch_size=BATCH_BYTES,
        producer_max_request_size=MAX_REQUEST,
        stream_wait_empty=False,
        stream_buffer_maxsize=settings.buffer_maxsize,
        table_standby_replicas=settings.standby_replicas,
        table_key_index_size=1,  # Faust's map of 10 000 keys to partitions is not needed: every call has the partition
        worker_redirect_stdouts=False,
        web_enabled=False,
        web_tables_enabled=False,
    )
    if access is not None:
        app.access, access.given_up = access, app.refused
    app.crash_grace, app.stop_grace = settings.crash_grace, settings.stop_grace
    return app


def without_faust(reason: BaseException) -> BaseException:
    """Translate an error of Faust, or a right that the broker denies, into a `StageError`."""
    if isinstance(reason, ProducerSendError):
        error = Transient("broker", str(reason))
        error.__cause__ = reason
        return error
    return missing_right(reason) or reason
