"""Spending that is never exceeded: a day's account that all workers share, and the slices that they take of it.

A worker takes a slice of the account (one shared write), sets aside from it what a call may cost at most before it is
made (no write), settles what it did cost afterwards, and gives back what is left. So the account always counts at
least what was spent, and a worker that dies loses no more than its slice, for that day.

Pure: who takes, when, and where the account lies is agents/common/budget_client.py's. Money is counted in whole
nanodollars (10^-9 USD), bounds rounded up: sums of floats would drift.
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
"""A worker that needs less takes this part of a ceiling at once …"""


@dataclass(frozen=True, slots=True)
class Amount:
    """What a call costs: tokens, and nanodollars."""

    tokens: int = 0
    nanos: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.nanos + other.nanos)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.nanos - other.nanos)

    def within(self, other: Amount) -> bool:
        return self.tokens <= other.tokens and self.nanos <= other.nanos

    def at_least(self, other: Amount) -> Amount:
        """Part by part the greater."""
        return Amount(max(self.tokens, other.tokens), max(self.nanos, other.nanos))

    def at_most(self, other: Amount) -> Amount:
        """Part by part the smaller."""
        return Amount(min(self.tokens, other.tokens), min(self.nanos, other.nanos))


NOTHING = Amount()
UNBOUNDED = 1 << 60
"""Stands for no ceiling; fits into the store's integers."""
USUAL = Amount(tokens=100_000, nanos=NANOS // 10)
"""… and so much where there is none."""


def amount(*, input_tokens: int, output_tokens: int, price: Price | None) -> Amount:
    """What so many tokens cost. Without a price they cost tokens alone."""
    if price is None:
        return Amount(input_tokens + output_tokens)
    dollars_a_million = input_tokens * Fraction(price.input) + output_tokens * Fraction(price.output)
    return Amount(input_tokens + output_tokens, math.ceil(dollars_a_million * NANOS / 1_000_000))


def limit_of(ceiling: Ceiling) -> Amount:
    """The most that may be spent."""
    return Amount(
        UNBOUNDED if ceiling.tokens is None else ceiling.tokens,
        UNBOUNDED if ceiling.cost is None else math.floor(ceiling.cost * NANOS),
    )


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """A tenant's line on one day, as all workers see it."""

    taken: Amount = NOTHING
    """Spent, or in somebody's slice."""
    spent: Amount = NOTHING
    """As far as workers have told: they do when they take more, and when they give back."""


@dataclass(frozen=True, slots=True)
class BudgetSlice:
    """What one worker has of an account."""

    taken: Amount = NOTHING
    reserved: Amount = NOTHING
    """For calls under way."""
    spent: Amount = NOTHING
    told: Amount = NOTHING
    """Of `spent`, what the account knows."""

    @property
    def free(self) -> Amount:
        """May be below nothing, when a call cost more than was set aside for it."""
        return self.taken - self.reserved - self.spent

    def reserve(self, bound: Amount) -> BudgetSlice | None:
        """With `bound` set aside; None: not so much is free."""
        return replace(self, reserved=self.reserved + bound) if bound.within(self.free) else None

    def settle(self, bound: Amount, used: Amount | None) -> BudgetSlice:
        """The call is over and took `used`; None: nobody knows, so all that was set aside counts as spent."""
        return replace(self, reserved=self.reserved - bound, spent=self.spent + (bound if used is None else used))


Refusal = Literal["spent", "held", "too_large"]
"""`spent`: nothing before the next day. `held`: so much is set aside here or by other workers, some of it may come
back. `too_large`: a single call may cost more than a day's ceiling."""


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """The account and the slice after a worker took more."""

    account: BudgetAccount
    slice: BudgetSlice
    exceeded: bool = False
    """What is spent passed the ceiling just now; it only says so, whoever must not pass it was refused before."""


def take(account: BudgetAccount, held: BudgetSlice, bound: Amount, ceiling: Ceiling) -> BudgetGrant | Refusal:
    """So much more that a call of at most `bound` can be made, and a slice's worth where there is room.

    What the account is told of first: what was spent since the last time, and what calls took beyond what was set aside
    for them.
    """
    limit = limit_of(ceiling)
    told = _told(account, held)
    account, held, exceeded = told.account, told.slice, _passes(account.spent, told.account.spent, limit)
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
    """What is neither spent nor set aside goes back."""
    told = _told(account, held)
    back = told.slice.free.at_least(NOTHING)
    returned = NOTHING - back
    return BudgetGrant(
        _with(told.account, returned),
        _more(told.slice, returned),
        _passes(account.spent, told.account.spent, limit_of(ceiling)),
    )


def _told(account: BudgetAccount, held: BudgetSlice) -> BudgetGrant:
    """Spent since the last time; where a slice is overdrawn the account takes that upon itself."""
    overdrawn = (NOTHING - held.free).at_least(NOTHING)
    new = held.spent - held.told
    return BudgetGrant(
        BudgetAccount(account.taken + overdrawn, account.spent + new),
        replace(_more(held, overdrawn), told=held.spent),
    )


def _with(account: BudgetAccount, more: Amount) -> BudgetAccount:
    return replace(account, taken=account.taken + more)


def _more(held: BudgetSlice, more: Amount) -> BudgetSlice:
    return replace(held, taken=held.taken + more)


def _passes(before: Amount, after: Amount, limit: Amount) -> bool:
    return before.within(limit) and not after.within(limit)


# ------------------------------------------------------------------------------------------------ days
def day_of(now: datetime) -> str:
    """The day that a call is counted on, UTC, `2026-11-22`."""
    return now.astimezone(UTC).date().isoformat()


def until_next_day(now: datetime) -> float:
    """Seconds."""
    now = now.astimezone(UTC)
    midnight = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
    return (midnight - now).total_seconds()
