"""Is it time to observe this session? One question for company under backlog, token triggers, budgets and a model that
is away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..policies import ObservePolicy

WaitReason = Literal["nothing", "model_away", "budget", "few_tokens", "next_is_here", "backlog"]
BATCH_WAITS: frozenset[WaitReason] = frozenset(("next_is_here", "backlog"))
"""Nothing is wrong: the session has too few turns for a round, and more are likely."""


@dataclass(frozen=True, slots=True)
class UnobservedTurns:
    """What is known of a session when one of its events ends."""

    turns: int
    """Turns that wait, the new one included."""
    tokens: int = 0
    """What a prompt would show of them."""
    has_queued_successor: bool = False
    """Another event of the session is queued in this worker; it will ask the same question."""
    behind: bool = False
    """The worker has a backlog to read where the session's next turn would be (`is_behind`)."""
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


def time_to_observe(session: UnobservedTurns, policy: ObservePolicy) -> ObserveNow | Wait:
    """The answer for the next round; the caller asks again after each one, until it is Wait.

    A model that is away or may not be paid for is never called, not even at the end of a session. Otherwise every turn
    is observed at once, except that a token trigger (`unobserved_tokens`) holds turns back until enough wait, and that
    a session with too few turns for a round waits for company where company is likely: a prompt of eight turns costs
    little more than one of a single turn. Neither holds back a session that ends or that someone asks for.

    What ends each Wait: `has_queued_successor` the event that is queued; `backlog` the end of the backlog;
    `few_tokens` the
    turn that makes them enough, or the session's falling idle; `budget` the next day; the others the model's breaker,
    the next event, or the pause (agents/observer/deferral.py).
    """
    if session.turns <= 0:
        return Wait("nothing")
    if session.model_away:
        return Wait("model_away")
    if not session.budget_left:
        return Wait("budget")
    if not (session.ends_session or session.asked):
        if session.tokens < policy.unobserved_tokens:
            return Wait("few_tokens")
        if session.turns < policy.together and session.tokens < policy.round_tokens:
            if session.has_queued_successor:
                return Wait("next_is_here")
            if session.behind:
                return Wait("backlog")
    return ObserveNow(min(session.turns, policy.round_turns))


def seconds_until_idle(last_turn: datetime, *, now: datetime, policy: ObservePolicy) -> float:
    """When a session whose last turn came then has fallen idle."""
    return max(0.0, policy.idle - (now - last_turn).total_seconds())


def is_behind(unread: int, *, held: int, was: bool, waiting: int, policy: ObservePolicy) -> bool:
    """Whether a partition has a backlog worth waiting in. `unread`: its events that the worker has not taken yet;
    `held`: those that it has and that are not done; `waiting`: its sessions that wait for company already.

    It begins beyond `policy.backlog` unread events, and goes on until there are none, or no more to come than sessions
    wait. From there on each of these is more likely observed by its own last event, at the worker's speed, than helped
    by another wait.
    """
    return unread > 0 and unread + held > waiting and (was or unread > policy.backlog)


def turns_that_fit(tokens: Sequence[int], policy: ObservePolicy) -> int:
    """How many of these turns, oldest first, a round shows: at least one, then as long as they have `round_size`
    tokens together. A turn's size is bounded for itself (schemas/turns.py)."""
    total = 0
    for place, size in enumerate(tokens):
        total += size
        if place and total > policy.round_size:
            return place
    return len(tokens)
