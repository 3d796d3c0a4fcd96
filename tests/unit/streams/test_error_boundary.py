"""The error boundary: dead letters, crash counts on disk, and when the stage stops."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import (
    ContentFiltered,
    DeadLetterReason,
    DeploymentFault,
    Fatal,
    LaterVersion,
    OverBudget,
    Poison,
    Transient,
)
from memstream.streams.engine.error_boundary import (
    CRASHES_MAX,
    DEAD_LETTERS_IN_A_ROW_MAX,
    REFUSED_OF_A_TENANT_MAX,
    CrashCounter,
    ErrorBoundary,
    decoded,
    exception_of,
    unexpected,
)
from memstream.streams.engine.failures import DecisionFailed
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.engine.retry import Interrupted
from memstream.streams.log.port import Position
from tests.support.counting_stage import Counted, Counting
from tests.support.stage_harness import StageHarness, Topics

HERE = Position("memory.turns", 3, 17)
UNUSABLE = Poison("refused_by_model", "no JSON")


class Event:
    """One event at a boundary, with its refusals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.refused: list[tuple[str, int]] = []
        self.restart()

    def restart(self) -> None:
        self.deaths = CrashCounter(self.folder)
        self.boundary = ErrorBoundary(crashes=self.deaths)

    async def fails(self, error: BaseException, position: Position = HERE, *, tenant: str | None = None) -> None:
        async def handle() -> None:
            raise error

        await self.boundary.run(position, handle, self.refuse, tenant_id=lambda: tenant)

    async def is_refused(self, tenant: str | None) -> None:
        """The model gives no usable answer about a turn of this tenant."""
        await self.fails(UNUSABLE, tenant=tenant)

    async def succeeds(self, tenant: str | None = None) -> None:
        async def handle() -> None:
            self.boundary.succeeded(tenant)

        await self.boundary.run(HERE, handle, self.refuse)

    async def refuse(self, poison: Poison, attempts: int) -> None:
        self.refused.append((poison.reason, attempts))


@pytest.fixture
def event(tmp_path: Path) -> Event:
    return Event(tmp_path)


def odd() -> DecisionFailed:
    failed = DecisionFailed("odd")
    failed.__cause__ = RuntimeError("odd")
    return failed


# -------------------------------------------------------------------------------------------------------------- poison
async def test_poison_is_refused_and_may_be_acknowledged(event: Event) -> None:
    await event.fails(Poison("invalid", "no"))
    assert event.refused == [("invalid", 1)]
    assert event.deaths.of(HERE) == 0


async def test_it_may_not_be_acknowledged_before_its_dead_letter_is_durable(event: Event) -> None:
    async def refuse(poison: Poison, attempts: int) -> None:
        raise Transient("broker", "away")

    async def handle() -> None:
        raise Poison("invalid", "no")

    with pytest.raises(Transient):
        await event.boundary.run(HERE, handle, refuse)


# -------------------------------------------------------------------------------------------------------------- deaths
async def test_the_third_crash_by_a_record_makes_it_a_dead_letter(event: Event) -> None:
    for death in (1, 2):
        with pytest.raises(DecisionFailed):
            await event.fails(odd())
        assert event.refused == []
        event.restart()
        assert event.deaths.of(HERE) == death, "on disk"
    await event.fails(odd())
    assert event.refused == [("fatal", CRASHES_MAX)]


async def test_the_crash_is_on_disk_before_the_worker_stops(event: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}") if Path("/proc/self/fd").exists() else "")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    with pytest.raises(DecisionFailed):
        await event.fails(odd())
    assert len(synced) == 1
    (file,) = event.folder.glob("*.json")
    assert json.loads(file.read_text()) == {
        "topic": "memory.turns",
        "partition": 3,
        "offset": 17,
        "deaths": 1,
        "why": "RuntimeError: odd",
    }


async def test_each_record_has_its_own_count(event: Event) -> None:
    for offset in range(5):
        with pytest.raises(DecisionFailed):
            await event.fails(odd(), Position("memory.turns", 3, offset))
    assert event.refused == []


async def test_a_record_redelivered_after_its_dead_letter_does_not_stop_the_worker(event: Event) -> None:
    for _ in range(2):
        with pytest.raises(DecisionFailed):
            await event.fails(odd())
    await event.fails(odd())
    event.restart()  # killed before the commit
    await event.fails(odd())
    assert event.refused == [("fatal", 3), ("fatal", 4)]


@pytest.mark.parametrize(
    "error",
    [
        Transient("store", "away"),
        LeaseLost("gone"),
        Interrupted("partitions go away"),
        Fatal("the collection has another embedder"),
        RuntimeError("from table, store or broker"),
        OSError("disk full"),
        KeyboardInterrupt(),
    ],
)
async def test_only_exceptions_of_decide_count(event: Event, error: BaseException) -> None:
    for _ in range(5):
        with pytest.raises(type(error)):
            await event.fails(error)
    assert event.deaths.of(HERE) == 0
    assert event.refused == []


