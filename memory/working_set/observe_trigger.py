"""The trigger of observation: the decision whether the waiting turns of a session go to the model now. It depends on
batches, token triggers, budgets and the availability of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..policies import ObservePolicy

WaitReason = Literal["nothing", "model_away", "budget", "few_tokens", "next_is_here", "backlog", "enough_rounds"]
OUTAGES: frozenset[WaitReason] = frozenset(("model_away", "budget"))
"""Reasons of a wait with an unknown end. A turn over the ceiling of the tenant does not wait for them."""
BATCH_WAITS: frozenset[WaitReason] = frozenset(("next_is_here", "backlog"))
"""Reasons of a normal wait: the session has too few turns for a batch, and more are likely."""


@dataclass(frozen=True, slots=True)
class UnobservedTurns:
    """The state of a session at the end of one of its events."""

    turns: int
    """Number of waiting turns, including the new one and those queued behind it."""
    tokens: int = 0
    """Tokens of the waiting turns in a prompt."""
    has_queued_successor: bool = False
    """True when another event of the session is queued in this worker. It triggers the same decision."""
    behind: bool = False
    """True when the worker still has a backlog in the partition of the next turn of the session (`is_behind`)."""
    ends_session: bool = False
    asked: bool = False
    """True when a command `observe` asks for the session."""
    model_away: bool = False
    """True when the breaker of the session's model is open, or its deadline has passed."""
    budget_left: bool = True
    rounds_left: bool = True
    """True when the event has made fewer calls than one event may make."""
    room: bool = True
    """True when further turns of the tenant may wait (`ObservePolicy.waiting_turns`)."""


@dataclass(frozen=True, slots=True)
class ObserveNow:
    turns: int
    """Number of waiting turns for the next round, oldest first."""


@dataclass(frozen=True, slots=True)
class Wait:
    reason: WaitReason


def time_to_observe(session: UnobservedTurns, policy: ObservePolicy) -> ObserveNow | Wait:
    """Decide about the next round. The caller asks again after each round, until the answer is Wait.

    No call goes to a model that is unavailable or over budget, not even at the end of a session. Otherwise every turn
    is observed immediately, with two exceptions:

    - A token trigger (`unobserved_tokens`) holds turns back until enough tokens wait.
    - A session with too few turns for a round waits when the worker is behind, because more turns are likely. A prompt
      of eight turns costs little more than a prompt of one.

    The exceptions do not apply to a session that ends, that a command asks for, or whose tenant has too many waiting
    turns.

    The end of each Wait:

    - `next_is_here`: the queued event;
    - `backlog`: the end of the backlog;
    - `few_tokens`: the turn that brings enough tokens, or the idle time of the session;
    - `budget`: the next day;
    - `enough_rounds`: a command that the stage sends immediately;
    - others: the breaker of the model, the next event, or the pause (agents/observer/deferral.py).
    """
    if session.turns <= 0:
        return Wait("nothing")
    if session.model_away:
        return Wait("model_away")
    if not session.budget_left:
        return Wait("budget")
    if session.room and not (session.ends_session or session.asked):
        if session.tokens < policy.unobserved_tokens:
            return Wait("few_tokens")
        if session.behind and session.turns < policy.together and session.tokens < policy.round_tokens:
            return Wait("backlog")
    if not session.rounds_left:
        return Wait("next_is_here" if session.has_queued_successor and not session.asked else "enough_rounds")
    return ObserveNow(min(session.turns, policy.round_turns))


def seconds_until_idle(last_turn: datetime, *, now: datetime, policy: ObservePolicy) -> float:
    """Return the seconds until a session with this last turn is idle."""
    return max(0.0, policy.idle - (now - last_turn).total_seconds())


def is_behind(unread: int, *, held: int, was: bool, waiting: int, policy: ObservePolicy) -> bool:
    """Return whether a partition has a backlog that is worth a wait.

    `unread`: events that the worker has not taken yet. `held`: events that it has taken and not finished. `was`: the
    previous answer. `waiting`: sessions that already wait for more turns. The backlog begins above `policy.backlog`
    unread events. It ends when no events are left, or no more than there are waiting sessions. From then on, a wait is
    unlikely to bring a session another turn.
    """
    return unread > 0 and unread + held > waiting and (was or unread > policy.backlog)


def turns_that_fit(tokens: Sequence[int], policy: ObservePolicy) -> int:
    """Return the number of turns that a round shows, oldest first: at least one, then as many as fit into `round_size`
    tokens. The size of one turn is bounded (schemas/turns.py)."""
    total = 0
    for place, size in enumerate(tokens):
        total += size
        if place and total > policy.round_size:
            return place
    return len(tokens)
