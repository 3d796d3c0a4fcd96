"""The Kafka transport against a scripted fetcher, coordinator and sender; each fault is seen with Faust's own class."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.group_coordinator import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from aiokafka.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    KafkaError,
    NotCoordinatorForGroupError,
    OutOfOrderSequenceNumber,
    RequestTimedOutError,
    UnknownError,
    UnknownMemberIdError,
)
from aiokafka.producer.sender import Sender
from faust.exceptions import ProducerSendError
from faust.transport.drivers import TRANSPORTS
from faust.transport.drivers import aiokafka as stock
from faust.types import TP

from memstream.schemas.errors import Transient
from memstream.streams.engine.process_exit import UNREACHABLE, LeaseLost, exit_code_for
from memstream.streams.faust.app import StageApp
from memstream.streams.faust.table import open_rows
from memstream.streams.faust.transports import kafka as ours
from memstream.streams.faust.transports.changelog_reader import ChangelogReader
from memstream.streams.log.kafka_client import back_off_metadata, spread_group_errors
from tests.support.faust_fakes import (
    TOPIC,
    Lanes,
    ScriptedConsumer,
    ScriptedCoordinator,
    record,
    scripted,
    spin,
    stage_app,
)
from tests.support.polling import wait_for
from tests.support.scripted_group import COMMITTED, MEMBER, WITHIN, Member, ScriptedGroup, member_of

P0, P1 = TP(TOPIC, 0), TP(TOPIC, 1)
STOCK_FAILS = pytest.mark.xfail(strict=True, raises=AssertionError, reason="Faust's own class has the fault")
BOTH = [pytest.param(ours, id="ours"), pytest.param(stock, id="stock", marks=STOCK_FAILS)]


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    return stage_app(tmp_path)


def transport_class(module: Any) -> Any:
    return ours.KafkaTransport if module is ours else module.Transport


def consumer_of(module: Any, app: StageApp) -> Any:
    async def on_message(message: Any) -> None: ...

    async def on_partitions(*_: Any) -> None: ...

    transport = transport_class(module)(app.transport.url, app)
    return transport.create_consumer(
        callback=on_message, on_partitions_revoked=on_partitions, on_partitions_assigned=on_partitions
    )


async def take(consumer: Any, n: int | None = None, then: Callable[[], Any] | None = None) -> list[tuple[TP, int]]:
    """Run one `getmany`. After `n` messages call `then`, while the rest is not delivered yet."""
    seen = []
    async for tp, message in consumer.getmany(timeout=0.01):
        seen.append((tp, message.offset))
        if n is not None and len(seen) == n and then is not None:
            then()
    return seen


# --------------------------------------------------------------------------- 2: give-back
@pytest.mark.parametrize("module", BOTH)
@pytest.mark.parametrize("interruption", ["rebalance", "flow stopped", "paused"])
async def test_fetched_records_come_again_after_an_interruption(module: Any, interruption: str, app: StageApp) -> None:
    consumer = consumer_of(module, app)
    scripted(consumer, {P0: [record(o) for o in range(10)]})

    def interrupt() -> None:
        if interruption == "rebalance":
            app.consumer_generation_id += 1
        elif interruption == "flow stopped":
            consumer.stop_flow()
        else:
            consumer.pause_partitions({P0})

    seen = await take(consumer, 3, interrupt)
    consumer.resume_flow()
    consumer.resume_partitions({P0})
    seen += await take(consumer)
    assert [offset for _, offset in seen] == list(range(10))


async def test_a_paused_partition_does_not_hold_up_the_other(app: StageApp) -> None:
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(o, 0) for o in range(4)], P1: [record(o, 1) for o in range(4)]})
    seen = await take(consumer, 2, lambda: consumer.pause_partitions({P0}))
    assert [o for tp, o in seen if tp == P1] == [0, 1, 2, 3]
    assert await inner.position(P0) == len([o for tp, o in seen if tp == P0])


async def test_giving_back_never_seeks_forward(app: StageApp) -> None:
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(o) for o in range(10)]})

    def rebalanced_and_sought_back() -> None:
        app.consumer_generation_id += 1
        inner.seek(P0, 1)  # perform_seek: back to the committed offset

    await take(consumer, 3, rebalanced_and_sought_back)
    assert await inner.position(P0) == 1


# --------------------------------------------------------------------------- 3: frozen fetch set
@pytest.mark.parametrize("module", BOTH)
async def test_a_set_emptied_while_the_fetch_waits_does_not_mean_all(module: Any, app: StageApp) -> None:
    consumer = consumer_of(module, app)
    inner = scripted(consumer, {P0: [record(0, 0)], P1: [record(0, 1)]})
    consumer.pause_partitions({P1})
    inner._fetcher.gate.clear()
    fetch = asyncio.create_task(consumer._getmany(consumer._get_active_partitions(), 0.01))
    await spin()
    consumer.pause_partitions({P0})  # the set that was handed over is empty now
    inner._fetcher.gate.set()
    assert set(await fetch) <= {P0}


@pytest.mark.parametrize("module", BOTH)
async def test_no_partition_means_no_record(module: Any, app: StageApp) -> None:
    consumer = consumer_of(module, app)
    scripted(consumer, {P0: [record(0)]})
    assert await consumer._getmany(set(), 0.01) == {}


# --------------------------------------------------------------------------- changelogs left alone
@pytest.mark.parametrize("module", BOTH)
async def test_changelogs_of_a_bulk_load_are_never_prefetched(module: Any, app: StageApp) -> None:
    table = open_rows(app, "rows")
    mine, standby, foreign = (TP(table.changelog, number) for number in range(3))
    consumer = consumer_of(module, app)
    inner = scripted(consumer, {P0: [], mine: [], standby: []})  # `foreign` went away meanwhile
    app.assignor.assigned_standbys = lambda: {standby}
    assignments: list[tuple[set[TP], set[TopicPartition]]] = []

    async def assigned(_: Any, partitions: set[TP], generation: int) -> None:
        assignments.append((partitions, set(inner.paused)))

    consumer.threadsafe_partitions_assigned = assigned
    everything = {P0, mine, standby, foreign}
    await consumer._thread.on_partitions_assigned(everything, 1)
    assert assignments == [(everything, {TopicPartition(*mine)})]  # before anything else is done with them


@pytest.mark.parametrize("module", BOTH)
async def test_the_ends_of_changelogs_do_not_wait_behind_a_fetch(
    module: Any, app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = consumer_of(module, app)
    scripted(consumer, {P0: []})
    behind: list[TP] = []

    async def in_the_group(*tps: TP) -> dict[TP, int]:
        behind.extend(tps)
        return dict.fromkeys(tps, 7)

    async def aside(_: ChangelogReader, tps: Iterable[TP]) -> dict[TP, int]:
        return dict.fromkeys(tps, 7)

    consumer._thread.highwaters = consumer._thread.earliest_offsets = in_the_group
    monkeypatch.setattr(ChangelogReader, "starts", aside)
    monkeypatch.setattr(ChangelogReader, "ends", aside)
    assert await consumer.highwaters(P0) == await consumer.earliest_offsets(P0) == {P0: 7}
    assert behind == []


# --------------------------------------------------------------------------- 7: lease
class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    fake = SimpleNamespace(monotonic=clock, time=clock)
    monkeypatch.setattr("memstream.streams.faust.transports.kafka.time", fake)
    monkeypatch.setattr("memstream.streams.faust.app.time", fake)
    return clock


def watched(app: StageApp, *answers: Any) -> tuple[Any, ScriptedCoordinator]:
    """Return the app's consumer, whose thread watches a scripted coordinator."""
    coordinator = ScriptedCoordinator(answers=list(answers))
    thread = app.consumer._thread
    assert isinstance(thread, ours.ConsumerThread)
    thread._watch_membership(coordinator)
    return thread, coordinator


