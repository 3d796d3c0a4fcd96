"""The trigger of observation: whether a session's waiting turns go to the model now, given batches, token triggers,
budgets and an unavailable model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..policies import ObservePolicy

WaitReason = Literal["nothing", "model_away", "budget", "few_tokens", "next_is_here", "backlog", "enough_rounds"]
OUTAGES: frozenset[WaitReason] = frozenset(("model_away", "budget"))
"""Reasons of a wait that nobody knows the end of. A turn over the tenant's ceiling does not wait for them."""
BATCH_WAITS: frozenset[WaitReason] = frozenset(("next_is_here", "backlog"))
"""Reasons of a normal wait: the session has too few turns for a batch, and more are likely."""


@dataclass(frozen=True, slots=True)
class UnobservedTurns:
    """The state of a session when one of its events ends."""

    turns: int
    """Waiting turns, the new one and those queued behind it included."""
    tokens: int = 0
    """Tokens that a prompt would show of them."""
    has_queued_successor: bool = False
    """Another event of the session is queued in this worker. It triggers the same decision."""
    behind: bool = False
    """The worker still has a backlog to read in the partition of the session's next turn (`is_behind`)."""
    ends_session: bool = False
    asked: bool = False
    """A command `observe` asks for the session."""
    model_away: bool = False
    """The breaker of the session's model is open, or its deadline has passed."""
    budget_left: bool = True
    rounds_left: bool = True
    """The event has made fewer calls than one event may make."""
    room: bool = True
    """Further turns of the tenant may wait (`ObservePolicy.waiting_turns`)."""


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
    is observed at once, with two exceptions: a token trigger (`unobserved_tokens`) holds turns back until enough wait;
    and a session with too few turns for a round waits for more turns when more are likely beyond those that the worker
    holds, because a prompt of eight turns costs little more than a prompt of one. Neither exception holds back a
    session that ends, that a command asks for, or whose tenant has too many waiting turns.

    Each Wait ends by:

    - `next_is_here`: the queued event;
    - `backlog`: the end of the backlog;
    - `few_tokens`: the turn that makes the tokens enough, or the idle time of the session;
    - `budget`: the next day;
    - `enough_rounds`: a command that the stage sends at once;
    - others: the model's breaker, the next event, or the pause (agents/observer/deferral.py).
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
    """Return the seconds until a session with this last turn counts as idle."""
    return max(0.0, policy.idle - (now - last_turn).total_seconds())


def is_behind(unread: int, *, held: int, was: bool, waiting: int, policy: ObservePolicy) -> bool:
    """Whether a partition has a backlog that is worth waiting in.

    `unread`: events that the worker has not taken yet. `held`: events that it has taken and not finished. `waiting`:
    sessions that already wait for more turns. The backlog begins beyond `policy.backlog` unread events. It ends when no
    events are left, or no more than there are waiting sessions: from then on a waiting session is more likely to be
    observed by its own last event than to gain another turn by waiting.
    """
    return unread > 0 and unread + held > waiting and (was or unread > policy.backlog)


def turns_that_fit(tokens: Sequence[int], policy: ObservePolicy) -> int:
    """Return how many of these turns a round shows, oldest first: at least one, then as many as fit into `round_size`
    tokens. The size of one turn is bounded (schemas/turns.py)."""
    total = 0
    for place, size in enumerate(tokens):
        total += size
        if place and total > policy.round_size:
            return place
    return len(tokens)
