"""The observer's next action for a session during one event. Pure functions.

The stage calls `next_action` after every step and executes the returned action, until the action is `Wait`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...memory.policies import ObservePolicy
from ...memory.working_set.observe_trigger import ObserveNow, UnobservedTurns, Wait, time_to_observe
from .batch import BatchTurn
from .reminders import HeldBack
from .rows import SessionRow


@dataclass(frozen=True, slots=True)
class EventProgress:
    """Progress of one event. Each step returns a new value."""

    session: SessionRow
    """The session's row after the last decision."""
    new: BatchTurn | None
    """The turn of this event, until it is observed or refused."""
    requested: bool
    """True when this event is a command that asks for the observation."""
    queued: tuple[BatchTurn, ...] = ()
    """Turns of the next queued events, which may be observed together with this turn."""
    alone: int = 0
    """Number of turns still to observe one by one, because the answer for these turns together was unusable."""
    rounds: int = 0
    """Number of model calls of this event."""
    model_away: bool = False
    budget_left: bool = True
    retry_after: float = 0.0
    """Seconds that the model's server or the budget asked for."""

    def after(self, session: SessionRow, done: tuple[BatchTurn, ...]) -> EventProgress:
        """Return the progress after these turns were observed or refused."""
        new = None if any(item.n is None for item in done) else self.new
        queued = self.queued if new is not None else ()
        return replace(
            self, session=session, new=new, queued=queued, alone=max(0, self.alone - 1), rounds=self.rounds + 1
        )

    def one_by_one(self, turns: int) -> EventProgress:
        """Return the progress that observes this many turns one by one.

        A turn that fails alone becomes a dead letter.
        """
        return replace(self, alone=turns, queued=(), rounds=self.rounds + 1)

    def without_model(self, retry_after: float | None) -> EventProgress:
        return replace(self, model_away=True, retry_after=retry_after or 0.0)

    def without_budget(self, retry_after: float | None) -> EventProgress:
        return replace(self, budget_left=False, retry_after=retry_after or 0.0)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts that the worker knows and that the session's row does not contain. Each model call may change them."""

    has_queued_successor: bool
    """True when another event of the session is queued."""
    behind: bool
    """True when the session's partition has a backlog beyond the records in this worker."""
    breaker_open: bool
    held_back: HeldBack | None
    refusing: bool = False
    """True when no call has succeeded since the tenant was paused. Then one turn is observed, so a refusal costs one
    turn."""
    room: bool = True
    """True when more turns of the tenant may wait."""


def next_action(progress: EventProgress, around: Surroundings, policy: ObservePolicy) -> ObserveNow | Wait:
    """Return the number of turns to observe now, oldest first, or the reason to wait."""
    session = progress.session
    here = () if progress.new is None else (progress.new, *progress.queued)
    unobserved = UnobservedTurns(
        turns=session.waiting + len(here),
        tokens=session.waiting_tokens + sum(each.tokens for each in here),
        has_queued_successor=around.has_queued_successor,
        behind=around.behind,
        ends_session=session.waiting_ends or any(each.turn.ends_session for each in here),
        asked=progress.requested or progress.alone > 0,
        model_away=progress.model_away or around.breaker_open or around.held_back == "model_away",
        budget_left=progress.budget_left and around.held_back != "budget",
        room=around.room,
        rounds_left=progress.alone > 0 or progress.rounds < policy.rounds,
    )
    action = time_to_observe(unobserved, policy)
    one = progress.alone or around.refusing or session.timeouts
    return ObserveNow(1) if isinstance(action, ObserveNow) and one else action
