"""What an answer says twice is one observation: what either replaces or corrects counts, and any of their names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.observer_world import AwayModel, ObserverWorld, item

Answer = list[dict[str, Any]]

KNOWN = ("Likes tea", "Likes chess", "Likes opera")
SAID = ("Speaks Danish", "Speaks Polish", "Speaks Greek")

TOLD = "I like tea. I like chess. I like opera. I speak Danish. I speak Polish. I speak Greek."
"""A turn in which everything is said."""


@dataclass(frozen=True)
class Said:
    content: str
    replaces: str | None
    corrects: bool


@st.composite
def plain_answers(draw: st.DrawFn) -> tuple[Said, ...]:
    """Statements of one answer. Each may replace a known one or an earlier one, and none is replaced twice."""
    free = list(KNOWN)
    said: list[Said] = []
    for content in SAID[: draw(st.integers(1, len(SAID)))]:
        replaces = draw(st.sampled_from((None, *free)))
        free = [each for each in free if each != replaces] + [content]
        said.append(Said(content, replaces, replaces is not None and draw(st.booleans())))
    return tuple(said)


def noisy(said: tuple[Said, ...], random: Random) -> Answer:
    """Return the answer of a model that repeats items: any copy may be the one that names what is replaced, by the name
    of any copy, and repetitions stand anywhere behind the first copy."""
    order = [each.content for each in said]
    for each in said:
        for _ in range(random.randint(0, 2)):
            order.insert(random.randint(order.index(each.content) + 1, len(order)), each.content)
    places: dict[str, list[int]] = {}
    for place, content in enumerate(order, start=1):
        places.setdefault(content, []).append(place)
    answer = [item("t1", content, _quote(content)) for content in order]
    for each in said:
        copies = places[each.content]
        if each.corrects:
            answer[random.choice(copies) - 1]["is_correction"] = True
        if each.replaces in places:
            before = [place for place in places[each.replaces] if place < copies[-1]]
            answer[copies[-1] - 1]["replaces"] = f"o{random.choice(before)}"
        elif each.replaces is not None:
            answer[random.choice(copies) - 1]["replaces"] = f"w{KNOWN.index(each.replaces) + 1}"
    return answer


@settings(max_examples=60, deadline=None)
@given(said=plain_answers(), random=st.randoms(use_true_random=False))
def test_no_replacement_is_lost_when_a_model_repeats_itself(said: tuple[Said, ...], random: Random) -> None:
    assert asyncio.run(_observed(noisy(said, random))) == {
        each.content: (each.replaces, each.corrects) for each in said
    }


def _quote(content: str) -> str:
    verb, thing = content.split()
    return f"I {verb.lower().removesuffix('s')} {thing}"


async def _observed(answer: Answer) -> dict[str, tuple[str | None, bool]]:
    """Return what was observed of the second turn: content → (what it replaced, whether it is a correction)."""
    model = AwayModel([item("t1", content, _quote(content)) for content in KNOWN], answer)
    world = ObserverWorld(model)
    await world.deliver(world.turn(TOLD))
    assert world.working() == list(KNOWN)  # they are w1, w2 and w3
    await world.deliver(world.turn(TOLD, "t2"))
    first, second = world.observed()
    contents = {each.observation_id: each.content for each in (*first.observations, *second.observations)}
    return {
        each.content: (contents.get(each.replaces_observation_id or ""), each.is_correction)
        for each in second.observations
    }


async def test_the_better_evidence_of_a_repeated_item_is_kept() -> None:
    said = [
        {"role": "assistant", "content": "So you moved to Rome?"},
        {"role": "user", "content": "Yes, I moved to Rome in May."},
    ]
    short, long = "moved to Rome", "I moved to Rome in May"
    for quotes in ((short, long), (long, short)):
        world = ObserverWorld(AwayModel([item("t1", "Moved to Rome", quote) for quote in quotes]))
        await world.deliver(world.turn(said))
        (only,) = world.observed()[0].observations
        assert (only.evidence, only.source_role) == (long, "user")
        assert world.counted()["repeated_observation"] == 1
