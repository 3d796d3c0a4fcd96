from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import ConsolidationPolicy
from memstream.memory.upkeep.consolidation import (
    Counters,
    ProposedFact,
    count_turn,
    is_run_due,
    propose,
    split_into_commands,
)
from memstream.schemas.episodes import EpisodesRecorded, RecordedEpisode
from memstream.schemas.turns import Owner
from tests.support.record_builders import NOW, episode, stored_fact

POLICY = ConsolidationPolicy()


@pytest.mark.parametrize(
    ("counters", "policy", "expected"),
    [
        (Counters(episodes=5, turns=4), POLICY, True),
        (Counters(episodes=4, turns=9), POLICY, False),
        (Counters(episodes=9, turns=3), POLICY, False),
        (Counters(evicted=True, turns=4), POLICY, True),
        (Counters(evicted=True, turns=3), POLICY, False),
        (Counters(evicted=True, turns=9), ConsolidationPolicy(on_eviction=False), False),
        (Counters(notes_tokens=40_000, turns=4), POLICY, True),
        (Counters(notes_tokens=40_000, turns=3), POLICY, False),
        (Counters(notes_tokens=39_999, turns=99), POLICY, False),
        (Counters(notes_tokens=99_999, turns=99), ConsolidationPolicy(notes_tokens=0), False),
        (Counters(episodes=99, turns=99, notes_tokens=99_999), ConsolidationPolicy(trigger="manual"), False),
    ],
)
def test_the_guard(counters: Counters, policy: ConsolidationPolicy, expected: bool) -> None:
    assert is_run_due(counters, policy) is expected


def recorded(turn: int, episodes: int, evicted: int, notes: int = 0) -> EpisodesRecorded:
    return EpisodesRecorded(
        tenant_id="acme",
        owner=Owner(scope="user", id="u1"),
        user_id="u1",
        session_id="s1",
        turn_id=f"t{turn}",
        turn_number=turn,
        occurred_at=NOW,
        episodes=tuple(
            RecordedEpisode(episode_id=f"e{turn}-{n}", importance=0.7, category="event") for n in range(episodes)
        ),
        evicted_persistent=evicted,
        notes_tokens=notes,
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, 1]), st.integers(0, 12_000)), max_size=40))
def test_runs_fall_due_exactly_when_enough_happened_since_the_last(turns: list[tuple[int, int, int]]) -> None:
    counters, seen, since = Counters(), [], 0
    for number, each in enumerate(turns, start=1):
        counters = count_turn(counters, recorded(number, *each))
        seen.append(each)
        window = seen[since:]
        happened = sum(e for e, _, _ in window) >= 5 or any(v for _, v, _ in window)
        noted = sum(n for _, _, n in window) >= 40_000
        assert is_run_due(counters, POLICY) == ((happened or noted) and len(window) >= 4)
        if is_run_due(counters, POLICY):
            counters, since = Counters(), len(seen)


ITEM = ProposedFact(
    action="new",
    subject="user",
    content="Likes tea",
    category="preference",
    confidence=0.6,
    target=None,
    sources=("e1",),
)
EPISODES = {"e1": episode("Drank tea", turn="t1"), "e2": episode("Bought tea", turn="t2")}
FACTS = {"f1": stored_fact("Likes coffee")}


def test_short_ids_become_records_and_the_version_that_was_shown() -> None:
    update = replace(ITEM, action="update", target="f1", sources=("e2", "e1"))
    new, changed = propose((ITEM, update), episodes=EPISODES, facts=FACTS).changes
    assert (new.action, new.subject, new.source_episode_ids) == ("new", "user", (EPISODES["e1"].episode_id,))
    assert (changed.target_fact_id, changed.expected_version) == (FACTS["f1"].fact_id, 1)
    assert changed.content == "Likes tea"
    assert len(changed.source_episode_ids) == 2


@pytest.mark.parametrize(
    ("item", "dropped"),
    [
        (replace(ITEM, sources=("e9",)), {"unknown_episode": 1, "no_source": 1}),
        (replace(ITEM, sources=()), {"no_source": 1}),
        (replace(ITEM, action="update", target="f1", sources=()), {"no_source": 1}),
        (replace(ITEM, action="invalidate", target="f1", sources=("e9",)), {"unknown_episode": 1, "no_source": 1}),
        (replace(ITEM, action="update", target="f9"), {"unknown_fact": 1}),
        (replace(ITEM, action="invalidate", target=None), {"unknown_fact": 1}),
        (replace(ITEM, category=None), {"invalid": 1}),
        (replace(ITEM, content="x" * 2_001), {"invalid": 1}),
        (replace(ITEM, confidence=1.5), {"invalid": 1}),
    ],
)
def test_what_cannot_be_used_is_dropped_and_counted(item: ProposedFact, dropped: dict[str, int]) -> None:
    proposals = propose((item, replace(ITEM, content="Likes milk")), episodes=EPISODES, facts=FACTS)
    assert [change.content for change in proposals.changes] == ["Likes milk"]
    assert proposals.dropped == dropped


def test_a_known_source_beside_an_unknown_one_is_enough() -> None:
    proposals = propose((replace(ITEM, sources=("e9", "e1")),), episodes=EPISODES, facts=FACTS)
    assert len(proposals.changes) == 1
    assert proposals.dropped == {"unknown_episode": 1}


def test_a_fact_is_changed_once_in_a_run() -> None:
    items = tuple(replace(ITEM, action=action, target="f1") for action in ("reinforce", "invalidate"))
    proposals = propose((*items, ITEM, ITEM), episodes=EPISODES, facts=FACTS)
    assert [change.action for change in proposals.changes] == ["reinforce", "new"]
    assert proposals.dropped == {"twice": 2}


@given(st.integers(0, 70))
def test_commands_carry_at_most_twenty_changes(count: int) -> None:
    items = [replace(ITEM, content=f"Likes tea {n}") for n in range(count)]
    commands = split_into_commands(propose(items, episodes=EPISODES, facts=FACTS).changes)
    assert sum(map(len, commands)) == count
    assert all(1 <= len(command) <= 20 for command in commands)
