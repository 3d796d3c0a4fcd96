"""The observer. The way of a turn through it, from top to bottom:

route    decode; refused turns leave as dead letters; a lane per session
decide   misplaced? → sent again to its partition, done
         seen before? → done
         then, as after every event of a session, the question: is it time to observe?
           no  → the turn becomes a waiting row, and the event is done (a reminder will ask again)
           yes → rounds of several turns: ask the model, check its quotes, apply to the working set
         a flush_important → then what counts of the working set goes to the reflector, as episodes.keep
store    the working set's projection in Qdrant, for readers
publish  one record a turn on memory.observations; none where the working set is alone

One writer: of the table working_set, the collection `working` and memory.observations.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import structlog

from ...adapters.ports import Completions, VectorStore
from ...memory.policies import MemoryPolicy
from ...memory.working_set.observe_trigger import (
    COMPANY,
    ObserveNow,
    UnobservedTurns,
    WaitReason,
    time_to_observe,
    turns_that_fit,
)
from ...schemas import ids
from ...schemas.cloudevents import REKEYED_HEADER
from ...schemas.commands import Command
from ...schemas.errors import OverBudget, Poison, Transient
from ...schemas.outcomes import Outcome, OutRecord
from ...schemas.topics import COMMANDS_SESSION, TURNS, Topic
from ...schemas.turns import Owner, Turn
from ...streams.engine.codec import decode
from ...streams.engine.dead_letters import dead_letter
from ...streams.engine.handler import Decision, RoutedEvent, Rows, same_source
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.process_exit import LeaseLost
from ...streams.engine.retry import Calls, Interrupted
from ...streams.log.port import Record
from ..common.store_writes import apply_writes
from ..common.turn_routing import decode_turn, is_misplaced, was_rekeyed
from .batch import (
    BatchTurn,
    UndecodableTurn,
    ask,
    conclude,
    model_breaker,
    observed_records,
    projection,
    prompt_for,
    source_of,
)
from .commands import answer_records, status_of
from .deferral import AheadOf, DeferredSessions
from .rows import REFUSED_KEPT, SessionRow, Sessions, WaitingTurn, refused_mark, waiting_key
from .turn_source import TurnSource

log = structlog.get_logger(__name__)
SENT_AGAIN_MAX_BYTES = 1_000_000
"""Of key, value and headers. What a topic takes by default (1 048 588) has to hold the batch around them too; a
producer whose record was refused as too large no longer knows its sequence, so none is tried."""


@dataclass(frozen=True, slots=True)
class TurnEvent:
    turn: Turn
    owner: Owner
    session_key: str


@dataclass(frozen=True, slots=True)
class SessionCommand:
    command: Command
    session_key: str


Work = TurnEvent | SessionCommand
Step = tuple[SessionRow, Decision]
"""A decision, and the session after it."""


class Observer:
    """See the module. `send_durably` is for what is sent beside outcomes: re-sent turns and reminders. What the worker
    has still to do: `has_queued_successor(partition, session key)`, whether another event of the session is queued, and
    `ahead(partition)`, how much of memory.turns is to come; None while that is not known."""

    name: Literal["observer"] = "observer"
    reads: tuple[Topic, ...] = (TURNS, COMMANDS_SESSION)

    def __init__(
        self,
        *,
        store: VectorStore,
        completions: Completions,
        calls: Calls,
        metrics: StageMetrics,
        send_durably: Callable[[OutRecord], Awaitable[None]],
        policy: MemoryPolicy,
        partitions: int,
        has_queued_successor: Callable[[int, str], bool],
        ahead: AheadOf,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        source: TurnSource | None = None,
    ) -> None:
        self._source = source
        self._store = store
        self._completions = completions
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        self._policy = policy
        self._partitions = partitions
        self._has_queued_successor = has_queued_successor
        self._now = now
        self._sessions = Sessions()
        self._waiting = DeferredSessions(
            policy=policy.observe, ahead=ahead, send_durably=send_durably, now=now, monotonic=monotonic
        )
        calls.on_breaker_closed(self._model_is_back)

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[Work]:
        if record.position.topic == COMMANDS_SESSION.name:
            command = decode(record, Command)
            if command.session is None:
                raise Poison("invalid", "session: a command on memory.commands.session needs one")
            return RoutedEvent(command.key, SessionCommand(command, command.key))
        turn, owner = decode_turn(record, default_scope=self._policy.routing.scope)
        key = turn.session_key
        return RoutedEvent(key, TurnEvent(turn, owner, key))

    def last(self, work: Work, rows: Rows) -> Decision | None:
        raw = rows.row(work.session_key)
        last = self._sessions.parsed(work.session_key, raw).last
        return None if raw is None or last is None else Decision(last, work.session_key, raw)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(self, work: Work, record: Record, rows: Rows) -> AsyncIterator[Decision]:
        key, partition = work.session_key, record.position.partition
        if is_misplaced(record, key, partitions=self._partitions):
            await self._misplaced(work, record)
            return
        session = self._sessions.of(rows, key)  # nobody else writes its row while this event runs
        new = self._new(work, record, session)
        asked = (
            isinstance(work, SessionCommand)
            and status_of(work.command, self._policy.tiers, now=self._now()) == "applied"
        )
        model_away, budget_left, asked_for = False, True, 0.0
        alone = 0  # so many turns are asked one by one, because together their answer was unusable
        while True:
            held_back = self._waiting.held_back(key)
            question = UnobservedTurns(
                turns=session.waiting + (new is not None),
                tokens=session.waiting_tokens + (0 if new is None else new.tokens),
                has_queued_successor=self._has_queued_successor(partition, key),
                behind=self._waiting.behind(partition),
                ends_session=session.waiting_ends or (new is not None and new.turn.ends_session),
                asked=asked or alone > 0,
                model_away=model_away
                or held_back == "model_away"
                or self._calls.breaker_open(model_breaker(_tenant_of(key))),
                budget_left=budget_left and held_back != "budget",
            )
            answer = time_to_observe(question, self._policy.observe)
            if not isinstance(answer, ObserveNow):
                break
            pending = self._next_turns(session, key, rows, new, at_most=1 if alone else answer.turns)
            if isinstance(pending, UndecodableTurn):
                session, decided = self._refused(session, key, pending, pending.poison, work, record)
                yield decided
                continue
            try:
                session, decided = await self._observed(session, key, pending, work, record)
            except Poison as refused:
                if len(pending) > 1:
                    self._metrics.counted("asked_one_by_one")
                    alone = len(pending)  # only those that fail alone are dead letters
                    continue
                session, decided = self._refused(session, key, pending[0], refused, work, record)
            except (LeaseLost, Interrupted):
                raise  # the partition goes away: nothing is decided here any more
            except OverBudget as over:
                budget_left, asked_for = False, over.retry_after or 0.0
                continue
            except Transient as away:
                model_away, asked_for = True, away.retry_after or 0.0
                continue
            yield decided
            alone = max(0, alone - 1)
            if any(item.n is None for item in pending):
                new = None
        if new is not None:
            session, decided = self._deferred(session, key, new, record, answer.reason)
            yield decided
        self._waiting.remember(session, key, partition, answer.reason, asked_for=asked_for)
        if isinstance(work, SessionCommand) and work.command.command_id not in session.commands:
            _, decided = self._answered(session, key, work.command, record)
            yield decided

    async def _misplaced(self, work: Work, record: Record) -> None:
        """Order among such turns is order of arrival. No table is touched: it belongs to another partition."""
        if isinstance(work, SessionCommand):
            raise Poison("invalid", "the command lies on another partition than murmur2 of its session key says")
        if was_rekeyed(record):
            raise Poison(
                "invalid",
                f"sent again with {REKEYED_HEADER} and still on another partition than murmur2 of "
                "its session key says: does every producer know the right partition count?",
            )
        again = OutRecord(
            topic=TURNS.name,
            key=work.session_key.encode(),
            value=record.value,
            headers=(*record.headers, (REKEYED_HEADER, b"1")),
            timestamp=record.timestamp,
        )
        if again.size > SENT_AGAIN_MAX_BYTES:
            raise Poison(
                "oversized",
                f"it lies on the wrong partition and is too large to be sent again: key, value and headers have "
                f"{again.size} bytes; at most {SENT_AGAIN_MAX_BYTES} are. Leave headers out, or set the key",
            )
        await self._send_durably(again)
        self._metrics.counted("rekeyed")

    def _new(self, work: Work, record: Record, session: SessionRow) -> BatchTurn | None:
        """The turn of this event when it has to be observed still."""
        if isinstance(work, SessionCommand):
            return None
        turn_id = work.turn.turn_id
        if turn_id in session.seen or refused_mark(turn_id, record.position.offset) in session.refused:
            if session.last is None or not same_source(session.last.source, record.position):
                self._metrics.counted("duplicate")
            return None
        return BatchTurn.of(work.turn, work.owner, record, self._policy.capture, source=self._source)

    def _next_turns(
        self, session: SessionRow, key: str, rows: Rows, new: BatchTurn | None, *, at_most: int
    ) -> tuple[BatchTurn, ...] | UndecodableTurn:
        """Waiting turns first, in their order, then the new one: as many as one prompt takes."""
        pending: list[BatchTurn] = []
        for n in range(session.waiting_from, min(session.waiting_next, session.waiting_from + at_most)):
            raw = rows.row(waiting_key(key, n))
            if raw is None:
                raise AssertionError(f"the waiting turn {n} of a session is missing: its changelog was cut")
            waiting = WaitingTurn.read(raw)
            record = waiting.record()
            try:
                turn, owner = decode_turn(record, default_scope=self._policy.routing.scope)
            except Poison as poison:
                return tuple(pending) if pending else UndecodableTurn(waiting.turn_id, record, n, poison)
            pending.append(BatchTurn.of(turn, owner, record, self._policy.capture, n=n, source=self._source))
        if new is not None and len(pending) < at_most:
            pending.append(new)
        return tuple(pending[: turns_that_fit([item.tokens for item in pending], self._policy.observe)])

    async def _observed(
        self, session: SessionRow, key: str, pending: Sequence[BatchTurn], work: Work, record: Record
    ) -> Step:
        """A round: ask, check, apply."""
        prompt = prompt_for(session, pending, self._policy)
        tenant_id = pending[0].turn.tenant_id
        answer = await ask(
            prompt,
            tenant_id=tenant_id,
            completions=self._completions,
            calls=self._calls,
            patience=self._policy.observe.patience,
        )
        done = conclude(session, pending, prompt, answer, self._policy)
        for name in done.counted:
            self._metrics.counted(name)
        now = self._now()
        return self._decided(
            _without_waiting(done.session, pending),
            key,
            Outcome(
                source=source_of(record, _event_id(work)),
                cleanup=_waiting_keys(key, pending),
                writes=projection(session.working, done.session.working, pending[-1], now=now),
                records=() if self._policy.tiers.working_only else observed_records(done.observed, now=now),
                tenant_id=tenant_id,
            ),
            seen=pending,
        )

    def _refused(
        self,
        session: SessionRow,
        key: str,
        item: BatchTurn | UndecodableTurn,
        refused: Poison,
        work: Work,
        record: Record,
    ) -> Step:
        """A dead letter under the turn's own coordinates. It takes no number and leaves the list of seen ids, so that
        it can be put back."""
        position = item.record.position
        self._metrics.refused(position.topic, refused.reason)
        log.warning(
            "turn_refused",
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            reason=refused.reason,
            why=str(refused)[:300],
        )
        session = _without_waiting(session, (item,)).model_copy(
            update={
                "seen": session.seen.remove(item.turn_id),
                "refused": (*session.refused, refused_mark(item.turn_id, position.offset))[-REFUSED_KEPT:],
            }
        )
        letter = dead_letter(item.record, stage=self.name, reason=refused.reason, error=refused, attempts=1)
        outcome = Outcome(
            source=source_of(record, _event_id(work)),
            cleanup=_waiting_keys(key, (item,)),
            records=(letter,),
            tenant_id=_tenant_of(key),
        )
        return self._decided(session, key, outcome)

    def _deferred(self, session: SessionRow, key: str, item: BatchTurn, record: Record, reason: WaitReason) -> Step:
        """The turn becomes a row of its own, written before the session's row that counts it."""
        self._metrics.counted("deferred")
        position = item.record.position
        tell = log.debug if reason in COMPANY else log.info  # a backlog has a line for each of its turns
        tell(
            "turn_deferred",
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            waiting=session.waiting + 1,
            why=reason,
        )
        row_key = waiting_key(key, session.waiting_next)
        waiting = WaitingTurn.of(item.record, turn_id=item.turn_id, deferred_at=self._now())
        session = session.model_copy(
            update={
                "waiting_next": session.waiting_next + 1,
                "waiting_tokens": session.waiting_tokens + item.tokens,
                "waiting_ends": session.waiting_ends or item.turn.ends_session,
                "waiting_last": item.turn_id,
            }
        )
        outcome = Outcome(source=source_of(record, item.turn.turn_id), before=(row_key,), tenant_id=item.turn.tenant_id)
        session, decided = self._decided(session, key, outcome, seen=(item,))
        return session, replace(decided, before={row_key: waiting.to_bytes()})

    def _answered(self, session: SessionRow, key: str, command: Command, record: Record) -> Step:
        """The command's result, and what a flush makes episodes of."""
        return self._decided(
            session.model_copy(update={"commands": session.commands.add(command.command_id)}),
            key,
            Outcome(
                source=source_of(record, command.command_id),
                records=answer_records(command, session, self._policy, now=self._now()),
                tenant_id=command.tenant_id,
            ),
        )

    def _decided(self, session: SessionRow, key: str, outcome: Outcome, *, seen: Sequence[BatchTurn] = ()) -> Step:
        ids_seen = session.seen
        for item in seen:
            if item.n is None:
                ids_seen = ids_seen.add(item.turn.turn_id)
        session = session.model_copy(update={"seen": ids_seen, "last": outcome})
        raw = session.to_bytes()
        self._sessions.keep(key, raw, session)
        return session, Decision(outcome, key, raw)

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        self._waiting.found(partitions, rows)

    def _model_is_back(self, breaker: str) -> None:
        component, _, tenant_id = breaker.partition(":")
        if component == "model":
            self._waiting.wake(tenant_id)

    async def background(self) -> None:
        await self._waiting.run()


def _tenant_of(session_key: str) -> str:
    return ids.split(session_key)[0]


def _without_waiting(session: SessionRow, pending: Sequence[BatchTurn | UndecodableTurn]) -> SessionRow:
    """The session when these turns no longer wait."""
    waited = [item for item in pending if item.n is not None]
    return session.without_waiting(len(waited), tokens=sum(item.tokens for item in waited))


def _waiting_keys(key: str, pending: Sequence[BatchTurn | UndecodableTurn]) -> tuple[str, ...]:
    return tuple(waiting_key(key, item.n) for item in pending if item.n is not None)


def _event_id(work: Work) -> str:
    return work.turn.turn_id if isinstance(work, TurnEvent) else work.command.command_id
