from __future__ import annotations

import itertools
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.upkeep.clusters import SHOWN_MAX, Embedded, cluster_name, find_clusters
from tests.support.record_builders import NOW, episode

Drawn = list[tuple[int, int]]
DRAWN = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=14)
"""Of each episode the direction of its vector and its subject."""


def embedded(drawn: Drawn) -> list[Embedded]:
    found: list[Embedded] = []
    for n, (direction, subject) in enumerate(drawn):
        one = episode(f"Episode {n}", turn=f"t{n}", subject=f"s{subject}", occurred_at=NOW + timedelta(hours=n))
        found.append((one, [2.0 if place == direction else 0.0 for place in range(3)]))
    return found


@given(DRAWN, st.integers(2, 5))
def test_a_cluster_is_what_lies_together_of_one_subject(drawn: Drawn, at_least: int) -> None:
    found = find_clusters(embedded(drawn), similarity=0.5, at_least=at_least)
    sizes = sorted((drawn.count(each) for each in set(drawn) if drawn.count(each) >= at_least), reverse=True)
    assert [len(cluster) for cluster in found] == sizes
    for cluster in found:
        assert len({each.subject for each in cluster}) == 1
        assert [each.occurred_at for each in cluster] == sorted(each.occurred_at for each in cluster)


@given(DRAWN, st.randoms())
def test_the_order_in_which_episodes_come_changes_nothing(drawn: Drawn, random: object) -> None:
    mine, shuffled = embedded(drawn), embedded(drawn)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one = find_clusters(mine, similarity=0.5, at_least=2)
    other = find_clusters(shuffled, similarity=0.5, at_least=2)
    assert one == other
    assert [cluster_name(each) for each in one] == [cluster_name(each[::-1]) for each in other]


def test_what_was_told_in_one_turn_is_one_story() -> None:
    same = [(episode(f"Episode {n}", turn="t1"), [1.0, 0.0]) for n in range(6)]
    assert find_clusters(same, similarity=0.5, at_least=5) == ()


def test_the_newest_of_a_large_one() -> None:
    (cluster,) = find_clusters(embedded([(0, 0)] * 30), similarity=0.5, at_least=5)
    assert [each.content for each in cluster] == [f"Episode {n}" for n in range(30 - SHOWN_MAX, 30)]


def test_near_ones_hold_together_over_a_chain() -> None:
    chain = [(episode(f"Episode {n}", turn=f"t{n}"), [1.0, n / 2.0]) for n in range(4)]
    similarities = [sum(x * y for x, y in zip(a[1], b[1], strict=True)) for a, b in itertools.pairwise(chain)]
    assert min(similarities) > 0
    assert len(find_clusters(chain, similarity=0.85, at_least=4)) == 1
    assert find_clusters(chain, similarity=0.999, at_least=2) == ()