def answer(code: int = 0) -> SimpleNamespace:
    return SimpleNamespace(error_code=code)


HEARTBEAT = HeartbeatRequest("g", 1, "m-1")
SYNC = SyncGroupRequest("g", 1, "m-1", None, [])
LEAVE = LeaveGroupRequest("g", "m-1")
UNKNOWN_MEMBER, REBALANCING = 25, 27


async def test_lease_is_dated_when_the_heartbeat_was_sent(app: StageApp, clock: Clock) -> None:
    async def late() -> SimpleNamespace:
        clock.now += 19  # SIGSTOP between sending and answer
        return answer()

    _, coordinator = watched(app, answer(), late)
    await coordinator._send_req(SYNC)
    assert app.lease_age() == 0
    await coordinator._send_req(HEARTBEAT)
    assert app.lease_age() == 19
    app.check_lease()
    clock.now += 2
    with pytest.raises(LeaseLost):
        app.check_lease()


@pytest.mark.parametrize(
    ("request_", "code", "renewed"),
    [
        (HEARTBEAT, 0, True),
        (HEARTBEAT, REBALANCING, True),
        (HEARTBEAT, UNKNOWN_MEMBER, False),
        (SYNC, 0, True),
        (SYNC, REBALANCING, False),
    ],
)
async def test_answers_that_renew_the_lease(
    app: StageApp, clock: Clock, request_: Any, code: int, renewed: bool
) -> None:
    thread, coordinator = watched(app, answer(), answer(code))
    await coordinator._send_req(SYNC)
    clock.now += 5
    await coordinator._send_req(request_)
    assert (thread.lease_start == clock.now) is renewed


