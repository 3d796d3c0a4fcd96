"""Candidates come with the answer of the search, or are read by id after it: the recall is the same."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from memstream.adapters.vectors.period_store import PeriodStore
from memstream.memory.policies import FusionPolicy, RecallPolicy
from memstream.recall.request import RecallRequest
from memstream.recall.service import RecallResult
from memstream.schemas.recall import TIERS
from tests.support.recall_service import U1, World

POOLS = (RecallPolicy(), RecallPolicy(pool=3), RecallPolicy(profile="composite"), RecallPolicy(profile="classic"))
WORDS = ("plans", "Oslo", "May", "hike", "swim", "Ann", "Bob", "Ann's", "work", "Stripe", "tea", "coffee", "I", "my")
EVERYTHING = RecallRequest(tenant_id="acme", owner=U1)


@pytest.fixture
def talk(remembering: World) -> World:
    async def said() -> None:
        memory = remembering.memory
        for number, speaker in enumerate(("Ann", "Bob") * 6):
            words = random.Random(number).sample(WORDS[:5] + WORDS[8:12], 3)
            await memory.message(f"My {' and '.join(words)}", name=speaker, session=f"s{number % 3}")
            await memory.fact(f"Likes {words[0]} {words[1]} {number}")
            await memory.episode(f"Spoke of {words[1]} with {speaker}")

    remembering.do(said())
    return remembering


def recalled(talk: World, monkeypatch: pytest.MonkeyPatch, *, here: bool, **asked: Any) -> RecallResult:
    with monkeypatch.context() as patch:
        patch.setattr(cast(PeriodStore, talk.store), "_is_engine_here", here)
        return talk.recall(EVERYTHING, **asked)


def test_both_ways_of_reading_candidates_recall_the_same(talk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    for _ in range(60):
        asked = {
            "cue": " ".join(chance.sample(WORDS, chance.randint(1, 5))),
            "limit": chance.choice((1, 3, 10)),
            "tiers": tuple(sorted(chance.sample(TIERS, chance.randint(1, 4)))),
            "policy": chance.choice(POOLS),
        }
        at_once = recalled(talk, monkeypatch, here=False, **asked)
        by_id = recalled(talk, monkeypatch, here=True, **asked)
        assert not at_once.missing
        assert at_once == by_id, asked


def test_the_named_speaker_is_preferred_both_ways(talk: World, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = RecallPolicy(fusion=FusionPolicy(speaker=0))
    for here in (False, True):
        asked = {"cue": "What are Ann's plans?", "tiers": ("turns",), "here": here}
        matches = {each.item.id: each.match for each in recalled(talk, monkeypatch, **asked).items}
        plain = {each.item.id: each.match for each in recalled(talk, monkeypatch, policy=nobody, **asked).items}
        assert matches != plain
