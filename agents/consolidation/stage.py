"""Consolidation. The way of an event through it, from top to bottom:

route    decode; a lane per owner, over both topics; a command that cannot be decoded is the reflector's to refuse
decide   done before? → nothing
         a reflected turn → counted; enough happened since the last run? → a run
         consolidate      → a run, whatever the counts say
         prune, digest, hygiene → refused: they come with a later version; other kinds → passed over
         a run: unconsolidated episodes and known facts → the model → proposals
store    consolidated_at on the episodes that were looked at
publish  the proposals as facts.apply on memory.commands (the reflector writes facts), results

A model that is away past a minute defers the run: the counters stand, and a timer sends `consolidate` later.
One writer: of the table progress, of the episodes' field consolidated_at. docs/design/consolidation.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog
from pydantic import JsonValue

from ...adapters.ports import Completions, VectorStore
from ...memory.consolidation import Counters, counted, due, in_commands
from ...memory.policies import MemoryPolicy
from ...schemas import ids
from ...schemas.cloudevents import CloudEvent, rfc3339
from ...schemas.collections import EPISODES
from ...schemas.commands import CONSOLIDATION_KINDS, Command, CommandResult, FactsApply, ResultError, ResultStatus
from ...schemas.episodes import EpisodesRecorded
from ...schemas.errors import Poison, Transient
from ...schemas.outcomes import Outcome, OutRecord, SetFields, Source
from ...schemas.topics import COMMANDS, EPISODES_RECORDED, RESULTS, Topic
from ...schemas.turns import Owner
from ...streams.codec import decode
from ...streams.deadletters import dead_letter
from ...streams.metrics import StageMetrics
from ...streams.ports import Record
from ...streams.retry import Calls
from ...streams.stage import Decided, Routed, Rows, same_source
from ..effects import apply_writes
from ..routing import is_misplaced
from .rows import (
    RUNS_KEPT,
    OwnerRow,
    RunRecord,
    SessionTurns,
    Waiting,
    is_owner_key,
    owner_row,
    session_row_key,
    turns_of,
)
from .run import NotRun, Proposing, Runs
from .timers import COMMANDS_PER_SECOND, Reminders

log = structlog.get_logger(__name__)
SOURCE = "/memstream/consolidation"
TICK = 0.2
LATER_KINDS = CONSOLIDATION_KINDS - {"consolidate"}


@dataclass(frozen=True, slots=True)
class TurnWork:
    recorded: EpisodesRecorded
    owner_key: str

    @property
    def id(self) -> str:
        return self.recorded.turn_id


@dataclass(frozen=True, slots=True)
class CommandWork:
    command: Command
    owner_key: str

    @property
    def id(self) -> str:
        return self.command.command_id


Work = TurnWork | CommandWork


@dataclass(frozen=True, slots=True)
class Concluded:
    """A run as it changes the owner's row, and what it sends and writes."""

    row: OwnerRow
    record: RunRecord | None = None
    """None: there was no run."""
    records: tuple[OutRecord, ...] = ()
    writes: tuple[SetFields, ...] = ()


