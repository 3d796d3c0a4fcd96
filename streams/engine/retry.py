"""Calls to components (model, embedder, store): retries with full jitter behind a circuit breaker.

A failing component delays only the keys whose events need it. After some failures the breaker opens, and then no other
event calls the component (breaker.py). The breaker of a tenant's model also opens when the model answers but refuses
several of the tenant's users: the tenant is paused. Refusals of one user pause only that user
(docs/adr/0034-a-refused-tenant-is-paused.md).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from ...schemas.errors import Poison, Relinquished, Transient
from .breaker import Breaker, BreakerPolicy

log = structlog.get_logger(__name__)
T = TypeVar("T")
BREAKERS_MAX = 10_000
BROKER = "broker"
"""Name of the breaker for all writes to the log, and for requests to the log that an event waits for."""
_NAMED_MAX = 3
"""Maximum number of tenants that /readyz names."""
PROBE_GRACE = 0.2
"""Extra seconds that a failed call waits at an open breaker, so that other calls probe first. Without this wait, an
event that the store always rejects could make every probe, although the store would accept other events."""


def is_of_a_tenant(name: str) -> bool:
    """Return whether a breaker belongs to one tenant (`model:<tenant>`), not to a shared component (`store`)."""
    return ":" in name


PAUSED_REMEDY = (
    "its turns wait, and one is tried after each pause; `memstream dlq list` shows the refused records. When the cause "
    "is fixed, put them back: memstream dlq redrive --reason refused_by_model"
)


class Interrupted(Relinquished):
    """A wait for a component was interrupted because partitions are revoked."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits with full jitter: uniform in [0, min(cap, first x 2^attempt)] seconds.

    If the server asked for a longer wait, this time applies, but at most `asked_cap` seconds. A longer wait would look
    like a hang.
    """

    first: float = 0.2
    cap: float = 20.0
    asked_cap: float = 3600.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.cap:
            raise ValueError("first must be above 0 and not above cap")


@dataclass(eq=False, slots=True)
class _Sleeper:
    """A waiting call. `for_breaker`: the call wakes when the breaker closes."""

    name: str
    for_breaker: bool
    wake: asyncio.Event = field(default_factory=asyncio.Event)


async def wait_for(wake: asyncio.Event, seconds: float) -> None:
    """Wait until `wake` is set, at most `seconds`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()


