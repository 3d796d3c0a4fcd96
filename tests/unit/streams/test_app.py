"""The app of a stage: settings, lease and bounded shutdown."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiokafka.errors import CommitFailedError, KafkaConnectionError
from faust import App
from faust.types import TP
from yarl import URL

from memstream.schemas.errors import Fatal, OverBudget, Transient
from memstream.streams.engine.process_exit import BROKEN, DONE, UNREACHABLE, ExitTimer, LeaseLost, exit_code_for
from memstream.streams.engine.retry import Interrupted
from memstream.streams.faust.app import MAX_REQUEST, AppSettings, StageApp, create_app
from memstream.streams.faust.table import MAX_VALUE, DurableTable
from memstream.streams.faust.transports import kafka
from memstream.streams.log.broker_url import embedded_folder, is_embedded, kafka_servers
from memstream.streams.log.partitioner import partition_for
from tests.support.faust_fakes import TOPIC, Lanes, ScriptedConsumer, record, stage_app


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    return stage_app(tmp_path)


# --------------------------------------------------------------------------- settings
async def test_settings_lose_no_record(tmp_path: Path) -> None:
    settings = AppSettings(partitions=6, replication=3, session_timeout=20, worker_id="w1")
    app = create_app(name="memory-observer", broker="kafka://a:1,b:2", datadir=tmp_path, settings=settings)
    conf = app.conf
    assert conf.broker == [URL("kafka://a:1"), URL("kafka://b:2")]
    assert isinstance(app.transport, kafka.KafkaTransport)
    assert (conf.id, conf.topic_partitions, conf.topic_replication_factor) == ("memory-observer", 6, 3)
    assert conf.consumer_group_instance_id == "w1"
    assert conf.broker_session_timeout == 20
    assert conf.broker_heartbeat_interval <= 20 / 3
    assert conf.broker_max_poll_interval > 0
    assert conf.producer_acks == -1
    assert conf.producer_max_request_size == MAX_REQUEST > MAX_VALUE
    assert not conf.stream_wait_empty
    assert not conf.web_enabled
    assert conf.topic_disable_leader
    assert Path(conf.datadir) == tmp_path
    assert conf.Table is DurableTable


@pytest.mark.parametrize("session", [3.0, 10.0, 40.0])
def test_three_heartbeats_fit_into_a_session(session: float) -> None:
    settings = AppSettings(session_timeout=session)
    assert settings.heartbeat_interval <= session / 3


@pytest.mark.parametrize("session", [0.5, 41.0])
def test_a_session_out_of_range_is_refused_by_name(session: float) -> None:
    with pytest.raises(Fatal, match="MEMSTREAM_SESSION_TIMEOUT"):
        AppSettings(session_timeout=session)


def test_addresses() -> None:
    assert kafka_servers("kafka://a:1, b") == ("a:1", "b:9092")
    assert kafka_servers("kafka://[::1]:9092") == ("[::1]:9092",)
    assert is_embedded("embedded:///tmp/x")
    assert embedded_folder("embedded:///tmp/x") == Path("/tmp/x")


@pytest.mark.parametrize("broker", ["localhost:9092", "kafka://", "kafka://a:b", "kafka://a:1,,b:2", "kafka://a:99999"])
def test_a_wrong_address_is_refused_by_name(broker: str) -> None:
    with pytest.raises(Fatal, match="MEMSTREAM_BROKER"):
        kafka_servers(broker)


def test_an_embedded_folder_is_absolute() -> None:
    with pytest.raises(Fatal, match="absolute"):
        embedded_folder("embedded://here")


def test_the_partitioner_is_javas() -> None:
    # org.apache.kafka.common.utils.UtilsTest.testMurmur2: "foobar" is -790332482, "21" is -973932308
    assert partition_for(b"foobar", 12) == (-790332482 & 0x7FFFFFFF) % 12
    assert partition_for(b"21", 12) == (-973932308 & 0x7FFFFFFF) % 12
    with pytest.raises(ValueError):
        partition_for(b"k", 0)


# --------------------------------------------------------------------------- exit codes
@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (None, DONE),
        (Transient("broker", "away"), UNREACHABLE),
        (LeaseLost("lapsed"), UNREACHABLE),
        (Interrupted("partitions go away"), UNREACHABLE),
        (OverBudget("spent", retry_after=1.0), UNREACHABLE),
        (ConnectionRefusedError(), UNREACHABLE),
        (KafkaConnectionError(), UNREACHABLE),
        (CommitFailedError(), UNREACHABLE),
        (Fatal("invariant"), BROKEN),
        (RuntimeError("unknown"), BROKEN),
    ],
)
def test_exit_codes(reason: BaseException | None, code: int) -> None:
    assert exit_code_for(reason) == code


# --------------------------------------------------------------------------- 13: an end that always comes
async def hang() -> None:
    await asyncio.Event().wait()


STOCK_FAILS = pytest.mark.xfail(strict=True, raises=AssertionError, reason="Faust's own class has the fault")


class StockEnd(StageApp):
    """StageApp with Faust's own shutdown."""

    _crash = App._crash
    stop = App.stop
    on_stop = App.on_stop


