"""Steps of events on the loop: whose goes first, and what is measured of them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from memstream.streams.engine.metrics import LONGEST_WINDOW, Metrics, StepTimes
from memstream.streams.engine.processor_shares import KEPT, ProcessorShares
from memstream.streams.engine.steps import ROUND_SECONDS, EventStep, StepScheduler, WaitingSteps
from memstream.streams.log.port import Position

HEAVY = 10 * ROUND_SECONDS


def step(offset: int = 0, stage: str = "observer") -> EventStep:
    return EventStep(stage, Position("memory.turns", 0, offset))


class Time:
    """A clock that the test's steps move, as if they took processor time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps = StepScheduler(clock=lambda: self.now)
        self.order: list[str] = []

    async def work(self, name: str, *takes: float) -> None:
        """Take steps of these lengths, and wait for nothing between them."""
        for takes_now in takes:
            self.now += takes_now
            self.order.append(name)
            await asyncio.sleep(0)

    def start(self, tenant: str, name: str, *takes: float) -> asyncio.Task[None]:
        return asyncio.ensure_future(self.steps.run(self.work(name, *takes), tenant=tenant, step=step()))


async def test_a_step_of_a_calm_tenant_waits_for_one_step_of_a_flood() -> None:
    """Sixty events of a flood are ready. In the loop's own order each has a step before the calm one's next."""
    time = Time()
    flood = [time.start("flood", "f", *[HEAVY] * 8) for _ in range(60)]
    await asyncio.sleep(0)
    calm = time.start("calm", "c", *[0.1 * ROUND_SECONDS] * 10)
    began = len(time.order)
    await calm
    assert time.order[began:].count("f") <= 2 * time.order.count("c"), "a step of a flood between two of the calm one"
    await asyncio.gather(*flood)
    assert time.order.count("f") == 60 * 8


async def test_the_events_of_a_tenant_are_done_one_after_the_other() -> None:
    time = Time()
    ends: list[int] = []
    events = [time.start("a", f"e{n}", *[HEAVY] * 4) for n in range(8)]
    for n, event in enumerate(events):
        event.add_done_callback(lambda _, n=n: ends.append(len(time.order)))
    await asyncio.gather(*events)
    assert ends[0] <= 4 + 8, "the oldest goes on before the others"
    assert time.order[-8:] == ["e6"] * 4 + ["e7"] * 4 or time.order[-4:] == ["e7"] * 4


async def test_short_steps_do_not_wait() -> None:
    time = Time()
    await asyncio.gather(*(time.start("a", f"e{n}", 0.0) for n in range(100)))
    assert time.order == [f"e{n}" for n in range(100)]


async def test_results_errors_and_cancellation_pass_through() -> None:
    steps = StepScheduler()

    async def gives() -> int:
        return await asyncio.sleep(0, 7)

    async def fails() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(KeyError("odd"))
        await future

    cleaned: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    assert await steps.run(gives(), tenant="a", step=step()) == 7
    with pytest.raises(KeyError):
        await steps.run(fails(), tenant="a", step=step())
    waiting = asyncio.create_task(steps.run(waits(), tenant="a", step=step()))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cleaned == ["up"]
    assert steps.running is None


async def test_an_event_that_is_cancelled_while_its_step_waits_cleans_up() -> None:
    time = Time()
    cleaned: list[str] = []

    async def event() -> None:
        try:
            await time.work("x", HEAVY, HEAVY, HEAVY)
        finally:
            cleaned.append("up")

    others = [time.start("b", "o", HEAVY, HEAVY) for _ in range(3)]
    task = asyncio.create_task(time.steps.run(event(), tenant="a", step=step()))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.gather(*others)
    assert cleaned in (["up"], [])