class Calls:
    """Calls to components, repeated while they raise `Transient`. Every other exception passes through.

    Tests pass their own `clock`, and a `wait` that advances it.
    """

    def __init__(
        self,
        *,
        retry: RetryPolicy | None = None,
        breaker: BreakerPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[asyncio.Event, float], Awaitable[None]] = wait_for,
        on_retry: Callable[[str], None] = lambda component: None,
        on_refusal: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._breaker_policy = breaker or BreakerPolicy()
        self._clock = clock
        self._wait = wait
        self._on_retry = on_retry
        self._on_refusal = on_refusal
        self._breakers: OrderedDict[str, Breaker] = OrderedDict()
        self._closed_listeners: list[Callable[[str], None]] = []
        self._sleepers: set[_Sleeper] = set()
        self._interruptions = 0
        self._away: dict[str, str] = {}
        self._paused: dict[str, str] = {}
        self.remark = ""
        """Text about the answers of calls for /readyz. The stage stays ready."""
        self._users: OrderedDict[tuple[str, str], Breaker] = OrderedDict()
        """Breakers of users with a refusal and no success since, by the tenant's breaker name and the user."""

    def on_breaker_closed(self, listener: Callable[[str], None]) -> None:
        """Register a listener. It is called with the breaker's name when a breaker closes."""
        self._closed_listeners.append(listener)

    def interrupt(self) -> None:
        """Interrupt every wait for a component, because partitions are revoked."""
        self._interruptions += 1
        for sleeper in self._sleepers:
            sleeper.wake.set()

    def breaker_open(self, name: str, user: str | None = None) -> bool:
        """Return whether a call must wait, because the tenant's or the user's breaker is open or being probed."""
        return self.open_for(name, user) > 0

    def open_for(self, name: str, user: str | None = None) -> float:
        """Return the seconds until a call may be made (for `user`, if given); 0 means now."""
        return max((each.wait(self._clock()) for each in self._known(name, user)), default=0.0)

    def refusing(self, name: str, user: str | None = None) -> bool:
        """Return whether refusals have paused the tenant or this user, and no call has succeeded since then."""
        return any(each.refusing for each in self._known(name, user))

    def _known(self, name: str, user: str | None) -> list[Breaker]:
        known = [self._breakers.get(name), None if user is None else self._users.get((name, user))]
        return [each for each in known if each is not None]

    def paused_users(self) -> Counter[str]:
        """Count the paused users by their tenant's breaker. A user counts as paused until one of its calls succeeds."""
        return Counter(name for (name, _), breaker in self._users.items() if breaker.refusing)

    def away(self) -> Mapping[str, str]:
        """Return the last failure of each breaker that is not closed, by name. Paused tenants are left out."""
        return dict(self._away)

    def paused(self) -> Mapping[str, str]:
        """Return the last refusal of each breaker that refusals have opened, by name, until a call succeeds."""
        return dict(self._paused)

    def paused_told(self) -> str:
        """Return the text about paused tenants and users for /readyz; empty when none is paused."""
        users = self.paused_users()
        counted = f"paused users: {users.total()} of {len(users)} tenants (memstream dlq list)" if users else ""
        return "; ".join(each for each in (self._paused_tenants(), counted) if each)

    def _paused_tenants(self) -> str:
        if not self._paused:
            return ""
        named = [f"{name}: {why}" for name, why in list(self._paused.items())[:_NAMED_MAX]]
        more = f"; and {len(self._paused) - _NAMED_MAX} more" if len(self._paused) > _NAMED_MAX else ""
        return f"paused tenants: {len(self._paused)}: {'; '.join(named)}{more} (memstream dlq list)"

    async def call(
        self,
        name: str,
        make: Callable[[], Awaitable[T]],
        *,
        give_up_after: float | None = None,
        tentative: bool = False,
        user: str | None = None,
    ) -> T:
        """Await `make()` repeatedly until it does not raise `Transient`.

        Args:
            name: the name of the breaker (`store`, `model:<tenant>`).
            give_up_after: seconds from the first attempt. A wait that would end later does not begin; the last
                `Transient` is raised instead. At an open breaker, one call with `give_up_after` waits to be the next
                probe. Other calls with `give_up_after` raise immediately, so that an unavailable model of one tenant
                does not fill the worker with waiting calls.
            tentative: a refusal does not count, because the caller then repeats the request for each turn alone.
            user: the user of the turn. Refusals pause the user first, then the tenant.

        Raises:
            Interrupted: partitions are revoked during a wait.
            Transient: `give_up_after` has passed.
        """
        breaker = self._breaker(name)
        interruptions = self._interruptions
        began = self._clock()
        last = Transient(name, f"{name} is away")
        longest = self._retry.first
        grace = 0.0

        def too_late(pause: float) -> bool:
            return give_up_after is not None and self._clock() - began + pause > give_up_after

        async def sleep(seconds: float, *, for_breaker: bool = False) -> None:
            if interruptions == self._interruptions:
                await self._sleep(_Sleeper(name, for_breaker), seconds)
            if interruptions != self._interruptions:
                raise Interrupted(f"partitions are revoked during a wait for {name}") from last

        while True:
            while (pause := self.open_for(name, user)) > 0:
                if too_late(pause) or (give_up_after is not None and self._waited_for(name)):
                    raise last
                await sleep(pause + grace, for_breaker=True)
            try:
                return await self._once(name, breaker, make, tentative=tentative, user=user)
            except Transient as failure:
                last, grace = failure, PROBE_GRACE
            pause = max(random.uniform(0, longest), self._asked(last))
            if too_late(pause):
                raise last
            self._on_retry(name.partition(":")[0])
            await sleep(pause)
            longest = min(longest * 2, self._retry.cap)

    async def _once(
        self, name: str, breaker: Breaker, make: Callable[[], Awaitable[T]], *, tentative: bool, user: str | None
    ) -> T:
        """Make one attempt. Record its result in the breaker and in the user's breaker."""
        began = self._clock()
        probe = breaker.begin(began)
        of_user = None if user is None else self._users.get((name, user))
        user_probe = of_user is not None and of_user.begin(began)
        answered = False
        try:
            result = await make()
            answered = True
        except Transient as failure:
            answered = True
            now, asked = self._clock(), self._asked(failure)
            opened = breaker.failed(now, took=now - began, probe=probe, asked=asked, cause=failure.__cause__)
            if opened or name in self._away:
                self._away[name] = f"{failure} ({failure.remedy})" if failure.remedy else str(failure)
            if opened:
                log.warning("breaker_opened", component=name, why=str(failure), remedy=failure.remedy)
            log.warning("component_away", component=name, why=str(failure), remedy=failure.remedy)
            raise
        except Poison as poison:  # the component answered
            answered = True
            if is_of_a_tenant(name) and poison.reason == "refused_by_model":
                if user is not None and not tentative:
                    self._refused_user(name, user, poison, probe=user_probe)
                self._refused(name, breaker, poison, probe=probe, tentative=tentative, user=user)
            else:
                self._answered(name, breaker, user)
            raise
        finally:
            if probe and not answered:
                breaker.abandoned()
            if user_probe and of_user is not None:
                of_user.abandoned()
        self._answered(name, breaker, user)
        return result

    def _asked(self, failure: Transient) -> float:
        """Return the seconds that the server asked for, at most `asked_cap`."""
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
                self._paused.pop(oldest, None)
        self._breakers.move_to_end(name)
        return breaker

    def _refused_user(self, name: str, user: str, poison: Poison, *, probe: bool) -> None:
        """Record a refusal of a user's content."""
        breaker = self._users.get((name, user))
        if breaker is None:
            breaker = self._users[name, user] = Breaker(self._breaker_policy)
            if len(self._users) > BREAKERS_MAX:
                self._users.popitem(last=False)
        self._users.move_to_end((name, user))
        now = self._clock()
        if breaker.refused(now, probe=probe):
            seconds = round(breaker.wait(now))
            log.warning("user_paused", component=name, seconds=seconds, why=str(poison)[:300], remedy=PAUSED_REMEDY)

    def _refused(
        self, name: str, breaker: Breaker, poison: Poison, *, probe: bool, tentative: bool, user: str | None
    ) -> None:
        """Record a refusal of a tenant's content."""
        if tentative:
            if probe:
                breaker.abandoned()
            return
        self._on_refusal(name)
        now = self._clock()
        was_away = name in self._away
        self._away.pop(name, None)
        if breaker.refused(now, probe=probe, user=user):
            self._paused[name] = str(poison)
            seconds = round(breaker.wait(now))
            log.warning("tenant_paused", component=name, seconds=seconds, why=str(poison)[:300], remedy=PAUSED_REMEDY)
        elif was_away:
            self._closed(name)

    def _answered(self, name: str, breaker: Breaker, user: str | None = None) -> None:
        of_user = None if user is None else self._users.pop((name, user), None)
        resumed = of_user is not None and of_user.refusing
        if resumed:
            log.warning("user_resumed", component=name)
        if not breaker.succeeded():
            if resumed:
                self._closed(name)
            return
        self._away.pop(name, None)
        if self._paused.pop(name, None) is not None:
            log.warning("tenant_resumed", component=name)
        self._closed(name)

    def _closed(self, name: str) -> None:
        log.info("breaker_closed", component=name)
        for sleeper in self._sleepers:  # the component is back: end the waits for it
            if sleeper.for_breaker and sleeper.name == name:
                sleeper.wake.set()
        for listener in self._closed_listeners:
            listener(name)