async def test_a_heartbeat_that_a_loading_group_accepts_renews_no_expired_lease(app: StageApp, clock: Clock) -> None:
    loading = [answer(CoordinatorLoadInProgressError.errno), answer()]
    _, coordinator = watched(app, answer(), *loading, answer(), answer(), answer())
    await coordinator._send_req(SYNC)
    clock.now += app.lease_limit() + 1
    await coordinator._send_req(HEARTBEAT)
    assert app.lease_age() == app.lease_limit() + 1, "the group may have removed the member before the broker started"
    await coordinator._send_req(HEARTBEAT)
    assert app.lease_age() == 0
    clock.now += 1
    await coordinator._send_req(HEARTBEAT)
    assert app.lease_age() == 0
    beat = ["OffsetFetchRequest", "HeartbeatRequest"]
    assert coordinator.sent == ["SyncGroupRequest", *beat, *beat, "HeartbeatRequest"]


async def test_before_the_first_join_nothing_has_lapsed(app: StageApp, clock: Clock) -> None:
    clock.now += 1_000_000
    assert app.lease_age() == 0.0
    app.check_lease()


async def test_a_static_member_has_two_heartbeats(tmp_path: Path, clock: Clock) -> None:
    app = stage_app(tmp_path, worker_id="w1", session_timeout=20)
    _, coordinator = watched(app, answer())
    await coordinator._send_req(SYNC)
    clock.now += 5.9
    app.check_lease()
    clock.now += 0.2
    with pytest.raises(LeaseLost):
        app.check_lease()


@pytest.mark.parametrize("mended", [True, pytest.param(False, marks=STOCK_FAILS)])
async def test_a_removal_from_the_group_ends_the_process(app: StageApp, clock: Clock, mended: bool) -> None:
    coordinator = ScriptedCoordinator(answers=[answer()])
    if mended:
        app.consumer._thread._watch_membership(coordinator)
    await coordinator._send_req(SYNC)
    coordinator.reset_generation()  # aiokafka would join again, the old buffer still in the producer
    assert app.exits == [3]
    with pytest.raises(LeaseLost):
        app.check_lease()


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (InconsistentGroupProtocolError(), "another program is a member of the consumer group memory-test"),
        (UnknownError(), "the consumer group memory-test: UnknownError()"),
    ],
)
async def test_a_worker_that_its_group_refuses_ends(app: StageApp, error: KafkaError, why: str) -> None:
    _, coordinator = watched(app)
    await coordinator._push_error_to_user(error)
    await wait_for(lambda: app.crash_reason, "the worker to end", deadline=5)
    assert coordinator.errors == [error]
    assert exit_code_for(app.crash_reason) == UNREACHABLE
    assert str(app.crash_reason).startswith(why)
    assert isinstance(app.crash_reason, Transient)
    assert app.crash_reason.remedy


