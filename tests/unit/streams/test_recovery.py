"""Recovery with a scripted consumer. Each fault shows with Faust's own class."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from faust.tables.recovery import RebalanceAgain, Recovery, ServiceStopped
from faust.types import TP

from memstream.schemas.errors import Transient
from memstream.streams.engine.process_exit import BROKEN, UNREACHABLE, LeaseLost, exit_code_for
from memstream.streams.faust.app import StageApp
from memstream.streams.faust.changelog_check import ChangelogLost, ChangelogState, outdated
from memstream.streams.faust.recovery import StageRecovery
from memstream.streams.faust.table import open_rows
from memstream.streams.log.markers import MARKER_KEY, Marker
from memstream.streams.log.partition_count import CountChanged
from tests.support.faust_fakes import TOPIC, ScriptedProducer, Sent, spin, stage_app
from tests.support.table_rows import all_rows

STOCK_FAILS = pytest.mark.xfail(strict=True, raises=AssertionError, reason="Faust's own class has the fault")
BOTH = [pytest.param(StageRecovery, id="ours"), pytest.param(Recovery, id="stock", marks=STOCK_FAILS)]
SOURCE = TP(TOPIC, 0)
CHANGELOG = TP("memory-test-rows-changelog", 0)
PARTITIONS = 2
"""Of `stage_app`."""


@pytest.fixture
async def app(tmp_path: Path) -> StageApp:
    return stage_app(tmp_path)


def recovery_of(kind: type[Recovery], app: StageApp) -> Any:
    recovery = kind(app, app.tables, beacon=app.beacon, loop=app.loop)
    app.tables._recovery = recovery
    return recovery


# --------------------------------------------------------------------------- 4: resume order
class FlowingConsumer:
    """A consumer that delivers at once. With this timing Faust's order of steps loses events."""

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
    """Set up the state at the end of a recovery."""

    async def started() -> bool:
        return True

    app._fetcher = SimpleNamespace(maybe_start=started)
    app.on_rebalance_start()
    app.flow_control.resume()  # running since the changelogs were read


@pytest.mark.parametrize("kind", BOTH)
async def test_no_event_is_lost_when_a_recovery_ends(kind: type[Recovery], app: StageApp) -> None:
    open_rows(app, "rows")
    recovery = recovery_of(kind, app)
    consumer = app._consumer = FlowingConsumer(app, committed=5, end=10)
    await ready(app)
    await recovery.on_recovery_completed(app.consumer_generation_id)
    assert consumer.delivered() == [5, 6, 7, 8, 9]
    assert consumer.resumed == {SOURCE}
    assert not app.rebalancing


@pytest.mark.parametrize("kind", BOTH)
async def test_no_event_is_lost_in_a_stage_without_a_table(kind: type[Recovery], app: StageApp) -> None:
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
    """Run the watchdog for `seconds`."""
    recovery.watch_interval, recovery.stall_timeout = 0.01, 0.1
    task = asyncio.create_task(recovery._watchdog.fun(recovery))
    end = asyncio.get_running_loop().time() + seconds
    while not task.done() and asyncio.get_running_loop().time() < end:
        while_()
        await asyncio.sleep(0.01)
    recovery._stopped.set()
    await task


async def test_the_watchdog_crashes_a_rebalance_without_progress(app: StageApp) -> None:
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


# --------------------------------------------------------------------------- 6: the whole way of a recovery
MARKER = Marker(identity="one", whole_from=0, written_at=0, partitions=PARTITIONS)


class LoggedConsumer(FlowingConsumer):
    """A consumer whose changelog has these entries, with gaps between them, read two at a time."""

    def __init__(self, app: Any, entries: dict[int, bytes | None], *, end: int, start: int = 0) -> None:
        super().__init__(app, committed=0, end=0)
        self.entries, self.end_of_changelog, self.start = entries, end, start
        self._committed_offset: dict[TP, int | None] = {SOURCE: None}
        self.reads: list[int] = []
        self.on_read: Callable[[], None] = lambda: None

    async def highwaters(self, *tps: TP) -> dict[TP, int]:
        return dict.fromkeys(tps, self.end_of_changelog)

    async def earliest_offsets(self, *tps: TP) -> dict[TP, int]:
        return dict.fromkeys(tps, self.start)

    @asynccontextmanager
    async def changelogs(self) -> AsyncIterator[LoggedConsumer]:
        yield self

    async def read(self, tp: TP, offset: int, timeout: float) -> tuple[list[Any], int]:
        self.reads.append(offset)
        self.on_read()
        await asyncio.sleep(0)
        found = [n for n in sorted(self.entries) if n >= offset][:2]
        return [self.entry(n) for n in found], found[-1] + 1 if found else self.end_of_changelog

    def entry(self, offset: int) -> Any:
        value = self.entries[offset]
        key = MARKER_KEY if value is not None and Marker.of(value) else f"k{offset}"
        return SimpleNamespace(offset=offset, key=key.encode(), value=value)


