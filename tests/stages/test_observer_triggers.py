"""When a session is observed that need not be observed at every turn: enough tokens, idle, its end; and budgets."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.schemas.errors import OverBudget
from memstream.schemas.topics import COMMANDS_SESSION
from tests.support.model_server import Answer, Ask, nothing
from tests.support.observer_world import ObserverWorld
from tests.support.record_builders import NOW
from tests.support.table_rows import take_over

IDLE = 600.0
DAY = 86_400.0
A_HUNDRED_TOKENS = "x" * 400


def world(tokens: int = 1_000) -> ObserverWorld:
    policy = ObservePolicy(patience=0.02, unobserved_tokens=tokens, round_tokens=tokens, idle=IDLE)
    return ObserverWorld(policy=MemoryPolicy(observe=policy))


async def say(it: ObserverWorld, first: int, last: int, text: str = A_HUNDRED_TOKENS, **fields: object) -> None:
    for n in range(first, last + 1):
        await it.deliver(it.turn(text, f"t{n}", **fields))


async def reminded(it: ObserverWorld) -> int:
    """Deliver the commands that are due; how many there were."""
    before = len(it.harness.on(COMMANDS_SESSION.name))
    for record in list(it.observer._deferred.due(50)):
        await it.harness.send_durably(record)
    sent = it.harness.on(COMMANDS_SESSION.name)[before:]
    for record in sent:
        await it.deliver(it.again(record))
    return len(sent)


class TestTokens:
    async def test_turns_wait_until_there_are_enough_and_make_one_call(self) -> None:
        it = world()
        await say(it, 1, 9)
        assert (len(it.model.asks), len(it.waiting())) == (0, 9)
        await say(it, 10, 10)
        assert (len(it.model.asks), len(it.waiting()), len(it.observed())) == (1, 0, 10)
        assert len(it.model.asks[0].turns) == 10, "more than go together under a backlog"

    async def test_what_goes_beyond_waits_for_the_next(self) -> None:
        it = world()
        await say(it, 1, 9)
        await say(it, 10, 10, text=A_HUNDRED_TOKENS * 9)
        assert [len(ask.turns) for ask in it.model.asks] == [9]
        await say(it, 11, 11)
        assert [len(ask.turns) for ask in it.model.asks] == [9, 2]

    async def test_the_end_of_a_session_waits_for_nothing(self) -> None:
        it = world()
        await say(it, 1, 2)
        await say(it, 3, 3, ends_session=True)
        assert [len(ask.turns) for ask in it.model.asks] == [3]


class TestIdle:
    async def test_a_session_without_a_turn_for_ten_minutes_is_observed(self) -> None:
        it = world()
        await say(it, 1, 3)
        it.clock.seconds = IDLE - 1
        assert await reminded(it) == 0
        it.clock.seconds = IDLE
        assert await reminded(it) == 1
        assert (len(it.waiting()), len(it.observed())) == (0, 3)
        it.clock.seconds += IDLE
        assert await reminded(it) == 0, "nothing waits any more"

    async def test_each_turn_puts_it_off(self) -> None:
        it = world()
        await say(it, 1, 1)
        it.clock.seconds = IDLE - 1
        await say(it, 2, 2)
        it.clock.seconds = 2 * IDLE - 2
        assert await reminded(it) == 0
        it.clock.seconds = 2 * IDLE - 1
        assert await reminded(it) == 1
        assert len(it.observed()) == 2

    async def test_the_next_owner_of_the_partition_counts_from_the_last_turn(self) -> None:
        it = world()
        await say(it, 1, 2)
        it.clock.seconds = 400.0
        it.harness.start()
        await take_over(it.observer, it.harness.rows)
        assert await reminded(it) == 0
        it.clock.seconds = IDLE + 1
        assert await reminded(it) == 1
        assert len(it.observed()) == 2


class TestBudget:
    """The model's own budget is spent: it says so before a call."""

    def spent(self) -> ObserverWorld:
        it = ObserverWorld()
        self.left = False

        def script(ask: Ask) -> Answer:
            if self.left:
                return nothing(ask)
            now = it.clock.now()
            raise OverBudget("spent", retry_after=DAY - (now - now.replace(hour=0, minute=0)).total_seconds())

        it.model.script = script
        return it

    async def test_turns_wait_for_the_next_day_and_nobody_asks_before(self) -> None:
        it = self.spent()
        await say(it, 1, 3)
        assert (len(it.model.asks), len(it.waiting()), it.dead_letters()) == (1, 3, [])
        it.clock.seconds = 3_600.0
        assert await reminded(it) == 0
        midnight = (NOW + timedelta(days=1)).replace(hour=0, minute=0, second=0)
        it.clock.seconds = (midnight - NOW).total_seconds() + 1
        self.left = True
        assert await reminded(it) == 1
        assert (len(it.waiting()), [each.turn_id for each in it.observed()]) == (0, ["t1", "t2", "t3"])

    async def test_another_day_is_enough_whatever_was_named(self) -> None:
        it = self.spent()
        await say(it, 1, 1)
        self.left = True
        later = it.observer._deferred._now
        it.observer._deferred._now = lambda: later() + timedelta(days=1)
        assert await reminded(it) == 1
        assert len(it.observed()) == 1

    async def test_it_is_no_failure_of_the_model(self) -> None:
        it = self.spent()
        for n in range(8):
            await say(it, 1, 1, session=("acme", "u", f"s{n}"))
        assert it.harness.calls.away() == {}
        assert len(it.model.asks) == 8


def test_a_round_of_tokens_is_as_large_as_the_trigger() -> None:
    policy = ObservePolicy(unobserved_tokens=30_000)
    assert (policy.round_size, policy.round_turns) == (30_000, 64)
    assert (replace(policy, unobserved_tokens=0).round_size, ObservePolicy().round_turns) == (8_000, 8)
