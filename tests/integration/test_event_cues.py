"""Cues that name a time by an event of the user's memory, over the real engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memstream.adapters.ports import VectorStore
from memstream.memory.policies import RecallPolicy
from memstream.recall.deadline import UnansweredPart
from memstream.recall.service import RecallResult, RecallService
from memstream.schemas.errors import Transient
from tests.support.event_cues import LIVES, Found, WithoutEvents, find_messages, load_life, store_life
from tests.support.recall_service import TEAM, Faulty, World
from tests.support.stored_memory import NOW, StoredMemory

FLOORS = {"en": 12, "de": 12, "de-2": 13}
"""Number of cues whose message is found before its twin, at least."""
SOUP, STEW = "I cooked lentil soup", "I cooked mushroom stew"
CUE = "What did I cook before I moved?"


def before_twin(found: Sequence[Found]) -> set[str]:
    return {each.cue.text for each in found if each.is_before_twin}


@pytest.mark.parametrize("name", LIVES)
def test_the_message_of_the_right_time_comes_first(remembering: World, name: str) -> None:
    life = load_life(name)
    request = remembering.do(store_life(life, remembering.store))
    reads: dict[str, Any] = {
        "store": remembering.store,
        "embedder": remembering.memory.embedder,
        "policy": RecallPolicy(patience=20.0),
        "locale": life.language,
    }
    recall, without = RecallService(**reads), WithoutEvents(**reads)

    found, plain = (remembering.do(find_messages(life, request, each)) for each in (recall, without))
    assert len(before_twin(found)) >= FLOORS[name]
    assert before_twin(plain) <= before_twin(found), "no cue is worse than without events"

    for cue in ("What did I cook?", "Was habe ich gekocht?", "before work", "nach der Arbeit", "Ben"):
        same = [remembering.do(each.recall(replace(request, cue=cue), now=life.now)) for each in (recall, without)]
        assert same[0].items == same[1].items, "a cue without an event has the same order and the same scores"


async def remember_move(memory: StoredMemory, **fields: Any) -> None:
    """Store the same fact, with other fields."""
    told: dict[str, Any] = {"slot": "residence", "category": "identity", "valid_from_told": True}
    times = {"valid_from": NOW - timedelta(days=100), "recorded_at": NOW - timedelta(days=60)}
    await memory.fact("Lives in Porto", **told, **times, **fields)


@pytest.fixture
def moved(remembering: World) -> World:
    async def remembered() -> None:
        memory = remembering.memory
        await remember_move(memory)
        await memory.message(SOUP, occurred_at=NOW - timedelta(days=200))
        await memory.message(STEW, occurred_at=NOW - timedelta(days=20))

    remembering.do(remembered())
    return remembering


def first(result: RecallResult) -> str:
    return result.items[0].item.content


def when(result: RecallResult) -> dict[str, float]:
    return {each.item.content: each.item.parts.get("when", 0.0) for each in result.items}


def test_only_facts_that_the_reader_may_read_state_an_event(moved: World) -> None:
    asked: dict[str, Any] = {"cue": CUE, "tiers": ("turns",)}
    assert first(moved.recall(**asked)) == SOUP
    assert when(moved.recall(**asked))[STEW] < 0
    later = {"cue": "What did I cook after I moved?", "tiers": ("turns",)}
    assert when(moved.recall(**later, known_at=NOW - timedelta(days=59)))[SOUP] < 0
    assert when(moved.recall(**later, known_at=NOW - timedelta(days=61)))[SOUP] == 0, "the move was learnt later"
    assert when(moved.recall(**asked, as_of=NOW - timedelta(days=10)))[STEW] < 0

    for fields in ({"state": "invalidated"}, {"sensitivity": "secret"}, {"subject": "ben"}):
        moved.do(remember_move(moved.memory, **fields))
        assert set(when(moved.recall(**asked)).values()) == {0.0}, fields


def test_the_memory_of_a_group_has_no_events_of_the_reader(moved: World) -> None:
    moved.do(remember_move(moved.memory, owner=TEAM))
    moved.do(moved.memory.fact("Cooked mushroom stew", owner=TEAM))
    found = moved.recall(cue=CUE, tiers=("semantic",), owner=TEAM)
    assert set(when(found).values()) == {0.0}
    assert len(found.items) == 2


@pytest.mark.parametrize("fault", [Transient("qdrant", "away"), None])
def test_a_cue_names_no_time_when_the_look_up_does_not_answer(moved: World, fault: Exception | None) -> None:
    store: VectorStore = Faulty(moved.store, of=["facts.search"], fault=fault, times=1)  # type: ignore[assignment]
    result = moved.recall(cue=CUE, tiers=("turns",), store=store, policy=RecallPolicy(patience=4.0))
    assert [each.part for each in result.missing] == ["event"]
    assert isinstance(result.missing[0], UnansweredPart)
    assert {*when(result)} == {SOUP, STEW}
    assert set(when(result).values()) == {0.0}