class Failing(Counting):
    """A counting stage in which one step fails."""

    def __init__(self, error: Exception, at: str) -> None:
        super().__init__(sink=self.fail_in_store)
        self.error, self.at = error, at

    def fail_in_store(self, id: str, payload: dict[str, object]) -> None:
        if self.at == "store":
            raise self.error

    def route(self, record):  # type: ignore[no-untyped-def]
        if self.at == "route":
            raise self.error
        return super().route(record)

    def last(self, work: Counted, rows):  # type: ignore[no-untyped-def]
        if self.at == "last":
            raise self.error
        return super().last(work, rows)

    async def decide(self, work: Counted, record, rows, queued):  # type: ignore[no-untyped-def]
        if self.at == "decide":
            raise self.error
        async for decided in super().decide(work, record, rows, queued):
            yield decided


@pytest.mark.parametrize(
    ("at", "error", "counts"),
    [
        ("decide", RuntimeError("odd"), True),
        ("decide", AssertionError("a broken invariant"), True),
        ("decide", Fatal("a broken invariant"), True),
        ("decide", Transient("model", "away"), False),
        ("decide", LeaseLost("gone"), False),
        ("decide", Interrupted("partitions go away"), False),
        ("route", RecursionError("odd"), True),
        ("store", DeploymentFault("the collection is gone"), False),
        ("store", LeaseLost("gone"), False),
    ],
)
async def test_a_stage_that_fails_at_one_step(at: str, error: Exception, counts: bool) -> None:
    harness = StageHarness(name="observer", make=lambda _: Failing(error, at))
    record = Topics().record("memory.turns", b"a", b'{"id": "1", "value": "x"}')
    for _ in range(2):
        with pytest.raises(DecisionFailed if counts else type(error)):
            await harness.deliver(record)
        harness.start()
    if counts:
        await harness.deliver(record)
        assert [letter.topic for letter in harness.sent] == ["memory.turns.dlq"]
    else:
        with pytest.raises(type(error)):
            await harness.deliver(record)
        assert harness.sent == []


class Silent(Failing):
    def writes_dead_letters(self, topic: str) -> bool:
        return False


async def test_a_stage_without_dead_letters_writes_those_of_its_own_crashes() -> None:
    record = Topics().record("memory.turns", b"a", b'{"id": "1", "value": "x"}')
    harness = StageHarness(name="recorder", make=lambda _: Silent(Poison("invalid", "no"), "route"))
    await harness.deliver(record)
    assert harness.sent == []
    harness = StageHarness(name="recorder", make=lambda _: Silent(RuntimeError("odd"), "decide"))
    for _ in range(2):
        with pytest.raises(DecisionFailed):
            await harness.deliver(record)
    await harness.deliver(record)
    assert [dict(letter.headers)["memstream-reason"] for letter in harness.sent] == [b"fatal"]


def test_a_count_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    deaths = CrashCounter(tmp_path)
    assert deaths.add(HERE, "odd") == 1
    (file,) = tmp_path.glob("*.json")
    for broken in ("", "{", "3", "[]", "{}", "\x00"):
        file.write_text(broken)
        assert deaths.of(HERE) == 0
    assert deaths.add(HERE, "odd") == 1


def test_counts_older_than_a_week_are_deleted(tmp_path: Path) -> None:
    deaths = CrashCounter(tmp_path)
    other = Position("memory.turns", 3, 18)
    deaths.add(HERE, "odd")
    (file,) = tmp_path.glob("*.json")
    deaths.add(other, "odd")
    now = file.stat().st_mtime
    os.utime(file, (now - 7 * 24 * 3600 - 1, now - 7 * 24 * 3600 - 1))
    CrashCounter(tmp_path).forget_old(now)
    assert (deaths.of(HERE), deaths.of(other)) == (0, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError(), True),
        (AssertionError(), True),
        (Fatal("x"), True),
        (Poison("invalid", "x"), False),
        (Transient("store", "x"), False),
        (LeaseLost("x"), False),
        (Interrupted("x"), False),
        (OverBudget("x", retry_after=1.0), False),
        (LaterVersion("x"), False),
        (DeploymentFault("x"), False),
    ],
)
def test_unexpected_exceptions(error: Exception, expected: bool) -> None:
    assert unexpected(error) is expected


# ------------------------------------------------------------------------------------------------------------- letters
TENANTS = ("acme", "umbrella", "initech")
PRODUCERS: tuple[DeadLetterReason, ...] = ("undecodable", "invalid", "oversized", "unsupported_version")


async def test_twenty_refusals_of_three_tenants_in_a_row_stop_the_stage(event: Event) -> None:
    for n in range(DEAD_LETTERS_IN_A_ROW_MAX - 1):
        await event.is_refused(TENANTS[n % 3])
    with pytest.raises(Fatal, match="20 dead letters in a row"):
        await event.is_refused(TENANTS[1])
    assert len(event.refused) == 20, "the letter is durable all the same"


