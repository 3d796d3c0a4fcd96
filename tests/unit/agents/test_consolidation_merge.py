"""Facts that a maintenance run merges: near ones that say the same for the conflict pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from memstream.adapters.ports import StoredPoint
from memstream.agents.consolidation.steps.merge import merge_change
from memstream.memory.policies import HygienePolicy, MemoryPolicy
from memstream.schemas.commands import Change
from memstream.schemas.facts import StoredFact
from tests.support.record_builders import NOW, stored_fact

POLICY = HygienePolicy(merge_similarity=0.9)


def told(content: str, number: int) -> StoredFact:
    return stored_fact(
        content, turn=f"t{number}", number=number, changes={"recorded_at": NOW + timedelta(minutes=number)}
    )


OLDER = told("Lives in Oslo", 1)
YOUNGER = told("Resides in Oslo", 2)


def merged(younger: StoredFact, *others: StoredFact, score: float | None) -> Change | None:
    near: Sequence[StoredPoint] = [
        StoredPoint(id=each.fact_id, payload=each.to_payload(), score=score) for each in others
    ]
    return merge_change(younger, near, POLICY, MemoryPolicy(), now=NOW + timedelta(days=1))


def test_two_that_say_the_same_become_the_older() -> None:
    change = merged(YOUNGER, OLDER, score=0.97)
    assert change is not None
    assert change.source_fact_ids == (OLDER.fact_id, YOUNGER.fact_id)
    assert (change.content, change.expected_version) == (OLDER.content, OLDER.version)


def test_of_two_the_more_trusted_keeps_its_words() -> None:
    said = OLDER.model_copy(update={"trust": "assistant"})
    change = merged(YOUNGER, said, score=0.97)
    assert change is not None
    assert (change.source_fact_ids[0], change.content) == (said.fact_id, YOUNGER.content)
    echo = told("Resides in Oslo near the harbour", 2).model_copy(update={"trust": "assistant"})
    assert merged(echo, OLDER, score=0.97) is None, "a detail of less trust rewords nothing"


@pytest.mark.parametrize(("score", "one"), [(0.9, True), (0.899, False), (None, False)])
def test_only_from_the_bound_on(score: float | None, one: bool) -> None:
    assert (merged(YOUNGER, OLDER, score=score) is not None) is one


def test_more_detail_is_kept() -> None:
    closer = told("Lives in Oslo with two cats", 2)
    change = merged(closer, OLDER, score=0.97)
    assert change is not None
    assert change.content == closer.content


def test_neither_itself_nor_what_is_younger_nor_another_statement() -> None:
    elsewhere = told("Lives in Rome", 1)
    assert merged(YOUNGER, YOUNGER, score=1.0) is None
    assert merged(OLDER, YOUNGER, score=0.97) is None
    assert merged(YOUNGER, elsewhere, score=0.97) is None


def test_a_pinned_fact_is_not_merged() -> None:
    assert merged(YOUNGER, OLDER.model_copy(update={"pinned_at": NOW}), score=0.97) is None
