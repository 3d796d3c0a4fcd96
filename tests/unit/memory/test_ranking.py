"""The formulas of recall: written out and compared part by part, then properties of any values."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.decay import effective_confidence, half_life_decay, strength
from memstream.memory.facts.similarity import overlap
from memstream.memory.policies import CompositePolicy, RecallPolicy
from memstream.memory.recall.ranking import (
    EpisodicTrace,
    Impression,
    Score,
    SemanticTrace,
    Trace,
    TurnTrace,
    WorkingTrace,
    congruence,
    greatest_score,
    score_composite,
    score_trace,
    weigh_fit,
)
from memstream.schemas.recall import TIERS, Tier

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
POLICY = RecallPolicy()
UNIT = st.floats(0, 1)
MOODS = st.none() | st.floats(-1, 1)
THEN = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=4_000)).map(lambda age: NOW - age)
TRACES = st.one_of(
    st.builds(SemanticTrace, confidence=UNIT, reinforcements=st.integers(0, 500), since=THEN),
    st.builds(WorkingTrace, salience=UNIT),
    st.builds(EpisodicTrace, importance=UNIT, occurred_at=THEN),
    st.builds(TurnTrace, occurred_at=THEN),
)

TIER_OF: dict[type, Tier] = {
    SemanticTrace: "semantic",
    WorkingTrace: "working",
    EpisodicTrace: "episodic",
    TurnTrace: "turns",
}
IMPRESSIONS = st.builds(Impression, strength=UNIT, at=THEN, importance=UNIT, valence=MOODS)


def days(number: float) -> datetime:
    return NOW - timedelta(days=number)


def parts(score: Score) -> dict[str, float]:
    return dict(score.parts)


def of(trace: Trace, match: float = 0.0) -> Score:
    return score_trace(trace, match=match, now=NOW, policy=POLICY)


class TestTheSpecsNumbers:
    def test_a_fact(self) -> None:
        score = of(SemanticTrace(confidence=0.8, reinforcements=4, since=days(180)), match=0.5)
        assert parts(score) == {
            "confidence": pytest.approx(0.2),
            "reinforcement": pytest.approx(0.08),
            "match": pytest.approx(0.2),
        }
        assert score.total == pytest.approx(0.4 * (0.5 + 0.5 * 0.4) + 0.4 * 0.5)

    def test_a_fact_reinforced_more_than_ten_times_counts_as_ten(self) -> None:
        ten, fifty = (of(SemanticTrace(0.6, n, NOW)) for n in (10, 50))
        assert ten.total == fifty.total == pytest.approx(0.6)

    def test_an_entry_of_the_working_set(self) -> None:
        assert parts(of(WorkingTrace(0.7), match=0.5)) == {"salience": 0.7, "match": pytest.approx(0.1)}

    def test_an_episode(self) -> None:
        score = of(EpisodicTrace(importance=0.8, occurred_at=days(7)), match=1.0)
        assert score.total == pytest.approx(0.8 * (0.5 + 0.5 * 0.5) + 0.3)
        assert set(parts(score)) == {"significance", "recency", "match"}

    def test_a_turn(self) -> None:
        assert of(TurnTrace(days(14)), match=0.6).total == pytest.approx(0.6 * (0.7 + 0.3 * 0.25))
        assert of(TurnTrace(NOW), match=0.0).total == 0.0

    def test_the_composite(self) -> None:
        impression = Impression(strength=0.5, at=days(1), importance=0.8, valence=0.5)
        score = score_composite(impression, match=0.9, links=0.2, mood=-0.5, now=NOW, policy=CompositePolicy())
        assert parts(score) == {
            "similarity": pytest.approx(0.35 * 0.9),
            "strength": pytest.approx(0.25 * 0.5),
            "recency": pytest.approx(0.10 * 0.5),
            "emotion": pytest.approx(0.15 * 0.5),
            "links": pytest.approx(0.10 * 0.2),
            "importance": pytest.approx(0.05 * 0.8),
        }

    def test_terms(self) -> None:
        assert half_life_decay(days(7), NOW, half_life=7 * 86_400) == pytest.approx(0.5)
        assert effective_confidence(1.0, days(360), NOW, half_life_days=180) == pytest.approx(0.25)
        assert strength(0.8, days(14), NOW, stability_days=14) == pytest.approx(0.8 / math.e)
        assert congruence(1.0, -1.0) == 0.0
        assert congruence(0.3, 0.3) == 1.0
        assert congruence(None, 0.3) == congruence(0.3, None) == 0.5
        assert overlap({"a", "b"}, {"b", "c"}) == 0.5
        assert overlap(set(), {"b"}) == 0.0


class TestAlways:
    @given(TRACES, UNIT)
    def test_a_score_lies_within_0_and_1_and_is_the_sum_of_its_parts(self, trace: Trace, match: float) -> None:
        score = of(trace, match)
        assert 0.0 <= score.total <= greatest_score(TIERS, POLICY, cue=True)
        assert score.total == pytest.approx(sum(parts(score).values()))
        assert all(value >= 0 for value in score.parts.values())

    @given(TRACES, UNIT, UNIT)
    def test_no_sum_of_a_read_is_above_its_greatest_sum(self, trace: Trace, match: float, fit: float) -> None:
        tier: Tier = TIER_OF[type(trace)]
        score = of(trace, match)
        if tier != "turns":
            score = weigh_fit(score, fit, weight=POLICY.fact_fit if tier == "semantic" else POLICY.fit)
        own = greatest_score((tier,), POLICY, cue=True)
        assert score.total <= own + 1e-12
        assert own <= greatest_score(TIERS, POLICY, cue=True)
        assert of(trace, 0.0).total <= greatest_score((tier,), POLICY, cue=False) + 1e-12

    @given(TRACES, UNIT, UNIT)
    def test_a_better_match_never_lowers(self, trace: Trace, one: float, other: float) -> None:
        low, high = sorted((one, other))
        assert of(trace, low).total <= of(trace, high).total

    @given(TRACES, UNIT, st.timedeltas(timedelta(0), timedelta(days=4_000)))
    def test_time_never_raises(self, trace: Trace, match: float, later: timedelta) -> None:
        after = score_trace(trace, match=match, now=NOW + later, policy=POLICY)
        assert after.total <= of(trace, match).total + 1e-12

    @given(UNIT, st.integers(0, 50), THEN, UNIT)
    def test_a_reinforcement_never_lowers_a_fact(
        self, confidence: float, count: int, since: datetime, match: float
    ) -> None:
        before = SemanticTrace(confidence, count, since)
        after = SemanticTrace(min(1.0, confidence + 0.05), count + 1, NOW)
        assert of(after, match).total >= of(before, match).total

    @given(st.timedeltas(timedelta(0), timedelta(days=4_000)), UNIT)
    def test_what_lies_ahead_is_as_fresh_as_can_be(self, ahead: timedelta, match: float) -> None:
        assert of(TurnTrace(NOW + ahead), match).total == of(TurnTrace(NOW), match).total

    @given(IMPRESSIONS, UNIT, UNIT, MOODS)
    def test_the_composite_lies_within_0_and_1(
        self, impression: Impression, match: float, links: float, mood: float | None
    ) -> None:
        score = score_composite(impression, match=match, links=links, mood=mood, now=NOW, policy=CompositePolicy())
        assert 0.0 <= score.total <= 1.0 + 1e-12
        assert score.total == pytest.approx(sum(parts(score).values()))
        assert sum(parts(score).values()) <= 1.0 + 1e-9, "its weights add up to 1"

    @given(IMPRESSIONS, UNIT, UNIT, MOODS, st.sampled_from(("match", "links", "strength", "importance")), UNIT)
    def test_more_of_anything_never_lowers_the_composite(
        self, impression: Impression, match: float, links: float, mood: float | None, what: str, more: float
    ) -> None:
        asked = {"match": match, "links": links}
        before = score_composite(impression, **asked, mood=mood, now=NOW, policy=CompositePolicy())
        if what in asked:
            asked[what] = max(asked[what], more)
        else:
            impression = replace(impression, **{what: max(getattr(impression, what), more)})
        after = score_composite(impression, **asked, mood=mood, now=NOW, policy=CompositePolicy())
        assert after.total >= before.total - 1e-12

    @given(IMPRESSIONS, UNIT, MOODS, st.timedeltas(timedelta(0), timedelta(days=4_000)))
    def test_time_never_raises_the_composite(
        self, impression: Impression, match: float, mood: float | None, later: timedelta
    ) -> None:
        before, after = (
            score_composite(impression, match=match, links=0.5, mood=mood, now=moment, policy=CompositePolicy())
            for moment in (NOW, NOW + later)
        )
        assert after.total <= before.total + 1e-12

    @given(st.floats(-1, 1), st.floats(-1, 1))
    def test_emotions_agree_alike_both_ways(self, one: float, other: float) -> None:
        assert 0.0 <= congruence(one, other) == congruence(other, one) <= 1.0 == congruence(one, one)

    @given(UNIT, THEN, st.floats(0.1, 1_000), st.timedeltas(timedelta(0), timedelta(days=4_000)))
    def test_strength_fades_and_never_below_nothing(
        self, left: float, touched: datetime, stability: float, later: timedelta
    ) -> None:
        now, then = (strength(left, touched, each, stability_days=stability) for each in (NOW, NOW + later))
        assert 0.0 <= then <= now <= left

    @given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
    def test_overlap_is_1_for_what_is_contained(self, of_: set[str], within: set[str]) -> None:
        assert 0.0 <= overlap(of_, within) <= 1.0
        assert (overlap(of_, within) == 1.0) == (bool(of_) and of_ <= within)


@pytest.mark.parametrize(
    "bad",
    [
        {"profile": "best"},
        {"pool": 0},
        {"limit": 2_000},
        {"semantic_match": 1.5},
        {"patience": 0},
        {"recency_half_life_days": math.inf},
        {"stability_growth": 0.5},
        {"reinforcements": 0},
        {"reranker": "best"},
        {"rerank_pool": 0},
        {"cross_encoder": " "},
        {"late_encoder": " "},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="recall"):
        RecallPolicy(**bad)  # type: ignore[arg-type]


def test_the_weights_of_the_composite_add_up() -> None:
    with pytest.raises(ValueError, match="add up to 1"):
        CompositePolicy(similarity=0.5)
