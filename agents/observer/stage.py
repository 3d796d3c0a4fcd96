"""Observer stage. Processing of an event, from top to bottom:

route    decode (events.py); mask and label secrets (memory/secrets/); one lane per session
decide   misplaced → send it again to its partition, done
         the next action (next_action.py), repeated until the remaining turns wait:
           observe  → ask the model about a batch of turns, check its quotes, apply them to the working set (batch.py):
                      waiting turns, this event's turn, and turns of queued events in the lane
           wait     → this event's turn becomes a waiting row; a reminder causes the next check (deferral.py). When too
                      many turns of its tenant wait, the turn becomes a dead letter (waiting_count.py)
           limit of calls per event reached → the session's next event or a command observes the remaining turns.
                      Events of other sessions run in between
         a manual edit → the working set, blocks, attached blocks and procedures (edits/), and a result
         a command that the stage sent to itself → `sessions.trim` removes the published outcome from the session's row;
         `sessions.end` deletes an old row (session_end.py)
         another command → its result; a flush sends the important entries to the reflector as `episodes.keep`
store    the working set's projection in Qdrant, for readers
publish  one record per turn on memory.observations; none when the working set is the only tier

The observer is the only writer of the table working_set, of the collections `working` and `holdings`, and of the topic
memory.observations.
Outcomes are built in decisions.py.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

import structlog
from pydantic import ValidationError

from ...adapters.ports import Completion, Completions, VectorStore
from ...memory.erasures import ErasedUsers
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.tenant_policies import TenantPolicies
from ...memory.working_set.observe_trigger import BATCH_WAITS, OUTAGES, ObserveNow, Wait, WaitReason
from ...schemas import ids
from ...schemas.base import explain
from ...schemas.command_kinds import END_SESSION, ERASE_SESSION, TRIM_SESSION
from ...schemas.commands import CommandResult, ResultError, SessionEnd
from ...schemas.edits.sessions import EraseSession
from ...schemas.edits.turns import TurnRetract
from ...schemas.erasures import SessionErase
from ...schemas.errors import OverBudget, Poison, TimedOut, Transient
from ...schemas.outcomes import Outcome, OutRecord
from ...schemas.topics import COMMANDS_SESSION, TURNS, Topic
from ...streams.engine.applied import Committed
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.lane_events import QueuedEvents, RoutedEvent
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.faust.table import MAX_VALUE
from ...streams.log.port import Record
from ..common.model_call import model_breaker, tenant_of_breaker
from ..common.owner_erasure import erasing_args
from ..common.restored_turns import RestoredTurn
from ..common.session_ends import SessionEnds
from ..common.store_writes import apply_writes
from ..common.structured_output import FAULTS_NAMED, ParsedItems
from ..common.turn_routing import is_misplaced
from ..common.undated_producers import UndatedProducers
from . import decisions
from .answer_schema import ObservationItem
from .batch import Batch, BatchTurn, UndecodableTurn, ask, conclude, prompt_for
from .commands import SOURCE, edit_args, status_of
from .decisions import Step
from .deferral import AheadOf, DeferredSessions
from .edits.catalogue import EDITS
from .edits.scope import SessionEditResult, SessionEditScope, refused
from .erasure import erased_session
from .events import SessionCommand, SessionEvent, TurnEvent, resent_record, route_event
from .evidence import confirm
from .next_action import EventProgress, Surroundings, next_action
from .retracted_turns import session_traces, turn_traces, waiting_without_text
from .rows import SessionRow, Sessions
from .session_end import ended, leave_epoch, send_to_old_rows, session_in_epoch, trimmed
from .session_turns import TurnReader, is_new
from .timeouts import given_up, is_answering, is_last_try, pause_after
from .turn_source import TurnSource, without_secrets
from .useless_answers import UselessAnswers
from .waiting_count import WaitingCount

log = structlog.get_logger(__name__)


class Observer:
    """The stage; see the module docstring.

    `send_durably` sends records that belong to no outcome: turns that are sent again, and reminders.
    `ahead(partition)` returns the backlog of a memory.turns partition, or None while it is unknown.
    """

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
        policies: TenantPolicies,
        partitions: int,
        ahead: AheadOf,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        in_flight: int = 64,
        secrets: SecretFilter,
        source: TurnSource | None = None,
        committed: Committed = lambda topic, partition: None,
        erased: ErasedUsers | None = None,
    ) -> None:
        self._erased = erased or ErasedUsers()
        self._secrets = secrets
        self._turns = TurnReader(
            policies=policies,
            secrets=secrets,
            source=None if source is None else without_secrets(source, secrets),
        )
        self._store = store
        self._completions = completions
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        self._policies = policies
        self._deployment = policies.deployment
        self._partitions = partitions
        self._now = now
        self._undated = UndatedProducers()
        self._sessions = Sessions()
        self._waiting = WaitingCount(
            share=self._deployment.observe.waiting_share(partitions), changed=metrics.waiting_turns
        )
        self._ends = SessionEnds(self._deployment.rows, TURNS, committed=committed, now=now, monotonic=monotonic)
        self._deferred = DeferredSessions(
            policy=self._deployment.observe,
            ahead=ahead,
            send_durably=send_durably,
            now=now,
            monotonic=monotonic,
            in_flight=in_flight,
            waiting=self._waiting,
        )
        self._useless = UselessAnswers()
        self._row_steps = {END_SESSION: self._end, TRIM_SESSION: self._trim, ERASE_SESSION: self._erase}
        """Handlers of commands about the row itself, by kind."""
        calls.on_breaker_closed(self._wake_sessions)

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[SessionEvent]:
        event = route_event(
            record, self._deployment.routing, self._secrets, now=self._now(), partitions=self._partitions
        )
        if isinstance(event.work, TurnEvent):
            self._note_reading(event.work, record)
        return event

    def _note_reading(self, work: TurnEvent, record: Record) -> None:
        if work.reading.clock_ahead:
            self._metrics.counted("clock_ahead")
        if work.reading.undated:
            self._metrics.counted("record_undated")
            self._undated.warn(record, work.turn.tenant_id)

    def last(self, work: SessionEvent, rows: Rows) -> StageDecision | None:
        raw = rows.row(work.session_key)
        last = self._sessions.parsed(work.session_key, raw).last
        return None if raw is None or last is None else StageDecision(last, work.session_key, raw)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(
        self, work: SessionEvent, record: Record, rows: Rows, queued: QueuedEvents[SessionEvent]
    ) -> AsyncIterator[StageDecision]:
        key, partition = work.session_key, record.position.partition
        self._ends.note(record)
        if isinstance(work, RestoredTurn):
            return  # its memories are restored, too
        if is_misplaced(record, key, partitions=self._partitions):
            await self._send_again(work, record)
            return
        if isinstance(work, SessionCommand) and (row_step := self._row_steps.get(work.command.kind)) is not None:
            if (decision := await row_step(work, record, rows)) is not None:
                yield decision
            return
        progress = self._begin(work, record, rows, queued)
        is_edit = isinstance(work, SessionCommand) and work.command.kind in EDITS
        if isinstance(work, SessionCommand) and is_edit:
            session, edited = await self._edit(progress.session, work, record, rows)
            if edited is not None:
                yield edited
            progress = replace(progress, session=session)
        while isinstance(action := self._next_action(progress, key, partition, queued), ObserveNow):
            progress, decision = await self._observe(progress, action.turns, work, record, rows)
            if decision is not None:
                yield decision
        session = progress.session
        if progress.new is not None:
            wait = self._defer if action.reason not in OUTAGES or self._has_room(key, partition) else self._pass_over
            session, decision = wait(session, progress.new, action.reason, work, record)
            yield decision
        answers = isinstance(work, SessionCommand) and not is_edit and session.is_new_command(work.command, record)
        goes_on = answers and action.reason == "enough_rounds" and self._awaits_all(work, requested=progress.requested)
        # The stage sends this command again (`_command_again`), so the session waits for that event.
        reason = "next_is_here" if goes_on else action.reason
        tenant, user, *_ = ids.split(key)
        open_for = self._calls.open_for(model_breaker(tenant), user)
        self._deferred.note_wait(session, key, partition, reason, retry_after=progress.retry_after, open_for=open_for)
        if isinstance(work, SessionCommand) and answers:
            yield self._command_again(session, work, record) if goes_on else self._answer(session, work, record)

    def _awaits_all(self, work: SessionEvent, *, requested: bool) -> bool:
        """Return whether a caller waits for the result of this command.

        If so, a command that reaches the limit of calls per event is sent again, so that further turns are observed
        before the result is sent.
        """
        return isinstance(work, SessionCommand) and requested and work.command.issued_by != SOURCE

    async def _send_again(self, work: TurnEvent | SessionCommand, record: Record) -> None:
        """Send a misplaced turn to its partition.

        No row is written, because the session's row is in another partition.
        """
        await self._send_durably(resent_record(work, record))
        self._metrics.counted("rekeyed")

    def _begin(
        self, work: TurnEvent | SessionCommand, record: Record, rows: Rows, queued: QueuedEvents[SessionEvent]
    ) -> EventProgress:
        # this event is the only writer of the row while it runs
        session = session_in_epoch(self._sessions, rows, work.session_key, record.position.partition)
        at = self._ends.written_at(record, session.last_at)
        session = session.written_at(at, indexed=self._ends.needs_entry(session.last_at, at))
        if isinstance(work, SessionCommand):
            status = status_of(work.command, self._deployment.tiers, now=self._now())
            requested = status == "applied" and work.command.kind not in EDITS
            return EventProgress(session, new=None, requested=requested)
        new = self._new_turn(work, record, session)
        behind = () if new is None else tuple(self._turns.queued(new, session, queued))
        return EventProgress(session, new=new, requested=False, queued=behind)

    async def _end(self, work: SessionCommand, record: Record, rows: Rows) -> StageDecision | None:
        """End the session's row if it is still old and no turn waits. The command gets no result."""
        key, partition = work.session_key, record.position.partition
        try:
            seen_at = SessionEnd.from_payload(work.command.args).last_at
        except ValidationError as error:
            raise Poison("invalid", explain(error)) from None
        session = self._sessions.of(rows, key)
        if rows.row(key) is None or session.waiting or not self._ends.is_old(session.last_at or seen_at, partition):
            return None
        epoch = await leave_epoch(session, rows, partition)
        self._metrics.counted("session_ended")
        return ended(session, key, source=source_of(record, work.event_id), epoch=epoch)

    async def _trim(self, work: SessionCommand, record: Record, rows: Rows) -> StageDecision | None:
        """Write the session's row without its outcome, whose effects are all applied. The command gets no result.

        A row that is already trimmed is written again, because a crash may have followed the first write.
        """
        key = work.session_key
        if rows.row(key) is None:
            return None
        self._metrics.counted("session_trimmed")
        return trimmed(self._sessions.of(rows, key), key, source=source_of(record, work.event_id))

    async def _erase(self, work: SessionCommand, record: Record, rows: Rows) -> StageDecision:
        """Delete everything of a session of an erased user."""
        command, key, partition = work.command, work.session_key, record.position.partition
        source, now = source_of(record, work.event_id), self._now()
        args = erasing_args(command, SessionErase, self._erased, source=source, sender=SOURCE, now=now)
        if isinstance(args, StageDecision):
            return args
        session = self._sessions.of(rows, key)
        if rows.row(key) is not None:
            await leave_epoch(session, rows, partition)
        self._waiting.set(key, partition, 0)
        self._metrics.counted("session_erased")
        result = CommandResult(command_id=command.command_id, status="applied", at=now)
        return await erased_session(
            session, command, args, source=source, result=result, store=self._store, calls=self._calls
        )

    def _new_turn(self, work: TurnEvent, record: Record, session: SessionRow) -> BatchTurn | None:
        """Return this event's turn, or None when the session has had it before."""
        if is_new(work, record, session):
            return self._turns.of_event(work, record)
        if not session.has_handled(source_of(record, work.event_id)):
            self._metrics.counted("duplicate")
        return None

    def _has_room(self, key: str, partition: int) -> bool:
        return self._waiting.has_room(partition, ids.split(key)[0])

    def _next_action(
        self, progress: EventProgress, key: str, partition: int, queued: QueuedEvents[SessionEvent]
    ) -> ObserveNow | Wait:
        tenant, user, *_ = ids.split(key)
        breaker = model_breaker(tenant)
        self._waiting.set(key, partition, progress.session.waiting)
        around = Surroundings(
            room=self._has_room(key, partition),
            has_queued_successor=queued.any(),
            behind=self._deferred.behind(partition),
            breaker_open=self._calls.breaker_open(breaker, user),
            held_back=self._deferred.held_back(key),
            refusing=self._calls.refusing(breaker, user),
        )
        return next_action(progress, around, self._deployment.observe)

    async def _observe(
        self, progress: EventProgress, at_most: int, work: SessionEvent, record: Record, rows: Rows
    ) -> tuple[EventProgress, StageDecision | None]:
        """Observe the oldest turns of the session in one model call.

        If the returned decision is None, the caller takes the next action. After an answer of the model, `covers` of
        the decision is the number of queued events whose turns were in the call.
        """
        turns = self._turns.oldest(progress, work.session_key, rows, at_most=at_most)
        if isinstance(turns, UndecodableTurn):
            session, decision = self._refuse(progress.session, turns, turns.poison, work, record)
            return replace(progress, session=session), decision
        last_try = is_last_try(progress.session.timeouts)
        try:
            if last_try and not await self._is_answering(turns[0]):
                pause = pause_after(progress.session.timeouts, self._deployment.observe.patience)
                return progress.without_model(pause), None
            session, decision = await self._ask_about(progress.session, turns, work, record)
        except Poison as poison:
            if len(turns) > 1:
                self._metrics.counted("asked_one_by_one")
                self._turns.ask_one_by_one(turns, record.position.partition)
                return progress.one_by_one(len(turns)), None
            session, decision = self._refuse(progress.session, turns[0], poison, work, record)
        except OverBudget as error:
            return progress.without_budget(error.retry_after), None
        except TimedOut as error:
            if not last_try:
                return self._timed_out(progress, turns, error, work, record)
            too_slow = given_up(progress.session.timeouts + 1, error)
            session, decision = self._refuse(progress.session, turns[0], too_slow, work, record)
        except Transient as error:
            return progress.without_model(error.retry_after), None
        here = sum(turn.n is None for turn in turns)
        return progress.after(session, turns), replace(decision, covers=max(0, here - 1))

    async def _is_answering(self, turn: BatchTurn) -> bool:
        return await is_answering(turn.turn.tenant_id, completions=self._completions, calls=self._calls)

    def _timed_out(
        self,
        progress: EventProgress,
        turns: tuple[BatchTurn, ...],
        error: TimedOut,
        work: SessionEvent,
        record: Record,
    ) -> tuple[EventProgress, StageDecision]:
        """Count a call without an answer in time. The session pauses longer each time."""
        source = source_of(record, work.event_id)
        session, decision = self._kept(decisions.timed_out(progress.session, work.session_key, source=source))
        pause = max(pause_after(session.timeouts, self._deployment.observe.patience), error.retry_after or 0.0)
        position = turns[0].record.position
        log.warning(
            "turn_timed_out",
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            turns=len(turns),
            times=session.timeouts,
            seconds=round(pause),
            why=str(error),
            remedy=error.remedy,
        )
        self._metrics.counted("turn_timed_out")
        return replace(progress, session=session).without_model(pause), decision

    async def _ask_about(
        self, session: SessionRow, turns: tuple[BatchTurn, ...], work: SessionEvent, record: Record
    ) -> Step:
        first = turns[0].turn
        policy = self._turns.policy_of(first)
        applied = self._policies.applied(first.tenant_id, first.agent_id)
        prompt = prompt_for(session, turns, policy)
        answer = await ask(
            prompt,
            tenant_id=first.tenant_id,
            user_id=first.user_id,
            completions=self._completions,
            calls=self._calls,
            patience=self._deployment.observe.patience,
        )
        confirmed = await confirm(
            prompt,
            answer,
            policy,
            tenant_id=first.tenant_id,
            user_id=first.user_id,
            secrets=self._secrets,
            completions=self._completions,
            calls=self._calls,
            patience=self._deployment.observe.patience,
        )
        answer, verdicts = confirmed.answer, confirmed.verdicts
        batch = conclude(
            session, turns, prompt, answer, policy, secrets=self._secrets, by_policy=applied, verdicts=verdicts
        )
        for name in (*confirmed.counted, *batch.counted):
            self._metrics.counted(name)
        if answer is not None:
            _report_fallen(answer, batch)
            items = len(answer.value.items) + answer.value.dropped
            self._useless.note(answer.model, batch.observed, items=items, counted=batch.counted, policy=policy)
            self._calls.remark = self._useless.report()
        source = source_of(record, work.event_id)
        return self._kept(
            decisions.observed(
                session, work.session_key, batch, turns, source=source, policy=self._deployment, now=self._now()
            )
        )

    def _refuse(
        self, session: SessionRow, turn: BatchTurn | UndecodableTurn, poison: Poison, work: SessionEvent, record: Record
    ) -> Step:
        position = turn.record.position
        self._metrics.refused(position.topic, poison.reason)
        log.warning(
            "turn_refused",
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            reason=poison.reason,
            why=str(poison)[:300],
        )
        source = source_of(record, work.event_id)
        return self._kept(decisions.refused(session, work.session_key, turn, poison, source=source, now=self._now()))

    def _defer(
        self, session: SessionRow, turn: BatchTurn, reason: WaitReason, work: SessionEvent, record: Record
    ) -> Step:
        self._metrics.counted("deferred")
        position = turn.record.position
        log_line = log.debug if reason in BATCH_WAITS else log.info  # a backlog would log one line per turn
        log_line(
            "turn_deferred",
            topic=position.topic,
            partition=position.partition,
            offset=position.offset,
            waiting=session.waiting + 1,
            why=reason,
        )
        source = source_of(record, work.event_id)
        return self._kept(decisions.deferred(session, work.session_key, turn, source=source, now=self._now()))

    def _pass_over(
        self, session: SessionRow, turn: BatchTurn, reason: WaitReason, work: SessionEvent, record: Record
    ) -> Step:
        """Refuse a turn that would have to wait, because its tenant has too many waiting turns."""
        topic, partition, tenant_id = turn.record.position.topic, record.position.partition, turn.turn.tenant_id
        poison = Poison(
            "over_ceiling",
            f"{self._waiting.share} turns of the tenant wait in this partition ({reason}), which is the limit "
            f"(observe.waiting_turns). When they are observed, run memstream dlq redrive --reason over_ceiling",
        )
        self._metrics.refused(topic, poison.reason)
        if self._waiting.is_first_over(partition, tenant_id):
            log.warning("waiting_turns_over_ceiling", tenant_id=tenant_id, partition=partition, why=str(poison))
        source = source_of(record, work.event_id)
        return self._kept(decisions.refused(session, work.session_key, turn, poison, source=source, now=self._now()))

    def _answer(self, session: SessionRow, work: SessionCommand, record: Record) -> StageDecision:
        source = source_of(record, work.event_id)
        policy = self._policies.of(work.command.tenant_id)
        step = decisions.answered(
            session, work.session_key, work.command, record, source=source, policy=policy, now=self._now()
        )
        return self._kept(step)[1]

    def _command_again(self, session: SessionRow, work: SessionCommand, record: Record) -> StageDecision:
        source = source_of(record, work.event_id)
        return self._kept(decisions.sent_again(session, work.session_key, work.command, source=source))[1]

    async def _edit(
        self, session: SessionRow, work: SessionCommand, record: Record, rows: Rows
    ) -> tuple[SessionRow, StageDecision | None]:
        """Apply a manual edit, once. Refuse an edit whose outcome is too large for the table."""
        command, key, now = work.command, work.session_key, self._now()
        source = source_of(record, work.event_id)
        if session.is_redelivered(record):
            self._metrics.counted("duplicate")
            return session, None
        if command.command_id in session.commands:
            self._metrics.counted("duplicate")
            return self._kept(decisions.answered_again(session, key, command, source=source))
        policy = self._policies.of(command.tenant_id)
        args = edit_args(command, self._deployment.tiers)
        scope = SessionEditScope(command=command, session=session, policy=policy, secrets=self._secrets, now=now)
        waiting: Mapping[str, bytes] = {}
        if isinstance(args, TurnRetract) and not session.erased:
            traces = await turn_traces(session, command, args.turn_id, store=self._store, calls=self._calls)
            scope = replace(scope, traces=traces)
            waiting = waiting_without_text(session, key, args.turn_id, rows)
        if isinstance(args, EraseSession):
            scope = replace(scope, traces=await session_traces(session, command, store=self._store, calls=self._calls))
        if isinstance(args, ResultError):
            edit = SessionEditResult(args, session)
        elif session.erased and not isinstance(args, EraseSession):
            edit = refused("erased", "the session was erased: use another session id", scope)
        else:
            edit = EDITS[command.kind](args, scope)
        step = decisions.edited(session, key, command, record, edit, source=source, now=now, rows=waiting)
        if (size := len(step[1].row or b"")) > MAX_VALUE:
            edit = refused("too_large", f"the session would have {size} bytes; at most {MAX_VALUE} fit", scope)
            step = decisions.edited(session, key, command, record, edit, source=source, now=now)
        if isinstance(edit.result, ResultError):
            self._metrics.counted("command_refused")
        return self._kept(step)

    def _kept(self, step: Step) -> Step:
        """Cache the parsed row for the session's next event."""
        session, decision = step
        assert decision.row is not None
        self._sessions.keep(decision.key, decision.row, session)
        return step

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def retain(self, partitions: frozenset[int]) -> None:
        self._deferred.retain(partitions)
        self._ends.retain(partitions)

    async def rediscover(self, partition: int, rows: Rows) -> None:
        await self._deferred.rediscover(partition, rows, partitions=self._partitions)

    async def end_rows(self, partition: int, rows: Rows) -> None:
        await send_to_old_rows(self._ends, partition, rows, send_durably=self._send_durably, now=self._now)

    def _wake_sessions(self, breaker: str) -> None:
        """Make the tenant's sessions due when its breaker closes, because its model answers again."""
        tenant_id = tenant_of_breaker(breaker)
        if tenant_id is not None:
            self._deferred.wake(tenant_id)

    async def background(self) -> None:
        await self._deferred.run()


def _report_fallen(answer: Completion[ParsedItems[ObservationItem]], batch: Batch) -> None:
    """Log the unused items and fields of an answer with the reasons, without content."""
    said, kept = answer.value, sum(len(each.observations) for each in batch.observed)
    if said.faults or (said.items and not kept):
        log.info(
            "answer_items_fell",
            model=answer.model,
            items=len(said.items) + said.dropped,
            kept=kept,
            faults=said.faults[:FAULTS_NAMED],
            counted=dict(Counter(batch.counted)),
        )
