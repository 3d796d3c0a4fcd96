"""Spending that never exceeds its ceiling: a day's account that all workers share, and the slices that workers take of
it.

A worker takes a slice of the account (one shared write). Before a call it reserves the most that the call may cost (no
write); afterwards it settles what the call did cost. In the end it gives the rest back. So the account always counts at
least what was spent, and a worker that dies loses no more than its slice, for that day.

Pure: agents/common/budget_client.py decides who takes when, and where the account lies. Money is counted in whole
nanodollars (10^-9 USD) and bounds are rounded up, because sums of floats would drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Literal

from ..policies.budget import Ceiling, Price

NANOS = 1_000_000_000
SLICES = 16
"""A worker takes this part of a ceiling at once, unless it needs more."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of tokens and nanodollars."""

    tokens: int = 0
    nanos: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.nanos + other.nanos)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.nanos - other.nanos)

    def within(self, other: Amount) -> bool:
        return self.tokens <= other.tokens and self.nanos <= other.nanos

    def at_least(self, other: Amount) -> Amount:
        """Return the greater value of each part."""
        return Amount(max(self.tokens, other.tokens), max(self.nanos, other.nanos))

    def at_most(self, other: Amount) -> Amount:
        """Return the smaller value of each part."""
        return Amount(min(self.tokens, other.tokens), min(self.nanos, other.nanos))


NOTHING = Amount()
UNBOUNDED = 1 << 60
"""Stands for no ceiling; it fits into the store's integers."""
USUAL = Amount(tokens=100_000, nanos=NANOS // 10)
"""A worker takes at most this much at once, unless it needs more; it is also the slice where there is no ceiling."""


def amount(*, input_tokens: int, output_tokens: int, price: Price | None) -> Amount:
    """Return the cost of a call. Without a price it costs tokens alone."""
    if price is None:
        return Amount(input_tokens + output_tokens)
    dollars_a_million = input_tokens * Fraction(price.input) + output_tokens * Fraction(price.output)
    return Amount(input_tokens + output_tokens, math.ceil(dollars_a_million * NANOS / 1_000_000))


def limit_of(ceiling: Ceiling) -> Amount:
    """Return the most that may be spent under a ceiling."""
    return Amount(
        UNBOUNDED if ceiling.tokens is None else ceiling.tokens,
        UNBOUNDED if ceiling.cost is None else math.floor(ceiling.cost * NANOS),
    )


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """A tenant's budget line on one day, as all workers see it."""

    taken: Amount = NOTHING
    """Spent, or in a worker's slice."""
    spent: Amount = NOTHING
    """Spent as far as workers have reported: they report when they take more and when they give back."""


@dataclass(frozen=True, slots=True)
class BudgetSlice:
    """One worker's part of an account."""

    taken: Amount = NOTHING
    reserved: Amount = NOTHING
    """Set aside for calls that are under way."""
    spent: Amount = NOTHING
    reported: Amount = NOTHING
    """The part of `spent` that the account knows."""

    @property
    def free(self) -> Amount:
        """What may still be reserved. It is negative when a call cost more than was reserved for it."""
        return self.taken - self.reserved - self.spent

    def reserve(self, bound: Amount) -> BudgetSlice | None:
        """Return the slice with `bound` set aside; None when not so much is free."""
        return replace(self, reserved=self.reserved + bound) if bound.within(self.free) else None

    def settle(self, bound: Amount, used: Amount | None) -> BudgetSlice:
        """Return the slice after a call that cost `used`. None: the cost is unknown, so all of `bound` counts as
        spent."""
        return replace(self, reserved=self.reserved - bound, spent=self.spent + (bound if used is None else used))


Refusal = Literal["spent", "held", "too_large"]
"""Why nothing can be taken.

- `spent`: nothing is left before the next day.
- `held`: this worker or others have set so much aside; some of it may come back.
- `too_large`: a single call may cost more than a day's ceiling.
"""


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """The account and the slice after a worker took more."""

    account: BudgetAccount
    slice: BudgetSlice
    exceeded: bool = False
    """Spending passed the ceiling just now. This only reports: where a ceiling pauses, the call was refused before."""


def take(account: BudgetAccount, held: BudgetSlice, bound: Amount, ceiling: Ceiling) -> BudgetGrant | Refusal:
    """Take enough for a call of at most `bound`, and a whole slice where there is room.

    The account first learns what was spent since the last time, and what calls cost beyond what was reserved for them.
    """
    limit = limit_of(ceiling)
    reported = _report_spending(account, held)
    account, held, exceeded = reported.account, reported.slice, _passes(account.spent, reported.account.spent, limit)
    least = (bound - held.free).at_least(NOTHING)
    usual = Amount(limit.tokens // SLICES, limit.nanos // SLICES).at_most(USUAL)
    if not ceiling.pauses:
        more = least.at_least(usual)
        return BudgetGrant(_with(account, more), _more(held, more), exceeded)
    if not bound.within(limit):
        return "too_large"
    room = (limit - account.taken).at_least(NOTHING)
    if not least.within(room):
        return "held" if bound.within(limit - account.spent) else "spent"
    more = least.at_least(usual.at_most(room))
    return BudgetGrant(_with(account, more), _more(held, more), exceeded)


def give_back(account: BudgetAccount, held: BudgetSlice, ceiling: Ceiling) -> BudgetGrant:
    """Return what is neither spent nor reserved."""
    reported = _report_spending(account, held)
    back = reported.slice.free.at_least(NOTHING)
    returned = NOTHING - back
    return BudgetGrant(
        _with(reported.account, returned),
        _more(reported.slice, returned),
        _passes(account.spent, reported.account.spent, limit_of(ceiling)),
    )


def _report_spending(account: BudgetAccount, held: BudgetSlice) -> BudgetGrant:
    """Report what was spent since the last time. The account also covers an overdrawn slice."""
    overdrawn = (NOTHING - held.free).at_least(NOTHING)
    new = held.spent - held.reported
    return BudgetGrant(
        BudgetAccount(account.taken + overdrawn, account.spent + new),
        replace(_more(held, overdrawn), reported=held.spent),
    )


def _with(account: BudgetAccount, more: Amount) -> BudgetAccount:
    return replace(account, taken=account.taken + more)


def _more(held: BudgetSlice, more: Amount) -> BudgetSlice:
    return replace(held, taken=held.taken + more)


def _passes(before: Amount, after: Amount, limit: Amount) -> bool:
    return before.within(limit) and not after.within(limit)


# ------------------------------------------------------------------------------------------------ days
def day_of(now: datetime) -> str:
    """Return the UTC day that a call counts on: `2026-11-22`."""
    return now.astimezone(UTC).date().isoformat()


def until_next_day(now: datetime) -> float:
    """Return the seconds until the next UTC day."""
    now = now.astimezone(UTC)
    midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
    return (midnight - now).total_seconds()
