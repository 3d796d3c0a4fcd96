"""Accounting that keeps spending below a ceiling: a daily account that all workers share, and slices of the account
that the workers hold.

A worker takes a slice of the account (one shared write). Before a call it reserves the maximum cost of the call (no
write). After the call it settles the actual cost. At the end it returns the rest. Therefore, the account always counts
at least the spent amount. When a worker dies, only its slice is lost, and only for that day.

Pure: agents/common/budget_client.py decides when a worker takes a slice, and where the account is stored. Money is
counted in whole nanodollars (10^-9 USD) and bounds are rounded up, because sums of floats would drift.
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
"""Number of slices in a ceiling. A worker takes one slice, unless a call needs more."""


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
"""Value for no ceiling. It fits into the integers of the store."""
USUAL = Amount(tokens=100_000, nanos=NANOS // 10)
"""Maximum size of a slice, unless a call needs more. Without a ceiling it is the size of each slice."""


def amount(*, input_tokens: int, output_tokens: int, price: Price | None) -> Amount:
    """Return the cost of a call. Without a price, only tokens count."""
    if price is None:
        return Amount(input_tokens + output_tokens)
    dollars_a_million = input_tokens * Fraction(price.input) + output_tokens * Fraction(price.output)
    return Amount(input_tokens + output_tokens, math.ceil(dollars_a_million * NANOS / 1_000_000))


def limit_of(ceiling: Ceiling) -> Amount:
    """Return the maximum amount that may be spent under a ceiling."""
    return Amount(
        UNBOUNDED if ceiling.tokens is None else ceiling.tokens,
        UNBOUNDED if ceiling.cost is None else math.floor(ceiling.cost * NANOS),
    )


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """A tenant's budget line on one day, as all workers see it."""

    taken: Amount = NOTHING
    """The sum of all slices that workers have taken and not returned. It includes the spent amounts."""
    spent: Amount = NOTHING
    """The spent amount that workers have reported. A worker reports when it takes a slice and when it gives a slice
    back."""


@dataclass(frozen=True, slots=True)
class BudgetSlice:
    """One worker's part of an account."""

    taken: Amount = NOTHING
    reserved: Amount = NOTHING
    """The amount reserved for calls in progress."""
    spent: Amount = NOTHING
    reported: Amount = NOTHING
    """The part of `spent` that is already in the account."""

    @property
    def free(self) -> Amount:
        """The amount that can still be reserved. It is negative when a call cost more than its reservation."""
        return self.taken - self.reserved - self.spent

    def reserve(self, bound: Amount) -> BudgetSlice | None:
        """Return the slice with `bound` reserved; None when less than `bound` is free."""
        return replace(self, reserved=self.reserved + bound) if bound.within(self.free) else None

    def settle(self, bound: Amount, used: Amount | None) -> BudgetSlice:
        """Return the slice after a call that cost `used`. None: the cost is unknown, so all of `bound` counts as
        spent."""
        return replace(self, reserved=self.reserved - bound, spent=self.spent + (bound if used is None else used))


Refusal = Literal["spent", "held", "too_large"]
"""Reasons why nothing can be taken.

- `spent`: nothing is left before the next day.
- `held`: the rest is in the slices of workers; they may give some of it back.
- `too_large`: a single call may cost more than the ceiling of a day.
"""


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """The account and the slice after a worker took more."""

    account: BudgetAccount
    slice: BudgetSlice
    exceeded: bool = False
    """True when the spending reported now passes the ceiling for the first time. Only reports use this value, because a
    ceiling that pauses refuses calls before the ceiling is passed."""


def take(account: BudgetAccount, held: BudgetSlice, bound: Amount, ceiling: Ceiling) -> BudgetGrant | Refusal:
    """Take enough from the account for a call that costs at most `bound`; take a whole slice when the account has room
    for one.

    Before that, the worker reports its spending since the last report. The account also covers calls that cost more
    than their reservations.
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
    """Return the amount that is neither spent nor reserved to the account."""
    reported = _report_spending(account, held)
    back = reported.slice.free.at_least(NOTHING)
    returned = NOTHING - back
    return BudgetGrant(
        _with(reported.account, returned),
        _more(reported.slice, returned),
        _passes(account.spent, reported.account.spent, limit_of(ceiling)),
    )


def _report_spending(account: BudgetAccount, held: BudgetSlice) -> BudgetGrant:
    """Report the spending since the last report. When the slice is overdrawn, the missing amount is taken from the
    account."""
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
    """Return the UTC day of a call: `2026-11-22`."""
    return now.astimezone(UTC).date().isoformat()


def until_next_day(now: datetime) -> float:
    """Return the seconds until the next UTC day."""
    now = now.astimezone(UTC)
    midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
    return (midnight - now).total_seconds()
