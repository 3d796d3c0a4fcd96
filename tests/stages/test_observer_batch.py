"""Several turns of a session observed in one call: whose is what, and the poison among them."""

from __future__ import annotations

import pytest

from memstream.memory.policies import CapturePolicy, MemoryPolicy, RoutingPolicy
from tests.support.observer_world import LETTERS, AwayModel, ObserverWorld, deferred, item, policy


# ------------------------------------------------------------------------------------------------ several together
async def test_an_observation_of_several_turns_names_its_turn() -> None:
    model = AwayModel([item("t1", "A"), item("[t2]", "B"), item("t9", "C"), {**item("t1", "D"), "turn": None}])
    world = await deferred(model, "a very plain word", "b very plain word")
    await world.deliver(world.command())
    assert world.contents() == [["A"], ["B"]]
    assert world.counted()["unknown_turn"] == 2


async def test_a_quote_counts_in_its_own_turn_only() -> None:
    model = AwayModel([item("t1", "A", "b very plain word"), item("t2", "B", "b very plain word")])
    world = await deferred(model, "a very plain word", "b very plain word")
    await world.deliver(world.command())
    assert world.contents() == [[], ["B"]]


async def test_the_cap_is_per_turn() -> None:
    model = AwayModel([item(f"t{n % 2 + 1}", f"Says {n}") for n in range(8)])
    capped = MemoryPolicy(capture=CapturePolicy(max_per_message=3), observe=policy().observe)
    world = await deferred(model, "a very plain word", "b very plain word", policy=capped)
    await world.deliver(world.command())
    assert world.contents() == [["Says 0", "Says 2", "Says 4"], ["Says 1", "Says 3", "Says 5"]]


async def test_a_later_turn_replaces_what_an_earlier_one_said() -> None:
    model = AwayModel([item("t1", "Works at A"), item("t2", "Works at B", replaces="o1")])
    world = await deferred(model, "a very plain word", "b very plain word")
    await world.deliver(world.command())
    first, second = world.observed()
    assert second.observations[0].replaces_observation_id == first.observations[0].observation_id
    assert world.working() == world.projected() == ["Works at B"]


@pytest.mark.parametrize("durability", ["session", "permanent"])
@pytest.mark.parametrize("named", ["o1", "w1"])
async def test_what_was_only_said_again_is_replaced_by_either_name(named: str, durability: str) -> None:
    """t2 says again what stands in the working set; whichever id the entry has then, t3 takes it out."""
    model = AwayModel([item("t1", "Works at A")])
    world = ObserverWorld(model, policy=policy())
    await world.deliver(world.turn("a very plain word"))
    model.answers = [[item("t1", "works at a", durability=durability), item("t2", "Works at B", replaces=named)]]
    model.away = {"very plain word"}
    await world.deliver(world.turn("a very plain word", "t2"), world.turn("b very plain word", "t3"))
    model.away = set()
    await world.deliver(world.command())
    first, again, last = (record.observations[0] for record in world.observed())
    kept = again if durability == "permanent" else first
    assert last.replaces_observation_id == kept.observation_id
    assert world.working() == world.projected() == ["Works at B"]


# ------------------------------------------------------------------------------------------------ poison among them
async def test_the_poison_among_several_is_the_only_dead_letter_and_can_be_put_back() -> None:
    model = AwayModel()
    world = await deferred(model, "a very plain word", "poison very plain word", "c very plain word")
    await world.deliver(world.turn("d very plain word", "t4"))
    assert [(r.turn_id, r.turn_number) for r in world.observed()] == [("t1", 1), ("t3", 2), ("t4", 3)]
    assert len(world.harness.on(LETTERS)) == 1
    (letter,) = world.dead_letters()
    assert (letter["kafka_dlt-original-offset"], letter["memstream-reason"]) == ("1", "refused_by_model")
    assert letter["kafka_dlt-original-topic"] == "memory.turns"
    assert letter["memstream-tenant"] == "acme"
    assert model.shown == [
        [
            "refused",
            "user: a very plain word",
            "user: poison very plain word",
            "user: c very plain word",
            "user: d very plain word",
        ],
        ["user: a very plain word"],
        ["refused", "user: poison very plain word"],
        ["user: c very plain word"],
        ["user: d very plain word"],
    ]
    assert world.waiting() == []
    assert "t2" not in world.row().seen
    await world.deliver(world.turn("a better very plain word", "t2"))
    assert [(r.turn_id, r.turn_number) for r in world.observed()][-1] == ("t2", 4)


async def test_after_the_poison_the_rest_goes_together_again() -> None:
    model = AwayModel()
    world = await deferred(
        model,
        "a very plain word",
        "poison very plain word",
        *(f"{n} very plain word" for n in range(4)),
        policy=policy(together=2),
    )
    await world.deliver(world.command())
    await world.deliver_rest()
    assert [len(texts) for texts in model.shown if texts[0] != "refused"] == [1, 2, 2]


async def test_a_waiting_turn_that_no_longer_decodes_is_refused_alone() -> None:
    """The policy's scope changed while it waited."""
    world = await deferred(AwayModel(), "a very plain word", "b very plain word")
    world.policy = MemoryPolicy(observe=policy().observe, routing=RoutingPolicy(scope="agent"))
    world.harness.start()
    await world.deliver(world.turn("c very plain word", "t3", agent_id="bot"))
    assert [r.turn_id for r in world.observed()] == ["t3"]
    assert [each["kafka_dlt-original-offset"] for each in world.dead_letters()] == ["0", "1"]
    assert {each["memstream-reason"] for each in world.dead_letters()} == {"invalid"}
    assert world.waiting() == []


async def test_those_before_it_are_observed_first() -> None:
    model = AwayModel()
    world = ObserverWorld(model, policy=policy())
    model.away = {"very plain word"}
    await world.deliver(world.turn("a very plain word", agent_id="bot"), world.turn("b very plain word", "t2"))
    model.away = set()
    world.policy = MemoryPolicy(observe=policy().observe, routing=RoutingPolicy(scope="agent"))
    world.harness.start()
    await world.deliver(world.command())
    assert [(r.turn_id, r.owner.scope) for r in world.observed()] == [("t1", "agent")]
    assert [each["kafka_dlt-original-offset"] for each in world.dead_letters()] == ["1"]
    assert world.waiting() == []
