"""Calls to the outside world: full-jitter retries behind a breaker.

A failing component holds only the key whose event needs it; once it failed often enough nobody else hammers it. The
waiting is tenacity's; the breaker is ours because it counts failures within a window (docs/adr).
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import structlog
import tenacity

from ..schemas.errors import Transient
from .exits import LeaseLost

log = structlog.get_logger(__name__)
T = TypeVar("T")
BreakerState = Literal["closed", "open", "half-open"]
LOG_EVERY = 10.0
"""Seconds between two log lines about one component that is away."""
BREAKERS_MAX = 10_000


class Interrupted(Transient):
    """The wait was cut short because partitions go away: the event comes again, here or elsewhere."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Full jitter: a wait is uniform in [0, min(cap, first x 2^attempt)] seconds."""

    first: float = 0.2
    cap: float = 20.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.cap:
            raise ValueError("first must be above 0 and not above cap")


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens at `failures` within `window` seconds without a success between; `probe_after` seconds later one call
    may try."""

    failures: int = 5
    window: float = 30.0
    probe_after: float = 10.0


class Breaker:
    """One component's breaker. Times are the caller's (`time.monotonic`)."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures: deque[float] = deque(maxlen=policy.failures)
        self._opened_at: float | None = None
        self._probing_since: float | None = None

    def state(self, now: float) -> BreakerState:
        if self._opened_at is None:
            return "closed"
        return "half-open" if now >= self._opened_at + self._policy.probe_after else "open"

    def wait(self, now: float) -> float:
        """Seconds until a call may be made: 0 = now. In the half-open state one caller at a time gets through."""
        if self._opened_at is None:
            return 0.0
        until = self._opened_at + self._policy.probe_after
        if now < until:
            return until - now
        if self._probing_since is not None and now < self._probing_since + self._policy.probe_after:
            return self._probing_since + self._policy.probe_after - now
        return 0.0

    def begin(self, now: float) -> None:
        if self._opened_at is not None:
            self._probing_since = now

    def failed(self, now: float) -> bool:
        """True when this failure opened it."""
        self._probing_since = None
        if self._opened_at is not None:
            self._opened_at = now
            return False
        self._failures.append(now)
        if len(self._failures) == self._policy.failures and now - self._failures[0] <= self._policy.window:
            self._opened_at = now
            return True
        return False

    def succeeded(self) -> bool:
        """True when this success closed it."""
        was_open = self._opened_at is not None
        self._failures.clear()
        self._opened_at = self._probing_since = None
        return was_open


class Calls:
    """Makes calls that may fail with `Transient`, again and again; everything else passes through."""

    def __init__(
        self,
        *,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_retry: Callable[[str], None] = lambda component: None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._breaker_policy = breaker or BreakerPolicy()
        self._clock = clock
        self._on_retry = on_retry
        self._breakers: OrderedDict[str, Breaker] = OrderedDict()
        self._closed_listeners: list[Callable[[str], None]] = []
        self._interrupted = asyncio.Event()
        self._logged: dict[str, float] = {}
        self._away: set[str] = set()

    def on_breaker_closed(self, listener: Callable[[str], None]) -> None:
        """`listener(name)` is called when the breaker of that name closes."""
        self._closed_listeners.append(listener)

    def interrupt(self) -> None:
        """Partitions go away: whoever waits for a component gives up now with its last error."""
        old, self._interrupted = self._interrupted, asyncio.Event()
        old.set()

    def breaker_open(self, name: str) -> bool:
        """Open, or half-open while another call tries."""
        breaker = self._breakers.get(name)
        return breaker is not None and breaker.wait(self._clock()) > 0

    def away(self) -> frozenset[str]:
        """Names of breakers that are not closed: the worker is not ready."""
        return frozenset(self._away)

    async def call(self, name: str, make: Callable[[], Awaitable[T]], *, give_up_after: float | None = None) -> T:
        """Await `make()` until it does not raise `Transient`. `name` is the breaker's (`store`, `model:<tenant>`).

        With `give_up_after` (seconds, from the first attempt) the last `Transient` leaves after that time.
        """
        breaker = self._breaker(name)
        interrupted = self._interrupted
        began = self._clock()
        last: list[Transient] = []

        async def sleep(seconds: float) -> None:
            try:
                await asyncio.wait_for(interrupted.wait(), seconds)
            except TimeoutError:
                return
            raise Interrupted(name, f"partitions go away while {name} is waited for") from last[-1]

        async def attempt() -> T:
            while (pause := breaker.wait(self._clock())) > 0:
                if give_up_after is not None and self._clock() - began + pause > give_up_after:
                    raise last[-1] if last else Transient(name, f"{name} is away")
                if not last:
                    last.append(Transient(name, f"{name} is away"))
                await sleep(pause)
            breaker.begin(self._clock())
            result = await make()
            if breaker.succeeded():
                self._closed(name)
            return result

        def note(state: tenacity.RetryCallState) -> None:
            assert state.outcome is not None
            failure = state.outcome.exception()
            assert isinstance(failure, Transient)
            last.append(failure)
            self._on_retry(name.partition(":")[0])

        def wait(state: tenacity.RetryCallState) -> float:
            pause = tenacity.wait_random_exponential(multiplier=self._retry.first, max=self._retry.cap)(state)
            asked = last[-1].retry_after if last else None
            return max(pause, asked or 0.0)

        def counted(failure: BaseException) -> bool:
            if not isinstance(failure, Transient) or isinstance(failure, LeaseLost | Interrupted):
                return False
            if failure is not (last[-1] if last else None) and breaker.failed(self._clock()):
                self._opened(name, failure)
            self._report(name, failure)
            return True

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(counted),
            wait=wait,
            stop=tenacity.stop_never if give_up_after is None else tenacity.stop_before_delay(give_up_after),
            after=note,
            sleep=sleep,
            reraise=True,
        )
        return await retrying(attempt)

    def _breaker(self, name: str) -> Breaker:
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers[name] = Breaker(self._breaker_policy)
            if len(self._breakers) > BREAKERS_MAX:
                self._breakers.popitem(last=False)
        self._breakers.move_to_end(name)
        return breaker

    def _opened(self, name: str, failure: Transient) -> None:
        self._away.add(name)
        log.warning("breaker_opened", component=name, why=str(failure), remedy=failure.remedy)

    def _closed(self, name: str) -> None:
        self._away.discard(name)
        log.info("breaker_closed", component=name)
        for listener in self._closed_listeners:
            listener(name)

    def _report(self, name: str, failure: Transient) -> None:
        now = self._clock()
        if now - self._logged.get(name, -LOG_EVERY) >= LOG_EVERY:
            self._logged[name] = now
            log.warning("component_away", component=name, why=str(failure), remedy=failure.remedy)
