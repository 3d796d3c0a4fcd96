"""A circuit breaker for one component; pure.

No library is used, because the breaker counts failures within a window (docs/adr/0006-own-breaker-window.md) and
refusals (docs/adr/0034-a-refused-tenant-is-paused.md).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

BreakerState = Literal["closed", "open", "half-open"]
_PAUSES_COUNTED = 30
"""Maximum count of pauses. It keeps the exponent of the pause length small; `pause_cap` limits the length."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Limits at which a breaker opens, and times at which it lets a call through.

    The breaker opens at `failures` failures within `window` seconds without a success between them. It also opens when
    the failed calls within `window` waited `silence` seconds in total: when a server hangs, calls that share requests
    run one after the other, and each call waits for its time-out, so `failures` failures would take too long. After
    `probe_after` seconds, or later if the server asked for more time, one call may probe the component.
    """

    failures: int = 5
    window: float = 30.0
    silence: float = 20.0
    probe_after: float = 10.0
    refusals: int = 5
    """Number of consecutive refusals, without a success between them, at which a user or a tenant is paused."""
    refused_users: int = 3
    """Number of different users that a tenant's refusals must come from before the tenant is paused. Refusals of a
    single user are caused by that user's content, and pause only this user."""
    pause: float = 10.0
    """Length of the first pause in seconds. After a pause, one call probes. Each refused probe doubles the pause."""
    pause_cap: float = 300.0
    """Length of the longest pause in seconds."""


@dataclass(frozen=True, slots=True)
class _Failure:
    at: float
    took: float


class Breaker:
    """The breaker of one component. The caller passes the time in (`time.monotonic`)."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures: deque[_Failure] = deque(maxlen=policy.failures)
        self._open_until: float | None = None
        """The time from which a call may try; None when the breaker is closed."""
        self._probing_since: float | None = None
        self._cause: BaseException | None = None
        self._refusals = 0
        """Number of refusals since the last success."""
        self._refused_users: set[str] = set()
        """Users of the refusals since the last success; at most `refused_users` of them."""
        self._pauses = 0
        """Number of pauses since the last success."""

    @property
    def refusing(self) -> bool:
        """True when refusals have opened the breaker, and no call has succeeded since then."""
        return self._pauses > 0

    def state(self, now: float) -> BreakerState:
        """Return the state of the breaker."""
        if self._open_until is None:
            return "closed"
        return "half-open" if now >= self._open_until else "open"

    def wait(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 means now. A half-open breaker admits one call at a time."""
        if self._open_until is None:
            return 0.0
        if now < self._open_until:
            return self._open_until - now
        if self._probing_since is not None and now < self._probing_since + self._policy.probe_after:
            return self._probing_since + self._policy.probe_after - now
        return 0.0

    def begin(self, now: float) -> bool:
        """Record that a call begins. Return whether it is the probe."""
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
        """Record a failed call. Return whether this failure opened the breaker.

        `took`: seconds that the call waited. `asked`: seconds that the server asked the client to wait. When the
        breaker is already open, a failed probe keeps it open for longer. A failure of another call, which began before
        the opening, keeps it open for longer only if the server asked for more time. Several events may share one
        request: their failures have the same `cause` and count once.
        """
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

    def refused(self, now: float, *, probe: bool, user: str | None = None) -> bool:
        """Record a refusal of a tenant's content. Return whether it began a pause.

        A refusal is an answer, so it closes a breaker that failures have opened. `refusals` refusals in a row open the
        breaker for a pause. During the pause, only the refusal of a probe prolongs it, because other refusals are of
        calls that began before the pause. `user`: the user of the refused turn. Refusals with a user open the breaker
        only when they come from `refused_users` users.
        """
        self._failures.clear()
        self._cause = None
        self._refusals += 1
        if user is not None and len(self._refused_users) < self._policy.refused_users:
            self._refused_users.add(user)
        if self.refusing and self._open_until is not None and not probe:
            return False
        self._open_until = self._probing_since = None
        of_few = user is not None and len(self._refused_users) < self._policy.refused_users
        if self._refusals < self._policy.refusals or (of_few and not self.refusing):
            return False
        self._open_until = now + min(self._policy.pause * 2.0**self._pauses, self._policy.pause_cap)
        self._pauses = min(self._pauses + 1, _PAUSES_COUNTED)
        return True

    def abandoned(self) -> None:
        """Record that the probe ended without an answer (it was cancelled). The next call may probe."""
        self._probing_since = None

    def succeeded(self) -> bool:
        """Record a success. Return whether it closed the breaker."""
        was_open = self._open_until is not None
        self._failures.clear()
        self._open_until = self._probing_since = self._cause = None
        self._refusals = self._pauses = 0
        self._refused_users.clear()
        return was_open
