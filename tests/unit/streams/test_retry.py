"""Retries and breakers with a clock of their own, so that no test waits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.schemas.errors import OverBudget, Poison, Transient
from memstream.streams.engine.breaker import Breaker, BreakerPolicy
from memstream.streams.engine.process_exit import LeaseLost
from memstream.streams.engine.retry import Calls, Interrupted, RetryPolicy

STRICT = BreakerPolicy()
LAX = BreakerPolicy(failures=10_000)


class World:
    """Calls with a clock that only waits move, and a record of the waits."""

    def __init__(self, *, retry: RetryPolicy | None = None, breaker: BreakerPolicy = LAX) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        self.retried: list[str] = []
        self.calls = Calls(
            retry=retry, breaker=breaker, clock=lambda: self.now, wait=self.wait, on_retry=self.retried.append
        )

    async def wait(self, wake: asyncio.Event, seconds: float) -> None:
        self.waits.append(seconds)
        assert len(self.waits) < 1000, "it never ends"
        self.now += seconds
        await asyncio.sleep(0)


def failing(times: int, *, retry_after: float | None = None) -> Callable[[], Awaitable[str]]:
    left = [times]

    async def make() -> str:
        if left[0]:
            left[0] -= 1
            raise Transient("store", f"away, {left[0]} left", retry_after=retry_after)
        return "done"

    return make


# --------------------------------------------------------------------------------------------------------------- retry
async def test_a_call_is_repeated_until_it_succeeds() -> None:
    world = World()
    assert await world.calls.call("store", failing(7)) == "done"
    assert len(world.waits) == 7
    assert world.retried == ["store"] * 7


@given(seed=st.integers(0, 1000), first=st.floats(0.01, 1), cap=st.floats(1, 30))
def test_waits_are_full_jitter_under_a_doubling_cap(seed: int, first: float, cap: float) -> None:
    random.seed(seed)
    world = World(retry=RetryPolicy(first=first, cap=cap))
    asyncio.run(world.calls.call("store", failing(12)))
    for attempt, pause in enumerate(world.waits):
        assert 0 <= pause <= min(cap, first * 2**attempt)


def test_jitter_is_full_and_not_a_little() -> None:
    """The waits spread over the whole of [0, cap], not around its end."""
    random.seed(1)
    world = World(retry=RetryPolicy(first=1, cap=1))
    asyncio.run(world.calls.call("store", failing(400)))
    tenths = {int(pause * 10) for pause in world.waits}
    assert tenths == set(range(10))
    assert 0.4 < sum(world.waits) / len(world.waits) < 0.6


async def test_retry_after_is_honoured() -> None:
    world = World()
    await world.calls.call("store", failing(3, retry_after=42.0))
    assert all(pause >= 42 for pause in world.waits)


async def test_retry_after_is_honoured_up_to_a_limit() -> None:
    world = World(retry=RetryPolicy(asked_cap=300))
    await world.calls.call("store", failing(1, retry_after=86_400.0))
    assert world.waits == [300]


async def test_a_call_that_gives_up_raises_the_last_error_in_time() -> None:
    world = World()
    began = world.now
    with pytest.raises(Transient, match="away") as given_up:
        await world.calls.call("store", failing(10_000), give_up_after=60)
    assert 20 < world.now - began <= 60
    assert not isinstance(given_up.value, Interrupted)


async def test_a_call_gives_up_at_once_when_the_server_asks_for_longer() -> None:
    world = World()
    with pytest.raises(Transient):
        await world.calls.call("store", failing(9, retry_after=120), give_up_after=60)
    assert world.waits == []


@pytest.mark.parametrize(
    "error",
    [
        Poison("refused_by_model", "no"),
        LeaseLost("gone"),
        Interrupted("a call within"),
        OverBudget("spent", retry_after=1.0),
        RuntimeError("odd"),
    ],
)
async def test_errors_that_are_not_transient_are_raised_at_once(error: Exception) -> None:
    world = World(breaker=STRICT)

    async def make() -> None:
        raise error

    for _ in range(10):
        with pytest.raises(type(error)):
            await world.calls.call("store", make)
    assert world.waits == []
    assert world.calls.away() == {}


async def test_a_wait_is_cut_short_when_partitions_go_away() -> None:
    calls = Calls(retry=RetryPolicy(first=60, cap=60))
    waiting = asyncio.create_task(calls.call("store", failing(10_000)))
    async with asyncio.timeout(5):
        while not calls._sleepers:
            await asyncio.sleep(0)
        calls.interrupt()
        with pytest.raises(Interrupted):
            await waiting
    assert not calls._sleepers


async def test_a_call_that_runs_at_a_revocation_does_not_wait_afterwards() -> None:
    world = World()

    async def make() -> None:
        world.calls.interrupt()
        raise Transient("store", "away")

    with pytest.raises(Interrupted):
        await world.calls.call("store", make)
    assert world.waits == []
    assert await world.calls.call("store", failing(1)) == "done", "the next one does"


# ------------------------------------------------------------------------------------------------------------- breaker
def opened(at: float = 0.0, *, asked: float = 0.0) -> Breaker:
    breaker = Breaker(STRICT)
    assert [breaker.failed(at, asked=asked) for _ in range(5)] == [False, False, False, False, True]
    return breaker


def test_it_opens_at_five_failures_in_thirty_seconds() -> None:
    breaker = Breaker(STRICT)
    assert [breaker.failed(at) for at in (0, 7, 14, 21, 30)] == [False, False, False, False, True]
    assert breaker.state(30) == "open"
    assert breaker.wait(30) == 10


def test_failures_further_apart_do_not_open_it() -> None:
    breaker = Breaker(STRICT)
    assert not any(breaker.failed(at * 8.0) for at in range(50))
    assert breaker.state(400) == "closed"
    assert breaker.wait(400) == 0


def test_failed_calls_that_waited_twenty_seconds_in_total_open_it() -> None:
    breaker = Breaker(STRICT)
    assert [breaker.failed(at, took=10) for at in (10, 21)] == [False, True]
    assert breaker.wait(21) == 10


def test_one_call_that_waited_long_does_not_open_it() -> None:
    breaker = Breaker(STRICT)
    assert not any(breaker.failed(at, took=60) for at in (60, 91, 122))


def test_an_answer_between_breaks_the_silence() -> None:
    breaker = Breaker(STRICT)
    breaker.failed(10, took=10)
    breaker.succeeded()
    assert not breaker.failed(21, took=10)


def test_a_success_resets_the_count() -> None:
    breaker = Breaker(STRICT)
    for at in range(4):
        breaker.failed(at)
    assert not breaker.succeeded()
    assert not any(breaker.failed(5) for _ in range(4))
    assert breaker.failed(5)


def test_ten_seconds_later_one_call_may_try() -> None:
    breaker = opened()
    assert breaker.wait(9.9) == pytest.approx(0.1)
    assert breaker.state(10) == "half-open"
    assert breaker.wait(10) == 0
    assert breaker.begin(10)
    assert breaker.wait(10.5) == 9.5, "one at a time"
    assert breaker.succeeded()
    assert (breaker.state(11), breaker.wait(11)) == ("closed", 0)


def test_a_probe_that_fails_holds_it_open_for_ten_more_seconds() -> None:
    breaker = opened()
    breaker.begin(10)
    assert not breaker.failed(12, probe=True)
    assert breaker.wait(12) == 10
    assert breaker.wait(22) == 0


def test_calls_from_before_the_opening_do_not_hold_it_open() -> None:
    breaker = opened()
    for at in range(1, 10):
        breaker.failed(at)
    assert breaker.wait(10) == 0


def test_the_time_that_a_server_asks_for_holds_it_open_for_longer() -> None:
    breaker = opened(asked=300)
    assert breaker.wait(299) == 1
    breaker.failed(100, asked=400)  # a call that was on its way when it opened
    assert breaker.wait(499) == 1
    breaker.begin(500)
    breaker.failed(501, probe=True, asked=60)
    assert breaker.wait(501) == 60
    breaker.begin(561)
    breaker.failed(562, probe=True, asked=2)
    assert breaker.wait(562) == 10, "not less than without asking"


def test_a_probe_without_an_answer_lets_the_next_one_try() -> None:
    breaker = opened()
    breaker.begin(10)
    breaker.abandoned()
    assert breaker.wait(10) == 0


def test_a_probe_that_hangs_lets_the_next_one_try_ten_seconds_later() -> None:
    breaker = opened()
    breaker.begin(10)
    assert breaker.wait(20) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["fail", "succeed", "try"]), st.floats(0, 40, allow_nan=False)),
        max_size=60,
    )
)
def test_it_is_open_only_after_five_failures_within_the_window(events: list[tuple[str, float]]) -> None:
    """The breaker is compared with a plain list of the failures since the last success."""
    breaker, failures, now, is_open = Breaker(STRICT), [], 0.0, False
    for what, later in events:
        now += later
        if what == "try" and breaker.wait(now) == 0:
            assert breaker.begin(now) == is_open
            assert (breaker.wait(now) > 0) == is_open, "one at a time"
            breaker.abandoned()
        elif what == "fail":
            probe = is_open and breaker.wait(now) == 0 and breaker.begin(now)
            if not is_open:
                failures.append(now)
            was_open = is_open
            is_open = is_open or (len(failures) >= 5 and now - failures[-5] <= 30)
            assert breaker.failed(now, probe=probe) == (is_open and not was_open)
        elif what == "succeed":
            assert breaker.succeeded() == is_open
            failures, is_open = [], False
        assert (breaker.state(now) != "closed") == is_open


# ------------------------------------------------------------------------------------------------- calls and breakers
async def test_no_call_tries_before_the_time_that_the_server_asked_for() -> None:
    world = World(breaker=STRICT)
    for _ in range(5):
        with pytest.raises(Transient):
            await world.calls.call("model:acme", failing(1, retry_after=300.0), give_up_after=0)
    world.now += 299
    assert world.calls.breaker_open("model:acme")
    world.now += 1
    assert not world.calls.breaker_open("model:acme")


async def test_five_failures_make_the_component_away_and_a_probe_brings_it_back() -> None:
    world = World(breaker=STRICT)
    told: list[str] = []
    seen: list[tuple[set[str], bool]] = []
    world.calls.on_breaker_closed(told.append)
    make = failing(5)

    async def watched() -> str:
        seen.append((set(world.calls.away()), world.calls.breaker_open("store")))
        return await make()

    assert await world.calls.call("store", watched) == "done"
    assert seen == [(set(), False)] * 5 + [({"store"}, True)]
    assert 10 in world.waits or sum(world.waits[-2:]) >= 10, "not before ten seconds"
    assert told == ["store"]
    assert world.calls.away() == {}
    assert not world.calls.breaker_open("store")


async def test_an_open_breaker_stops_other_calls_before_they_are_made() -> None:
    world = World(breaker=STRICT)
    with pytest.raises(Transient):
        await world.calls.call("store", failing(10_000), give_up_after=8)
    assert set(world.calls.away()) == {"store"}
    made: list[float] = []

    async def make() -> None:
        made.append(world.now)

    with pytest.raises(Transient, match="store is away"):
        await world.calls.call("store", make, give_up_after=1)
    assert made == []
    await world.calls.call("other", make)
    assert len(made) == 1, "another component has a breaker of its own"
    await world.calls.call("store", make)
    assert len(made) == 2


async def test_a_wait_for_an_open_breaker_ends_when_it_closes() -> None:
    now = [0.0]
    waits: list[float] = []

    async def wait(wake: asyncio.Event, seconds: float) -> None:
        waits.append(seconds)
        await wake.wait()

    calls = Calls(breaker=STRICT, clock=lambda: now[0], wait=wait)
    breaker = calls._breaker("store")
    for _ in range(5):
        breaker.failed(0)
    now[0] = 10.0
    probing, answer = asyncio.Event(), asyncio.Event()

    async def probe() -> None:
        probing.set()
        await answer.wait()

    async def nothing() -> None:
        return

    async with asyncio.timeout(5):
        first = asyncio.create_task(calls.call("store", probe))
        await probing.wait()
        others = [asyncio.create_task(calls.call("store", nothing)) for _ in range(20)]
        while len(waits) < 20:
            await asyncio.sleep(0)
        assert not any(other.done() for other in others)
        answer.set()
        await asyncio.gather(first, *others)


async def test_a_refusal_is_an_answer_and_closes_the_breaker() -> None:
    world = World(breaker=STRICT)
    with pytest.raises(Transient):
        await world.calls.call("model:acme", failing(10_000), give_up_after=8)
    world.now += 20

    async def refuse() -> None:
        raise Poison("refused_by_model", "no")

    with pytest.raises(Poison):
        await world.calls.call("model:acme", refuse)
    assert world.calls.away() == {}


# ------------------------------------------------------------------------------------------------------------ refusals
def refuses(breaker: Breaker, times: int, now: float) -> list[bool]:
    return [breaker.refused(now, probe=breaker.begin(now)) for _ in range(times)]


def test_refusals_in_a_row_pause_a_tenant_for_longer_each_time() -> None:
    breaker = Breaker(STRICT)
    assert refuses(breaker, 5, 0.0) == [False, False, False, False, True]
    now, pauses = 0.0, []
    for _ in range(7):
        pauses.append(breaker.wait(now))
        now += pauses[-1]
        assert breaker.wait(now) == 0
        assert refuses(breaker, 1, now) == [True]
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    assert breaker.succeeded()
    assert not breaker.refusing
    assert refuses(breaker, 5, now) == [False, False, False, False, True]
    assert breaker.wait(now) == 10


def test_refusals_of_few_users_do_not_pause_their_tenant() -> None:
    breaker = Breaker(STRICT)
    for n in range(50):
        assert not breaker.refused(0.0, probe=breaker.begin(0.0), user=f"u{n % 2}")
    assert breaker.refused(0.0, probe=False, user="u2")
    assert breaker.wait(0.0) == 10
    assert breaker.refused(10.0, probe=breaker.begin(10.0), user="u0"), "the probe's refusal counts, whoever it is"
    breaker.succeeded()
    for n in range(50):
        assert not breaker.refused(0.0, probe=breaker.begin(0.0), user=f"u{n % 2}")


def test_one_refusal_of_each_of_many_users_pauses_their_tenant() -> None:
    breaker = Breaker(STRICT)
    assert [breaker.refused(0.0, probe=False, user=f"u{n}") for n in range(5)] == [False] * 4 + [True]


def test_calls_from_before_a_pause_make_it_no_longer() -> None:
    breaker = Breaker(STRICT)
    probes = [breaker.begin(0.0) for _ in range(64)]
    assert [breaker.refused(n / 10, probe=probe) for n, probe in enumerate(probes)].count(True) == 1
    assert breaker.wait(10.4) == 0


def test_a_late_success_ends_a_pause() -> None:
    breaker = Breaker(STRICT)
    refuses(breaker, 5, 0.0)
    assert breaker.succeeded()
    assert breaker.wait(1.0) == 0


@given(st.lists(st.tuples(st.sampled_from(["refused", "failed", "passed"]), st.floats(0, 60)), max_size=60))
def test_a_pause_ends_by_itself_and_one_success_ends_all_of_them(events: list[tuple[str, float]]) -> None:
    breaker, now = Breaker(STRICT), 0.0
    for what, later in events:
        now += later
        if breaker.wait(now) > 0 and what != "passed":
            continue
        probe = breaker.begin(now)
        if what == "refused":
            breaker.refused(now, probe=probe)
        elif what == "failed":
            breaker.failed(now, probe=probe)
        else:
            breaker.succeeded()
            assert breaker.wait(now) == 0
            assert not breaker.refusing
        assert breaker.wait(now) <= STRICT.pause_cap
        assert breaker.wait(now + STRICT.pause_cap) == 0


async def test_a_refusal_of_the_embedder_pauses_nobody() -> None:
    """It is one for all tenants."""
    world = World(breaker=STRICT)

    async def refuse() -> None:
        raise Poison("refused_by_model", "no")

    for _ in range(20):
        with pytest.raises(Poison):
            await world.calls.call("embedder", refuse)
    assert not world.calls.breaker_open("embedder")
    assert world.calls.paused() == {}


async def test_a_cancelled_probe_does_not_keep_others_out() -> None:
    world = World(breaker=STRICT)
    with pytest.raises(Transient):
        await world.calls.call("store", failing(10_000), give_up_after=8)
    world.now += 20

    async def hang() -> None:
        await asyncio.Event().wait()

    probe = asyncio.create_task(world.calls.call("store", hang))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert world.calls.breaker_open("store")
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert not world.calls.breaker_open("store")


async def test_a_half_open_breaker_prefers_calls_that_have_not_failed() -> None:
    """One event that the store never takes must not use up every probe."""
    world = World(retry=RetryPolicy(first=0.001, cap=0.001), breaker=STRICT)
    tries: list[float] = []

    async def never() -> None:
        tries.append(world.now)
        raise Transient("store", "away")

    async def fine() -> None:
        tries.append(world.now)

    with pytest.raises(Transient):
        await world.calls.call("store", never, give_up_after=15)
    *_, opened_at, probed_at = tries
    assert 10.1 < probed_at - opened_at < 10.5
    tries.clear()
    failed_at = probed_at
    await world.calls.call("store", fine)
    assert tries == [pytest.approx(failed_at + 10)]


async def test_one_request_that_many_events_shared_is_one_failure() -> None:
    """Otherwise one broken connection would open the breaker for all events."""
    calls = Calls(breaker=STRICT, retry=RetryPolicy(first=0.001, cap=0.001))
    shared = OSError("reset")
    failed: set[int] = set()
    away: list[object] = []

    async def once(number: int) -> None:
        if number not in failed:
            failed.add(number)
            raise Transient("store", "cut") from shared
        away.append(dict(calls.away()))

    await asyncio.gather(*(calls.call("store", lambda n=n: once(n)) for n in range(20)))  # type: ignore[misc]
    assert away == [{}] * 20

    breaker = calls._breaker("store")
    assert [breaker.failed(0, cause=OSError("reset")) for _ in range(5)] == [False] * 4 + [True]


async def test_a_hung_server_opens_the_breaker_after_few_calls() -> None:
    world = World(breaker=STRICT)
    closed: list[str] = []
    world.calls.on_breaker_closed(closed.append)
    calls_at: list[float] = []

    async def silent() -> None:
        calls_at.append(world.now)
        if len(calls_at) < 3:
            world.now += 10.0
            raise Transient("store", "no whole answer within 10 s") from TimeoutError()

    await world.calls.call("store", silent)
    assert closed == ["store"]
    assert calls_at[2] - calls_at[1] >= 20, "its own time, then ten seconds without a call"


async def test_one_of_the_calls_that_would_give_up_waits_for_an_open_breaker() -> None:
    calls = Calls(breaker=STRICT)
    breaker = calls._breaker("model:acme")
    for _ in range(5):
        breaker.failed(calls._clock())

    async def nothing() -> None:
        return

    waiting = asyncio.create_task(calls.call("model:acme", nothing, give_up_after=60))
    async with asyncio.timeout(5):
        while not calls._sleepers:
            await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(Transient, match="is away"):
                await calls.call("model:acme", nothing, give_up_after=60)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
