"""The fields that are read of a candidate: they include every field that ranking and the answer use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from memstream.adapters.ports import Payload
from memstream.memory.policies import RecallPolicy
from memstream.recall.payloads import (
    COMPOSITE_FIELDS,
    FIELDS,
    SAYING,
    content_of,
    fit_text_of,
    impression_of,
    saying_of,
    subject_of,
    told_of,
    trace_of,
)
from memstream.schemas.base import CONTENT_MAX
from memstream.schemas.recall import Tier

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
POLICY = RecallPolicy()
ID = "0c96a090-a211-564a-a764-a4b400c046ae"
EVIDENCE = {
    "turn_id": "t1",
    "session_id": "s1",
    "observation_id": ID,
    "occurred_at": "2026-11-01T10:00:00Z",
    "quote": "q",
}
ROW = {
    "content": "Works at Stripe",
    "subject": "user",
    "predicate": "works_at",
    "category": "profession",
    "sensitivity": "secret",
    "session_id": "s1",
    "turn_id": "t1",
    "user_id": "u1",
    "observation_id": ID,
    "tenant_id": "acme",
    "strength": 0.4,
    "stability": 3.0,
    "retrieval_count": 2,
    "last_accessed_at": "2026-11-19T10:00:00Z",
    "importance": 0.7,
    "salience": 0.6,
    "confidence": 0.8,
    "reinforcement_count": 3,
    "occurred_at": "2026-11-01T10:00:00Z",
    "valid_from": "2026-11-19T10:00:00Z",
    "valid_from_told": True,
    "recorded_at": "2026-11-02T10:00:00Z",
    "updated_at": "2026-11-03T10:00:00Z",
    "last_reinforced_at": "2026-11-05T10:00:00Z",
    "emotion": {"valence": -0.5, "arousal": 0.2},
    "role": "user",
    "name": "Ann",
    "state": "superseded",
    "valid_to": "2026-11-30T10:00:00Z",
    "expired_at": "2026-11-29T10:00:00Z",
    "closed_at": "2026-12-02T10:00:00Z",
}
OF: dict[Tier, dict[str, Any]] = {
    "semantic": {"evidence": [EVIDENCE]},
    "working": {},
    "episodic": {"evidence": "as it was said"},
    "turns": {"message_index": 0},
}


def only(fields: tuple[str, ...], payload: Payload) -> Payload:
    """Return these fields of a payload, as the store does: elements of a list are complete."""
    tops = {field.partition("[")[0] for field in fields}
    return {name: value for name, value in payload.items() if name in tops}


@pytest.mark.parametrize("tier", get_args(Tier))
def test_nothing_that_is_read_of_a_candidate_is_missing(tier: Tier) -> None:
    whole: Payload = ROW | OF[tier]
    read = only(FIELDS[tier], whole)
    assert len(read) < len(whole)
    assert trace_of(tier, read) == trace_of(tier, whole)
    assert fit_text_of(tier, read, "x", None) == fit_text_of(tier, whole, "x", None)
    assert told_of(tier, read) == told_of(tier, whole)
    assert content_of(read) == content_of(whole)
    if tier != "turns":
        assert subject_of(read) == "user"


@pytest.mark.parametrize("tier", get_args(Tier))
def test_nothing_that_composite_ranks_by_is_missing(tier: Tier) -> None:
    whole: Payload = ROW | OF[tier]
    read = only(COMPOSITE_FIELDS[tier], whole)
    assert set(FIELDS[tier]) <= set(COMPOSITE_FIELDS[tier])
    assert impression_of(tier, read, now=NOW, policy=POLICY) == impression_of(tier, whole, now=NOW, policy=POLICY)


def test_a_message_is_known_by_its_place_so_that_what_was_rendered_into_it_is_left_out() -> None:
    assert "message_index" in FIELDS["turns"]
    assert not any("message_index" in FIELDS[tier] for tier in get_args(Tier) if tier != "turns")


@pytest.mark.parametrize("state", ["active", "superseded", "invalidated"])
@pytest.mark.parametrize(("valid", "known"), [(20, 20), (25, 33), (31, 31)])
def test_what_a_fact_says_of_an_episode_needs_no_more(state: str, valid: int, known: int) -> None:
    def of_november(day: int) -> datetime:
        return datetime(2026, 11, 1, 12, tzinfo=UTC) + timedelta(days=day - 1)

    times = {"valid": of_november(valid), "known": of_november(known)}
    whole: Payload = ROW | OF["semantic"] | {"state": state}
    read = only(SAYING, whole)
    assert saying_of(read, **times) == saying_of(whole, **times)
    assert saying_of(read, **times).observation_ids == {ID}


def test_of_a_long_message_its_beginning_is_compared_with_a_cue() -> None:
    """A hundred candidates of 250 KB each would hold up every other reader."""
    text = fit_text_of("turns", {}, "x" * 250_000, None)
    assert len(text.content) == CONTENT_MAX
