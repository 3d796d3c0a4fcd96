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
"""Reasons of a wait whose end is unknown. A turn above the tenant's maximum of waiting turns
(`ObservePolicy.waiting_turns`) does not wait for these reasons to end."""
BATCH_WAITS: frozenset[WaitReason] = frozenset(("next_is_here", "backlog"))
"""Reasons of a normal wait: more turns of the session are queued or likely, so that one call can observe several
turns."""


@dataclass(frozen=True, slots=True)
class UnobservedTurns:
    """The state of a session at the end of one of its events."""

    turns: int
    """Number of waiting turns, including the new turn and the turns queued behind it."""
    tokens: int = 0
    """Tokens of the waiting turns in a prompt."""
    has_queued_successor: bool = False
    """True when another event of the session is queued in this worker. That event triggers the decision again."""
    behind: bool = False
    """True when the worker still has a backlog in the partition of the next turn of the session (`is_behind`)."""
    ends_session: bool = False
    asked: bool = False
    """True when a command `observe` asks for the observation of this session."""
    model_away: bool = False
    """True when the breaker of the session's model is open, or a call to the model failed."""
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
    """Decide whether the next round starts now. A round is one model call for some waiting turns. The caller asks again
    after each round, until the answer is Wait.

    No call goes to a model that is unavailable or over budget, not even at the end of a session. Otherwise every turn
    is observed immediately, with two exceptions:

    - A token trigger (`unobserved_tokens`) holds turns back until enough tokens wait.
    - A session with too few turns for a round waits when the worker is behind, because more turns are likely. A prompt
      of eight turns costs little more than a prompt of one.

    The exceptions do not apply in three cases: the session ends, a command asks for its observation, or its tenant has
    too many waiting turns.

    The end of each Wait:

    - `next_is_here`: the queued event;
    - `backlog`: the end of the backlog;
    - `few_tokens`: the turn that brings enough tokens, or the idle time of the session;
    - `budget`: the next day;
    - `enough_rounds`: a command that the stage sends immediately;
    - other reasons: the model's breaker closes, the next event comes, or the pause ends (agents/observer/deferral.py).
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

    `unread`: number of events that the worker has not taken yet. `held`: number of events that the worker has taken and
    not finished. `was`: the previous result for the partition. `waiting`: number of sessions that already wait for more
    turns. The backlog begins above `policy.backlog` unread events. It ends when no unread events are left, or when the
    unread and held events are not more than the waiting sessions. Then a wait is unlikely to bring another turn to a
    session.
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
