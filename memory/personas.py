"""Personas: changes of a policy by the personality of an agent. Source: HEXACO, Ashton and Lee 2007."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..schemas.observations import OBSERVATIONS_MAX
from .policies import MemoryPolicy, Persona
from .policies.observation import Boosted
from .policies.recall import LIMIT_MAX

ACTS_ABOVE: Final = 0.6
THRESHOLD_STEP: Final = 0.10
DILIGENT_NEAR_DUP: Final = 0.92
HONEST_NEAR_DUP: Final = 0.75
DILIGENT_EPISODES: Final = 3
MORE_RESULTS: Final = 2


def with_persona(policy: MemoryPolicy, persona: Persona) -> MemoryPolicy:
    """Return the policy with the effects of the traits above 0.6."""
    for trait, effect in _EFFECTS.items():
        if getattr(persona, trait) > ACTS_ABOVE:
            policy = effect(policy)
    return policy


def _open(policy: MemoryPolicy) -> MemoryPolicy:
    capture = policy.capture
    return replace(
        policy,
        capture=replace(
            capture,
            threshold=max(0.0, round(capture.threshold - THRESHOLD_STEP, 6)),
            max_per_message=min(capture.max_per_message + 1, OBSERVATIONS_MAX),
            emotion=True,
        ),
    )


def _honest(policy: MemoryPolicy) -> MemoryPolicy:
    return _boosting(_near_dup_from(policy, HONEST_NEAR_DUP), "correction")


def _conscientious(policy: MemoryPolicy) -> MemoryPolicy:
    policy = _boosting(_near_dup_from(policy, DILIGENT_NEAR_DUP), "goal", "task")
    episodes = min(policy.consolidation.episodes, DILIGENT_EPISODES)
    return replace(policy, consolidation=replace(policy.consolidation, episodes=episodes))


def _agreeable(policy: MemoryPolicy) -> MemoryPolicy:
    limit = min(policy.recall.limit + MORE_RESULTS, LIMIT_MAX)
    return replace(_boosting(policy, "preference"), recall=replace(policy.recall, limit=limit))


def _emotional(policy: MemoryPolicy) -> MemoryPolicy:
    policy = _boosting(policy, "event", "emotional")
    return replace(policy, capture=replace(policy.capture, emotion=True))


_EFFECTS: Final[dict[str, Callable[[MemoryPolicy], MemoryPolicy]]] = {
    "openness": _open,
    "honesty": _honest,
    "conscientiousness": _conscientious,  # after honesty: this bound replaces honesty's bound
    "agreeableness": _agreeable,
    "emotionality": _emotional,
}
"""The effect of each trait, in order of application. Extraversion has no effect."""


def _boosting(policy: MemoryPolicy, *names: Boosted) -> MemoryPolicy:
    boosted = tuple(dict.fromkeys((*policy.capture.boosted, *names)))
    return replace(policy, capture=replace(policy.capture, boosted=boosted))


def _near_dup_from(policy: MemoryPolicy, bound: float) -> MemoryPolicy:
    """Return the policy with `bound` as minimum similarity of the zone NEAR-DUP, limited to the range between the
    bounds of the zones CONFLICT-CHECK and HOT."""
    conflict = policy.conflict
    near_dup = max(conflict.conflict_check, min(bound, 1.0 if conflict.hot is None else conflict.hot))
    return replace(policy, conflict=replace(conflict, near_dup=near_dup, jaccard_near_dup=bound))