@pytest.mark.parametrize(
    "kind", [pytest.param(StageApp, id="ours"), pytest.param(StockEnd, id="stock", marks=STOCK_FAILS)]
)
@pytest.mark.parametrize("how", ["stop", "crash"])
@pytest.mark.slow
async def test_a_shutdown_that_hangs_is_ended(
    kind: Any, how: str, app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.__class__ = kind
    app.stop_grace = app.crash_grace = 0.1
    monkeypatch.setattr(app, "_producer_flush", lambda *_: hang())  # the broker is away
    if how == "crash":
        await app.crash(Fatal("invariant"))
    stopping = asyncio.create_task(app.stop())
    await asyncio.sleep(0.4)
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    assert app.exits == [UNREACHABLE if how == "stop" else BROKEN]


@pytest.mark.slow
async def test_a_blocked_event_loop_is_ended_too(app: StageApp) -> None:
    app.crash_grace = 0.05
    with structlog.testing.capture_logs() as logged:
        app._crash(Transient("broker", "away", remedy="is it up?"))
        time.sleep(0.3)  # nothing runs on the loop
    assert app.exits == [UNREACHABLE]
    cut_off, last = logged[-2:]
    assert cut_off["why"] == "it stops for a crash, and did not finish in time"
    assert (cut_off["event"], cut_off["exit_code"]) == ("shutdown_cut_off", UNREACHABLE)
    assert (last["event"], last["remedy"]) == ("worker_stopped", "is it up?"), "the reason is logged, too"


@pytest.mark.slow
async def test_a_second_stop_does_not_disarm_the_first(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    app.crash_grace = 0.2
    monkeypatch.setattr(app, "_producer_flush", lambda *_: hang())
    await app.crash(Transient("broker", "away"))
    stopping = asyncio.create_task(app.stop())
    await asyncio.sleep(0.01)
    await app.stop()
    await asyncio.sleep(0.4)
    stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
    assert app.exits == [UNREACHABLE]


@pytest.mark.slow
async def test_a_timer_leaves_a_shutdown_that_ends_alone(app: StageApp) -> None:
    before = threading.active_count()
    app.stop_grace = app.crash_grace = 0.3
    await app.crash(Transient("broker", "away"))
    await app.stop()
    await asyncio.sleep(0.5)
    assert app.exits == []
    assert threading.active_count() == before


@pytest.mark.slow
def test_a_cancelled_timer_does_not_end_the_process() -> None:
    ended: list[int] = []
    timer = ExitTimer(0.05, reason=None, exit_process=ended.append)
    timer.cancel()
    time.sleep(0.15)
    assert ended == []


# --------------------------------------------------------------------------- drain
async def test_a_stop_drains_the_lanes_before_it_leaves(app: StageApp) -> None:
    app._consumer = app.consumer
    app.consumer._thread._consumer = ScriptedConsumer({TP(TOPIC, 0): [record(0)]})
    lanes = app.lanes = Lanes()
    seen = []
    app._stop_consumer = lambda: seen.append(lanes.drained) or asyncio.sleep(0)  # type: ignore[func-returns-value]
    await app.on_stop()
    assert lanes.drained == [frozenset({(TOPIC, 0)})]
    assert lanes.finished
    assert lanes.closed
    assert seen


async def test_ready_means_that_events_flow(app: StageApp) -> None:
    assert not app.ready()
    assert "not joined" in app.why_not_ready()
    app._consumer = app.consumer
    app.consumer._thread._consumer = ScriptedConsumer({TP(TOPIC, 0): [record(0)]})
    app.tables.on_actives_ready()
    assert app.ready()
    assert app.assigned() == {(TOPIC, 0)}
    assert app.why_not_ready() == ""
    app.rebalancing = True
    assert "assigning partitions" in app.why_not_ready()
    app.rebalancing = False
    app.in_recovery = True
    assert "changelog" in app.why_not_ready()
    app.in_recovery = False
    app.lease_ok = lambda: False  # type: ignore[method-assign]
    assert "MEMSTREAM_BROKER" in app.why_not_ready()
    assert not app.ready()


async def test_a_member_without_partitions_is_a_spare(app: StageApp) -> None:
    app._consumer = app.consumer
    app.consumer._thread._consumer = ScriptedConsumer({})
    app.tables.on_actives_ready()
    assert "not joined" in app.why_not_ready()
    app.consumer._thread.lease_start = time.monotonic()
    assert app.why_not_ready() == ""
    assert not app.ready(), "no events flow"


async def test_a_stopping_worker_is_not_ready_and_says_so(app: StageApp) -> None:
    app._stopped.set()
    assert "asked to stop" in app.why_not_ready()
    app._crashed.set()
    app._crash_reason = RuntimeError("a reason")
    assert app.why_not_ready() == "it ends: a reason"


# --------------------------------------------------------------------------- out of the group
@pytest.mark.parametrize("worker_id", [None, "w1"])
async def test_a_worker_that_its_group_removed_ends_at_once_and_names_the_remedy(
    worker_id: str | None, tmp_path: Path
) -> None:
    app = stage_app(tmp_path, worker_id=worker_id)
    with structlog.testing.capture_logs() as lines:
        app.fenced()
    assert app.exits == [UNREACHABLE]
    (line,) = lines
    assert (line["event"], line["exit_code"]) == ("out_of_the_consumer_group", UNREACHABLE)
    assert "MEMSTREAM_SESSION_TIMEOUT (20 s)" in line["remedy"]
    assert ("MEMSTREAM_WORKER_ID=w1" in line["remedy"]) is (worker_id is not None)
    with pytest.raises(LeaseLost):
        app.check_lease()


async def test_a_crash_that_leaves_the_group_names_its_cause_and_the_remedy(
    app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(app, "exit_process", ended.append)
    app._crash_reason = Fatal("no room for the tables in /data")
    app._crashed.set()
    with structlog.testing.capture_logs() as lines:
        app.fenced()
    assert ended == [BROKEN]
    assert [(line["event"], line["why"]) for line in lines] == [("worker_stopped", "no room for the tables in /data")]