async def test_the_running_step_and_its_phases_are_measured() -> None:
    now = [0.0]
    steps = StepScheduler(clock=lambda: now[0])
    found: list[tuple[str, str, float]] = []
    seen: list[int | None] = []
    steps.measured = lambda stage, phase, seconds: found.append((stage, phase, round(seconds, 3)))
    steps.changed = lambda step: seen.append(step.position.offset if step else None)

    async def event() -> None:
        with steps.within(step(2)):
            now[0] += 0.5
        steps.enter("decide")
        now[0] += 0.25
        await asyncio.sleep(0)
        now[0] += 0.125
        steps.enter("store")

    await steps.run(event(), tenant="a", step=step(1))
    measured = [each for each in found if each[2]]
    assert measured == [("observer", "decode", 0.5), ("observer", "decide", 0.25), ("observer", "decide", 0.125)]
    assert seen == [1, 2, 1, None, 1, None]
    assert steps.shares.time_of("a") == pytest.approx(0.875)


# ------------------------------------------------------------------------------------------------------------ shares
@given(
    costs=st.lists(st.floats(0.001, 1.0), min_size=3, max_size=3),
    weights=st.lists(st.booleans(), min_size=20, max_size=200),
)
def test_tenants_that_always_have_work_get_equal_time(costs: list[float], weights: list[bool]) -> None:
    """Whatever a step of each costs: they differ by one step of each at most, so nobody starves."""
    shares, used = ProcessorShares(), dict.fromkeys("abc", 0.0)
    waiting: WaitingSteps[str] = WaitingSteps(shares)
    for age, tenant in enumerate("abc"):
        waiting.push(tenant, age, tenant)
    for _ in weights:
        tenant = waiting.pop()
        shares.serve(tenant)
        cost = costs["abc".index(tenant)]
        shares.charge(tenant, cost)
        used[tenant] += cost
        waiting.push(tenant, 0, tenant)
        assert max(used.values()) - min(used.values()) <= max(costs) + 1e-9


@given(flood=st.floats(0.001, 1.0), calm=st.floats(0.0, 0.0009), alone=st.integers(1, 50), rounds=st.integers(1, 50))
def test_a_tenant_below_its_share_goes_first(flood: float, calm: float, alone: int, rounds: int) -> None:
    """It has one step for each of the flood's. What the flood used while it was alone counts for nothing."""
    shares = ProcessorShares()
    waiting: WaitingSteps[str] = WaitingSteps(shares)
    waiting.push("flood", 0, "flood")

    def serve() -> str:
        tenant = waiting.pop()
        shares.serve(tenant)
        shares.charge(tenant, flood if tenant == "flood" else calm)
        return tenant

    for _ in range(alone):
        serve()
        waiting.push("flood", 0, "flood")
    for _ in range(rounds):
        waiting.push("calm", 1, "calm")
        assert serve() == "calm"
        assert serve() == "flood"
        waiting.push("flood", 0, "flood")


def test_idle_tenants_are_forgotten() -> None:
    shares = ProcessorShares()
    for n in range(20 * KEPT):
        shares.serve(f"t{n}")
        shares.charge(f"t{n}", 0.001)
        shares.serve(f"t{n}")
    assert len(shares) <= KEPT


# ----------------------------------------------------------------------------------------------------------- metrics
def test_the_longest_step_of_the_last_windows_is_told() -> None:
    now = [0.0]
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    times = StepTimes(metrics.sync_seconds, metrics.sync_seconds_max, clock=lambda: now[0])
    labels = {"stage": "observer", "step": "decode"}

    def told() -> tuple[float | None, float | None]:
        longest = registry.get_sample_value("memstream_sync_seconds_max", labels)
        return longest, registry.get_sample_value("memstream_sync_seconds_total", labels)

    times.measured("observer", "decode", 0.5)
    times.measured("observer", "decode", 2.0)
    times.measured("observer", "decode", 0.25)
    assert told() == (2.0, 2.75)
    now[0] += LONGEST_WINDOW
    times.measured("observer", "decode", 1.0)
    assert told() == (2.0, 3.75)
    now[0] += LONGEST_WINDOW
    assert told() == (1.0, 3.75)
    now[0] += 2 * LONGEST_WINDOW
    assert told() == (0.0, 3.75)
