from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.policies import ConsolidationPolicy
from memstream.memory.upkeep.promotion import PROMOTED_MAX, promotion_changes, select_promotable
from tests.support.record_builders import NOW, episode

POLICY = ConsolidationPolicy()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=30))
def test_old_enough_and_recalled_often_enough(drawn: list[tuple[int, int]]) -> None:
    episodes = [
        episode(f"E{n}", turn=f"t{n}", occurred_at=NOW - timedelta(days=days), retrieval_count=recalled)
        for n, (days, recalled) in enumerate(drawn)
    ]
    found = select_promotable(episodes, now=NOW, policy=POLICY)
    assert {each.content for each in found} == {
        f"E{n}" for n, (days, recalled) in enumerate(drawn) if days >= 7 and recalled >= 3
    }
    counts = [each.retrieval_count for each in found]
    assert counts == sorted(counts, reverse=True)
    changes = promotion_changes(found, known={each.observation_id for each in found[1:]})
    assert [change.source_episode_ids for change in changes] == [(each.episode_id,) for each in found[:1]]


def test_at_most_as_many_as_one_command_carries() -> None:
    episodes = [episode(f"E{n}", turn=f"t{n}", retrieval_count=4) for n in range(30)]
    assert len(promotion_changes(episodes, known=())) == PROMOTED_MAX
