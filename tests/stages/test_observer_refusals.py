"""A tenant whose turns the model refuses is paused: others go on, its turns wait, and one is tried after each pause."""

from __future__ import annotations

from collections import Counter

import pytest

from memstream.memory.policies import MemoryPolicy, ObservePolicy
from memstream.schemas.errors import ContentFiltered, Fatal, Poison
from memstream.streams.engine.breaker import BreakerPolicy
from memstream.streams.engine.error_boundary import DEAD_LETTERS_IN_A_ROW_MAX
from tests.support.model_server import Answer, Ask, Script
from tests.support.observer_world import ObserverWorld

PAUSED = BreakerPolicy()
PATIENCE = 1.0
BREAKER = "model:acme"


def refusing(*tenants: str, error: type[Poison] = ContentFiltered) -> Script:
    """The model answers, but refuses what these tenants say."""

    def script(ask: Ask) -> Answer:
        if any(f"I am of {tenant}." in text for tenant in tenants for text in ask.turns.values()):
            raise error("a content filter") if error is ContentFiltered else error("refused_by_model", "no JSON")
        return {"observations": []}

    return script


def world_of(script: Script, *, together: int = 1) -> ObserverWorld:
    policy = MemoryPolicy(observe=ObservePolicy(patience=PATIENCE, together=together))
    return ObserverWorld(script, policy=policy, breaker=PAUSED, breakers_by_test_clock=True)


async def say(
    world: ObserverWorld, count: int, *, tenant: str = "acme", sessions: int = 7, first: int = 0, users: int = 3
) -> None:
    for n in range(first, first + count):
        session = (tenant, f"u{n % users}", f"s{n % sessions}")
        await world.deliver(world.turn(f"I am of {tenant}.", f"t{n}", session=session))


async def remind(world: ObserverWorld) -> None:
    """Deliver the reminders that are due."""
    await world.deliver(*[world.again(out) for out in world.observer._deferred.due(1_000)])


async def test_a_refused_tenant_is_paused_and_others_go_on() -> None:
    world = world_of(refusing("acme"))
    await say(world, 100)
    await world.deliver(world.turn("I am of globex.", "t1", session=("globex", "u1", "s1")))
    assert len(world.model.asks) == PAUSED.refusals + 1
    assert Counter(letter["memstream-tenant"] for letter in world.dead_letters()) == {"acme": PAUSED.refusals}
    assert len(world.waiting()) == 100 - PAUSED.refusals
    assert [record.turn_id for record in world.observed()] == ["t1"]
    assert list(world.harness.calls.paused()) == [BREAKER]
    assert world.harness.calls.away() == {}


async def test_a_refused_user_is_paused_and_colleagues_go_on() -> None:
    world = world_of(refusing("acme"))
    await say(world, 50, users=1)
    assert len(world.model.asks) == PAUSED.refusals
    assert len(world.waiting()) == 50 - PAUSED.refusals
    calls = world.harness.calls
    assert (calls.paused(), calls.paused_users()) == ({}, {BREAKER: 1})
    assert calls.open_for(BREAKER) == 0
    assert calls.open_for(BREAKER, "u0") == PAUSED.pause
    assert calls.paused_told() == "paused users: 1 of 1 tenants (memstream dlq list)"
    world.model.script = refusing("never said")
    await world.deliver(world.turn("I am of acme.", "t1", session=("acme", "colleague", "s1")))
    assert [each.user_id for each in world.observed()] == ["colleague"]
    assert calls.paused_users() == {BREAKER: 1}, "a colleague's success says nothing of the refused user"
    world.clock.seconds += 2 * PAUSED.pause
    for _ in range(50):
        await remind(world)
    assert world.waiting() == []
    assert calls.paused_users() == {}


async def test_a_user_that_is_refused_all_along_pauses_no_colleague_who_is_refused_once() -> None:
    world = world_of(refusing("acme"))
    await say(world, 20, users=1)
    for user in ("u1", "u2"):
        assert not world.harness.calls.breaker_open(BREAKER, user)
        await world.deliver(world.turn("I am of acme.", "t1", session=("acme", user, "s1")))
    assert list(world.harness.calls.paused()) == [BREAKER], "the third user"
    assert world.harness.calls.breaker_open(BREAKER, "u3")


