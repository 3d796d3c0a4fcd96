"""Where an observation goes beyond the working set, and how sure we are of it (memory-model §5)."""

from __future__ import annotations

from dataclasses import dataclass

from ...schemas.facts import Trust
from ...schemas.observations import LASTING, STABLE_CATEGORIES, Observation
from ...schemas.turns import Role
from ..policies import ConfidencePolicy, MemoryPolicy

_OWN_WORD_ONLY = frozenset(("preference", "identity"))
"""Of the user, these come from people only: what a tool returned says nothing of what someone likes or is."""


@dataclass(frozen=True, slots=True)
class Route:
    """Everything is in the working set already; these say where else."""

    episodic: bool = False
    semantic: bool = False
    prospective: bool = False
    """A task with a due time. This version has no store for it: it is counted."""


def route(observation: Observation, policy: MemoryPolicy) -> Route:
    """Below the capture threshold nothing goes further, nor where the working set is alone. A tier that is off gets
    nothing."""
    if policy.tiers.working_only or observation.importance < policy.capture.threshold:
        return Route()
    lasting = observation.durability in LASTING
    return Route(
        episodic=lasting and observation.importance >= policy.routing.significance,
        semantic=policy.tiers.semantic and lasting and _may_be_fact(observation),
        prospective=observation.category == "task" and observation.due_at is not None,
    )


def trust_of(role: Role) -> Trust:
    """user > assistant > tool; what a system message says is worth what a tool says."""
    if role == "user":
        return "user"
    return "assistant" if role == "assistant" else "tool"


def direct_confidence(observation: Observation, policy: ConfidencePolicy) -> float:
    """Of a fact made from one observation: by its durability, less what its source costs."""
    base = policy.permanent if observation.durability == "permanent" else policy.persistent
    discount = {"user": 0.0, "assistant": policy.assistant_discount, "tool": policy.tool_discount}
    return max(0.0, round(base - discount[trust_of(observation.source_role)], 6))


def _may_be_fact(observation: Observation) -> bool:
    from_tool = trust_of(observation.source_role) == "tool"
    of_own_word = observation.subject == "user" and observation.category in _OWN_WORD_ONLY
    return observation.category in STABLE_CATEGORIES and not (from_tool and of_own_word)
