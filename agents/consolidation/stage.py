"""Consolidation. The way of an event through it, from top to bottom:

route    decode; a lane per owner, over all topics; a command that cannot be decoded is the reflector's to refuse
decide   done before? → nothing
         a reflected turn → counted; enough happened since the last run? → a run
         a command of our kinds → a run of that kind, whatever the counts say; other kinds → passed over
         a recall → counted on the records, and linked: recalled.py
         a run: its steps one after the other (plan.py) → proposals, effects, the owner's row
store    fields of episodes and facts, the digest, links
publish  proposals as facts.apply and episodes.record on memory.commands (the reflector writes both), results

A model that is away past a minute defers what is left of a run, and a timer sends a command later; so it is with what
follows a run (prune, hygiene, digest), and with a schedule. One writer: of the table progress, of the collections
`digests` and `links`, of the episodes' field consolidated_at. docs/design/consolidation.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, cast

import structlog

from ...adapters.ports import Completions, VectorStore
from ...memory.policies import MemoryPolicy
from ...memory.upkeep.consolidation import count_turn, is_run_due
from ...memory.upkeep.summaries import add_turn
from ...schemas import ids
from ...schemas.commands import CONSOLIDATION_KINDS, Command, CommandResult
from ...schemas.errors import Relinquished, Transient
from ...schemas.outcomes import Outcome, OutRecord, Source, Write
from ...schemas.topics import COMMANDS, EPISODES_RECORDED, RECALLED, Topic
from ...schemas.turns import Owner
from ...streams.engine.commands import command_record, result_record
from ...streams.engine.dead_letters import dead_letter
from ...streams.engine.handler import Decision, RoutedEvent, Rows, same_source
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.log.port import Record
from ..common.model_call import ModelCaller
from ..common.owner_routing import OwnerCommand
from ..common.store_writes import apply_writes
from ..common.tier_gate import refusal
from ..common.tier_spending import TierSpending
from .events import RecallEvent, ReflectedTurn, Work, routed
from .messages import SOURCE, plain_result, proposals, run_result, summaries
from .owner_reads import OwnerReader
from .plan import Steps
from .recall_counts import RecallCounters, recall_row
from .reminders import COMMANDS_PER_SECOND, OwnerReminders
from .rows import CountedTurns, Kind, ProgressRow, RunRecord, is_owner_key, owner_row, session_row_key, turns_of
from .run import RunExecutor
from .schedule import ScheduledCommand, recorded, tried_again, upcoming, with_run, without_follow_up
from .steps.base import RunRequest
from .steps.compact import counted_of, refused_args
from .steps.hygiene import after_turn

log = structlog.get_logger(__name__)
TICK = 0.2


@dataclass(frozen=True, slots=True)
class RunConclusion:
    """A run as it changes the owner's row, and what it sends and writes."""

    row: ProgressRow
    record: RunRecord | None = None
    """None: there was no run."""
    records: tuple[OutRecord, ...] = ()
    writes: tuple[Write, ...] = ()
    why: str = ""
    """What stood in the run's way."""


