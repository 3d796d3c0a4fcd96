"""Turns whose call gets no answer in time: longer pauses, then a dead letter, if the model answers other questions."""

from __future__ import annotations

import asyncio

from memstream.agents.observer.timeouts import TIMEOUTS_MAX
from memstream.schemas.errors import OverBudget, Poison, TimedOut, Transient
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import ObserverWorld, policy
from tests.support.table_rows import take_over

TIMEOUT = 60.0


class SlowModel:
    """A model that has no time for turns with `too long`. `question` answers the short question."""

    def __init__(self, question: Exception | None = None) -> None:
        self.question = question
        self.error: Exception = TimedOut("model", "no answer within 60 s", remedy="wait longer")
        self.world: ObserverWorld
        self.at: list[float] = []
        """Times of the calls about turns."""
        self.shown: list[list[str]] = []
        self.questions = 0

    def __call__(self, ask: Ask) -> Answer:
        if ask.messages[0][1].startswith("Answer with an empty list"):
            self.questions += 1
            if self.question is not None:
                raise self.question
            return {"observations": []}
        texts = list(ask.turns.values())
        self.at.append(self.world.clock.seconds)
        self.shown.append(texts)
        if any("too long" in each for each in texts):
            self.world.clock.seconds += TIMEOUT
            raise self.error
        return {"observations": []}


def slow_world(model: SlowModel) -> ObserverWorld:
    model.world = ObserverWorld(model, policy=policy(patience=60.0), breakers_by_test_clock=True)
    return model.world


async def wait_long(world: ObserverWorld, *, hours: float, step: float = 30.0) -> None:
    """Let time pass, and deliver each reminder when it is due."""
    async with asyncio.timeout(20):
        for _ in range(int(hours * 3600 / step)):
            world.clock.seconds += step
            await world.reminders()
            await world.deliver_rest()


async def test_each_time_out_doubles_the_pause_and_the_fifth_makes_a_dead_letter() -> None:
    model = SlowModel()
    world = slow_world(model)
    await world.deliver(world.turn("a too long turn"), world.turn("a short turn", "t2"))
    await wait_long(world, hours=1)
    pauses = [later - earlier - TIMEOUT for earlier, later in zip(model.at, model.at[1:TIMEOUTS_MAX], strict=False)]
    assert [round(each / 60) for each in pauses] == [1, 2, 4, 8]
    [letter] = world.dead_letters()
    assert (letter["memstream-reason"], letter["kafka_dlt-original-offset"]) == ("timed_out", "0")
    assert (
        "5 calls about this turn got no answer in time (no answer within 60 s)" in letter["kafka_dlt-exception-message"]
    )
    assert "MEMSTREAM_MODEL_TIMEOUT" in letter["kafka_dlt-exception-message"]
    assert [(each.turn_id, each.turn_number) for each in world.observed()] == [("t2", 1)]
    assert (model.questions, world.row().timeouts, world.row().waiting) == (1, 0, 0)
    assert world.counted()["turn_timed_out"] == TIMEOUTS_MAX - 1


async def test_the_letter_can_be_put_back() -> None:
    model = SlowModel()
    world = slow_world(model)
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=1)
    model.error = AssertionError("not asked")
    model.__class__ = type("FastModel", (SlowModel,), {"__call__": lambda self, ask: {"observations": []}})
    await world.deliver(world.turn("a too long turn"))
    assert [each.turn_id for each in world.observed()] == ["t1"]


async def test_letters_in_a_row_stop_no_worker() -> None:
    world = slow_world(SlowModel())
    for n in range(25):
        await world.deliver(world.turn("a too long turn", f"t{n}"))
    await wait_long(world, hours=9, step=60)
    assert [each["memstream-reason"] for each in world.dead_letters()] == ["timed_out"] * 25


async def test_while_the_model_is_away_the_turn_waits() -> None:
    """The short question gets no answer either. The observer asks only the question until the model is back."""
    model = SlowModel(TimedOut("model", "no answer within 60 s"))
    world = slow_world(model)
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=12)
    assert (world.dead_letters(), world.row().waiting) == ([], 1)
    assert len(model.at) == TIMEOUTS_MAX - 1
    assert 60 < model.questions < 100
    model.question = None
    await wait_long(world, hours=0.5)
    assert [each["memstream-reason"] for each in world.dead_letters()] == ["timed_out"]


async def test_a_refusal_of_the_short_question_is_an_answer() -> None:
    world = slow_world(SlowModel(Poison("refused_by_model", "the answer was cut")))
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=1)
    assert [each["memstream-reason"] for each in world.dead_letters()] == ["timed_out"]


async def test_without_budget_for_the_short_question_the_turn_waits() -> None:
    world = slow_world(SlowModel(OverBudget("nothing left", retry_after=3_600.0)))
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=1)
    assert (world.dead_letters(), world.row().waiting) == ([], 1)


async def test_after_a_time_out_of_several_turns_each_is_asked_about_alone() -> None:
    model = SlowModel()
    world = slow_world(model)
    model.question = TimedOut("model", "away")
    away, model.error = model.error, Transient("model", "away")
    await world.deliver(world.turn("one"), world.turn("two too long", "t2"), world.turn("three", "t3"))
    model.error = away
    await wait_long(world, hours=0.2)
    assert [each.turn_id for each in world.observed()][:1] == ["t1"]
    assert world.dead_letters() == []
    model.question = None
    await wait_long(world, hours=3)
    assert sorted(each.turn_id for each in world.observed()) == ["t1", "t3"]
    assert [each["kafka_dlt-original-offset"] for each in world.dead_letters()] == ["1"]


async def test_other_failures_are_not_counted_and_do_not_lengthen_the_pause() -> None:
    model = SlowModel()
    model.error = Transient("model", "the server is away")
    world = slow_world(model)
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=1)
    assert (world.row().timeouts, world.dead_letters()) == (0, [])
    assert len(model.at) > 20


async def test_the_next_worker_tries_immediately_and_goes_on_counting() -> None:
    model = SlowModel()
    world = slow_world(model)
    await world.deliver(world.turn("a too long turn"))
    await wait_long(world, hours=0.1)
    counted, calls = world.row().timeouts, len(model.at)
    assert counted > 1
    await take_over(world.observer, world.harness.rows, partitions=())
    await take_over(world.observer, world.harness.rows)
    await wait_long(world, hours=0.01)
    assert (world.row().timeouts, len(model.at)) == (counted + 1, calls + 1)
