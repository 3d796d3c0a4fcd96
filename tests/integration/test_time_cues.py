"""Cues with time words, over the real engine: the records of that time come first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.memory.policies import RecallPolicy
from memstream.recall.service import RecallService
from tests.support.recall_service import World
from tests.support.time_cues import LANGUAGES, WithoutTimes, first, load_year, ranks, store_year

FLOOR = 12
"""Of 15 cues of each half, the right record is first for at least these."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_records_of_the_named_time_come_first(remembering: World, language: str) -> None:
    year = load_year(language)
    request = remembering.do(store_year(year, remembering.store))
    reads = {"store": remembering.store, "embedder": remembering.memory.embedder, "policy": RecallPolicy()}
    recall, without = RecallService(**reads, locale=language), WithoutTimes(**reads, locale=language)  # type: ignore[arg-type]

    found = remembering.do(ranks(year, request, recall))
    assert min(first(found, "tune"), first(found, "test")) >= FLOOR

    for cue in ("What did I cook?", "Welchen Film habe ich mit Ben gesehen?", "Ben", "gekauft bought"):
        plain, timed = (
            remembering.do(each.recall(replace(request, cue=cue, limit=40), now=year.now)) for each in (without, recall)
        )
        assert plain.items == timed.items, "a cue without time words has the same order and the same scores"
    yesterday = {"en": "What did I cook yesterday?", "de": "Was habe ich gestern gekocht?"}[language]
    best = remembering.do(recall.recall(replace(request, cue=yesterday), now=year.now)).items[0]
    assert best.item.parts["when"] == 0, "a record of that time keeps its score"
