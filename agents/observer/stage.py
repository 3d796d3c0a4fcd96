"""The observer. The way of a turn through it, from top to bottom:

route    decode; refused turns leave as dead letters; a lane per session
decide   misplaced? → sent again to its partition, done
         seen before? → done
         then, as after every event of a session, the question: is it time to observe?
           no  → the turn becomes a waiting row, and the event is done (a reminder will ask again)
           yes → rounds of several turns: ask the model, check its quotes, apply to the working set
store    the working set's projection in Qdrant, for readers
publish  one record a turn on memory.observations

One writer: of the table working_set, the collection `working` and memory.observations.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

import structlog

from ...adapters.ports import Completions, VectorStore
from ...memory.observing import ObserveNow, Unobserved, time_to_observe
from ...memory.policies import MemoryPolicy
from ...schemas import ids
from ...schemas.cloudevents import REKEYED_HEADER, CloudEvent
from ...schemas.commands import SESSION_KINDS, Command, CommandResult, ResultError, ResultStatus
from ...schemas.errors import Poison, Transient
from ...schemas.outcomes import Outcome, OutRecord
from ...schemas.topics import COMMANDS_SESSION, RESULTS, TURNS, Topic
from ...schemas.turns import Owner, Turn
from ...streams.codec import decode
from ...streams.deadletters import dead_letter
from ...streams.exits import LeaseLost
from ...streams.metrics import StageMetrics
from ...streams.ports import Record
from ...streams.retry import Calls, Interrupted
from ...streams.stage import Decided, Routed, Rows, same_source
from ..effects import apply_writes
from ..routing import decode_turn, is_misplaced, occurred_at, was_rekeyed
from .rounds import Pending, ask, conclude, model_breaker, observed_records, projection, prompt_for, source_of
from .rows import REFUSED_KEPT, SessionRow, WaitingTurn, refused_mark, session_of_waiting_key, waiting_key
from .timers import COMMANDS_PER_SECOND, Reminder, Reminders

log = structlog.get_logger(__name__)
SOURCE = "/memstream/observer"
TICK = 0.2


@dataclass(frozen=True, slots=True)
class TurnWork:
    turn: Turn
    owner: Owner

    @property
    def session_key(self) -> str:
        return self.turn.session_key


@dataclass(frozen=True, slots=True)
class CommandWork:
    command: Command

    @property
    def session_key(self) -> str:
        return self.command.key


Work = TurnWork | CommandWork


class Observer:
    """See the module. `send_durably` is for what is sent beside outcomes: re-sent turns and reminders."""

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
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._completions = completions
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        self._policy = policy
        self._partitions = partitions
        self._now = now
        self._monotonic = monotonic
        self._reminders = Reminders(pause=policy.observe.patience, clock=monotonic)
        calls.on_breaker_closed(self._model_is_back)

    # ------------------------------------------------------------------------------------------------ route
    def letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> Routed[Work]:
        if record.position.topic == COMMANDS_SESSION.name:
            command = decode(record, Command)
            if command.session is None:
                raise Poison("invalid", "session: a command on memory.commands.session needs one")
            return Routed(command.key, CommandWork(command))
        turn, owner = decode_turn(record, default_scope=self._policy.routing.scope)
        return Routed(turn.session_key, TurnWork(turn, owner))

    def last(self, work: Work, rows: Rows) -> Decided | None:
        raw = rows.row(work.session_key)
        session = SessionRow.model_validate_json(raw) if raw is not None else SessionRow()
        return Decided(session.last, work.session_key, raw) if session.last is not None else None

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(self, work: Work, record: Record, rows: Rows) -> AsyncIterator[Decided]:
        key = work.session_key
        if is_misplaced(record, key, partitions=self._partitions):
            await self._misplaced(work, record)
            return
        new = self._new(work, record, _session(rows, key))
        asked = isinstance(work, CommandWork)
        model_away = False
        alone = 0  # so many turns are asked one by one, because together their answer was unusable
        while True:
            session = _session(rows, key)
            question = Unobserved(
                turns=session.waiting + (new is not None),
                ends_session=session.waiting_ends or (new is not None and new.turn.ends_session),
                asked=asked,
                model_away=model_away or self._calls.breaker_open(model_breaker(ids.split(key)[0])),
            )
            answer = time_to_observe(question, self._policy.observe)
            if not isinstance(answer, ObserveNow):
                break
            pending = self._next_turns(session, key, rows, new, at_most=1 if alone else answer.turns)
            try:
                yield await self._observed(session, key, pending, work, record)
            except Poison as refused:
                if len(pending) > 1:
                    self._metrics.counted("asked_one_by_one")
                    alone = len(pending)  # only those that fail alone are dead letters
                    continue
                yield self._refused(session, key, pending[0], refused, work, record)
            except Transient as away:
                if isinstance(away, LeaseLost | Interrupted):
                    raise
                model_away = True
                continue
            alone = max(0, alone - 1)
            if new is not None and any(item.n is None for item in pending):
                new = None
        if new is not None:
            yield self._deferred(_session(rows, key), key, new, record)
        self._remember(_session(rows, key), key, record.position.partition, rows)
        if isinstance(work, CommandWork) and work.command.command_id not in _session(rows, key).commands:
            yield self._answered(_session(rows, key), key, work.command, record)

    async def _misplaced(self, work: Work, record: Record) -> None:
        """Order among such turns is order of arrival. No table is touched: it belongs to another partition."""
        if isinstance(work, CommandWork):
            raise Poison("invalid", "the command lies on another partition than murmur2 of its session key says")
        if was_rekeyed(record):
            raise Poison(
                "invalid",
                f"sent again with {REKEYED_HEADER} and still on another partition than murmur2 of "
                "its session key says: does every producer know the right partition count?",
            )
        await self._send_durably(
            OutRecord(
                topic=TURNS.name,
                key=work.session_key.encode(),
                value=record.value,
                headers=(*record.headers, (REKEYED_HEADER, b"1")),
                timestamp=record.timestamp,
            )
        )
        self._metrics.counted("rekeyed")

    def _new(self, work: Work, record: Record, session: SessionRow) -> Pending | None:
        """The turn of this event when it has to be observed still."""
        if isinstance(work, CommandWork):
            return None
        turn_id = work.turn.turn_id
        if turn_id in session.seen or refused_mark(turn_id, record.position.offset) in session.refused:
            if session.last is None or not same_source(session.last.source, record.position):
                self._metrics.counted("duplicate")
            return None
        return Pending(work.turn, work.owner, record, occurred_at(work.turn, record))

    def _next_turns(
        self, session: SessionRow, key: str, rows: Rows, new: Pending | None, *, at_most: int
    ) -> tuple[Pending, ...]:
        """Waiting turns first, in their order, then the new one."""
        pending: list[Pending] = []
        for n in range(session.waiting_from, min(session.waiting_next, session.waiting_from + at_most)):
            raw = rows.row(waiting_key(key, n))
            if raw is None:
                raise AssertionError(f"the waiting turn {n} of a session is missing: its changelog was cut")
            record = WaitingTurn.model_validate_json(raw).record()
            turn, owner = decode_turn(record, default_scope=self._policy.routing.scope)
            pending.append(Pending(turn, owner, record, occurred_at(turn, record), n))
        if new is not None and len(pending) < at_most:
            pending.append(new)
        return tuple(pending)

    async def _observed(
        self, session: SessionRow, key: str, pending: Sequence[Pending], work: Work, record: Record
    ) -> Decided:
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
                records=observed_records(done.observed, now=now),
                tenant_id=tenant_id,
            ),
            seen=pending,
        )

    def _refused(
        self, session: SessionRow, key: str, item: Pending, refused: Poison, work: Work, record: Record
    ) -> Decided:
        """A dead letter under the turn's own coordinates. It takes no number and leaves the list of seen ids, so that
        it can be put back."""
        self._metrics.refused(item.record.position.topic, refused.reason)
        mark = refused_mark(item.turn.turn_id, item.record.position.offset)
        session = _without_waiting(session, (item,)).model_copy(
            update={
                "seen": session.seen.remove(item.turn.turn_id),
                "refused": (*session.refused, mark)[-REFUSED_KEPT:],
            }
        )
        letter = dead_letter(item.record, stage=self.name, reason=refused.reason, error=refused, attempts=1)
        outcome = Outcome(
            source=source_of(record, _event_id(work)),
            cleanup=_waiting_keys(key, (item,)),
            records=(letter,),
            tenant_id=item.turn.tenant_id,
        )
        return self._decided(session, key, outcome)

    def _deferred(self, session: SessionRow, key: str, item: Pending, record: Record) -> Decided:
        """The turn becomes a row of its own, written before the session's row that counts it."""
        self._metrics.counted("deferred")
        row_key = waiting_key(key, session.waiting_next)
        waiting = WaitingTurn.of(item.record, deferred_at=self._now())
        session = session.model_copy(
            update={
                "waiting_next": session.waiting_next + 1,
                "waiting_ends": session.waiting_ends or item.turn.ends_session,
            }
        )
        outcome = Outcome(source=source_of(record, item.turn.turn_id), before=(row_key,), tenant_id=item.turn.tenant_id)
        return replace(self._decided(session, key, outcome, seen=(item,)), before={row_key: waiting.to_bytes()})

    def _answered(self, session: SessionRow, key: str, command: Command, record: Record) -> Decided:
        """The command's result."""
        now = self._now()
        status: ResultStatus = "applied"
        error = None
        if command.kind not in SESSION_KINDS:
            status = "refused"
            error = ResultError(code="unknown_kind", message=f"no stage knows the kind {command.kind!r}")
        elif command.expires_at is not None and command.expires_at < now:
            status = "expired"
        result = CommandResult(
            command_id=command.command_id, status=status, error=error, at=now, result={"waiting": session.waiting}
        )
        event = CloudEvent(command.command_id, SOURCE, "memstream.command.result.v1", key, now)
        return self._decided(
            session.model_copy(update={"commands": session.commands.add(command.command_id)}),
            key,
            Outcome(
                source=source_of(record, command.command_id),
                records=(OutRecord.of(RESULTS.name, command.command_id, result, event),),
                tenant_id=command.tenant_id,
            ),
        )

    def _decided(self, session: SessionRow, key: str, outcome: Outcome, *, seen: Sequence[Pending] = ()) -> Decided:
        for item in seen:
            if item.n is None:
                session = session.model_copy(update={"seen": session.seen.add(item.turn.turn_id)})
        session = session.model_copy(update={"last": outcome})
        return Decided(outcome, key, session.to_bytes())

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        for partition in self._reminders.assigned(partitions):
            for key, raw in rows.scan(partition):
                session_key = session_of_waiting_key(key)
                if session_key is not None:
                    last = WaitingTurn.model_validate_json(raw).record()
                    self._wait_for(session_key, partition, last, pause=0.0)

    def _remember(self, session: SessionRow, key: str, partition: int, rows: Rows) -> None:
        if not session.waiting:
            self._reminders.done(key)
            return
        raw = rows.row(waiting_key(key, session.waiting_next - 1))
        if raw is not None:
            last = WaitingTurn.model_validate_json(raw).record()
            self._wait_for(key, partition, last, pause=self._policy.observe.patience)

    def _wait_for(self, key: str, partition: int, last: Record, *, pause: float) -> None:
        turn, _ = decode_turn(last, default_scope=self._policy.routing.scope)
        self._reminders.wait(
            key,
            Reminder(
                partition=partition,
                tenant_id=turn.tenant_id,
                user_id=turn.user_id,
                session_id=turn.session_id,
                last_turn_id=turn.turn_id,
                due=self._monotonic() + pause,
            ),
        )

    def _model_is_back(self, breaker: str) -> None:
        component, _, tenant_id = breaker.partition(":")
        if component == "model":
            self._reminders.wake(tenant_id)

    async def background(self) -> None:
        """Sends itself `observe`, at most 50 a second, for sessions that wait."""
        while True:
            for key, item in self._reminders.take_due(round(COMMANDS_PER_SECOND * TICK)):
                try:
                    await self._remind(key, item)
                except Transient as away:  # due again after the pause
                    log.warning("reminder_not_sent", why=str(away))
            await asyncio.sleep(TICK)

    async def _remind(self, key: str, item: Reminder) -> None:
        now = self._now()
        command = Command.model_validate(
            {
                "command_id": ids.observe_command_id(key, item.last_turn_id, item.attempt),
                "kind": "observe",
                "tenant_id": item.tenant_id,
                "session": {"user_id": item.user_id, "session_id": item.session_id},
                "issued_by": SOURCE,
                "issued_at": now,
                "expires_at": now + timedelta(days=7),
            }
        )
        event = CloudEvent(command.command_id, SOURCE, "memstream.command.v1", key, now)
        await self._send_durably(OutRecord.of(COMMANDS_SESSION.name, key, command, event))


def _session(rows: Rows, key: str) -> SessionRow:
    raw = rows.row(key)
    return SessionRow.model_validate_json(raw) if raw is not None else SessionRow()


def _without_waiting(session: SessionRow, pending: Sequence[Pending]) -> SessionRow:
    """The session when these turns no longer wait."""
    taken = sum(item.n is not None for item in pending)
    waiting_from = session.waiting_from + taken
    ends = session.waiting_ends and waiting_from < session.waiting_next
    return session.model_copy(update={"waiting_from": waiting_from, "waiting_ends": ends})


def _waiting_keys(key: str, pending: Sequence[Pending]) -> tuple[str, ...]:
    return tuple(waiting_key(key, item.n) for item in pending if item.n is not None)


def _event_id(work: Work) -> str:
    return work.turn.turn_id if isinstance(work, TurnWork) else work.command.command_id
