"""Fallback models over real HTTP: which model is called, which one answered, and when the first is called again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from memstream.adapters.completions.factory import create_completions
from memstream.adapters.completions.fallbacks import PROBE_AFTER, FallbackCompletions
from memstream.adapters.completions.offline import OfflineCompletions
from memstream.adapters.completions.openai import OpenAICompletions
from memstream.adapters.completions.router import CompletionsByTask
from memstream.adapters.ports import Completion, CompletionRequest, Completions
from memstream.schemas.errors import OverBudget, Poison, Transient
from tests.support.completion_requests import Ledger, consolidate, observe
from tests.support.model_server import (
    Answer,
    Ask,
    ModelServer,
    Reply,
    error,
    garbage,
    hang,
    nothing,
    rate_limited,
    unauthorized,
)

PATIENCE = 60.0
TIMEOUT = 15.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Models:
    """A server of models. Each answers as its script says, and correctly without a script."""

    def __init__(self) -> None:
        self.told: dict[str, Reply] = {}

    def __call__(self, ask: Ask) -> Answer:
        return self.told.get(ask.model) or nothing(ask)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def server(models: Models) -> Iterator[ModelServer]:
    with ModelServer(models) as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def first_timeout() -> float:
    """Seconds for an answer of the first model. A test in which it hangs names fewer."""
    return TIMEOUT


@pytest.fixture
async def chain(
    server: ModelServer, clock: Clock, ledger: Ledger, first_timeout: float
) -> AsyncIterator[FallbackCompletions]:
    made: list[Completions] = [
        OpenAICompletions(model=name, api_key="k", base_url=server.base_url, timeout=timeout, sink=ledger)
        for name, timeout in (("first", first_timeout), ("second", TIMEOUT), ("third", TIMEOUT))
    ]
    yield FallbackCompletions(made, patience=PATIENCE, clock=clock)
    for each in made:
        await each.close()


async def answered_by(chain: Completions) -> str:
    return (await chain.complete(observe("user: hi"))).model


class TestWhoIsAsked:
    async def test_the_first_while_it_answers(self, chain: FallbackCompletions, server: ModelServer) -> None:
        assert [await answered_by(chain) for _ in range(3)] == ["first"] * 3
        assert {ask.model for ask in server.asks} == {"first"}

    @pytest.mark.parametrize(
        "away",
        [
            hang(),
            error(500),
            error(503),
            error(404, code="model_not_found"),
            error(404),
            unauthorized(),
            error(403),
            error(429, code="insufficient_quota"),
            Reply(content="{}", cut_body=True),
            Reply(raw=b"<html>", headers={"content-type": "text/html"}),
        ],
        ids=lambda reply: f"{reply.status}{reply.code or ''}{'-cut' if reply.cut_body else ''}",
    )
    @pytest.mark.parametrize("first_timeout", [0.3])
    async def test_the_next_when_it_is_away(
        self, chain: FallbackCompletions, models: Models, ledger: Ledger, away: Reply
    ) -> None:
        models.told["first"] = away
        assert await answered_by(chain) == "second"
        assert [entry[2] for entry in ledger.entries if entry[3].calls] == ["second"]

    async def test_the_third_when_two_are_away(self, chain: FallbackCompletions, models: Models) -> None:
        models.told |= {"first": error(500), "second": error(404)}
        assert await answered_by(chain) == "third"

    async def test_all_away_is_the_failure_that_asks_for_least_time(
        self, chain: FallbackCompletions, models: Models
    ) -> None:
        models.told |= {name: error(503, name, retry_after="30") for name in ("first", "third")}
        models.told["second"] = error(503, "soon back", retry_after="2")
        with pytest.raises(Transient, match="soon back") as caught:
            await answered_by(chain)
        assert caught.value.retry_after == 2

    async def test_a_last_one_that_is_over_budget_is_a_failure_like_others(
        self, server: ModelServer, models: Models, ledger: Ledger
    ) -> None:
        class OverBudgetCompletions(OfflineCompletions):
            async def complete(self, request: CompletionRequest[Any]) -> Completion[Any]:
                raise OverBudget("the day's tokens are spent", retry_after=3600.0)

        models.told["first"] = error(503, "soon back", retry_after="2")
        first = OpenAICompletions(model="first", api_key="k", base_url=server.base_url, timeout=TIMEOUT, sink=ledger)
        with pytest.raises(Transient, match="soon back"):
            await answered_by(FallbackCompletions([first, OverBudgetCompletions(sink=ledger)], patience=0.0))
        await first.close()

    async def test_the_last_is_asked_each_time(
        self, chain: FallbackCompletions, models: Models, server: ModelServer
    ) -> None:
        models.told |= {name: error(503) for name in ("first", "second", "third")}
        for _ in range(3):
            with pytest.raises(Transient):
                await answered_by(chain)
        assert [ask.model for ask in server.asks] == ["first", "second", "third", "third", "third"]

    async def test_who_refuses_has_answered(
        self, chain: FallbackCompletions, models: Models, server: ModelServer
    ) -> None:
        models.told["first"] = garbage()
        with pytest.raises(Poison):
            await answered_by(chain)
        assert {ask.model for ask in server.asks} == {"first"}


class TestBusy:
    async def test_is_waited_for(
        self, chain: FallbackCompletions, models: Models, clock: Clock, server: ModelServer
    ) -> None:
        models.told["first"] = rate_limited(5)
        for _ in range(3):
            with pytest.raises(Transient) as caught:
                await answered_by(chain)
            assert caught.value.retry_after == 5
            clock.now += 5
        models.told.clear()
        assert await answered_by(chain) == "first"
        assert {ask.model for ask in server.asks} == {"first"}

    async def test_beyond_the_patience_the_next_is_asked(
        self, chain: FallbackCompletions, models: Models, clock: Clock
    ) -> None:
        models.told["first"] = rate_limited()
        with pytest.raises(Transient):
            await answered_by(chain)
        clock.now += PATIENCE
        assert await answered_by(chain) == "second"

    async def test_one_that_asks_for_more_than_the_patience_is_away_at_once(
        self, chain: FallbackCompletions, models: Models, clock: Clock, server: ModelServer
    ) -> None:
        models.told["first"] = rate_limited(PATIENCE + 1)
        assert await answered_by(chain) == "second"
        models.told.clear()
        clock.now += PATIENCE
        assert await answered_by(chain) == "second", "it is left alone as long as it asked for"
        clock.now += 2
        assert await answered_by(chain) == "first"


class TestComingBack:
    async def test_nobody_asks_it_for_a_while_and_then_all(
        self, chain: FallbackCompletions, models: Models, clock: Clock, server: ModelServer
    ) -> None:
        models.told["first"] = error(500)
        assert [await answered_by(chain) for _ in range(3)] == ["second"] * 3
        assert [ask.model for ask in server.asks].count("first") == 1
        models.told.clear()
        clock.now += PROBE_AFTER - 0.1
        assert await answered_by(chain) == "second"
        clock.now += 0.2
        assert [await answered_by(chain) for _ in range(2)] == ["first"] * 2

    async def test_one_call_tries_while_the_others_go_on(
        self, server: ModelServer, models: Models, clock: Clock, ledger: Ledger
    ) -> None:
        made: list[Completions] = [
            OpenAICompletions(model=name, base_url=server.base_url, timeout=5, sink=ledger) for name in ("a", "b")
        ]
        chain = FallbackCompletions(made, patience=PATIENCE, clock=clock)
        models.told["a"] = error(500)
        await answered_by(chain)
        clock.now += PROBE_AFTER
        models.told["a"] = hang()
        probe = asyncio.ensure_future(answered_by(chain))
        await asyncio.to_thread(server.wait_in_hand, 1)
        assert [await answered_by(chain) for _ in range(2)] == ["b", "b"]
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        models.told.clear()
        assert await answered_by(chain) == "a", "a probe that was cancelled leaves the next one to try"
        for each in made:
            await each.close()


class TestRulesAsTheLastOne:
    async def test_stand_in_for_a_model_that_is_away_not_for_one_that_stumbles(
        self, server: ModelServer, models: Models, clock: Clock, ledger: Ledger
    ) -> None:
        paid = OpenAICompletions(model="paid", base_url=server.base_url, timeout=5, sink=ledger)
        rules = OfflineCompletions(sink=ledger)
        chain = FallbackCompletions([paid, rules], patience=PATIENCE, clock=clock)
        models.told["paid"] = error(500)
        with pytest.raises(Transient):
            await answered_by(chain)
        clock.now += PATIENCE
        assert await answered_by(chain) == rules.model
        assert chain.costs_money
        await paid.close()


class TestByTask:
    def make(self, server: ModelServer, ledger: Ledger) -> CompletionsByTask:
        return create_completions(
            model="main, spare",
            models={"consolidation": "careful,offline", "judge": "offline"},
            api_key="k",
            base_url=server.base_url,
            timeout=5,
            concurrency=2,
            sink=ledger,
        )

    async def test_each_task_has_its_own(self, server: ModelServer, models: Models, ledger: Ledger) -> None:
        made = self.make(server, ledger)
        assert (await made.complete(observe("user: hi"))).model == "main"
        assert (await made.complete(consolidate(episodes=[("user", "Speaks German")]))).model == "careful"
        models.told["main"] = error(500)
        assert (await made.complete(observe("user: hi"))).model == "spare"
        assert (made.of("judge").costs_money, made.of("consolidation").costs_money) == (False, True)
        assert {entry[1:3] for entry in ledger.entries} == {
            ("observations", "main"),
            ("observations", "spare"),
            ("consolidation", "careful"),
        }
        await made.close()

    async def test_one_without_a_key_is_refused_by_its_task(self, ledger: Ledger) -> None:
        with pytest.raises(ValueError, match=r"models\.judge = 'big'"):
            create_completions(
                model=None, models={"judge": "big"}, api_key=None, base_url=None, timeout=5, concurrency=2, sink=ledger
            )