class Consolidation:
    """See the module. `send_durably` is for reminders, which are sent beside outcomes."""

    name: Literal["consolidation"] = "consolidation"
    reads: tuple[Topic, ...] = (EPISODES_RECORDED, COMMANDS, RECALLED)

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
        spending: TierSpending,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._send_durably = send_durably
        self._tiers = policy.tiers
        self._policy = policy.consolidation
        self._hygiene = policy.hygiene
        self._partitions = partitions
        self._spending = spending
        self._now = now
        self._pause = policy.observe.patience
        asking = ModelCaller(completions=completions, calls=calls, spending=spending, patience=self._pause)
        self._steps = Steps(OwnerReader(store, calls), asking, policy)
        self._runs = RunExecutor(self._steps.of, spending)
        self._recollections = RecallCounters(
            store=store, calls=calls, metrics=metrics, policy=policy.hygiene, growth=policy.recall.stability_growth
        )
        self._reminders = OwnerReminders(pause=self._pause, clock=monotonic)
        calls.on_breaker_closed(self._model_is_back)

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        """Commands that cannot be decoded are dead letters of the reflector, which reads them too."""
        return topic != COMMANDS.name

    def route(self, record: Record) -> RoutedEvent[Work]:
        return routed(record, partitions=self._partitions)

    def last(self, work: Work, rows: Rows) -> Decision | None:
        if isinstance(work, OwnerCommand) and work.command.kind not in CONSOLIDATION_KINDS:
            return None
        if isinstance(work, RecallEvent):
            return self._recollections.last(work.owner_key, rows)
        raw = rows.row(work.owner_key)
        row = ProgressRow() if raw is None else ProgressRow.read(raw)
        return None if row.last is None else Decision(row.last, work.owner_key, raw)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(self, work: Work, record: Record, rows: Rows) -> AsyncIterator[Decision]:
        if isinstance(work, OwnerCommand) and work.command.kind not in CONSOLIDATION_KINDS:
            return
        if isinstance(work, RecallEvent):
            source = _source(record, work.id)
            counted_once = await self._recollections.decide(work.told, work.owner_key, source, rows, now=self._now())
            if counted_once is not None:
                yield counted_once
            return
        row = owner_row(rows, work.owner_key)
        if row.last is None or not same_source(row.last.source, record.position):
            if isinstance(work, OwnerCommand):
                decided = await self._command(work, record, row, rows)
            else:
                decided = await self._turn(work, record, row, rows)
            if decided is not None:
                yield decided
        self._remember(owner_row(rows, work.owner_key), work.owner_key, record.position.partition)

    async def _turn(self, work: ReflectedTurn, record: Record, row: ProgressRow, rows: Rows) -> Decision | None:
        told, owner_key = work.recorded, work.owner_key
        session = ids.session_key(told.tenant_id, told.user_id, told.session_id)
        before = turns_of(rows, owner_key, session)
        if told.turn_number <= before.turn_number:
            self._metrics.counted("duplicate")
            return None
        row = row.model_copy(
            update={
                "counters": count_turn(row.counters, told),
                "counted_since": row.counted_since or self._now(),
                "changed_facts": row.changed_facts + len(told.fact_ids),
                "unsummarised": add_turn(row.unsummarised, told) if self._policy.summary_turns else (),
            }
        )
        run = ids.run_id(owner_key, ids.turn_cause(session, told.turn_id))
        row = after_turn(row, at=record.timestamp, run_id=run, policy=self._hygiene, now=self._now())
        done = RunConclusion(row)
        again = row.waiting is None or tried_again(row.waiting, row.counters, self._policy)
        if again and is_run_due(row.counters, self._policy):
            done = await self._run("consolidate", self._asked(run, told.tenant_id, told.owner), row, record)
        turns = CountedTurns(turn_number=told.turn_number, counted=before.counted.add(told.turn_id))
        outcome = Outcome(
            source=_source(record, work.id),
            after={session_row_key(owner_key, session): turns.to_bytes()},
            writes=done.writes,
            records=done.records,
            tenant_id=told.tenant_id,
        )
        return _decided(done.row, owner_key, outcome)

    async def _command(self, work: OwnerCommand, record: Record, row: ProgressRow, rows: Rows) -> Decision | None:
        command, owner_key = work.command, work.owner_key
        assert command.owner is not None  # held by route
        if command.command_id in row.commands:
            self._metrics.counted("duplicate")
            return None
        row = row.model_copy(update={"commands": row.commands.add(command.command_id)})
        done = RunConclusion(row)
        result: CommandResult
        if command.expires_at is not None and command.expires_at < self._now():
            result = plain_result(command, "expired", self._now())
        elif (why := refusal(command.kind, self._tiers) or refused_args(command)) is not None:
            result = plain_result(command, "refused", self._now(), why)
            done = RunConclusion(without_follow_up(row, cast(Kind, command.kind)))
        else:
            asked = self._asked(ids.run_id(owner_key, command.command_id), command.tenant_id, command.owner)
            asked = replace(
                asked,
                args=command.args,
                issued_at=command.issued_at,
                links=recall_row(rows, owner_key).links,
                counted=counted_of(command, rows),
            )
            done = await self._run(cast(Kind, command.kind), asked, row, record)
            assert done.record is not None  # a command always makes one
            result = run_result(command, done.record, done.why)
        outcome = Outcome(
            source=_source(record, work.id),
            writes=done.writes,
            records=(*done.records, result_record(result, source=SOURCE, subject=owner_key)),
            tenant_id=command.tenant_id,
        )
        return _decided(done.row, owner_key, outcome)

    # ------------------------------------------------------------------------------------------------ a run
    def _asked(self, run_id: str, tenant_id: str, owner: Owner) -> RunRequest:
        return RunRequest(tenant_id, owner, run_id, self._now())

    async def _run(self, kind: Kind, asked: RunRequest, row: ProgressRow, record: Record) -> RunConclusion:
        """Decide, and what follows from it."""
        ran = await self._runs.run(kind, asked, row)
        did = [each for _, each in ran.did]
        commands = proposals(did, asked)
        commands += summaries(did, asked, after=len(commands))
        made = recorded(ran, asked, commands)
        row = with_run(
            ran.row,
            ran,
            made,
            asked,
            after=self._steps.after_run,
            pause=self._pause,
            after_run=self._policy.after_run,
        )
        letters: tuple[OutRecord, ...] = ()
        if ran.poison is not None:
            self._metrics.refused(record.position.topic, ran.poison.reason)
            letters = (dead_letter(record, stage=self.name, reason=ran.poison.reason, error=ran.poison, attempts=1),)
        self._told(made)
        sent = tuple(command_record(command, source=SOURCE) for command in commands)
        return RunConclusion(row, made, (*sent, *letters), ran.writes, ran.why)

    def _told(self, made: RunRecord) -> None:
        self._metrics.counted(f"run_{made.status}" if made.kind == "consolidate" else f"{made.kind}_{made.status}")
        for reason, n in made.dropped.items():
            self._metrics.counted(f"dropped_{reason}", n)
        log.info(
            "consolidation_run",
            run_id=made.run_id,
            kind=made.kind,
            status=made.status,
            phases={part.name: part.status for part in made.phases},
            episodes=made.episodes,
            facts=made.facts_shown,
            changes=made.changes,
            dropped=made.dropped or None,
        )

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        for partition in self._reminders.assigned(partitions):
            for key, raw in rows.scan(partition):
                if is_owner_key(key):
                    self._remember(ProgressRow.read(raw), key, partition, at_once=True)

    def _remember(self, row: ProgressRow, owner_key: str, partition: int, *, at_once: bool = False) -> None:
        """What waits for the model is tried again; what waits for other settings needs a restart."""
        now = self._now()
        paused = (
            not self._tiers.semantic
            or self._spending.paused("consolidation") is not None
            or "standard" not in self._spending.phases
        )
        reminder = upcoming(row, owner_key, policy=self._policy, pause=self._pause, paused=paused, now=now)
        if reminder is None:
            self._reminders.done(owner_key)
            return
        seconds = 0.0 if at_once and reminder.for_model else max(0.0, (reminder.at - now).total_seconds())
        self._reminders.wait(owner_key, partition, reminder, seconds=seconds)

    def _model_is_back(self, breaker: str) -> None:
        component, _, tenant_id = breaker.partition(":")
        if component == "model":
            self._reminders.wake(tenant_id)

    async def background(self) -> None:
        """Sends itself what is due, at most 50 commands a second."""
        while True:
            for reminder in self._reminders.take_due(round(COMMANDS_PER_SECOND * TICK)):
                try:
                    await self._remind(reminder)
                except (Transient, Relinquished) as away:  # due again after the pause
                    log.warning("reminder_not_sent", why=str(away))
            await asyncio.sleep(TICK)

    async def _remind(self, reminder: ScheduledCommand) -> None:
        command = Command(
            command_id=reminder.command_id,
            kind=reminder.kind,
            tenant_id=reminder.tenant_id,
            owner=reminder.owner,
            issued_by=SOURCE,
            issued_at=self._now(),
        )
        await self._send_durably(command_record(command, source=SOURCE))


def _decided(row: ProgressRow, owner_key: str, outcome: Outcome) -> Decision:
    return Decision(outcome, owner_key, row.model_copy(update={"last": outcome}).to_bytes())


def _source(record: Record, event_id: str) -> Source:
    position = record.position
    return Source(topic=position.topic, partition=position.partition, offset=position.offset, id=event_id)