async def test_an_unknown_member_before_the_first_join_is_no_fencing(app: StageApp, clock: Clock) -> None:
    _, coordinator = watched(app)
    coordinator.reset_generation()
    assert app.exits == []


async def test_a_clean_leave_is_no_fencing(app: StageApp, clock: Clock) -> None:
    app.lanes = Lanes()
    _, coordinator = watched(app, answer(), answer())
    await coordinator._send_req(SYNC)
    coordinator._closing.set_result(None)
    await coordinator._send_req(LEAVE)
    coordinator.reset_generation()
    assert app.exits == []
    app.check_lease()


async def test_a_leave_with_handlers_running_writes_nothing_more_and_ends(app: StageApp, clock: Clock) -> None:
    app.lanes = Lanes(busy=True)
    _, coordinator = watched(app, answer(), answer())
    await coordinator._send_req(SYNC)
    coordinator._closing.set_result(None)
    await coordinator._send_req(LEAVE)
    with pytest.raises(LeaseLost):
        app.check_lease()
    coordinator.reset_generation()
    assert app.exits == [3]


# --------------------------------------------------------------------------- a rebalance that comes between
TPS = (TopicPartition(*P0), TopicPartition(*P1))


def listening(app: StageApp, member: Member, module: Any = ours) -> Any:
    """Return Faust's listener over the app's consumer, with this transport and coordinator.

    Calls between the threads are made at once.
    """
    app.transport = transport_class(module)(app.transport.url, app)
    consumer: Any = app.consumer

    async def revoked(_: Any, tps: set[TP]) -> None:
        await consumer.on_partitions_revoked(tps)

    async def assigned(*_: Any) -> None: ...

    consumer.threadsafe_partitions_revoked, consumer.threadsafe_partitions_assigned = revoked, assigned
    inner = scripted(consumer, {P0: [], P1: []})
    inner._coordinator = member.coordinator
    if module is ours:
        consumer._thread._watch_membership(member.coordinator)
    return stock.ConsumerRebalanceListener(consumer._thread)


@pytest.mark.parametrize("module", BOTH)
@pytest.mark.parametrize("worker_id", [None, "w1"])
async def test_a_rebalance_waits_until_a_worker_that_stops_has_committed(
    module: Any, worker_id: str | None, tmp_path: Path
) -> None:
    app = stage_app(tmp_path, worker_id=worker_id)
    group = ScriptedGroup(TPS)
    async with member_of(group, TPS, instance_id=worker_id) as member:
        await member.join(listening(app, member, module))
        app._stopped.set()
        app.lanes = lanes = Lanes(busy=True)
        group.rebalance()
        beats = group.count(HeartbeatRequest)
        await group.until(lambda: group.count(HeartbeatRequest) > beats + 3 or group.count(JoinGroupRequest) > 1)
        assert group.count(JoinGroupRequest) == 1, "others would own what its handlers have in hand"
        await member.commit(3)
        lanes.busy = False
        group.whole.set()
        await member.coordinator.close()
    last = [what for what in group.seen if what != "HeartbeatRequest"][-3:]
    leave, stay = ["OffsetCommitRequest", "committed", "LeaveGroupRequest"], ["JoinGroupRequest", "SyncGroupRequest"]
    assert last == (leave if worker_id is None else ["committed", *stay])
    assert app.exits == []


