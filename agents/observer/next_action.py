"""What the observer does next for a session while it handles one event; pure.

The stage asks after every step, does what the answer says, and asks again until the answer is `Wait`.
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
    """How far one event has come. Each step makes a new one."""

    session: SessionRow
    """The session's row after the last decision."""
    new: BatchTurn | None
    """This event's own turn, until it is observed or refused."""
    requested: bool
    """This event is a command that asks for the observation."""
    queued: tuple[BatchTurn, ...] = ()
    """Turns of the events behind this one, which may be observed with its own turn."""
    alone: int = 0
    """So many turns are still observed one by one, because the answer for all of them was unusable."""
    rounds: int = 0
    """So many times this event has asked the model."""
    model_away: bool = False
    budget_left: bool = True
    retry_after: float = 0.0
    """Seconds that the model's server or the budget asked for."""

    def after(self, session: SessionRow, done: tuple[BatchTurn, ...]) -> EventProgress:
        """These turns are observed or refused."""
        new = None if any(item.n is None for item in done) else self.new
        queued = self.queued if new is not None else ()
        return replace(
            self, session=session, new=new, queued=queued, alone=max(0, self.alone - 1), rounds=self.rounds + 1
        )

    def one_by_one(self, turns: int) -> EventProgress:
        """Only a turn that fails alone becomes a dead letter."""
        return replace(self, alone=turns, queued=(), rounds=self.rounds + 1)

    def without_model(self, retry_after: float | None) -> EventProgress:
        return replace(self, model_away=True, retry_after=retry_after or 0.0)

    def without_budget(self, retry_after: float | None) -> EventProgress:
        return replace(self, budget_left=False, retry_after=retry_after or 0.0)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the worker knows beside the session's row. It may change with every call of a model."""

    has_queued_successor: bool
    """Another event of the session is queued."""
    behind: bool
    """The session's partition has a backlog beyond what the worker holds."""
    breaker_open: bool
    held_back: HeldBack | None
    refusing: bool = False
    """The tenant was paused, and nothing has passed since: a try shows one turn, so that it decides one."""
    room: bool = True
    """Further turns of the tenant may wait."""


def next_action(progress: EventProgress, around: Surroundings, policy: ObservePolicy) -> ObserveNow | Wait:
    """Return how many turns to observe now, oldest first, or why the rest waits."""
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
    return ObserveNow(1) if isinstance(action, ObserveNow) and (progress.alone or around.refusing) else action
