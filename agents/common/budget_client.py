"""Budget of this process's model calls, taken from accounts that all workers share.

A point in the collection `budgets` is the account of one tenant, budget line and day. This process takes a slice of
the account by compare-and-set. It reserves the maximum cost of each call from the slice, without a write. It returns
the unused rest some seconds after its last call, and on shutdown. A killed process loses its slice for the day: the
account then counts more than was spent, never less. The rules are in memory/upkeep/budget.py; see
docs/explanation/size-and-cost.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import uuid4

import structlog

from ...adapters.ports import CasResult, Point, Usage, VectorStore
from ...adapters.spend_meter import UNBOUNDED, Reservation
from ...memory.policies.budget import LINE_OF, BudgetPolicy, Ceiling, Line
from ...memory.upkeep.budget import (
    Amount,
    BudgetAccount,
    BudgetGrant,
    BudgetSlice,
    Refusal,
    amount,
    day_of,
    give_back,
    limit_of,
    take,
    until_next_day,
)
from ...schemas.budgets import CAUSES_KEPT, StoredBudget, budget_id
from ...schemas.collections import BUDGETS
from ...schemas.errors import OverBudget, Transient
from ...streams.engine.retry import Calls

log = structlog.get_logger(__name__)

GIVE_BACK_AFTER: Final = 5.0
"""Seconds without a call after which the rest of a slice is given back."""
HELD_AGAIN: Final = 60.0
"""Seconds until a retry when other calls or workers hold the rest of the budget."""
REFUSED_FOR: Final = 5.0
"""Seconds that a refusal is cached. Without the cache, a backlog would read the account once per session."""
STORE_PATIENCE: Final = 5.0
"""Seconds that a call waits for an unreachable store before it raises Transient."""
ATTEMPTS: Final = 100
"""Compare-and-set attempts on one account before Transient is raised."""


@dataclass(frozen=True, slots=True)
class _Name:
    """Identity of an account."""

    tenant_id: str
    day: str
    line: Line


@dataclass(slots=True)
class _Held:
    """This process's slice of an account. `lock` serialises changes of the account."""

    slice: BudgetSlice = field(default_factory=BudgetSlice)
    used_at: float = 0.0
    refused: tuple[float, Amount, Refusal] | None = None
    """The last refusal: its expiry (monotonic clock), the refused amount and the reason."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class _Reserved:
    """A `Reservation` of a part of a slice. A reservation that is never settled stays reserved until the day ends."""

    def __init__(self, held: _Held, bound: Amount, cost: Callable[[Usage], Amount], max_output_tokens: int | None):
        self._held: _Held | None = held
        self._bound = bound
        self._cost = cost
        self._max_output_tokens = max_output_tokens

    @property
    def max_output_tokens(self) -> int | None:
        return self._max_output_tokens

    def settle(self, usage: Usage | None) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        used = None if usage is None else self._cost(usage)
        held.slice = held.slice.settle(self._bound, used)
        if used is not None and not used.within(self._bound):
            log.warning("budget_overrun", set_aside=self._bound.tokens, used=used.tokens, why="the answer was longer")


class BudgetClient:
    """A `Meter` whose accounts are in the vector store. Use an instance in one event loop only.

    `ceilings` contains the limited budget lines; a missing line is unlimited.
    """

    def __init__(
        self,
        *,
        store: VectorStore,
        calls: Calls,
        policy: BudgetPolicy,
        ceilings: Mapping[Line, Ceiling],
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        new_cause: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._store = store
        self._calls = calls
        self._policy = policy
        self._ceilings = ceilings
        self._now = now
        self._monotonic = monotonic
        self._new_cause = new_cause
        self._held: dict[_Name, _Held] = {}
        self._paused: set[_Name] = set()

    def ceiling(self, task: str) -> Ceiling | None:
        """Return the ceiling of a task's budget line, or None when the line is unlimited."""
        line = next((line for known, line in LINE_OF.items() if known == task), None)
        return None if line is None else self._ceilings.get(line)

    async def reserve(self, *, tenant_id: str, task: str, model: str, input_tokens: Callable[[], int]) -> Reservation:
        """Reserve the maximum cost of one call. See the port `Meter`."""
        ceiling = self.ceiling(task)
        if ceiling is None:
            return UNBOUNDED
        price = self._policy.price(model)

        def cost(usage: Usage) -> Amount:
            return amount(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, price=price)

        most = self._policy.max_output_tokens
        bound = cost(Usage(input_tokens=input_tokens(), output_tokens=most))
        held = await self._set_aside(tenant_id, task, bound, ceiling)
        return _Reserved(held, bound, cost, most if ceiling.pauses else None)

    # ------------------------------------------------------------------------------------------------ slices
    async def _set_aside(self, tenant_id: str, task: str, bound: Amount, ceiling: Ceiling) -> _Held:
        name = self._name(tenant_id, task)
        if ceiling.forbids:
            raise self._over(name, "spent", bound, ceiling)
        held = self._held.setdefault(name, _Held())
        held.used_at = self._monotonic()
        reserved = held.slice.reserve(bound)
        if reserved is not None:
            held.slice = reserved
            return held
        taking = asyncio.create_task(self._take(name, held, bound, ceiling))
        try:
            # Let the task finish: otherwise a slice already taken from the account would be lost.
            refusal = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(lambda done: _put_back(held, bound, done))
            raise
        if refusal is not None:
            raise self._over(name, refusal, bound, ceiling)
        return held

    async def _take(self, name: _Name, held: _Held, bound: Amount, ceiling: Ceiling) -> Refusal | None:
        """Reserve `bound`; take a larger slice from the account when the current slice is too small."""
        async with held.lock:
            reserved = held.slice.reserve(bound)
            while reserved is None:
                known = self._known_refusal(held, bound)
                if known is not None:
                    return known
                before = held.slice
                taken = await self._change(name, ceiling, lambda account: take(account, before, bound, ceiling))  # noqa: B023
                if not isinstance(taken, BudgetGrant):
                    held.refused = (self._monotonic() + REFUSED_FOR, bound, taken)
                    return taken
                # Calls may have ended during the write: add the taken amount to the current slice.
                more = taken.slice.taken - before.taken
                held.slice = replace(held.slice, taken=held.slice.taken + more, reported=taken.slice.reported)
                reserved = held.slice.reserve(bound)
            held.slice = reserved
            self._paused.discard(name)
            return None

    async def give_back(self, *, idle_for: float) -> None:
        """Return the rest of slices that no call has used for `idle_for` seconds.

        Raises Transient; the rest is then lost for the day.
        """
        now, today = self._monotonic(), day_of(self._now())
        for name, held in list(self._held.items()):
            if now - held.used_at < idle_for:
                continue
            giving = asyncio.create_task(self._give_back(name, held, today))
            try:
                # Let the task finish: otherwise the rest would be lost. The next give-back waits for the lock.
                await asyncio.shield(giving)
            except asyncio.CancelledError:
                giving.add_done_callback(_report_lost)
                raise

    async def _give_back(self, name: _Name, held: _Held, today: str) -> None:
        ceiling = self._ceilings[name.line]
        async with held.lock:
            before = held.slice
            if before.taken == before.spent + before.reserved and before.reported == before.spent:
                if name.day != today and before.reserved == Amount():
                    self._held.pop(name, None)
                return
            # Empty the slice first, so that no call reserves the rest during the write.
            held.slice = give_back(BudgetAccount(), before, ceiling).slice
            await self._change(name, ceiling, lambda account: give_back(account, before, ceiling))

    async def run(self) -> None:
        """Return the rest of idle slices periodically, until cancelled."""
        while True:
            await asyncio.sleep(GIVE_BACK_AFTER)
            try:
                await self.give_back(idle_for=GIVE_BACK_AFTER)
            except Transient as error:
                log.warning("budget_not_given_back", why=str(error))

    async def close(self) -> None:
        """Return the rest of all slices on shutdown."""
        try:
            await self.give_back(idle_for=0.0)
        except Transient as error:
            log.warning("budget_not_given_back", why=str(error))

    # ------------------------------------------------------------------------------------------------ the account
    async def _change(
        self, name: _Name, ceiling: Ceiling, change: Callable[[BudgetAccount], BudgetGrant | Refusal]
    ) -> BudgetGrant | Refusal:
        """Change an account by compare-and-set; retry when another worker changed it first."""
        for _ in range(ATTEMPTS):
            row = await self._row(name)
            changed = change(_account(row))
            if not isinstance(changed, BudgetGrant):
                return changed
            result = await self._write(_row(name, ceiling, row, changed.account, self._new_cause()))
            if result != "conflict":
                if changed.exceeded:
                    log.warning(
                        "budget_exceeded",
                        tenant_id=name.tenant_id,
                        line=name.line,
                        day=name.day,
                        tokens=changed.account.spent.tokens,
                        usd=round(changed.account.spent.nanos / 1e9, 6),
                        ceiling_tokens=ceiling.tokens,
                        ceiling_usd=ceiling.cost,
                    )
                return changed
        raise Transient("store", f"the budget of {name.line} changed {ATTEMPTS} times while it was written")

    async def _row(self, name: _Name) -> StoredBudget | None:
        point_id = budget_id(name.tenant_id, name.day, name.line)
        found = await self._calls.call(
            "store",
            lambda: self._store.get(BUDGETS, tenant_id=name.tenant_id, ids=[point_id]),
            give_up_after=STORE_PATIENCE,
        )
        return StoredBudget.from_payload(found[point_id].payload) if point_id in found else None

    async def _write(self, row: StoredBudget) -> CasResult:
        point = Point(budget_id(row.tenant_id, row.day, row.line), row.to_payload())
        expected = None if row.version == 1 else row.version - 1
        return await self._calls.call(
            "store",
            lambda: self._store.compare_and_set(BUDGETS, point, expected_version=expected, cause=row.applied[-1]),
            give_up_after=STORE_PATIENCE,
        )

    # ------------------------------------------------------------------------------------------------ within
    def _name(self, tenant_id: str, task: str) -> _Name:
        line = next(line for known, line in LINE_OF.items() if known == task)
        return _Name(tenant_id, day_of(self._now()), line)

    def _known_refusal(self, held: _Held, bound: Amount) -> Refusal | None:
        """Return the last refusal when it is still valid and this call needs at least the refused amount."""
        if held.refused is None:
            return None
        until, refused, why = held.refused
        return why if self._monotonic() < until and refused.within(bound) else None

    def _over(self, name: _Name, refusal: Refusal, bound: Amount, ceiling: Ceiling) -> OverBudget:
        why = {
            "spent": f"the {name.line} budget of {name.day} is spent",
            "held": f"the rest of the {name.line} budget of {name.day} is reserved for running calls",
            "too_large": f"one call may take {bound.tokens} tokens, more than the {name.line} budget of a day",
        }[refusal]
        if name not in self._paused:
            self._paused.add(name)
            log.warning(
                "budget_paused",
                tenant_id=name.tenant_id,
                line=name.line,
                day=name.day,
                why=why,
                ceiling_tokens=ceiling.tokens,
                ceiling_usd=ceiling.cost,
            )
        again = HELD_AGAIN if refusal == "held" else until_next_day(self._now())
        return OverBudget(
            why, retry_after=min(again, until_next_day(self._now())), remedy="docs/explanation/size-and-cost.md"
        )