@pytest.mark.parametrize("module", BOTH)
async def test_a_commit_behind_a_join_does_not_end_the_membership(module: Any, app: StageApp) -> None:
    group = ScriptedGroup(TPS)
    async with member_of(group, TPS) as member:
        await member.join(listening(app, member, module))
        group.rebalance()
        await group.until(lambda: group.count(JoinGroupRequest) == 2)
        commit = asyncio.create_task(member.commit(3))
        await group.until(lambda: group.count(OffsetCommitRequest) == 1)
        group.whole.set()
        with pytest.raises(CommitFailedError, match="already rebalanced"):  # Faust takes it for "not committed"
            await commit
        assert (member.coordinator.member_id, member.coordinator.generation) == (MEMBER, 2)
        beats = group.count(HeartbeatRequest)
        await group.until(lambda: group.count(HeartbeatRequest) > beats + 1)
        assert group.count(JoinGroupRequest) == 2
        assert app.exits == []
        await member.commit(4)
    assert [what for what in group.seen if what in ("refused", "committed")] == ["refused", "committed"]


async def test_a_commit_refused_in_the_generation_of_now_ends_the_process(app: StageApp) -> None:
    group = ScriptedGroup(TPS)
    async with member_of(group, TPS) as member:
        await member.join(listening(app, member))
        group.generation += 1  # without us
        with pytest.raises(CommitFailedError):
            await member.commit(3)
        assert app.exits == [UNREACHABLE]
        with pytest.raises(LeaseLost):
            app.check_lease()


async def test_a_refused_request_reaches_the_caller(app: StageApp, clock: Clock) -> None:
    async def refuse() -> None:
        raise UnknownMemberIdError()

    thread, coordinator = watched(app, refuse)
    with pytest.raises(UnknownMemberIdError):
        await coordinator._send_req(HEARTBEAT)
    assert thread.lease_start == 0.0


