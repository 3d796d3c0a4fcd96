"""Recovery against a scripted consumer; each fault is seen with Faust's own class."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.tables import recovery as faust_recovery
from faust.tables.recovery import Recovery, ServiceStopped
from faust.types import TP

from memstream.schemas.errors import Transient
from memstream.streams.app import StageApp
from memstream.streams.exits import UNREACHABLE, exit_code_for
from memstream.streams.recovery import StageRecovery
from memstream.streams.table import open_rows
from tests.support.faust_parts import TOPIC, spin, stage_app

STOCK_FAILS = pytest.mark.xfail(strict=True, raises=AssertionError, reason="Faust's own class has the fault")
BOTH = [pytest.param(StageRecovery, id="ours"), pytest.param(Recovery, id="stock", marks=STOCK_FAILS)]
SOURCE = TP(TOPIC, 0)
CHANGELOG = TP("memory-test-rows-changelog", 0)


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    return stage_app(tmp_path)


def recovery_of(kind: type[Recovery], app: StageApp) -> Any:
    recovery = kind(app, app.tables, beacon=app.beacon, loop=app.loop)
    app.tables._recovery = recovery
    return recovery


# --------------------------------------------------------------------------- 4: resume order
class FlowingConsumer:
    """Delivers at once whatever may flow: that is the timing that Faust's order does not survive."""

    in_hand = 0

    def __init__(self, app: Any, *, committed: int, end: int) -> None:
        self.queue = app.FlowControlQueue(clear_on_resume=True)
        self.committed, self.end, self.position_ = committed, end, committed
        self.resumed: set[TP] = set()
        self.flow_active = True

    def assignment(self) -> set[TP]:
        return {SOURCE, CHANGELOG}

    def resume_partitions(self, tps: set[TP]) -> None:
        self.resumed |= tps
        self._flow()

    def resume_flow(self) -> None:
        self.flow_active = True
        self._flow()

    async def perform_seek(self) -> None:
        self.position_ = self.committed
        self._flow()

    def _flow(self) -> None:
        while self.flow_active and SOURCE in self.resumed and self.position_ < self.end:
            self.queue.force_put_nowait(self.position_)
            self.position_ += 1

    def delivered(self) -> list[int]:
        return list(self.queue._queue)


async def ready(app: Any) -> None:
    """What surrounds a recovery that is through."""

    async def started() -> bool:
        return True

    app._fetcher = SimpleNamespace(maybe_start=started)
    app.on_rebalance_start()
    app.flow_control.resume()  # running since the changelogs were read


@pytest.mark.parametrize("kind", BOTH)
async def test_nothing_that_flows_is_thrown_away_when_recovery_ends(kind: type[Recovery], app: StageApp) -> None:
    open_rows(app, "rows")
    recovery = recovery_of(kind, app)
    consumer = app._consumer = FlowingConsumer(app, committed=5, end=10)
    await ready(app)
    await recovery.on_recovery_completed(app.consumer_generation_id)
    assert consumer.delivered() == [5, 6, 7, 8, 9]
    assert consumer.resumed == {SOURCE}
    assert not app.rebalancing


@pytest.mark.parametrize("kind", BOTH)
async def test_nor_in_a_stage_without_a_table(kind: type[Recovery], app: StageApp) -> None:
    recovery = recovery_of(kind, app)
    consumer = app._consumer = FlowingConsumer(app, committed=5, end=10)
    await ready(app)
    await recovery._resume_streams(app.consumer_generation_id)
    assert consumer.delivered() == [5, 6, 7, 8, 9]
    assert not app.rebalancing


async def test_a_suspended_flow_is_resumed(app: StageApp) -> None:
    recovery = recovery_of(StageRecovery, app)
    consumer = app._consumer = FlowingConsumer(app, committed=5, end=10)
    consumer.flow_active = False
    await ready(app)
    app.flow_control.suspend()
    await recovery._resume_streams(app.consumer_generation_id)
    assert consumer.delivered() == [5, 6, 7, 8, 9]
    assert app.flow_control.is_active()


async def test_another_rebalance_leaves_the_sources_paused(app: StageApp) -> None:
    recovery = recovery_of(StageRecovery, app)
    consumer = app._consumer = FlowingConsumer(app, committed=5, end=10)
    await ready(app)
    await recovery.on_recovery_completed(app.consumer_generation_id - 1)
    assert consumer.resumed == set()
    assert app.rebalancing


# --------------------------------------------------------------------------- 5: a time-out is no stop
@pytest.mark.parametrize("kind", BOTH)
async def test_a_time_out_crashes_the_worker(kind: type[Recovery], app: StageApp) -> None:
    recovery = recovery_of(kind, app)
    with pytest.raises(ServiceStopped):
        await recovery._wait(asyncio.sleep(10), timeout=0.01)
    assert isinstance(app.crash_reason, Transient)
    assert exit_code_for(app.crash_reason) == UNREACHABLE


async def test_a_real_stop_is_no_crash(app: StageApp) -> None:
    recovery = recovery_of(StageRecovery, app)
    recovery._stopped.set()
    with pytest.raises(ServiceStopped):
        await recovery._wait(asyncio.sleep(10), timeout=1)
    assert app.crash_reason is None


