"""Spending: never above a ceiling that pauses, whatever workers do and in which order, and no work is dropped."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memstream.memory.policies.budget import (
    LINE_OF,
    NO_CEILING,
    PHASES,
    TIERS,
    BudgetPolicy,
    Ceiling,
    CustomTier,
    Price,
    StandardTier,
)
from memstream.memory.upkeep.budget import (
    NANOS,
    NOTHING,
    Amount,
    BudgetAccount,
    BudgetGrant,
    BudgetSlice,
    amount,
    day_of,
    give_back,
    limit_of,
    take,
    until_next_day,
)
from memstream.schemas.tasks import TASKS

CEILING = Ceiling(tokens=10_000, cost=0.01, on_exceed="pause")
LIMIT = limit_of(CEILING)
WORKERS = 3


# ------------------------------------------------------------------------------------------------ amounts
@given(
    tokens=st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)),
    price=st.tuples(st.floats(0, 100), st.floats(0, 1000)),
)
def test_cost_is_rounded_up_to_a_nanodollar(tokens: tuple[int, int], price: tuple[float, float]) -> None:
    cost = amount(input_tokens=tokens[0], output_tokens=tokens[1], price=Price(*price)).nanos
    exact = (tokens[0] * Fraction(price[0]) + tokens[1] * Fraction(price[1])) / 1_000_000 * NANOS
    assert 0 <= cost - exact < 1


def test_a_model_without_a_price_costs_tokens_alone() -> None:
    assert amount(input_tokens=3, output_tokens=4, price=None) == Amount(7, 0)


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_day_turns_at_midnight_utc(now: datetime) -> None:
    seconds = until_next_day(now)
    assert 0 < seconds <= 86_400
    assert day_of(now) != day_of(now + timedelta(seconds=seconds))
    assert day_of(now) == day_of(now + timedelta(seconds=seconds - 1e-6)) or seconds < 1e-5


def test_a_time_elsewhere_is_counted_on_the_day_in_utc() -> None:
    assert day_of(datetime.fromisoformat("2026-11-22T00:30:00+02:00")) == "2026-11-21"


# ------------------------------------------------------------------------------------------------ tiers
def test_the_tiers_are_the_tables() -> None:
    told = {
        name: (tier.phases, tier.ceiling.tokens, tier.ceiling.cost, tier.ceiling.on_exceed)
        for name, tier in TIERS.items()
    }
    assert told == {
        "free": (("light",), 0, 0, "pause"),
        "cheap": (("light", "standard"), 50_000, 0.20, "pause"),
        "standard": (PHASES, 200_000, 1.00, "pause"),
        "full": (PHASES, 1_000_000, 5.00, "log"),
    }


def test_the_ceiling_of_standard_holds_unless_told_otherwise() -> None:
    assert BudgetPolicy().tier("standard").ceiling.pauses
    told = BudgetPolicy(standard=StandardTier(on_exceed="log")).tier("standard")
    assert (told.phases, told.ceiling) == (PHASES, Ceiling(200_000, 1.00, "log"))
    with pytest.raises(ValueError, match="on_exceed must be one of"):
        StandardTier(on_exceed="stop")  # type: ignore[arg-type]


def test_every_task_but_a_readers_has_a_line() -> None:
    assert set(TASKS) - set(LINE_OF) == {"selection"}


def test_a_custom_tier_that_is_incomplete_says_what_to_write() -> None:
    with pytest.raises(ValueError, match="set phases, cost, on_exceed in"):
        BudgetPolicy(custom=CustomTier(tokens=5)).tier("custom")
    whole = CustomTier(phases=("light",), tokens=5, cost=0.5, on_exceed="log")
    assert BudgetPolicy(custom=whole).tier("custom").ceiling == Ceiling(5, 0.5, "log")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"phases": ("light", "deeper")}, "deeper"),
        ({"tokens": -1}, "tokens"),
        ({"cost": float("nan")}, "cost"),
        ({"on_exceed": "stop"}, "on_exceed"),
    ],
)
def test_wrong_numbers_of_a_custom_tier_are_named(given: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        CustomTier(**given)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ single decisions
def test_a_call_that_can_cost_more_than_a_day_is_too_large() -> None:
    assert take(BudgetAccount(), BudgetSlice(), Amount(10_001), CEILING) == "too_large"


def test_what_others_hold_may_come_back_and_what_is_spent_does_not() -> None:
    held = take(BudgetAccount(taken=Amount(9_000)), BudgetSlice(), Amount(2_000), CEILING)
    spent = take(BudgetAccount(taken=Amount(9_000), spent=Amount(9_000)), BudgetSlice(), Amount(2_000), CEILING)
    assert (held, spent) == ("held", "spent")


def test_one_that_only_logs_says_it_once_and_never_refuses() -> None:
    ceiling = Ceiling(tokens=100, cost=None, on_exceed="log")
    account, held, said = BudgetAccount(), BudgetSlice(), []
    for _ in range(6):
        taken = take(account, held, Amount(50), ceiling)
        assert isinstance(taken, BudgetGrant)
        account, held = taken.account, taken.slice
        said.append(taken.exceeded)
        reserved = held.reserve(Amount(50))
        assert reserved is not None
        held = reserved.settle(Amount(50), Amount(40))
    assert said == [False, False, False, True, False, False]


def test_without_a_ceiling_nobody_is_refused() -> None:
    assert isinstance(take(BudgetAccount(taken=Amount(10**12)), BudgetSlice(), Amount(10**9), NO_CEILING), BudgetGrant)


def test_a_call_that_cost_more_than_was_set_aside_is_counted_in_full() -> None:
    taken = take(BudgetAccount(), BudgetSlice(), Amount(100), CEILING)
    assert isinstance(taken, BudgetGrant)
    held = taken.slice.reserve(Amount(100))
    assert held is not None
    back = give_back(taken.account, held.settle(Amount(100), Amount(5_000)), CEILING)
    assert back.account == BudgetAccount(taken=Amount(5_000), spent=Amount(5_000))


# ------------------------------------------------------------------------------------------------ any order
@dataclass
class Worker:
    slices: dict[int, BudgetSlice] = field(default_factory=dict)
    """By day."""
    under_way: list[tuple[int, Amount, Amount, bool]] = field(default_factory=list)
    """Calls: the day, what was set aside, what it will really cost, whether it is a piece of work that waited."""


class Spenders(RuleBasedStateMachine):
    """Workers that reserve, settle, give back and die, over days; pieces of work that wait for their call."""

    def __init__(self) -> None:
        super().__init__()
        self.day = 0
        self.accounts: dict[int, BudgetAccount] = {}
        self.workers = [Worker() for _ in range(WORKERS)]
        self.really: dict[int, Amount] = {}
        """What providers will ask for, per day: of every call that was made, whatever became of its worker."""
        self.waiting = 0
        self.asked = 0
        self.done = 0

    def call(self, worker: Worker, bound: Amount, share: float) -> bool:
        """Make a call as the ledger does; False: not now."""
        account, held = self.accounts.get(self.day, BudgetAccount()), worker.slices.get(self.day, BudgetSlice())
        reserved = held.reserve(bound)
        if reserved is None:
            taken = take(account, held, bound, CEILING)
            if not isinstance(taken, BudgetGrant):
                return False
            self.accounts[self.day] = taken.account
            reserved = taken.slice.reserve(bound)
            assert reserved is not None, "what was taken is enough"
        worker.slices[self.day] = reserved
        cost = Amount(int(bound.tokens * share), int(bound.nanos * share))
        self.really[self.day] = self.really.get(self.day, NOTHING) + cost
        worker.under_way.append((self.day, bound, cost, True))
        return True

    @rule(
        who=st.integers(0, WORKERS - 1),
        tokens=st.integers(1, 6_000),
        nanos=st.integers(0, 8_000_000),
        share=st.floats(0, 1),
    )
    def work_comes(self, who: int, tokens: int, nanos: int, share: float) -> None:
        self.asked += 1
        if not self.call(self.workers[who], Amount(tokens, nanos), share):
            self.waiting += 1

    @precondition(lambda self: any(worker.under_way for worker in self.workers))
    @rule(which=st.integers(0, 50), heard=st.booleans())
    def a_call_ends(self, which: int, heard: bool) -> None:
        worker = [each for each in self.workers if each.under_way][which % sum(bool(w.under_way) for w in self.workers)]
        day, bound, cost, _ = worker.under_way.pop(which % len(worker.under_way))
        worker.slices[day] = worker.slices[day].settle(bound, cost if heard else None)
        self.done += 1

    @rule(who=st.integers(0, WORKERS - 1))
    def a_worker_gives_back(self, who: int) -> None:
        worker = self.workers[who]
        for day, held in worker.slices.items():
            back = give_back(self.accounts[day], held, CEILING)
            self.accounts[day], worker.slices[day] = back.account, back.slice

    @rule(who=st.integers(0, WORKERS - 1))
    def a_worker_dies(self, who: int) -> None:
        self.waiting += len(self.workers[who].under_way)  # its events come again
        self.workers[who] = Worker()

    @rule()
    def the_day_turns(self) -> None:
        self.day += 1

    @invariant()
    def nothing_above_the_ceiling(self) -> None:
        for day, account in self.accounts.items():
            assert account.taken.within(LIMIT)
            assert account.spent.within(account.taken)
            assert self.really.get(day, NOTHING).within(account.taken), "the account counts at least what is spent"

    @invariant()
    def nothing_is_lost(self) -> None:
        under_way = sum(len(worker.under_way) for worker in self.workers)
        assert self.asked == self.done + self.waiting + under_way

    def teardown(self) -> None:
        """With the days everything that waits is done."""
        for _ in range(self.waiting):
            self.day += 1
            assert self.call(self.workers[0], Amount(6_000, 8_000_000), 1.0)
        for day, account in self.accounts.items():
            assert account.taken.within(LIMIT), day


TestSpenders = Spenders.TestCase
TestSpenders.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