def _report_lost(giving: asyncio.Task[None]) -> None:
    """Log the failure of a task whose caller was cancelled."""
    if not giving.cancelled() and (error := giving.exception()) is not None:
        log.warning("budget_not_given_back", why=str(error))


def _put_back(held: _Held, bound: Amount, taking: asyncio.Task[Refusal | None]) -> None:
    """Release the reservation of a caller that was cancelled before its model call."""
    if not taking.cancelled() and taking.exception() is None and taking.result() is None:
        held.slice = held.slice.settle(bound, Amount())


def _account(row: StoredBudget | None) -> BudgetAccount:
    if row is None:
        return BudgetAccount()
    return BudgetAccount(
        taken=Amount(row.taken_tokens, row.taken_nanos),
        spent=Amount(row.spent_tokens, row.spent_nanos),
    )


def _row(
    name: _Name, ceiling: Ceiling, before: StoredBudget | None, account: BudgetAccount, cause: str
) -> StoredBudget:
    limit = limit_of(ceiling)
    return StoredBudget(
        tenant_id=name.tenant_id,
        day=name.day,
        line=name.line,
        version=1 if before is None else before.version + 1,
        taken_tokens=account.taken.tokens,
        taken_nanos=account.taken.nanos,
        spent_tokens=account.spent.tokens,
        spent_nanos=account.spent.nanos,
        ceiling_tokens=None if ceiling.tokens is None else limit.tokens,
        ceiling_nanos=None if ceiling.cost is None else limit.nanos,
        pauses=ceiling.pauses,
        applied=(*(() if before is None else before.applied), cause)[-CAUSES_KEPT:],
    )