async def watch(recovery: Any, while_: Callable[[], Any], seconds: float) -> None:
    """Runs the watchdog for a while."""
    recovery.watch_interval, recovery.stall_timeout = 0.01, 0.1
    task = asyncio.create_task(recovery._watchdog.fun(recovery))
    end = asyncio.get_running_loop().time() + seconds
    while not task.done() and asyncio.get_running_loop().time() < end:
        while_()
        await asyncio.sleep(0.01)
    recovery._stopped.set()
    await task


async def test_the_watchdog_crashes_a_rebalance_that_stands_still(app: StageApp) -> None:
    recovery = recovery_of(StageRecovery, app)
    app._consumer = FlowingConsumer(app, committed=0, end=0)
    app.rebalancing = True
    await watch(recovery, lambda: None, 5)
    assert isinstance(app.crash_reason, Transient)


@pytest.mark.parametrize("what", ["offsets move", "generations move", "not rebalancing"])
async def test_the_watchdog_leaves_progress_alone(app: StageApp, what: str) -> None:
    recovery = recovery_of(StageRecovery, app)
    app._consumer = FlowingConsumer(app, committed=0, end=0)
    app.rebalancing = what != "not rebalancing"

    def move() -> None:
        if what == "offsets move":
            recovery.active_offsets[CHANGELOG] = (recovery.active_offsets[CHANGELOG] or 0) + 1
        if what == "generations move":
            app.consumer_generation_id += 1

    await watch(recovery, move, 0.5)
    assert app.crash_reason is None


# --------------------------------------------------------------------------- 6: a gap at the end
async def recover(kind: type[Recovery], app: Any, monkeypatch: pytest.MonkeyPatch, *, in_hand: int = 0) -> Any:
    """A recovery with offsets up to 7 read, the last record at 9 gone, the consumer's position past it."""
    recovery = recovery_of(kind, app)
    app._consumer = FlowingConsumer(app, committed=0, end=0)
    app._consumer.in_hand = in_hand

    async def position(tp: TP) -> int:
        return 10

    app._consumer.position = position
    recovery.active_tps.add(CHANGELOG)
    recovery.active_offsets[CHANGELOG], recovery.active_highwaters[CHANGELOG] = 7, 9
    recovery._set_recovery_started()
    recovery.gap_interval = 0.01
    real = asyncio.wait_for

    async def soon(awaitable: Any, timeout: float) -> Any:  # the loop waits 5 s for the next entry
        return await real(awaitable, min(timeout, 0.05))

    monkeypatch.setattr(faust_recovery.asyncio, "wait_for", soon)
    return recovery


async def run_for(recovery: Any, seconds: float) -> bool:
    """Its own loops for a while; whether recovery ended."""
    tasks = [asyncio.create_task(recovery._slurp_changelogs.fun(recovery))]
    if isinstance(recovery, StageRecovery):
        tasks.append(asyncio.create_task(recovery._skip_gap_at_end.fun(recovery)))
    end = asyncio.get_running_loop().time() + seconds
    while recovery.in_recovery and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.01)
    ended = not recovery.in_recovery
    recovery._stopped.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return ended


@pytest.mark.parametrize("kind", BOTH)
async def test_a_changelog_that_ends_in_a_gap_is_recovered(
    kind: type[Recovery], app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery = await recover(kind, app, monkeypatch)
    assert await run_for(recovery, 1.0)


async def test_no_gap_while_entries_are_in_hand(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    recovery = await recover(StageRecovery, app, monkeypatch, in_hand=1)
    assert not await run_for(recovery, 0.3)


async def test_no_gap_while_entries_wait_in_the_queue(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    recovery = await recover(StageRecovery, app, monkeypatch)
    app.tables.changelog_queue.force_put_nowait("entry")
    task = asyncio.create_task(recovery._skip_gap_at_end.fun(recovery))
    await asyncio.sleep(0.2)
    recovery._stopped.set()
    await task
    assert recovery.in_recovery


async def test_no_gap_while_offsets_move(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    recovery = await recover(StageRecovery, app, monkeypatch)
    recovery.active_highwaters[CHANGELOG] = 10_000
    recovery.gap_interval = 0.02
    task = asyncio.create_task(recovery._skip_gap_at_end.fun(recovery))
    for _ in range(20):
        recovery.active_offsets[CHANGELOG] += 1
        await asyncio.sleep(0.015)
    recovery._stopped.set()
    await task
    assert recovery.in_recovery


async def test_no_gap_before_the_position_has_passed_it(app: StageApp, monkeypatch: pytest.MonkeyPatch) -> None:
    recovery = await recover(StageRecovery, app, monkeypatch)

    async def position(tp: TP) -> int:
        return 9  # the record at 9 may still come

    app._consumer.position = position
    assert not await run_for(recovery, 0.3)


async def test_the_app_uses_it(app: StageApp) -> None:
    await spin(1)
    assert isinstance(app.tables.recovery, StageRecovery)