# --------------------------------------------------------------------------- 7: held producer
@pytest.mark.parametrize("module", BOTH)
async def test_the_buffer_is_held_while_the_lease_is_expired(
    module: Any, app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []

    async def send_produce_req(self: Any, node_id: Any, batches: Any) -> None:
        sent.append(batches)

    monkeypatch.setattr(Sender, "_send_produce_req", send_produce_req)
    lease = {"ok": False}
    app.lease_ok = lambda: lease["ok"]  # type: ignore[method-assign]
    producer = transport_class(module)(app.transport.url, app).create_producer()._new_producer()
    sending = asyncio.create_task(producer._sender._send_produce_req(1, "batch"))
    await asyncio.sleep(3 * ours.PAUSE)
    assert sent == []
    lease["ok"] = True
    await asyncio.wait_for(sending, 1)
    assert sent == ["batch"]


async def test_the_producer_is_idempotent(app: StageApp) -> None:
    producer = ours.KafkaTransport(app.transport.url, app).create_producer()._new_producer()
    assert producer._txn_manager is not None


@pytest.mark.parametrize(
    ("answer", "ends"), [(OutOfOrderSequenceNumber(), True), (RequestTimedOutError(), False), (None, False)]
)
async def test_a_producer_that_lost_its_sequence_ends_the_worker(
    answer: Exception | None, ends: bool, app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker would refuse everything that it sends to that partition."""

    async def send(self: Any, *args: Any, **kwargs: Any) -> asyncio.Future[None]:
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.set_result(None) if answer is None else sent.set_exception(answer)
        return sent

    crashes: list[BaseException] = []

    async def crash(reason: BaseException) -> None:
        crashes.append(reason)

    monkeypatch.setattr(AIOKafkaProducer, "send", send)
    app.crash = crash  # type: ignore[method-assign]
    producer = ours.KafkaTransport(app.transport.url, app).create_producer()._new_producer()
    await asyncio.wait([await producer.send("t", b"v")])
    await spin()
    assert [exit_code_for(reason) for reason in crashes] == ([UNREACHABLE] if ends else [])


@pytest.mark.parametrize(("timestamp", "stamp"), [(None, None), (1_700_000_000.5, 1_700_000_000_500)])
async def test_a_record_is_sent_as_it_is_given(timestamp: float | None, stamp: int | None, app: StageApp) -> None:
    producer = ours.KafkaTransport(app.transport.url, app).create_producer()
    sent: list[Any] = []

    async def send(*args: Any, **kwargs: Any) -> None:
        sent.append((args, kwargs))
        if len(sent) == 2:
            raise RequestTimedOutError()

    producer._producer = SimpleNamespace(send=send)
    headers = [("ce_id", b"1")]
    await producer.send("t", b"k", b"v", 1, timestamp, headers)
    assert sent == [(("t", b"v"), {"key": b"k", "partition": 1, "timestamp_ms": stamp, "headers": headers})]
    with pytest.raises(ProducerSendError) as raised:
        await producer.send("t", b"k", b"v", 1, timestamp, headers)
    assert isinstance(raised.value.__cause__, RequestTimedOutError)


# --------------------------------------------------------------------------- 7b: metadata
@pytest.mark.parametrize("mended", [True, pytest.param(False, marks=STOCK_FAILS)])
async def test_a_failed_metadata_update_waits(mended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    client = AIOKafkaClient(bootstrap_servers="127.0.0.1:1", retry_backoff_ms=100)
    monkeypatch.setattr(client.cluster, "brokers", lambda: [SimpleNamespace(nodeId=1)])
    tries = []

    async def no_connection(node_id: Any, **_: Any) -> None:
        tries.append(node_id)

    monkeypatch.setattr(client, "_get_conn", no_connection)
    if mended:
        back_off_metadata(client)

    async def ask() -> None:
        while True:
            await client._metadata_update(client.cluster, [])
            await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(ask(), 0.35)
    assert 2 <= len(tries) <= 5


@pytest.mark.parametrize("mended", [True, pytest.param(False, marks=STOCK_FAILS)])
@pytest.mark.parametrize("error", [CoordinatorLoadInProgressError, NotCoordinatorForGroupError])
async def test_a_group_that_is_still_loading_has_offsets(app: StageApp, error: type[KafkaError], mended: bool) -> None:
    group = ScriptedGroup(TPS)
    group.offsets_refused = [error.errno, error.errno]
    if mended:
        spread_group_errors(group)
    async with member_of(group, TPS) as member:
        await member.join(listening(app, member))
        assignment = member.assignment
        async with asyncio.timeout(WITHIN):
            positions = [await assignment.state_value(tp).fetch_committed() for tp in TPS]
        assert {position.offset for position in positions} == {COMMITTED}, "else it would begin at the begin"
        group.offsets_refused = [error.errno]
        offsets = await member.coordinator.fetch_committed_offsets(TPS)
        assert {tp: found.offset for tp, found in offsets.items()} == dict.fromkeys(TPS, COMMITTED)


async def test_a_refused_group_is_no_group_without_offsets() -> None:
    group = ScriptedGroup(TPS)
    group.offsets_refused = [GroupAuthorizationFailedError.errno]
    spread_group_errors(group)
    async with member_of(group, TPS) as member:
        with pytest.raises(GroupAuthorizationFailedError):
            await member.coordinator.fetch_committed_offsets(TPS)


@pytest.mark.parametrize("kind", ["consumer", "producer"])
async def test_every_client_of_the_transport_is_mended(app: StageApp, kind: str) -> None:
    transport = ours.KafkaTransport(app.transport.url, app)
    if kind == "consumer":
        client = consumer_of(ours, app)._thread._create_worker_consumer(transport)._client
    else:
        client = transport.create_producer()._new_producer().client
    assert client._metadata_update.__qualname__.startswith("back_off_metadata")
    assert client.send.__qualname__.startswith("spread_group_errors")


# --------------------------------------------------------------------------- 11: commit inside the revocation
@pytest.mark.parametrize("lanes", [True, pytest.param(False, marks=STOCK_FAILS)])
async def test_done_events_are_committed_before_the_partitions_are_revoked(app: StageApp, lanes: bool) -> None:
    consumer = app.consumer
    inner: ScriptedConsumer = scripted(consumer, {P0: [record(o) for o in range(3)]})

    async def flush() -> None: ...

    app._producer = SimpleNamespace(flush=flush)

    async def commit() -> None:
        await consumer._commit_offsets({P0: 3})

    app.lanes = Lanes(on_drain=commit) if lanes else None
    consumer._acked[P0] = [0, 1, 2]  # Faust forgets these before it calls us
    await consumer.on_partitions_revoked({P0})
    assert inner.committed == [{P0: 3}]
    assert app.lanes is not None
    assert app.lanes.drained == [frozenset({(TOPIC, 0)})]


# --------------------------------------------------------------------------- registration
def test_only_register_changes_what_kafka_means() -> None:
    TRANSPORTS.aliases["kafka"] = "faust.transport.drivers.aiokafka:Transport"
    ours.register()
    assert TRANSPORTS.by_url("kafka://h:1") is ours.KafkaTransport


async def test_workers_create_no_topics(app: StageApp) -> None:
    await consumer_of(ours, app).create_topic("t", 1, 1)
    await ours.KafkaTransport(app.transport.url, app).create_producer().create_topic("t", 1, 1)


# --------------------------------------------------------------------------- partitions without room
async def test_a_partition_without_room_is_not_fetched_and_the_other_is(app: StageApp) -> None:
    lanes = app.lanes = Lanes()
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(o, 0) for o in range(4)], P1: [record(o, 1) for o in range(4)]})
    lanes.without_room.add(P0)
    assert {tp for tp, _ in await take(consumer)} == {P1}
    assert await inner.position(P0) == 0
    lanes.without_room.clear()
    assert await take(consumer) == [(P0, o) for o in range(4)]


async def test_what_was_fetched_before_there_was_no_room_is_delivered(app: StageApp) -> None:
    lanes = app.lanes = Lanes()
    consumer = consumer_of(ours, app)
    scripted(consumer, {P0: [record(o) for o in range(4)]})
    assert await take(consumer, 2, lambda: lanes.without_room.add(P0)) == [(P0, o) for o in range(4)]


async def test_a_fetch_that_waits_takes_a_partition_that_has_room_again(app: StageApp) -> None:
    lanes = app.lanes = Lanes()
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(0, 0)], P1: []})
    lanes.without_room.add(P0)
    fetch = asyncio.create_task(consumer._getmany(consumer._get_active_partitions(), 30.0))
    await spin()
    assert not fetch.done()
    lanes.without_room.clear()
    consumer._thread._wake_fetches()
    assert set(await asyncio.wait_for(fetch, 5)) == {P0}
    assert all(waiter.done() for waiter in inner._fetcher.waiters)


async def test_offsets_that_the_lanes_call_safe_are_committed(app: StageApp) -> None:
    """Faust would find a hole before 7, and commit nothing."""
    lanes = app.lanes = Lanes()
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(3), record(7)], P1: [record(0, 1)]})
    lanes.done = {P0: 8}
    consumer._committed_offset.update({P0: 3, P1: 0})
    assert await consumer.commit()
    assert inner.committed == [{P0: 8}]
    assert not await consumer.commit(), "committed already"


async def test_each_message_tells_what_the_fetches_before_it_prove(app: StageApp) -> None:
    consumer = consumer_of(ours, app)
    inner = scripted(consumer, {P0: [record(0), record(2), record(3)]})
    told = [(m.offset, m.follows) async for _, m in consumer.getmany(timeout=0.01)]
    inner._fetcher.log[P0].append(record(6))
    told += [(m.offset, m.follows) async for _, m in consumer.getmany(timeout=0.01)]
    inner._fetcher.log[P0].append(record(9))
    inner.seek(P0, 8)
    told += [(m.offset, m.follows) async for _, m in consumer.getmany(timeout=0.01)]
    assert told == [(0, 0), (2, 1), (3, 3), (6, 4), (9, 8)]
