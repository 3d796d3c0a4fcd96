"""Turns of a session that one model call may observe: waiting turns, the event's turn, and queued turns behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.secrets.turns import protect_turn
from ...memory.tenant_policies import TenantPolicies
from ...memory.working_set.observe_trigger import turns_that_fit
from ...schemas.errors import Poison
from ...schemas.turns import Turn
from ...streams.engine.decision import Rows
from ...streams.engine.lane_events import QueuedEvents
from ...streams.engine.last_keys import LastKeys
from ...streams.log.port import Record
from ..common.protection import keep_record, keep_unread_record
from ..common.turn_routing import decode_turn
from .batch import BatchTurn, UndecodableTurn, in_log_order
from .events import SessionEvent, TurnEvent
from .next_action import EventProgress
from .rows import WAITING_MAX_BYTES, SessionRow, WaitingTurn, refused_mark, waiting_key
from .turn_source import TurnSource

ONE_BY_ONE_MAX: Final = 1_000
"""Maximum number of remembered sessions whose turns are observed one by one after an unusable answer."""


def is_new(work: TurnEvent, record: Record, session: SessionRow) -> bool:
    """Return whether the session has neither seen nor refused this turn, and was not erased."""
    turn_id = work.turn.turn_id
    return (
        not session.erased
        and turn_id not in session.seen
        and turn_id not in session.retracted
        and refused_mark(turn_id, record.position.offset) not in session.refused
        and not session.turns_until.has(record)
    )


class TurnReader:
    """Reader of the turns that one model call may observe."""

    def __init__(self, *, policies: TenantPolicies, secrets: SecretFilter, source: TurnSource | None) -> None:
        self._policies = policies
        self._deployment = policies.deployment
        self._secrets = secrets
        self._source = source
        self._one_by_one = LastKeys[tuple[int, str], int](ONE_BY_ONE_MAX)
        """The offset of memory.turns up to which turns are observed one by one, by partition and session."""

    def policy_of(self, turn: Turn) -> MemoryPolicy:
        return self._policies.of(turn.tenant_id, turn.agent_id)

    def of_event(self, work: TurnEvent, record: Record) -> BatchTurn:
        kept = keep_record(record, work.protected, self._secrets)
        capture = self.policy_of(work.turn).capture
        return BatchTurn.of(work.protected, work.owner, kept, capture, reading=work.reading, source=self._source)

    def queued(self, new: BatchTurn, session: SessionRow, events: QueuedEvents[SessionEvent]) -> Iterator[BatchTurn]:
        """Yield the turns of the queued events, up to an event that is not a new turn of the session."""
        position, turn_ids = new.record.position, {new.turn_id}
        alone_until = self._one_by_one.get((position.partition, new.turn.session_key))
        if alone_until is not None and position.offset <= alone_until:
            return
        for record, work in events.next(self._deployment.observe.round_turns - 1):
            if not isinstance(work, TurnEvent) or work.turn.turn_id in turn_ids or not is_new(work, record, session):
                return
            turn_ids.add(work.turn.turn_id)
            yield self.of_event(work, record)

    def ask_one_by_one(self, turns: Sequence[BatchTurn], partition: int) -> None:
        """Remember to observe these turns one by one. For queued turns, this applies when their events are handled."""
        last = turns[-1]
        self._one_by_one.put((partition, last.turn.session_key), last.record.position.offset)

    def oldest(
        self, progress: EventProgress, key: str, rows: Rows, *, at_most: int
    ) -> tuple[BatchTurn, ...] | UndecodableTurn:
        """Return waiting turns in order, the event's own turn, then queued turns, as many as fit into one prompt."""
        session, turns = progress.session, list[BatchTurn]()
        for n in range(session.waiting_from, min(session.waiting_next, session.waiting_from + at_most)):
            turn = self._waiting(key, n, rows)
            if isinstance(turn, UndecodableTurn):
                return tuple(turns) if turns else turn
            turns.append(turn)
        if progress.new is not None:
            turns += (progress.new, *progress.queued)[: at_most - len(turns)]
        turns = in_log_order(self._of_one_policy(turns), session.said_until)
        return tuple(turns[: turns_that_fit([turn.tokens for turn in turns], self._deployment.observe)])

    def _waiting(self, key: str, n: int, rows: Rows) -> BatchTurn | UndecodableTurn:
        raw = rows.row(waiting_key(key, n))
        if raw is None:
            raise AssertionError(f"the waiting turn {n} of a session is missing: its changelog was cut")
        waiting = WaitingTurn.read(raw)
        record = waiting.record()
        try:
            routed = decode_turn(record, self._deployment.routing, now=waiting.deferred_at, max_bytes=WAITING_MAX_BYTES)
        except Poison as poison:
            return UndecodableTurn(waiting.turn_id, keep_unread_record(record, self._secrets), n, poison)
        # an earlier version or another policy may have stored the turn with unmasked secrets
        protected = protect_turn(routed.turn, self._secrets)
        record = keep_record(record, protected, self._secrets)
        capture = self.policy_of(routed.turn).capture
        reading = waiting.reading or routed.reading
        return BatchTurn.of(protected, routed.owner, record, capture, reading=reading, n=n, source=self._source)

    def _of_one_policy(self, turns: Sequence[BatchTurn]) -> list[BatchTurn]:
        """Return the leading turns whose agents have the same policy."""
        if not turns:
            return []
        policy = self.policy_of(turns[0].turn)
        return list(takewhile(lambda each: self.policy_of(each.turn) == policy, turns))
