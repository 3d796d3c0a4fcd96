"""Calls to the outside world: full-jitter retries behind a breaker.

A failing component holds only the key whose event needs it; once it failed often enough nobody else hammers it. The
waiting is tenacity's; the breaker is ours because it counts failures within a window (docs/adr).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import structlog
import tenacity

from ...schemas.errors import Poison, Relinquished, Transient

log = structlog.get_logger(__name__)
T = TypeVar("T")
BreakerState = Literal["closed", "open", "half-open"]
BREAKERS_MAX = 10_000
PROBE_GRACE = 0.2
"""Seconds that a call which failed itself leaves to others when a breaker is half-open: one event that the store never
takes must not use up every probe while the store would take all others."""


class Interrupted(Relinquished):
    """A wait for a component was cut short because partitions are revoked."""


class _GaveUp(Exception):
    """Carries the last `Transient` past tenacity."""

    def __init__(self, last: Transient) -> None:
        super().__init__(str(last))
        self.last = last


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Full jitter: a wait is uniform in [0, min(cap, first x 2^attempt)] seconds, but not less than the server asked
    for, of which no more than `asked_cap` is believed: an hour, for a wait must never look like a hang."""

    first: float = 0.2
    cap: float = 20.0
    asked_cap: float = 3600.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.cap:
            raise ValueError("first must be above 0 and not above cap")


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens at `failures` within `window` seconds without a success between, or when several calls within them have
    waited for `silence` seconds together in vain: a server that says nothing does not come to five failures, for calls
    that share requests ask it one after the other, up to the time-out each. `probe_after` seconds later, or when a
    server that asked for more time has had it, one call may try."""

    failures: int = 5
    window: float = 30.0
    silence: float = 20.0
    probe_after: float = 10.0


@dataclass(frozen=True, slots=True)
class _Failure:
    at: float
    took: float


class Breaker:
    """One component's breaker. Times are the caller's (`time.monotonic`)."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures: deque[_Failure] = deque(maxlen=policy.failures)
        self._open_until: float | None = None
        """From then on a call may try; None: closed."""
        self._probing_since: float | None = None
        self._cause: BaseException | None = None

    def state(self, now: float) -> BreakerState:
        if self._open_until is None:
            return "closed"
        return "half-open" if now >= self._open_until else "open"

    def wait(self, now: float) -> float:
        """Seconds until a call may be made: 0 = now. In the half-open state one caller at a time gets through."""
        if self._open_until is None:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        if self._probing_since is not None and now < self._probing_since + self._policy.probe_after:
            return self._probing_since + self._policy.probe_after - now
        return 0.0

    def begin(self, now: float) -> bool:
        """Before a call; True when it is the probe."""
        if self._open_until is None:
            return False
        self._probing_since = now
        return True

    def failed(
        self,
        now: float,
        *,
        took: float = 0.0,
        probe: bool = False,
        asked: float = 0.0,
        cause: BaseException | None = None,
    ) -> bool:
        """True when this failure opened it; `took`: seconds that the call waited; `asked`: those that the server asked
        for. Of an open one the probe's failure alone says something new: calls that were on their way when it opened
        fail late. What a server asks for counts whoever hears it. One request that several events shared fails all of
        them with one `cause`, and counts once."""
        if self._open_until is not None:
            if probe:
                self._open_until = now + self._policy.probe_after
                self._probing_since = None
            self._open_until = max(self._open_until, now + asked)
            return False
        if cause is not None and cause is self._cause:
            return False
        self._cause = cause
        self._failures.append(_Failure(now, took))
        recent = [failure for failure in self._failures if now - failure.at <= self._policy.window]
        silent = len(recent) > 1 and sum(failure.took for failure in recent) >= self._policy.silence
        if silent or len(recent) == self._policy.failures:
            self._open_until = now + max(self._policy.probe_after, asked)
            return True
        return False

    def abandoned(self) -> None:
        """The probe ended without an answer (it was cancelled): the next caller may try."""
        self._probing_since = None

    def succeeded(self) -> bool:
        """True when this success closed it."""
        was_open = self._open_until is not None
        self._failures.clear()
        self._open_until = self._probing_since = self._cause = None
        return was_open


@dataclass(eq=False, slots=True)
class _Sleeper:
    """Somebody who waits for a component. `for_breaker`: woken when it closes."""

    name: str
    for_breaker: bool
    wake: asyncio.Event = field(default_factory=asyncio.Event)


