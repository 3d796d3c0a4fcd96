"""Two workers that share one budget, over the real engine: never exceeded, nothing dropped, a slice lost at most."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from memstream.adapters.ports import EmbedderIdentity, Usage
from memstream.adapters.spend_meter import Reservation
from memstream.adapters.vectors.factory import open_store
from memstream.adapters.vectors.store import QdrantStore
from memstream.agents.common.budget_client import GIVE_BACK_AFTER, REFUSED_FOR, BudgetClient
from memstream.memory.policies.budget import TIERS, BudgetPolicy, Ceiling, Line, Price
from memstream.schemas.budgets import StoredBudget
from memstream.schemas.collections import BUDGETS
from memstream.schemas.errors import OverBudget
from memstream.streams.engine.retry import Calls, RetryPolicy

EMBEDDER = EmbedderIdentity(name="hashing", dimension=4)
POLICY = BudgetPolicy(max_output_tokens=300, prices={"m": Price(1.0, 2.0)})
CEILING = Ceiling(tokens=5_000, cost=None, on_exceed="pause")


class World:
    """Stores of two processes on one engine, and a clock that both see."""

    def __init__(self, stores: list[QdrantStore]) -> None:
        self.stores = stores
        self.now = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
        self.monotonic = 1_000.0

    def worker(self, which: int = 0, ceiling: Ceiling = CEILING, line: Line = "consolidation") -> BudgetClient:
        return BudgetClient(
            store=self.stores[which],
            calls=Calls(retry=RetryPolicy(first=0.001, cap=0.001)),
            policy=POLICY,
            ceilings={line: ceiling},
            now=lambda: self.now,
            monotonic=lambda: self.monotonic,
        )

    async def rows(self, tenant: str = "acme") -> dict[tuple[str, str], StoredBudget]:
        found = await self.stores[0].select(BUDGETS, tenant_id=tenant)
        rows = [StoredBudget.from_payload(each.payload) for each in found]
        return {(row.day, row.line): row for row in rows}

    async def row(self) -> StoredBudget:
        [row] = (await self.rows()).values()
        return row


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    url = f"embedded://{tmp_path}"
    holder = await open_store(url, embedder=EMBEDDER, holds_folder=True, serve_loopback=True)
    await holder.ensure(BUDGETS)
    beside = await open_store(url, embedder=EMBEDDER)
    yield World([holder, beside])
    await beside.close()
    await holder.close()


async def reserve(
    budget: BudgetClient, prompt: int, *, task: str = "consolidation", tenant: str = "acme"
) -> Reservation:
    return await budget.reserve(tenant_id=tenant, task=task, model="m", input_tokens=lambda: prompt)


def used(tokens_in: int, tokens_out: int) -> Usage:
    return Usage(calls=1, input_tokens=tokens_in, output_tokens=tokens_out)


async def test_two_workers_never_exceed_one_ceiling_and_the_days_do_all_the_work(world: World) -> None:
    """Forty calls at once over two processes, of which a day's budget pays for some; the others wait for the next."""
    workers = [world.worker(0), world.worker(1)]
    dice = random.Random(7)
    waiting = [(dice.randint(50, 900), dice.randint(0, 300)) for _ in range(40)]
    spent: dict[str, int] = {}
    asked_for: list[float] = []
    days = 0
    while waiting:
        days += 1
        again: list[tuple[int, int]] = []

        async def call(place: int, prompt: int, answer: int, again: list[tuple[int, int]] = again) -> None:
            try:
                reserved = await reserve(workers[place % 2], prompt)
            except OverBudget as over:
                again.append((prompt, answer))
                asked_for.append(over.retry_after or 0.0)
                return
            await asyncio.sleep(0)
            day = world.now.date().isoformat()
            spent[day] = spent.get(day, 0) + prompt // 2 + answer
            reserved.settle(used(prompt // 2, answer))

        await asyncio.gather(*(call(place, *work) for place, work in enumerate(waiting)))
        assert len(again) < len(waiting), "each day does some of it"
        waiting = again
        world.now += timedelta(days=1)
        world.monotonic += 86_400
    for worker in workers:
        await worker.close()
    rows = await world.rows()
    assert {day for day, _ in rows} == set(spent)
    assert days > 1
    assert all(0 < seconds <= 86_400 for seconds in asked_for)
    for (day, _), row in rows.items():
        assert spent[day] <= row.taken_tokens <= 5_000
        assert row.spent_tokens == row.taken_tokens == spent[day], "what was not spent went back"


async def test_a_killed_worker_loses_its_slice_for_the_day_and_no_more(world: World) -> None:
    killed, other = world.worker(0), world.worker(1)
    await reserve(killed, 1_700)
    with pytest.raises(OverBudget) as caught:
        await reserve(other, 2_800)
    assert caught.value.retry_after == 60.0, "what others hold may come back"
    (await reserve(other, 2_700)).settle(used(2_700, 300))
    await other.close()
    row = await world.row()
    assert (row.taken_tokens, row.spent_tokens) == (5_000, 3_000)
    world.now += timedelta(days=1)
    await reserve(other, 4_700)


async def test_what_lies_idle_goes_back_to_others(world: World) -> None:
    one, other = world.worker(0), world.worker(1)
    (await reserve(one, 4_000)).settle(used(100, 50))
    world.monotonic += GIVE_BACK_AFTER
    await one.give_back(idle_for=GIVE_BACK_AFTER)
    assert (await world.row()).taken_tokens == 150
    await reserve(other, 4_550)


async def test_what_is_on_its_way_back_when_the_worker_stops_gets_there(world: World) -> None:
    budget = world.worker(1)
    (await reserve(budget, 4_000)).settle(used(100, 50))
    giving = asyncio.ensure_future(budget.give_back(idle_for=0.0))
    for _ in range(3):  # it has begun, and the store has not answered
        await asyncio.sleep(0)
    giving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await giving
    await budget.close()
    row = await world.row()
    assert (row.taken_tokens, row.spent_tokens) == (150, 150)


async def test_calls_out_of_one_slice_write_nothing(world: World) -> None:
    ceiling = Ceiling(tokens=1_000_000, cost=None, on_exceed="pause")
    budget = world.worker(ceiling=ceiling)
    for _ in range(50):
        (await reserve(budget, 500)).settle(used(400, 100))
    assert (await world.row()).version == 1


async def test_an_answer_that_nobody_heard_is_paid(world: World) -> None:
    budget = world.worker()
    (await reserve(budget, 1_000)).settle(None)
    await budget.close()
    assert (await world.row()).spent_tokens == 1_300


async def test_a_call_that_was_given_up_before_it_was_made_costs_nothing(world: World) -> None:
    budget = world.worker()
    asking = asyncio.ensure_future(reserve(budget, 4_000))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(10):
        while not await world.rows():
            await asyncio.sleep(0.01)
    await reserve(budget, 4_700)


async def test_tenants_days_and_lines_have_accounts_of_their_own(world: World) -> None:
    budget = world.worker(ceiling=Ceiling(tokens=1_000, cost=None, on_exceed="pause"))
    await reserve(budget, 700)
    await reserve(budget, 700, tenant="umbrella")
    await reserve(budget, 10_000, task="observations")  # a line without a ceiling
    await reserve(budget, 10_000, task="selection")
    await reserve(budget, 10_000, task="judge")
    with pytest.raises(OverBudget):
        await reserve(budget, 700)
    world.now += timedelta(hours=14, minutes=30)
    await reserve(budget, 700)
    judging = world.worker(ceiling=Ceiling(tokens=1_000, cost=None, on_exceed="pause"), line="judgement")
    await reserve(judging, 700, task="judge")
    with pytest.raises(OverBudget, match="judgement budget"):
        await reserve(judging, 700, task="judge")


async def test_the_ceiling_of_cost_holds_where_the_price_is_known(world: World) -> None:
    """A dollar a million tokens in, two out: 700 + 2 x 300 = 1 300 millionths of a dollar a call at most."""
    budget = world.worker(ceiling=Ceiling(tokens=None, cost=0.0026, on_exceed="pause"))
    for _ in range(2):
        await reserve(budget, 700)
    with pytest.raises(OverBudget):
        await reserve(budget, 700)


async def test_a_ceiling_that_logs_lets_everything_pass_and_says_so(world: World) -> None:
    budget = world.worker(ceiling=Ceiling(tokens=1_000, cost=None, on_exceed="log"))
    with capture_logs() as told:
        for _ in range(5):
            reserved = await reserve(budget, 400)
            assert reserved.max_output_tokens is None
            reserved.settle(used(400, 200))
        await budget.close()
    row = await world.row()
    assert (row.spent_tokens, row.pauses) == (3_000, False)
    assert [each["event"] for each in told].count("budget_exceeded") == 1


async def test_the_free_tier_spends_nothing_and_asks_no_store(world: World) -> None:
    budget = world.worker(ceiling=TIERS["free"].ceiling)
    with pytest.raises(OverBudget):
        await reserve(budget, 1)
    assert await world.rows() == {}


async def test_a_refusal_is_believed_for_a_moment(world: World) -> None:
    one, other = world.worker(0), world.worker(1)
    held = await reserve(one, 4_000)
    with pytest.raises(OverBudget):
        await reserve(other, 4_000)
    held.settle(used(0, 0))
    await one.close()
    with pytest.raises(OverBudget):
        await reserve(other, 4_000)
    await reserve(other, 1_000)  # a smaller one is another question
    world.monotonic += REFUSED_FOR
    await reserve(other, 3_400)