async def test_what_a_content_filter_refuses_never_stops_it(event: Event) -> None:
    for n in range(200):
        await event.fails(ContentFiltered("no"), tenant=TENANTS[n % 3])
    assert len(event.refused) == 200


async def test_one_tenant_has_its_limit_when_others_are_refused_too(event: Event) -> None:
    await event.succeeds("umbrella")
    for _ in range(100):
        await event.is_refused("acme")
    for n in range(DEAD_LETTERS_IN_A_ROW_MAX - REFUSED_OF_A_TENANT_MAX - 1):
        await event.is_refused(f"tenant-{n}")
    with pytest.raises(Fatal):
        await event.is_refused("umbrella")


async def test_unusable_answers_to_the_only_tenant_stop_it(event: Event) -> None:
    await event.succeeds("acme")
    for _ in range(DEAD_LETTERS_IN_A_ROW_MAX - 1):
        await event.fails(UNUSABLE, tenant="acme")
    with pytest.raises(Fatal, match="20 dead letters in a row"):
        await event.fails(UNUSABLE, tenant="acme")


async def test_unusable_answers_to_one_tenant_of_several_never_stop_it(event: Event) -> None:
    await event.succeeds("umbrella")
    for _ in range(200):
        await event.fails(UNUSABLE, tenant="acme")
    assert len(event.refused) == 200


async def test_dead_letters_of_crashes_count_as_well(event: Event) -> None:
    for _ in range(2):
        with pytest.raises(DecisionFailed):
            await event.fails(odd())
    for _ in range(DEAD_LETTERS_IN_A_ROW_MAX - 1):
        await event.fails(odd())
    with pytest.raises(Fatal, match="20 dead letters"):
        await event.fails(odd())


async def test_dead_letters_of_invalid_input_never_stop_it(event: Event) -> None:
    for _ in range(50):
        for reason in PRODUCERS:
            await event.fails(Poison(reason, "no"))


async def test_dead_letters_of_invalid_input_do_not_break_the_row(event: Event) -> None:
    for n in range(DEAD_LETTERS_IN_A_ROW_MAX - 1):
        await event.is_refused(TENANTS[n % 3])
        await event.fails(Poison("invalid", "no"))
    with pytest.raises(Fatal):
        await event.is_refused(TENANTS[1])


async def test_a_success_ends_the_row(event: Event) -> None:
    for _ in range(3):
        for n in range(DEAD_LETTERS_IN_A_ROW_MAX - 1):
            await event.is_refused(TENANTS[n % 3])
        await event.succeeds()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["filtered", "unusable", "crashed", "producer", "success"]),
            st.sampled_from(TENANTS),
            st.integers(1, 21),
        ),
        max_size=9,
    )
)
async def test_it_stops_exactly_at_twenty_in_a_row(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, str, int]]
) -> None:
    event = Event(tmp_path_factory.getbasetemp() / "unused")
    row: list[tuple[str, str]] = []
    met: set[str] = set()
    for what, tenant in [(what, tenant) for what, tenant, times in runs for _ in range(times)]:
        if what == "producer":
            await event.fails(Poison("invalid", "no"), tenant=tenant)
            continue
        if what == "success":
            row = []
            met.add(tenant)
            await event.succeeds(tenant)
            continue
        row.append((what, "" if what == "crashed" else tenant))
        met |= {row[-1][1]} - {""}
        counted = sum(1 for kind, _ in row if kind == "crashed")
        for each in TENANTS:
            unusable = row.count(("unusable", each))
            counted += min(unusable, REFUSED_OF_A_TENANT_MAX) if len(met) > 1 else unusable
        error = ContentFiltered("no") if what == "filtered" else UNUSABLE
        fails = event.fails(error, tenant=row[-1][1] or None)
        if what != "filtered" and counted >= DEAD_LETTERS_IN_A_ROW_MAX:
            with pytest.raises(Fatal):
                await fails
        else:
            await fails


# --------------------------------------------------------------------------------------------------------------- edges
async def test_failures_are_returned() -> None:
    async def raising(error: Exception) -> None:
        raise error

    make: Callable[[Exception], Awaitable[None]] = raising
    for failure in (ValueError("x"), LeaseLost("gone")):
        assert await exception_of(make(failure)) is failure


def test_a_decoder_raises_only_poison_and_decision_failed() -> None:
    def fail(error: Exception) -> None:
        raise error

    assert decoded(lambda: 3) == 3
    with pytest.raises(Poison):
        decoded(lambda: fail(Poison("invalid", "no")))
    with pytest.raises(DecisionFailed) as failed:
        decoded(lambda: fail(RecursionError("deep")))
    assert isinstance(failed.value.__cause__, RecursionError)
