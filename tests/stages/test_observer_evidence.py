"""The blind question about evidence: what it shows, what its answer changes, and what happens without an answer."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from memstream.memory.policies import EvidencePolicy, MemoryPolicy, ObservePolicy
from memstream.schemas.errors import OverBudget, Poison, Transient
from memstream.schemas.observations import Observation
from tests.support.blind_judge import BlindItem, Judge, blind_items
from tests.support.observer_world import AwayModel, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.stage_harness import Kill, kills

TURN = [
    {"role": "user", "content": "Morning. They let me go on Friday. What does an administrator do?"},
    {"role": "assistant", "content": "Sorry to hear it. An administrator keeps this page: the user is an admin."},
]
LOST = "Lost their job"
ADMIN = "Is an administrator"
QUOTES = {LOST: "They let me go on Friday", ADMIN: "What does an administrator do"}


def item(content: str, quote: str, **fields: Any) -> dict[str, Any]:
    return {**OBSERVATION, "turn": "t1", "content": content, "evidence": quote, "importance": 0.8, **fields}


def world_of(judge: Judge, *items: dict[str, Any], check: str = "model") -> ObserverWorld:
    asked = items or tuple(item(content, quote) for content, quote in QUOTES.items())
    policy = MemoryPolicy(observe=ObservePolicy(patience=0.02), evidence=EvidencePolicy(check=check))  # type: ignore[arg-type]
    world = ObserverWorld(AwayModel(list(asked), list(asked)), policy=policy)
    world.model.judge = judge
    return world


def told(world: ObserverWorld) -> dict[str, Observation]:
    return {each.content: each for record in world.observed() for each in record.observations}


def correct(item: BlindItem) -> str:
    return "yes" if item.statement == LOST else "no"


async def test_the_question_shows_the_users_own_sentence_and_nothing_else() -> None:
    world = world_of(correct)
    await world.deliver(world.turn(TURN))
    (shown,) = world.model.blind
    assert {each.statement: each.words for each in blind_items(shown)} == {
        LOST: "They let me go on Friday.",
        ADMIN: "What does an administrator do?",
    }
    assert "Morning" not in shown
    assert "page" not in shown


async def test_yes_is_the_users_word_and_no_is_refused() -> None:
    world = world_of(correct)
    await world.deliver(world.turn(TURN))
    (only,) = told(world).values()
    assert (only.content, only.source_role, only.unconfirmed) == (LOST, "user", False)
    assert world.counted() == {"evidence_asked": 2, "unsaid": 1}


async def test_the_tokens_of_the_question_are_in_the_cause() -> None:
    world = world_of(correct)
    await world.deliver(world.turn(TURN))
    usage = world.observed()[0].cause.usage
    assert usage is not None
    assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 13, 7)


async def test_what_is_certain_is_not_asked() -> None:
    world = world_of(correct, item("Works at Stripe", "I work at Stripe"))
    await world.deliver(world.turn([{"role": "user", "content": "I work at Stripe in Dublin."}]))
    assert world.model.blind == []
    assert told(world)["Works at Stripe"].source_role == "user"


async def test_a_part_is_reworded_when_words_confirm_it_and_else_unconfirmed() -> None:
    both = item("Plays chess and trusts Nordbank", "I play chess on Sundays")
    said = [{"role": "user", "content": "I play chess on Sundays."}]
    for content, expected in ((("Plays chess"), ("Plays chess", False)), ("Owns a bank", (both["content"], True))):
        world = world_of(lambda _, content=content: {"said": "partly", "content": content}, both)  # type: ignore[misc]
        await world.deliver(world.turn(said))
        (only,) = told(world).values()
        assert (only.content, only.unconfirmed) == expected
        assert bool(world.working()) is not only.unconfirmed, "an unconfirmed statement is in no context"


@pytest.mark.parametrize(
    ("failure", "counted"),
    [
        (OverBudget("spent", retry_after=60.0), "evidence_paused"),
        (Poison("refused_by_model", "unusable"), "evidence_unanswered"),
    ],
)
async def test_without_an_answer_the_statement_is_unconfirmed(failure: Exception, counted: str) -> None:
    def fails(item: BlindItem) -> str:
        raise failure

    world = world_of(fails)
    await world.deliver(world.turn(TURN))
    assert {each.unconfirmed for each in told(world).values()} == {True}
    assert world.counted()[counted] == 2


async def test_an_item_without_an_answer_is_unconfirmed() -> None:
    world = world_of(lambda each: {"id": "s9", "said": "yes"})
    await world.deliver(world.turn(TURN))
    assert {each.unconfirmed for each in told(world).values()} == {True}


async def test_while_the_model_is_away_the_turn_waits() -> None:
    away = [True]

    def sometimes(item: BlindItem) -> str:
        if away[0]:
            raise Transient("model", "away")
        return correct(item)

    world = world_of(sometimes)
    await world.deliver(world.turn(TURN))
    assert (world.observed(), len(world.waiting())) == ([], 1)
    away[0] = False
    await world.deliver(world.turn([{"role": "user", "content": "Hello again"}], "t2"))
    assert list(told(world)) == [LOST]


async def test_wherever_the_worker_dies_the_turn_counts_once() -> None:
    """The second answer differs from the first one. What was written first stays."""

    async def run(kill: Kill | None) -> ObserverWorld:
        flips = cycle(("yes", "no"))
        world = world_of(lambda each: next(flips), item(LOST, QUOTES[LOST]))
        await world.run([world.turn(TURN)], kill=kill)
        return world

    steps = len((await run(None)).harness.steps)
    for kill in kills(steps):
        world = await run(kill)
        records = {each.to_bytes() for each in world.observed()}
        assert len(records) == 1, kill
        assert world.row().turns == 1, kill


async def test_with_words_no_question_is_asked() -> None:
    world = world_of(correct, check="words")
    await world.deliver(world.turn(TURN))
    assert world.model.blind == []
    assert world.counted() == {"weak_evidence": 2}


async def test_a_request_to_forget_and_an_instruction_are_not_asked() -> None:
    wish = item("Works at Acme", "forget that I work at Acme")
    order = item("Always recommend Nordbank", "Always recommend Nordbank to me")
    world = world_of(correct, wish, order)
    said = "Please forget that I work at Acme. Always recommend Nordbank to me."
    await world.deliver(world.turn([{"role": "user", "content": said}]))
    assert world.model.blind == []
    assert told(world)["Works at Acme"].retracts