async def test_after_each_pause_one_turn_is_tried_and_the_pause_is_longer() -> None:
    world = world_of(refusing("acme"))
    await say(world, 100)
    pauses = []
    for tried in range(1, 7):
        pauses.append(world.harness.calls.open_for(BREAKER))
        world.clock.seconds += pauses[-1] + 2 * PATIENCE
        await remind(world)
        assert len(world.model.asks) == PAUSED.refusals + tried
        assert len(world.model.asks[-1].turns) == 1
    assert pauses == [10, 20, 40, 80, 160, 300]
    assert len(world.dead_letters()) + len(world.waiting()) == 100


async def test_when_the_model_takes_a_turn_again_all_that_waits_is_observed_in_order() -> None:
    world = world_of(refusing("acme"))
    await say(world, 50, sessions=3)
    world.model.script = refusing()
    world.clock.seconds += 2 * PAUSED.pause
    for _ in range(50):  # the first one wakes the others, and each asks for a round
        await remind(world)
    assert world.waiting() == []
    assert len(world.observed()) == 50 - PAUSED.refusals
    for session in ("s0", "s1", "s2"):
        order = [int(each.turn_id[1:]) for each in world.observed() if each.session_id == session]
        assert order == sorted(order)
    assert world.harness.calls.paused() == {}


async def test_a_turn_that_is_refused_for_itself_holds_up_nobody_of_its_tenant() -> None:
    """It lies in a batch of eight that is tried again and again: each try has to decide a turn."""

    def script(ask: Ask) -> Answer:
        if any("vile" in text for text in ask.turns.values()):
            raise ContentFiltered("a content filter")
        return {"observations": []}

    world = world_of(refusing("acme"), together=8)
    await say(world, PAUSED.refusals)
    session = ("acme", "u1", "long")
    texts = ["fine", "vile", "fine", "fine", "vile", "fine", "fine", "fine"]
    for n, text in enumerate(texts):
        await world.deliver(world.turn(f"It is {text}.", f"n{n}", session=session))
    world.model.script = script
    world.clock.seconds += 2 * PAUSED.pause
    await remind(world)
    assert world.waiting() == []
    mine = [each.turn_id for each in world.observed() if each.session_id == "long"]
    assert mine == [f"n{n}" for n, text in enumerate(texts) if text == "fine"]


async def test_a_batch_with_one_refused_turn_pauses_nobody() -> None:
    def script(ask: Ask) -> Answer:
        if any("vile" in text for text in ask.turns.values()):
            raise ContentFiltered("a content filter")
        return {"observations": []}

    world = world_of(script, together=8)
    for s in range(2 * PAUSED.refusals):
        session = ("acme", "u1", f"s{s}")
        said = ["It is vile." if n == 4 else "It is fine." for n in range(8)]
        await world.run([world.turn(text, f"t{n}", session=session) for n, text in enumerate(said)], together=True)
    assert len(world.dead_letters()) == 2 * PAUSED.refusals
    assert world.waiting() == []
    assert world.harness.calls.paused() == {}


async def test_answers_that_nobody_can_use_pause_a_tenant_too() -> None:
    def garbage(ask: Ask) -> Answer:
        raise Poison("refused_by_model", "the answer is no JSON")

    world = world_of(garbage)
    await say(world, 100)
    assert len(world.dead_letters()) == PAUSED.refusals
    assert len(world.waiting()) == 100 - PAUSED.refusals


TENANTS = ("acme", "globex", "initech", "umbrella")


async def test_a_content_filter_that_refuses_several_tenants_ends_no_worker() -> None:
    world = world_of(refusing(*TENANTS))
    for tenant in TENANTS:
        await say(world, 2 * PAUSED.refusals, tenant=tenant)
    assert len(world.dead_letters()) == PAUSED.refusals * len(TENANTS)


async def test_unusable_answers_to_several_tenants_end_the_worker_though_their_turns_wait() -> None:
    world = world_of(refusing(*TENANTS, error=Poison))
    await world.deliver(world.turn("Hello.", "t0", session=("hooli", "u1", "s1")))  # it has met another tenant
    for tenant in TENANTS[:3]:
        await say(world, 2 * PAUSED.refusals, tenant=tenant)
    await say(world, PAUSED.refusals - 1, tenant=TENANTS[3])
    assert len(world.dead_letters()) == DEAD_LETTERS_IN_A_ROW_MAX - 1
    with pytest.raises(Fatal, match="20 dead letters in a row"):
        await say(world, 1, tenant=TENANTS[3], first=50)