class Taking(ScriptedProducer):
    """A producer whose records are durable at once, from `offset` on."""

    offset = 0

    async def send(self, *args: Any) -> Sent:
        sent = await super().send(*args)
        sent.deliver(self.offset)
        return sent

    async def flush(self) -> None:
        return


def numbered(last: int, marker: Marker = MARKER) -> dict[int, bytes | None]:
    """Return a marker and entries 1 to `last`."""
    return {0: marker.to_bytes()} | {n: b"%d" % n for n in range(1, last + 1)}


def rows_of(last: int) -> dict[str, bytes]:
    return {f"k{n}": b"%d" % n for n in range(1, last + 1)}


async def assigned(
    app: Any, entries: dict[int, bytes | None], *, end: int, start: int = 0
) -> tuple[Any, Any, LoggedConsumer]:
    """Return a recovery that is about to begin, with its table and consumer."""
    app.conf.tabledir.mkdir(parents=True)
    app._producer = Taking()
    rows = open_rows(app, "rows")
    recovery = recovery_of(StageRecovery, app)
    consumer = app._consumer = LoggedConsumer(app, entries, end=end, start=start)
    await ready(app)
    recovery.add_active(rows._table, CHANGELOG)
    return recovery, rows, consumer


async def again(app: Any, recovery: Any, rows: Any) -> None:
    """Set up another recovery of the same table, as in the next process."""
    recovery._known.clear()
    recovery.active_offsets.clear()
    recovery.add_active(rows._table, CHANGELOG)
    app.on_rebalance_start()
    await recovery._recover(app.consumer_generation_id)


