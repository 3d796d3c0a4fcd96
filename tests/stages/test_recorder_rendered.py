"""Memories in a prompt that come back in a turn: the recorder stores them, but they do not find the turn."""

from __future__ import annotations

from typing import Any

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.periods.period_store import PeriodStore
from memstream.memory.recall.prompt_framing import frame
from memstream.recall.payloads import content_of
from memstream.schemas.collections import TURNS

from .test_recorder import World, store, texts, world

__all__ = ["store", "world"]
FRAME = frame("Known facts:\n- [preference] Keeps bees in Bergen", mark="0123456789abcdef")


@pytest.mark.parametrize(
    "content",
    [
        f"{FRAME}\nHow is the weather?",
        [{"type": "text", "text": FRAME}, {"type": "text", "text": "How is the weather?"}],
    ],
)
async def test_a_turn_is_kept_verbatim_and_found_by_what_was_said(
    world: World, store: PeriodStore, content: Any
) -> None:
    await world.deliver(
        world.turn("Good morning, is it cold?"),
        world.turn({"role": "user", "content": content}, turn_id="t2"),
        world.turn("How nice.", turn_id="t3"),
    )
    kept = (await world.messages())[1].content
    assert kept.startswith(FRAME)
    assert texts(await store.lexical(TURNS, tenant_id="acme", text="bees Bergen", limit=9)) == [], "nor its neighbours"
    found = await store.lexical(TURNS, tenant_id="acme", text="weather", limit=9)
    assert kept in texts(found)
    assert all("Bergen" not in content_of(each.payload) for each in found), "recall tells what was said"
    embedded = [text for _, call in world.embedder.calls for text in call]
    assert not [text for text in embedded if "Bergen" in text]
    [meaning] = await HashingEmbedder().embed(["How is the weather?"], tenant_id="acme")
    assert kept in texts(await store.nearest(TURNS, tenant_id="acme", dense=meaning, limit=9))


async def test_a_message_of_nothing_else_is_kept_and_stands_outside_the_thread(
    world: World, store: PeriodStore
) -> None:
    await world.deliver(world.turn(FRAME, {"role": "assistant", "content": "Good morning."}))
    first, second = await world.messages()
    assert (first.content, first.session_place, second.session_place) == (FRAME, None, 0)
    assert [text for _, call in world.embedder.calls for text in call] == ["Good morning."]
    assert texts(await store.lexical(TURNS, tenant_id="acme", text="facts bees memory morning", limit=9)) == [
        "Good morning."
    ]