class Consolidation:
    """See the module. `send_durably` is for reminders, which are sent beside outcomes."""

    name: Literal["consolidation"] = "consolidation"
    reads: tuple[Topic, ...] = (EPISODES_RECORDED, COMMANDS)

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
        paid_model_allowed: bool,
        now: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self._send_durably = send_durably
        self._policy = policy.consolidation
        self._partitions = partitions
        self._now = now
        patience = policy.observe.patience
        self._runs = Runs(
            store=store,
            completions=completions,
            calls=calls,
            policy=policy.consolidation,
            paid_model_allowed=paid_model_allowed,
            patience=patience,
        )
        self._reminders = Reminders(pause=patience, clock=monotonic)
        calls.on_breaker_closed(self._model_is_back)
        if self._runs.paused:
            log.warning(
                "consolidation_paused",
                why=f"tier free spends nothing, and {completions.model} costs money",
                remedy="set MEMSTREAM_TIER=standard; observation and recall go on meanwhile",
            )

    # ------------------------------------------------------------------------------------------------ route
    def letters(self, topic: str) -> bool:
        """Commands that cannot be decoded are dead letters of the reflector, which reads them too."""
        return topic == EPISODES_RECORDED.name

    def route(self, record: Record) -> Routed[Work]:
        work: Work
        if record.position.topic == COMMANDS.name:
            command = decode(record, Command)
            if command.owner is None:
                raise Poison("invalid", f"owner: a command on {COMMANDS.name} needs one")
            work = CommandWork(command, command.key)
        else:
            recorded = decode(record, EpisodesRecorded)
            work = TurnWork(recorded, recorded.owner.key(recorded.tenant_id))
        if is_misplaced(record, work.owner_key, partitions=self._partitions):
            raise Poison("invalid", "it lies on another partition than murmur2 of its owner key says: key it by owner")
        return Routed(work.owner_key, work)

    def last(self, work: Work, rows: Rows) -> Decided | None:
        if isinstance(work, CommandWork) and work.command.kind not in CONSOLIDATION_KINDS:
            return None
        raw = rows.row(work.owner_key)
        row = OwnerRow() if raw is None else OwnerRow.read(raw)
        return None if row.last is None else Decided(row.last, work.owner_key, raw)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(self, work: Work, record: Record, rows: Rows) -> AsyncIterator[Decided]:
        if isinstance(work, CommandWork) and work.command.kind not in CONSOLIDATION_KINDS:
            return
        row = owner_row(rows, work.owner_key)
        if row.last is None or not same_source(row.last.source, record.position):
            if isinstance(work, CommandWork):
                decided = await self._command(work, record, row)
            else:
                decided = await self._turn(work, record, row, rows)
            if decided is not None:
                yield decided
        self._remember(owner_row(rows, work.owner_key), work.owner_key, record.position.partition)

    async def _turn(self, work: TurnWork, record: Record, row: OwnerRow, rows: Rows) -> Decided | None:
        recorded, owner_key = work.recorded, work.owner_key
        session = ids.session_key(recorded.tenant_id, recorded.user_id, recorded.session_id)
        if recorded.turn_number <= turns_of(rows, owner_key, session):
            self._metrics.counted("duplicate")
            return None
        row = row.model_copy(update={"counters": counted(row.counters, recorded)})
        done = Concluded(row)
        if row.waiting is None and due(row.counters, self._policy):  # one that waits has its reminder
            run = ids.run_id(owner_key, ids.turn_cause(session, recorded.turn_id))
            done = await self._run(run, recorded.tenant_id, recorded.owner, row, record)
        outcome = Outcome(
            source=_source(record, work.id),
            after={session_row_key(owner_key, session): SessionTurns(turn_number=recorded.turn_number).to_bytes()},
            writes=done.writes,
            records=done.records,
            tenant_id=recorded.tenant_id,
        )
        return _decided(done.row, owner_key, outcome)

    async def _command(self, work: CommandWork, record: Record, row: OwnerRow) -> Decided | None:
        command, owner_key = work.command, work.owner_key
        assert command.owner is not None  # held by route
        if command.command_id in row.commands:
            self._metrics.counted("duplicate")
            return None
        row = row.model_copy(update={"commands": row.commands.add(command.command_id)})
        done = Concluded(row)
        if command.kind in LATER_KINDS:
            message = f"{command.kind} comes with a later version"
            result = self._result(command, "refused", ResultError(code="not_yet", message=message))
        elif command.expires_at is not None and command.expires_at < self._now():
            result = self._result(command, "expired")
        else:
            run = ids.run_id(owner_key, command.command_id)
            done = await self._run(run, command.tenant_id, command.owner, row, record)
            result = self._run_result(command, done.record)
        outcome = Outcome(
            source=_source(record, work.id),
            writes=done.writes,
            records=(*done.records, _result_record(result, owner_key)),
            tenant_id=command.tenant_id,
        )
        return _decided(done.row, owner_key, outcome)

    # ------------------------------------------------------------------------------------------------ a run
    async def _run(self, run_id: str, tenant_id: str, owner: Owner, row: OwnerRow, record: Record) -> Concluded:
        """Generate, and what follows from it."""
        owner_key = owner.key(tenant_id)
        made = await self._runs.run(tenant_id, owner_key)
        if isinstance(made, NotRun):
            ran, done = self._not_run(made, run_id, tenant_id, owner, row, record)
        else:
            ran, done = self._persist(made, run_id, tenant_id, owner, row)
        self._metrics.counted(f"run_{ran.status}")
        for reason, n in ran.dropped.items():
            self._metrics.counted(f"dropped_{reason}", n)
        log.info(
            "consolidation_run",
            run_id=run_id,
            status=ran.status,
            episodes=ran.episodes,
            facts=ran.facts_shown,
            changes=ran.changes,
            dropped=ran.dropped or None,
        )
        return done

    def _persist(
        self, made: Proposing, run_id: str, tenant_id: str, owner: Owner, row: OwnerRow
    ) -> tuple[RunRecord, Concluded]:
        """Proposals as commands of at most 20 changes, the episodes marked, the counters at what is left."""
        now, prompt = self._now(), made.prompt
        commands = [
            Command(
                command_id=ids.command_id(run_id, n),
                kind="facts.apply",
                tenant_id=tenant_id,
                owner=owner,
                args=FactsApply(run_id=run_id, changes=changes, model=made.model, prompt=prompt.name).to_payload(),
                issued_by=SOURCE,
                issued_at=now,
            )
            for n, changes in enumerate(in_commands(made.changes))
        ]
        ran = RunRecord(
            run_id=run_id,
            status="done",
            at=now,
            episodes=len(prompt.episodes),
            facts_shown=len(prompt.facts),
            changes=len(made.changes),
            dropped=made.dropped,
            command_ids=tuple(command.command_id for command in commands),
            model=made.model,
            prompt=prompt.name,
            usage=made.usage,
        )
        looked_at = SetFields(
            collection=EPISODES,
            tenant_id=tenant_id,
            ids=tuple(episode.episode_id for episode in prompt.shown_episodes),
            fields={"consolidated_at": rfc3339(now)},
        )
        row = _with_run(row, ran).model_copy(update={"counters": Counters(episodes=made.left), "waiting": None})
        return ran, Concluded(row, ran, tuple(_command_record(command) for command in commands), (looked_at,))

    def _not_run(
        self, made: NotRun, run_id: str, tenant_id: str, owner: Owner, row: OwnerRow, record: Record
    ) -> tuple[RunRecord, Concluded]:
        """nothing: the counters begin anew. failed: they do too, so that the next try sees more than this one; the
        event is a dead letter. paused, deferred: they stand, and the run waits."""
        shown = made.prompt
        ran = RunRecord(
            run_id=run_id,
            status=made.status,
            at=self._now(),
            episodes=len(shown.episodes) if shown else 0,
            facts_shown=len(shown.facts) if shown else 0,
            model=self._runs.completions.model if made.status == "failed" else None,
            prompt=shown.name if shown else None,
        )
        if made.status in ("nothing", "failed"):
            row = _with_run(row, ran).model_copy(update={"counters": Counters(), "waiting": None})
            letters: tuple[OutRecord, ...] = ()
            if made.poison is not None:
                reason = made.poison.reason
                self._metrics.refused(record.position.topic, reason)
                letters = (dead_letter(record, stage=self.name, reason=reason, error=made.poison, attempts=1),)
            return ran, Concluded(row, ran, letters)
        if row.waiting is None:
            waiting = Waiting(tenant_id=tenant_id, owner=owner, run_id=run_id)
        else:
            waiting = row.waiting.model_copy(update={"attempt": row.waiting.attempt + 1})
        return ran, Concluded(_with_run(row, ran).model_copy(update={"waiting": waiting}), ran)

    # ------------------------------------------------------------------------------------------------ results
    def _result(
        self,
        command: Command,
        status: ResultStatus,
        error: ResultError | None = None,
        result: dict[str, JsonValue] | None = None,
    ) -> CommandResult:
        return CommandResult(command_id=command.command_id, status=status, error=error, result=result, at=self._now())

    def _run_result(self, command: Command, ran: RunRecord | None) -> CommandResult:
        """The run; its verdicts come as results of the commands that it names."""
        assert ran is not None  # a command always makes one
        result: dict[str, JsonValue] = {
            "run_id": ran.run_id,
            "status": ran.status,
            "episodes": ran.episodes,
            "changes": ran.changes,
            "command_ids": list(ran.command_ids),
            "dropped": dict(ran.dropped),
        }
        if ran.status in ("done", "nothing"):
            return self._result(command, "applied", result=result)
        status: ResultStatus = "refused" if ran.status == "paused" else "failed"
        codes = {"paused": "paused_by_tier", "deferred": "model_away", "failed": "refused_by_model"}
        messages = {
            "paused": "tier free spends nothing and the model costs money: set MEMSTREAM_TIER=standard",
            "deferred": "the model is away; the run is tried again by itself",
            "failed": "the model's answer could not be used, also after one repair; the command is a dead letter",
        }
        return self._result(
            command, status, ResultError(code=codes[ran.status], message=messages[ran.status]), result=result
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
                    self._remember(OwnerRow.read(raw), key, partition, at_once=True)

    def _remember(self, row: OwnerRow, owner_key: str, partition: int, *, at_once: bool = False) -> None:
        """A run that waits for the model is tried again; one that waits for another tier needs a restart."""
        if row.waiting is None or self._runs.paused:
            self._reminders.done(owner_key)
        else:
            self._reminders.wait(owner_key, partition, row.waiting, at_once=at_once)

    def _model_is_back(self, breaker: str) -> None:
        component, _, tenant_id = breaker.partition(":")
        if component == "model":
            self._reminders.wake(tenant_id)

    async def background(self) -> None:
        """Sends itself `consolidate`, at most 50 a second, for owners whose run waits."""
        while True:
            for waiting in self._reminders.take_due(round(COMMANDS_PER_SECOND * TICK)):
                try:
                    await self._remind(waiting)
                except Transient as away:  # due again after the pause
                    log.warning("reminder_not_sent", why=str(away))
            await asyncio.sleep(TICK)

    async def _remind(self, waiting: Waiting) -> None:
        command = Command(
            command_id=ids.retry_command_id(waiting.run_id, waiting.attempt),
            kind="consolidate",
            tenant_id=waiting.tenant_id,
            owner=waiting.owner,
            issued_by=SOURCE,
            issued_at=self._now(),
        )
        await self._send_durably(_command_record(command))


def _with_run(row: OwnerRow, ran: RunRecord) -> OwnerRow:
    return row.model_copy(update={"runs": (*row.runs, ran)[-RUNS_KEPT:]})


def _decided(row: OwnerRow, owner_key: str, outcome: Outcome) -> Decided:
    return Decided(outcome, owner_key, row.model_copy(update={"last": outcome}).to_bytes())


def _source(record: Record, event_id: str) -> Source:
    position = record.position
    return Source(topic=position.topic, partition=position.partition, offset=position.offset, id=event_id)


def _command_record(command: Command) -> OutRecord:
    event = CloudEvent(command.command_id, SOURCE, "memstream.command.v1", command.key, command.issued_at)
    return OutRecord.of(COMMANDS.name, command.key, command, event)


def _result_record(result: CommandResult, owner_key: str) -> OutRecord:
    event = CloudEvent(result.command_id, SOURCE, "memstream.command.result.v1", owner_key, result.at)
    return OutRecord.of(RESULTS.name, result.command_id, result, event)
