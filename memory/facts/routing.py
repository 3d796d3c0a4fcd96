"""Routes of observations to the tiers beyond the working set, and the confidence of a fact made from one."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.facts import Trust
from ...schemas.observations import LASTING, STABLE_CATEGORIES, Category, Durability, Observation
from ...schemas.turns import Role
from ..policies import ConfidencePolicy, MemoryPolicy
from ..trust.rendered_text import observed_rule

OWN_WORD_ONLY: frozenset[Category] = frozenset(("preference", "identity"))
"""Categories that only people can state: a tool's output cannot establish what a person likes or is."""


@dataclass(frozen=True, slots=True)
class Route:
    """The tiers that an observation goes to besides the working set, which takes every observation."""

    episodic: bool = False
    semantic: bool = False
    prospective: bool = False
    """A task with a due time."""
    quarantined: bool = False
    """An instruction from a user to the assistant: stored as a fact that is not believed until a person approves it."""
    dropped: bool = False
    """An instruction to the assistant that is not kept: it is not from a user, or no tier would store it."""

    @property
    def is_instruction(self) -> bool:
        return self.quarantined or self.dropped


def route(observation: Observation, policy: MemoryPolicy) -> Route:
    """Return the route of an observation.

    Nothing goes beyond the working set below the capture threshold or in a working-only deployment. A tier that is off
    gets nothing. An instruction to the assistant changes no known fact. A request to forget states nothing.
    """
    if policy.tiers.working_only or observation.retracts:
        return Route()
    found = _route(observation, policy)
    if not is_kept_apart(observation):
        return found
    lasts = (found.episodic or found.semantic) and policy.tiers.semantic
    kept = lasts and trust_of(observation.source_role) == "user"
    return Route(quarantined=kept, dropped=not kept)


def is_kept_apart(observation: Observation) -> bool:
    """Return whether the content or the subject of an observation is an instruction to the assistant."""
    trust = trust_of(observation.source_role)
    return observed_rule(observation.subject, observation.content, trust) is not None


def needs_own_word(trust: Trust, category: Category) -> bool:
    """Return whether a tool states something that only people can state: a preference or an identity."""
    return trust == "tool" and category in OWN_WORD_ONLY


def _route(observation: Observation, policy: MemoryPolicy) -> Route:
    if observation.importance < policy.capture.threshold:
        return Route()
    lasting = observation.durability in LASTING
    return Route(
        episodic=lasting and observation.importance >= policy.routing.significance,
        semantic=policy.tiers.semantic and lasting and _may_be_fact(observation),
        prospective=observation.category == "task" and observation.due_at is not None,
    )


def trust_of(role: Role) -> Trust:
    """Return the trust of a role: user > assistant > tool. A system message counts like a tool."""
    if role == "user":
        return "user"
    return "assistant" if role == "assistant" else "tool"


def direct_confidence(observation: Observation, policy: ConfidencePolicy) -> float:
    """Return the confidence of a fact made from one observation: by its durability, minus a discount for its source."""
    return stated_confidence(observation.durability, trust_of(observation.source_role), policy)


def stated_confidence(durability: Durability, trust: Trust, policy: ConfidencePolicy) -> float:
    """Return the confidence of a single statement: by its durability, minus a discount for its source."""
    base = policy.permanent if durability == "permanent" else policy.persistent
    discount = {"user": 0.0, "assistant": policy.assistant_discount, "tool": policy.tool_discount}
    return max(0.0, round(base - discount[trust], 6))


def _may_be_fact(observation: Observation) -> bool:
    trust, category = trust_of(observation.source_role), observation.category
    return category in STABLE_CATEGORIES and not needs_own_word(trust, category)
