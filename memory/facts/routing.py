"""Routes of observations to the memory tiers, and the confidence of a fact that is made from one observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...schemas.facts import Trust
from ...schemas.observations import LASTING, STABLE_CATEGORIES, Category, Durability, Observation
from ...schemas.turns import Role
from ..policies import ConfidencePolicy, MemoryPolicy
from ..trust.rendered_text import observed_rule

OWN_WORD_ONLY: frozenset[Category] = frozenset(("preference", "identity"))
"""Categories of statements that a tool's output cannot establish: what a person likes, and who a person is."""


@dataclass(frozen=True, slots=True)
class Route:
    """The tiers that get an observation. The working set is not listed, because it gets every observation."""

    episodic: bool = False
    semantic: bool = False
    prospective: bool = False
    """True for a task with a due time."""
    quarantined: bool = False
    """True for an instruction from a user to the assistant that is stored as a quarantined fact. The fact is not
    believed until a person approves it."""
    dropped: bool = False
    """True for an instruction to the assistant that is not stored: it is not from a user, or no tier would store it."""

    @property
    def is_instruction(self) -> bool:
        return self.quarantined or self.dropped


def route(observation: Observation, policy: MemoryPolicy) -> Route:
    """Return the route of an observation.

    The route is empty in three cases: the importance is below the capture threshold, only the working tier is on, or
    the observation asks to forget something. An unconfirmed observation becomes at most a pending fact. An instruction
    to the assistant is quarantined or dropped, so that it changes no known fact.
    """
    if policy.tiers.working_only or observation.retracts:
        return Route()
    found = _route(observation, policy)
    if not is_kept_apart(observation):
        return Route(semantic=found.semantic) if observation.unconfirmed else found
    lasts = (found.episodic or found.semantic) and policy.tiers.semantic
    kept = lasts and trust_of(observation.source_role) == "user"
    return Route(quarantined=kept, dropped=not kept)


NoFactReason = Literal["tier_off", "working_only", "instruction", "unimportant", "passing", "category", "own_word"]
"""Reason for which an observation does not become a fact."""


def why_no_fact(observation: Observation, policy: MemoryPolicy) -> NoFactReason | None:
    """Return why `route` makes no fact of an observation; None when it makes one, or when the observation asks to
    forget something."""
    to = route(observation, policy)
    if to.semantic or to.quarantined or observation.retracts:
        return None
    if policy.tiers.working_only:
        return "working_only"
    if to.dropped:
        return "instruction"
    if not policy.tiers.semantic:
        return "tier_off"
    if observation.importance < policy.capture.threshold:
        return "unimportant"
    if observation.durability not in LASTING:
        return "passing"
    if observation.category not in STABLE_CATEGORIES:
        return "category"
    return "own_word"


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
    """Return the trust of a role. A system message has the trust of a tool."""
    if role == "user":
        return "user"
    return "assistant" if role == "assistant" else "tool"


def direct_confidence(observation: Observation, policy: ConfidencePolicy) -> float:
    """Return the confidence of a fact made from one observation. The durability sets the confidence; a source other
    than a user reduces it."""
    return stated_confidence(observation.durability, trust_of(observation.source_role), policy)


def stated_confidence(durability: Durability, trust: Trust, policy: ConfidencePolicy) -> float:
    """Return the confidence of one statement. The durability sets the confidence; a source other than a user reduces
    it."""
    base = policy.permanent if durability == "permanent" else policy.persistent
    discount = {"user": 0.0, "assistant": policy.assistant_discount, "tool": policy.tool_discount}
    return max(0.0, round(base - discount[trust], 6))


def _may_be_fact(observation: Observation) -> bool:
    trust, category = trust_of(observation.source_role), observation.category
    return category in STABLE_CATEGORIES and not needs_own_word(trust, category)
