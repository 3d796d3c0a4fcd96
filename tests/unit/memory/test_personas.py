"""What a persona moves: each trait above 0.6, alone and together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.personas import with_persona
from memstream.memory.policies import CapturePolicy, ConflictPolicy, ConsolidationPolicy, MemoryPolicy, Persona
from memstream.memory.policies.recall import RecallPolicy
from memstream.memory.tenant_policies import flat_settings

TRAITS = [each.name for each in dataclasses.fields(Persona)]


def moved(policy: MemoryPolicy, **traits: float) -> dict[str, Any]:
    """By name the settings that a persona moves."""
    before, after = flat_settings(policy), flat_settings(with_persona(policy, Persona(**traits)))
    return {name: value for name, value in after.items() if value != before[name]}


@pytest.mark.parametrize(
    ("trait", "effects"),
    [
        ("openness", {"capture.threshold": 0.3, "capture.max_per_message": 9, "capture.emotion": True}),
        (
            "conscientiousness",
            {
                "capture.boosted": ["goal", "task"],
                "conflict.near_dup": 0.92,
                "conflict.jaccard_near_dup": 0.92,
                "consolidation.episodes": 3,
            },
        ),
        ("agreeableness", {"capture.boosted": ["preference"], "recall.limit": 12}),
        ("emotionality", {"capture.boosted": ["event", "emotional"], "capture.emotion": True}),
        (
            "honesty",
            {"capture.boosted": ["correction"], "conflict.near_dup": 0.75, "conflict.jaccard_near_dup": 0.75},
        ),
        ("extraversion", {}),
    ],
)
def test_each_trait_above_the_bound_acts(trait: str, effects: Mapping[str, Any]) -> None:
    assert moved(MemoryPolicy(), **{trait: 0.61}) == effects
    assert moved(MemoryPolicy(), **{trait: 0.6}) == {}


def test_with_both_conscientiousness_rules_the_bound() -> None:
    both = with_persona(MemoryPolicy(), Persona(conscientiousness=0.9, honesty=1.0))
    assert both.conflict.near_dup == 0.92
    assert both.capture.boosted == ("correction", "goal", "task")


def test_what_is_lower_already_stays() -> None:
    policy = MemoryPolicy(consolidation=ConsolidationPolicy(episodes=2), capture=CapturePolicy(threshold=0.05))
    diligent = with_persona(policy, Persona(conscientiousness=1.0, openness=1.0))
    assert (diligent.consolidation.episodes, diligent.capture.threshold) == (2, 0.0)


@given(
    traits=st.fixed_dictionaries({name: st.floats(0, 1) for name in TRAITS}),
    conflict=st.sampled_from(
        (ConflictPolicy(), ConflictPolicy(hot=0.8, near_dup=0.7), ConflictPolicy(hot=None, conflict_check=0.8))
    ),
    limit=st.integers(1, 100),
)
def test_every_persona_gives_a_valid_policy(traits: dict[str, float], conflict: ConflictPolicy, limit: int) -> None:
    """The policies check themselves: bounds that do not rise, or a limit above 100, raise ValueError."""
    policy = MemoryPolicy(conflict=conflict, recall=RecallPolicy(limit=limit))
    persona = with_persona(policy, Persona(**traits))
    assert persona.recall.limit >= limit
    assert persona.tiers == policy.tiers


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_trait_lies_between_0_and_1(value: float) -> None:
    with pytest.raises(ValueError, match="openness must be between 0 and 1"):
        Persona(openness=value)