async def wait_for(wake: asyncio.Event, seconds: float) -> None:
    """Until `wake` is set, at most `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()


class Calls:
    """Makes calls that may fail with `Transient`, again and again; everything else passes through.

    `clock` and `wait` are there for tests: a clock of their own, and waits that move it.
    """

    def __init__(
        self,
        *,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[asyncio.Event, float], Awaitable[None]] = wait_for,
        on_retry: Callable[[str], None] = lambda component: None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._breaker_policy = breaker or BreakerPolicy()
        self._clock = clock
        self._wait = wait
        self._on_retry = on_retry
        self._breakers: OrderedDict[str, Breaker] = OrderedDict()
        self._closed_listeners: list[Callable[[str], None]] = []
        self._sleepers: set[_Sleeper] = set()
        self._interruptions = 0
        self._away: dict[str, str] = {}

    def on_breaker_closed(self, listener: Callable[[str], None]) -> None:
        """`listener(name)` is called when the breaker of that name closes."""
        self._closed_listeners.append(listener)

    def interrupt(self) -> None:
        """Partitions go away: whoever waits for a component gives up now with its last error."""
        self._interruptions += 1
        for sleeper in self._sleepers:
            sleeper.wake.set()

    def breaker_open(self, name: str) -> bool:
        """Open, or half-open while another call tries."""
        breaker = self._breakers.get(name)
        return breaker is not None and breaker.wait(self._clock()) > 0

    def away(self) -> Mapping[str, str]:
        """Names of breakers that are not closed, each with its last failure: the worker is not ready."""
        return dict(self._away)

    async def call(self, name: str, make: Callable[[], Awaitable[T]], *, give_up_after: float | None = None) -> T:
        """Await `make()` until it does not raise `Transient`. `name` is the breaker's (`store`, `model:<tenant>`).

        With `give_up_after` (seconds, from the first attempt) the last `Transient` leaves before a wait that would end
        later than that; and while the breaker is open one such call waits to be the next that tries, the others leave
        at once, so that one tenant's dead model does not fill the worker with calls that wait.

        Raises Interrupted when partitions go away while it waits.
        """
        breaker = self._breaker(name)
        interruptions = self._interruptions
        began = self._clock()
        last = Transient(name, f"{name} is away")
        failed: Transient | None = None
        grace = 0.0

        def too_late(pause: float) -> bool:
            return give_up_after is not None and self._clock() - began + pause > give_up_after

        async def sleep(seconds: float, *, for_breaker: bool = False) -> None:
            if interruptions == self._interruptions:
                await self._sleep(_Sleeper(name, for_breaker), seconds)
            if interruptions != self._interruptions:
                raise Interrupted(f"partitions go away while {name} is waited for") from last

        async def attempt() -> T:
            nonlocal last, grace, failed
            if failed is not None:
                first, failed = failed, None
                raise first
            while (pause := breaker.wait(self._clock())) > 0:
                if too_late(pause) or (give_up_after is not None and self._waited_for(name)):
                    raise _GaveUp(last)
                await sleep(pause + grace, for_breaker=True)
            try:
                return await self._once(name, breaker, make)
            except Transient as failure:
                last, grace = failure, PROBE_GRACE
                raise

        def pause_after(state: tenacity.RetryCallState) -> float:
            jitter = tenacity.wait_random_exponential(multiplier=self._retry.first, max=self._retry.cap)(state)
            return max(jitter, self._asked(last))

        try:
            try:
                return await attempt()  # mostly it is there; tenacity, told of the first failure, costs more than that
            except Transient as failure:
                failed = failure
            retrying = tenacity.AsyncRetrying(
                retry=tenacity.retry_if_exception_type(Transient),
                wait=pause_after,
                stop=lambda state: too_late(state.upcoming_sleep),
                before_sleep=lambda state: self._on_retry(name.partition(":")[0]),
                sleep=sleep,
                reraise=True,
            )
            return await retrying(attempt)
        except _GaveUp as gave_up:
            raise gave_up.last from gave_up.last.__cause__

    async def _once(self, name: str, breaker: Breaker, make: Callable[[], Awaitable[T]]) -> T:
        """One attempt, and what it says of the component."""
        began = self._clock()
        probe = breaker.begin(began)
        heard = False
        try:
            result = await make()
            heard = True
        except Transient as failure:
            heard = True
            now, asked = self._clock(), self._asked(failure)
            opened = breaker.failed(now, took=now - began, probe=probe, asked=asked, cause=failure.__cause__)
            if opened or name in self._away:
                self._away[name] = f"{failure} ({failure.remedy})" if failure.remedy else str(failure)
            if opened:
                log.warning("breaker_opened", component=name, why=str(failure), remedy=failure.remedy)
            log.warning("component_away", component=name, why=str(failure), remedy=failure.remedy)
            raise
        except Poison:  # it answered
            heard = True
            self._answered(name, breaker)
            raise
        finally:
            if probe and not heard:
                breaker.abandoned()
        self._answered(name, breaker)
        return result

    def _asked(self, failure: Transient) -> float:
        """Seconds that the server asked for, as far as it is believed."""
        return min(failure.retry_after or 0.0, self._retry.asked_cap)

    def _waited_for(self, name: str) -> bool:
        return any(sleeper.name == name and sleeper.for_breaker for sleeper in self._sleepers)

    async def _sleep(self, sleeper: _Sleeper, seconds: float) -> None:
        self._sleepers.add(sleeper)
        try:
            await self._wait(sleeper.wake, seconds)
        finally:
            self._sleepers.discard(sleeper)

    def _breaker(self, name: str) -> Breaker:
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = Breaker(self._breaker_policy)
            if len(self._breakers) > BREAKERS_MAX:
                oldest, _ = self._breakers.popitem(last=False)
                self._away.pop(oldest, None)
        self._breakers.move_to_end(name)
        return breaker

    def _answered(self, name: str, breaker: Breaker) -> None:
        if not breaker.succeeded():
            return
        self._away.pop(name, None)
        log.info("breaker_closed", component=name)
        for sleeper in self._sleepers:  # nobody sits out the rest of a wait for what is back
            if sleeper.for_breaker and sleeper.name == name:
                sleeper.wake.set()
        for listener in self._closed_listeners:
            listener(name)
