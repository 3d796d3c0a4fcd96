"""Proposals of the offline consolidator: duplicates, new facts, explicit corrections, and nothing else."""

from __future__ import annotations

import pytest

from memstream.adapters.completions.offline import OfflineCompletions
from tests.support.completion_requests import Ledger, consolidate

Pairs = list[tuple[str, str]]


async def proposed(episodes: Pairs, facts: Pairs = []) -> list[tuple[object, ...]]:  # noqa: B006 - never changed
    answer = await OfflineCompletions(sink=Ledger()).complete(consolidate(episodes=episodes, facts=facts))
    return [
        (item["action"], item["subject"], item["content"], item["target_fact_id"], item["source_episode_ids"])
        for item in answer.value
    ]


async def test_the_same_statement_reinforces() -> None:
    assert await proposed(
        [("user", "works at  acme"), ("user", "Likes tea")], [("user", "Likes tea"), ("user", "Works at Acme")]
    ) == [
        ("reinforce", "user", "Works at Acme", "f2", ["e1"]),
        ("reinforce", "user", "Likes tea", "f1", ["e2"]),
    ]


async def test_the_same_value_in_other_words_reinforces() -> None:
    assert await proposed([("user", "Works for Acme")], [("user", "Works at Acme")]) == [
        ("reinforce", "user", "Works at Acme", "f1", ["e1"])
    ]


async def test_a_stable_statement_without_a_fact_is_new_and_named_by_all_its_episodes() -> None:
    assert await proposed([("user", "Speaks German"), ("user", "speaks German")]) == [
        ("new", "user", "Speaks German", None, ["e1", "e2"])
    ]


async def test_more_episodes_give_more_confidence() -> None:
    one = await OfflineCompletions(sink=Ledger()).complete(consolidate(episodes=[("user", "Speaks German")]))
    two = await OfflineCompletions(sink=Ledger()).complete(consolidate(episodes=[("user", "Speaks German")] * 2))
    assert (one.value[0]["confidence"], two.value[0]["confidence"]) == (0.5, 0.7)


@pytest.mark.parametrize("content", ["Met the dentist on Tuesday", "Goal is to run a marathon", "Asked about trains"])
async def test_what_happened_is_no_fact(content: str) -> None:
    assert await proposed([("user", content)]) == []


async def test_rivals_are_left_to_those_who_know_their_times() -> None:
    assert await proposed([("user", "Works at Acme")], [("user", "Works at Globex")]) == []


async def test_an_end_in_so_many_words_invalidates() -> None:
    assert await proposed([("user", "No longer works at Acme")], [("user", "Works at Acme")]) == [
        ("invalidate", "user", "Works at Acme", "f1", ["e1"])
    ]
    assert await proposed([("user", "No longer works at Acme")], [("user", "Works at Globex")]) == []


async def test_a_correction_in_so_many_words_updates() -> None:
    assert await proposed([("user", "Lives in Bonn, not Cologne")], [("user", "Lives in Cologne")]) == [
        ("update", "user", "Lives in Bonn", "f1", ["e1"])
    ]


async def test_subjects_are_kept_apart() -> None:
    assert await proposed([("anna", "Lives in Rome")], [("user", "Lives in Rome")]) == [
        ("new", "anna", "Lives in Rome", None, ["e1"])
    ]


async def test_at_most_twenty_changes() -> None:
    assert len(await proposed([("user", f"Speaks language {n}") for n in range(30)])) == 20
