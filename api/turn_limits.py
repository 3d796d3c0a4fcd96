"""Limits of turns a minute, of each tenant and of each token in a tenant (docs/design/limits.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from ..memory.policies import LimitsPolicy
from ..streams.engine.metrics import TenantLabels
from .problems import Problem, too_many

MINUTE: Final = 60_000_000_000
"""Nanoseconds. A full bucket has the turns of one minute."""
SECOND: Final = 1_000_000_000
BUCKETS_MIN: Final = 1_024
"""Number of buckets below which full buckets are not removed."""

LimitsOf = Callable[[str], LimitsPolicy]
"""Return the limits of a tenant."""


class TurnLimitMetrics:
    """Refusals by tenant. The label `limit` is `tenant` or `token`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tenants = TenantLabels()
        self.refusals = Counter(
            "memstream_http_turn_limit_refusals_total",
            "Requests with turns refused by a limit of turns a minute",
            ["tenant", "limit"],
            registry=registry,
        )

    def refused(self, tenant_id: str, limit: str) -> None:
        self.refusals.labels(self._tenants.of(tenant_id), limit).inc()


class _Bucket(NamedTuple):
    """Bucket that turns of a request are taken from. `token` None: the bucket of the tenant."""

    tenant_id: str
    token: str | None


class _Charge(NamedTuple):
    """Turns of a request, and the limit of their bucket in turns a minute."""

    bucket: _Bucket
    turns: int
    limit: int


class TurnLimits:
    """Token buckets of the callers. Only the event loop's thread may use them.

    `clock` returns nanoseconds and never goes back.
    """

    def __init__(
        self, limits_of: LimitsOf, metrics: TurnLimitMetrics, *, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._limits_of = limits_of
        self._metrics = metrics
        self._clock = clock
        self._full_at: dict[_Bucket, int] = {}
        """Time at which a bucket is full again. A bucket that is not listed is full."""
        self._remove_from = BUCKETS_MIN

    def take(self, turns: Mapping[str, int], token: str) -> None:
        """Take the turns of one request, by tenant, from all buckets or from none.

        Raises Problem (429) if a bucket has too few; Retry-After is the time after which all have enough.
        """
        now = self._clock()
        charges = list(self._charges(turns, token))
        waits = {charge: wait for charge in charges if (wait := self._wait(charge, now)) > 0}
        if waits:
            raise self._refusal(waits)
        for charge in charges:
            self._full_at[charge.bucket] = self._from(charge.bucket, now) + charge.turns * (MINUTE // charge.limit)
        self._remove_full(now)

    def _charges(self, turns: Mapping[str, int], token: str) -> Iterator[_Charge]:
        for tenant_id, count in turns.items():
            limits = self._limits_of(tenant_id)
            if limits.turns_per_minute:
                yield _Charge(_Bucket(tenant_id, None), count, limits.turns_per_minute)
            if limits.turns_per_minute_per_token:
                yield _Charge(_Bucket(tenant_id, token), count, limits.turns_per_minute_per_token)

    def _wait(self, charge: _Charge, now: int) -> int:
        """Return the nanoseconds until the bucket has enough turns, or is full."""
        needed = min(charge.turns, charge.limit)
        return self._from(charge.bucket, now) + needed * (MINUTE // charge.limit) - MINUTE - now

    def _refusal(self, waits: Mapping[_Charge, int]) -> Problem:
        for bucket, _, _ in waits:
            self._metrics.refused(bucket.tenant_id, "tenant" if bucket.token is None else "token")
        longest = max(waits, key=lambda charge: waits[charge])
        seconds = -(-waits[longest] // SECOND)  # rounded up: an earlier request would be refused
        return too_many(_detail(longest, seconds), retry_after=seconds)

    def _from(self, bucket: _Bucket, now: int) -> int:
        return max(self._full_at.get(bucket, now), now)

    def _remove_full(self, now: int) -> None:
        """Remove full buckets when the number of buckets has doubled."""
        if len(self._full_at) > self._remove_from:
            self._full_at = {bucket: full_at for bucket, full_at in self._full_at.items() if full_at > now}
            self._remove_from = max(BUCKETS_MIN, 2 * len(self._full_at))


def _detail(charge: _Charge, seconds: int) -> str:
    (tenant_id, token), _, limit = charge
    who, setting = (
        (f"the tenant {tenant_id!r}", "turns_per_minute")
        if token is None
        else (f"the token {token!r} in the tenant {tenant_id!r}", "turns_per_minute_per_token")
    )
    return (
        f"{who} may send {limit} turns a minute, and no turn of this request was taken; send the request again in "
        f"{seconds} s, or let the operator raise limits.{setting} in the policy of the tenant"
    )
