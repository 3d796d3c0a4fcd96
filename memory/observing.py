"""Is it time to observe this session? One question for token triggers, backlog, budgets and a model that is away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .policies import ObservePolicy

WaitReason = Literal["nothing", "model_away", "budget", "few_tokens"]


@dataclass(frozen=True, slots=True)
class Unobserved:
    """What is known of a session when one of its events ends."""

    turns: int
    """Turns that wait, the new one included."""
    tokens: int = 0
    backlog: int = 0
    """Further events of the session that are already queued in this worker."""
    idle_seconds: float = 0.0
    ends_session: bool = False
    asked: bool = False
    """A command `observe` asks for it."""
    model_away: bool = False
    """The breaker of the session's model is open, or its patience is used up."""
    budget_left: bool = True


@dataclass(frozen=True, slots=True)
class ObserveNow:
    turns: int
    """How many of the waiting turns, oldest first, make the next round."""


@dataclass(frozen=True, slots=True)
class Wait:
    reason: WaitReason


def time_to_observe(session: Unobserved, policy: ObservePolicy) -> ObserveNow | Wait:
    """The answer for the next round; the caller asks again after each one, until it is Wait.

    A model that is away or may not be paid for is never called, not even at the end of a session. This version
    observes every turn at once otherwise; a token trigger (`unobserved_tokens`) holds turns back until enough wait,
    the session ends, or someone asks.
    """
    if session.turns <= 0:
        return Wait("nothing")
    if session.model_away:
        return Wait("model_away")
    if not session.budget_left:
        return Wait("budget")
    forced = session.ends_session or session.asked
    if not forced and session.tokens < policy.unobserved_tokens:
        return Wait("few_tokens")
    return ObserveNow(min(session.turns, policy.together))