async def test_a_recovery_reads_to_the_end_and_lets_events_flow(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    assert all_rows(rows, 0) == rows_of(5)
    assert rows._table.persisted_offset(CHANGELOG) == 5
    assert (app.in_recovery, app.rebalancing) == (False, False)
    assert consumer.resumed == {SOURCE}
    assert app._producer.sent == []


async def test_a_changelog_that_ends_in_a_gap_is_recovered(app: StageApp) -> None:
    recovery, rows, _ = await assigned(app, numbered(3), end=10)
    await recovery._recover(app.consumer_generation_id)
    assert all_rows(rows, 0) == rows_of(3)
    assert rows._table.persisted_offset(CHANGELOG) == 9, "the gap is not looked at again"
    assert not app.rebalancing


async def test_a_warm_store_reads_only_what_is_new(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    consumer.entries, consumer.end_of_changelog, consumer.reads = numbered(8), 9, []
    await again(app, recovery, rows)
    assert consumer.reads == [6, 8, 0], "what is new, then once where the marker has to be"
    assert all_rows(rows, 0) == rows_of(8)
    assert not app.rebalancing


async def test_a_recovery_of_an_older_assignment_writes_nothing_and_resumes_nothing(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(9), end=10)

    def assigned_anew() -> None:
        app.consumer_generation_id += len(consumer.reads) == 2

    consumer.on_read = assigned_anew
    await recovery._recover(app.consumer_generation_id)
    assert all_rows(rows, 0) == {}
    assert rows._table.persisted_offset(CHANGELOG) is None
    assert consumer.resumed == set()
    assert app.rebalancing


async def test_the_next_assignment_ends_a_recovery_that_waits(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(1), end=2)
    reading = asyncio.Event()

    async def away(tp: TP, offset: int, timeout: float) -> tuple[list[Any], int]:
        reading.set()
        await asyncio.sleep(60)
        raise AssertionError

    read = consumer.read
    consumer.read = away  # type: ignore[method-assign]
    task = asyncio.create_task(recovery._restart_recovery.fun(recovery))
    recovery.signal_recovery_start.set()
    await asyncio.wait_for(reading.wait(), 5)
    consumer.read = read  # type: ignore[method-assign]
    recovery.signal_recovery_start.set()
    while app.rebalancing:
        await asyncio.sleep(0.01)
    recovery._stopped.set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert all_rows(rows, 0) == rows_of(1)


async def test_a_recovery_touches_no_table_before_the_load_that_was_cut_off_has_ended(app: StageApp) -> None:
    """The thread of that load may still be at its last write."""
    recovery, rows, _ = await assigned(app, numbered(2), end=3)
    looked_at: list[int] = []
    find_states = recovery._find_states

    async def watched(generation_id: int) -> None:
        looked_at.append(generation_id)
        await find_states(generation_id)

    recovery._find_states = watched
    async with recovery._loading:
        task = asyncio.create_task(recovery._recover(app.consumer_generation_id))
        await spin()
        assert not looked_at
    await task
    assert all_rows(rows, 0) == rows_of(2)


@pytest.mark.parametrize("at", ["starts", "forgotten", "states", "count", "marker"])
async def test_a_recovery_of_an_older_assignment_opens_no_database(
    app: StageApp, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next assignment opens and closes the databases in threads meanwhile."""
    recovery, rows, consumer = await assigned(app, numbered(3), end=4)
    if at in ("forgotten", "marker"):  # a warm table: of another count, or as it was left
        both = [CHANGELOG, CHANGELOG._replace(partition=1)][: 2 if at == "marker" else 1]
        for tp in both:
            recovery.add_active(rows._table, tp)
        await recovery._recover(app.consumer_generation_id)
        recovery._known.clear()
        for tp in both:
            recovery.add_active(rows._table, tp)
        if at == "forgotten":
            moved = MARKER.model_copy(update={"partitions": PARTITIONS + 1}).to_bytes()
            rows._table.data._db_for_partition(0).put(MARKER_KEY.encode(), moved)
    owner, name = {
        "starts": (consumer, "earliest_offsets"),
        "forgotten": (rows._table, "forget"),
        "states": (recovery, "_find_states"),
        "count": (app, "check_count"),
        "marker": (recovery, "_has_marker"),
    }[at]
    step, opened = getattr(owner, name), list[int]()

    async def assigned_anew(*args: Any) -> Any:
        found = await step(*args)
        app.consumer_generation_id += 1
        rows._table.data._dbs.clear()
        monkeypatch.setattr(rows._table.data, "_open_for_partition", opened.append)
        return found

    monkeypatch.setattr(owner, name, assigned_anew)
    with suppress(RebalanceAgain):
        await recovery._recover(app.consumer_generation_id)
    assert opened == []
    assert app.consumer_generation_id == 1
    assert app.crash_reason is None


# --------------------------------------------------------------------------- whole, or refused
async def test_a_new_partition_gets_its_marker_before_anything_flows(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, {}, end=0)
    await recovery._recover(app.consumer_generation_id)
    (sent,) = app._producer.sent
    assert (sent.key, sent.tp.partition) == (MARKER_KEY.encode(), 0)
    assert rows._table.marker(0) == Marker.of(sent.value)
    assert list(all_rows(rows, 0).items()) == []
    consumer.entries, consumer.end_of_changelog = {0: sent.value}, 1
    await again(app, recovery, rows)
    assert len(app._producer.sent) == 1


async def test_a_partition_with_only_dead_letters_is_whole(app: StageApp) -> None:
    recovery, _, consumer = await assigned(app, {0: MARKER.to_bytes()}, end=1)
    consumer._committed_offset = {SOURCE: 20}
    await recovery._recover(app.consumer_generation_id)
    assert not app.rebalancing


async def test_an_empty_changelog_of_a_group_that_has_committed_is_refused(app: StageApp) -> None:
    recovery, _, consumer = await assigned(app, {}, end=0)
    consumer._committed_offset = {SOURCE: 20}
    with pytest.raises(ChangelogLost, match=r"partition 0: it is empty, but the group has committed .*20"):
        await recovery._recover(app.consumer_generation_id)
    assert app._producer.sent == []
    assert consumer.resumed == set()


async def test_a_changelog_without_its_first_entry_is_refused(app: StageApp) -> None:
    recovery, _, _ = await assigned(app, {1: b"1", 2: b"2"}, end=3)
    with pytest.raises(ChangelogLost, match="not its first entry"):
        await recovery._recover(app.consumer_generation_id)


async def test_deleted_entries_are_missed_also_when_a_marker_was_written_later(app: StageApp) -> None:
    accepted = Marker(identity="two", whole_from=3, written_at=6, partitions=PARTITIONS)
    recovery, rows, _ = await assigned(app, {5: b"5", 6: accepted.to_bytes()}, end=7, start=5)
    with pytest.raises(ChangelogLost, match="entries 3 to 4 were deleted"):
        await recovery._recover(app.consumer_generation_id)
    with pytest.raises(
        ChangelogLost, match="entries 3 to 4 were deleted"
    ):  # the store has it all now; it lacks as much
        await again(app, recovery, rows)


async def test_rows_that_lie_by_another_count_are_refused(app: StageApp) -> None:
    other = Marker(identity="one", whole_from=0, written_at=0, partitions=PARTITIONS - 1)
    recovery, _, consumer = await assigned(app, numbered(3, other), end=4)
    with pytest.raises(CountChanged, match=f"memstream topics grow --partitions {PARTITIONS}"):
        await recovery._recover(app.consumer_generation_id)
    assert consumer.resumed == set()


async def test_a_marker_of_an_earlier_version_gets_the_count_of_now_once(app: StageApp) -> None:
    earlier = Marker(identity="one", whole_from=0, written_at=0)
    recovery, rows, _ = await assigned(app, numbered(3, earlier), end=4)
    await recovery._recover(app.consumer_generation_id)
    written = rows._table.marker(0)
    assert len(app._producer.sent) == 1
    assert written == Marker(identity="one", whole_from=0, written_at=4, partitions=PARTITIONS)


@pytest.mark.parametrize("count", [None, PARTITIONS - 1])
async def test_a_new_partition_beside_one_of_another_count_is_refused(app: StageApp, count: int | None) -> None:
    async def some_marker(changelog: str) -> Marker | None:
        return Marker(identity="one", whole_from=0, written_at=0, partitions=count)

    app.some_marker = some_marker  # type: ignore[method-assign]
    recovery, _, _ = await assigned(app, {}, end=0)
    with pytest.raises(CountChanged, match="topics grow"):
        await recovery._recover(app.consumer_generation_id)
    assert app._producer.sent == []


async def test_a_topic_that_has_grown_meanwhile_is_refused(app: StageApp) -> None:
    class GrownLog:
        async def partitions(self, topic: str) -> int:
            return PARTITIONS + 1

    app.log_client = GrownLog()  # type: ignore[assignment]
    recovery, _, consumer = await assigned(app, numbered(3), end=4)
    with pytest.raises(CountChanged, match=f"has {PARTITIONS + 1} partitions"):
        await recovery._recover(app.consumer_generation_id)
    assert consumer.resumed == set()


async def test_a_local_table_of_another_count_is_read_anew(app: StageApp) -> None:
    recovery, rows, _ = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    earlier = Marker(identity="one", whole_from=0, written_at=0, partitions=PARTITIONS - 1)
    rows._table.data._db_for_partition(0).put(MARKER_KEY.encode(), earlier.to_bytes())
    rows._table.data._db_for_partition(0).put(b"moved", b"away")
    await again(app, recovery, rows)
    assert dict(rows.page(0)) == rows_of(5)


async def test_an_accepted_loss_is_no_loss(app: StageApp) -> None:
    accepted = Marker(identity="two", whole_from=5, written_at=6, partitions=PARTITIONS)
    recovery, rows, _ = await assigned(app, {5: b"5", 6: accepted.to_bytes()}, end=7, start=5)
    await recovery._recover(app.consumer_generation_id)
    assert all_rows(rows, 0) == {"k5": b"5"}


async def test_a_local_table_ahead_of_the_changelog_is_refused(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    consumer.end_of_changelog = 3
    with pytest.raises(ChangelogLost, match="up to offset 5, the changelog ends at 3"):
        await again(app, recovery, rows)


async def test_a_local_table_before_the_changelogs_begin_is_refused(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    consumer.start, consumer.end_of_changelog = 8, 9
    with pytest.raises(ChangelogLost, match="up to offset 5, the changelog begins at 8"):
        await again(app, recovery, rows)


async def test_a_topic_made_anew_that_has_outgrown_the_local_table_is_refused(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    consumer.entries, consumer.end_of_changelog = (
        numbered(9, Marker(identity="two", whole_from=0, written_at=0, partitions=PARTITIONS)),
        10,
    )
    with pytest.raises(ChangelogLost, match="of another topic of this name"):
        await again(app, recovery, rows)


async def test_a_warm_table_goes_on_when_only_what_it_has_was_deleted(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    consumer.start, consumer.entries, consumer.end_of_changelog = 6, {6: b"6"}, 7
    await again(app, recovery, rows)
    assert all_rows(rows, 0) == rows_of(6)


async def test_a_local_table_older_than_tombstones_are_kept_is_read_anew(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    del consumer.entries[5]  # its tombstone came and went meanwhile
    consumer.entries |= {8: b"8"}
    consumer.end_of_changelog, consumer.reads = 9, []
    rows._table.note_complete(0, time.time() - 2 * 24 * 3600)
    await again(app, recovery, rows)
    assert all_rows(rows, 0) == rows_of(4) | {"k8": b"8"}
    assert consumer.reads[0] == 0
    consumer.reads = []
    await again(app, recovery, rows)
    assert consumer.reads == [0], "now it is up to date: one look for the marker"


async def test_an_old_local_table_that_has_everything_is_kept(app: StageApp) -> None:
    recovery, rows, consumer = await assigned(app, numbered(5), end=6)
    await recovery._recover(app.consumer_generation_id)
    rows._table.note_complete(0, 0.0)
    consumer.reads = []
    await again(app, recovery, rows)
    assert consumer.reads == [0]
    assert all_rows(rows, 0) == rows_of(5)


async def test_no_marker_is_written_for_an_older_assignment(app: StageApp) -> None:
    recovery, _, consumer = await assigned(app, {}, end=0)
    await recovery._find_states(app.consumer_generation_id)
    consumer._committed_offset = {SOURCE: 20}
    await recovery._check_whole(app.consumer_generation_id - 1)
    assert app._producer.sent == []


async def test_lost_rows_stop_the_worker_with_their_remedy(app: StageApp) -> None:
    recovery, _, _ = await assigned(app, {1: b"1"}, end=2)
    recovery.signal_recovery_start.set()
    await asyncio.wait_for(recovery._restart_recovery.fun(recovery), 10)
    assert isinstance(app.crash_reason, ChangelogLost)
    assert exit_code_for(app.crash_reason) == BROKEN
    assert "memstream tables accept-loss test" in str(app.crash_reason)
    assert str(app.conf.tabledir) in str(app.crash_reason)


async def test_a_lease_that_is_lost_in_a_recovery_ends_the_worker(
    app: StageApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovery, _, _ = await assigned(app, {}, end=0)

    def check_lease() -> None:
        raise LeaseLost("no answer from the group coordinator")

    monkeypatch.setattr(app, "check_lease", check_lease)
    recovery.signal_recovery_start.set()
    await asyncio.wait_for(recovery._restart_recovery.fun(recovery), 10)
    assert isinstance(app.crash_reason, LeaseLost)
    assert exit_code_for(app.crash_reason) == UNREACHABLE


async def test_the_app_uses_it(app: StageApp) -> None:
    await spin(1)
    assert isinstance(app.tables.recovery, StageRecovery)


@pytest.mark.parametrize(
    ("hours_ago", "expected"),
    [(1, False), (22, False), (24, True), (-1 / 120, False), (-1, True), (-24 * 365, True)],
)
def test_a_table_noted_complete_by_a_clock_ahead_is_loaded_again(hours_ago: float, expected: bool) -> None:
    state, now = ChangelogState(TP("changelog", 0), start=0, end=10, have=4), 1_000_000_000.0
    assert outdated(state, complete_at=now - hours_ago * 3600, now=now) is expected
    assert not outdated(replace(state, have=9), complete_at=now - hours_ago * 3600, now=now), "nothing is missing"
