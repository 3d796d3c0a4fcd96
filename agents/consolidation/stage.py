"""Consolidation stage: turns episodes into facts. Processing of an event, from top to bottom:

route    decode; one lane per owner, over all topics; the reflector refuses commands that cannot be decoded
decide   handled before → nothing
         a reflected turn → count it and the queued turns behind it (turn_group.py); start a run when enough are counted
         a command of a kind of consolidation → a run of that kind, independent of the counters; `judge` asks a model
         about the pending facts of the owner's list (judgement.py)
         a manual edit → changes of episodes and procedures (edits/), and a result
         a command of another kind → nothing
         a recall → counts on the records, and links (recall_counts.py)
         a run: its steps in sequence (plan.py, run.py) → proposals, writes, the owner's row
store    fields of episodes and facts, the digest, procedures, links
publish  proposals as facts.apply and episodes.record on memory.commands (the reflector executes them); results

When the model is unreachable for more than a minute, the rest of a run waits, and a reminder sends a command later.
Follow-ups of a run (prune, hygiene, digest), scheduled runs and questions about pending facts are sent in the same way.

Consolidation is the only writer of the table progress, of the collections `digests`, `procedures` and `links`, and of
the episodes' field consolidated_at. See docs/design/consolidation.md.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, cast

import structlog

from ...adapters.ports import Completions, Embedder, VectorStore
from ...memory.erasures import ErasedUsers
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.tenant_policies import TenantPolicies
from ...schemas import ids
from ...schemas.command_kinds import ERASE_UPKEEP, RESTORE_LINKS, kinds_of
from ...schemas.commands import Command, CommandResult, ResultError
from ...schemas.erasures import OwnerErase
from ...schemas.outcomes import Outcome, OutRecord, Write
from ...schemas.topics import COMMANDS, EPISODES_RECORDED, RECALLED, Topic
from ...streams.engine.applied import Committed
from ...streams.engine.dead_letters import dead_letter
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.lane_events import QueuedEvents, RoutedEvent
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.log.port import Record
from ...streams.senders.commands import command_record, result_record
from ..common.handled_sessions import HandledSessions, sessions_index
from ..common.model_call import ModelCaller, tenant_of_breaker
from ..common.owner_erasure import erasing_args
from ..common.owner_routing import OwnerCommand
from ..common.pending_index import forget, pending_keys
from ..common.protection import keep_unread_record
from ..common.reminders import send_reminders
from ..common.store_writes import apply_writes, with_vectors
from ..common.tier_gate import refusal_by_tier
from ..common.tier_spending import TierSpending
from .edits.catalogue import EDITS, args_of, is_edit
from .edits.scope import UpkeepEditResult, UpkeepEditScope
from .erasure import UpkeepErasure
from .events import ConsolidationEvent, RecallEvent, ReflectedTurn, route_event
from .judgement import WaitingJudgements, next_question
from .messages import SOURCE, plain_result, proposal_commands, run_result
from .owner_reads import OwnerReader
from .plan import Steps
from .recall_counts import RecallCounters, recall_row
from .reminders import OwnerReminders
from .rows import COUNTS, FOLLOWS, Kind, ProgressRow, RunRecord, progress_index, recent_at
from .run import RunExecutor
from .schedule import run_record, upcoming, with_run, without_follow_up
from .step import RunRequest
from .steps.compact import counted_turns, refused_args
from .turn_group import QUEUED_MAX, TurnGroup

log = structlog.get_logger(__name__)
APPLIED_KINDS: Final = kinds_of("consolidation")
REPORT_EVERY: Final = 60.0
"""Seconds between two reports of facts that wait too long for a judgement."""


@dataclass(frozen=True, slots=True)
class RunConclusion:
    """The effects of a run: the new owner row, the records to send, and the writes."""

    row: ProgressRow
    record: RunRecord | None = None
    """The record of the run, or None when there was no run."""
    records: tuple[OutRecord, ...] = ()
    writes: tuple[Write, ...] = ()
    why: str = ""
    """Reason why the run is not done."""


class Consolidation:
    """The stage. `send_durably` sends reminders, which belong to no outcome. `embedder` embeds the texts of edits."""

    name: Literal["consolidation"] = "consolidation"
    reads: tuple[Topic, ...] = (EPISODES_RECORDED, COMMANDS, RECALLED)

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        completions: Completions,
        calls: Calls,
        metrics: StageMetrics,
        send_durably: Callable[[OutRecord], Awaitable[None]],
        policies: TenantPolicies,
        partitions: int,
        spending: TierSpending,
        now: Callable[[], datetime],
        secrets: SecretFilter,
        monotonic: Callable[[], float] = time.monotonic,
        committed: Committed = lambda topic, partition: None,
        erased: ErasedUsers | None = None,
    ) -> None:
        self._erased = erased or ErasedUsers()
        self._store = store
        self._embedder = embedder
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        self._policies = policies
        self._tiers = policies.deployment.tiers
        self._partitions = partitions
        self._secrets = secrets
        self._spending = spending
        self._now = now
        self._pause = policies.deployment.observe.patience
        self._caller = ModelCaller(
            completions=completions, calls=calls, spending=spending, patience=self._pause, secrets=secrets
        )
        self._reader = OwnerReader(store, calls)
        self._recall_counters = RecallCounters(store=store, calls=calls, metrics=metrics, policies=policies)
        self._sessions = HandledSessions(policies.deployment.rows, EPISODES_RECORDED, committed=committed, now=now)
        self._reminders = OwnerReminders(pause=self._pause, clock=monotonic)
        self._questions = OwnerReminders(pause=self._pause, clock=monotonic)
        self._judges = self._tiers.semantic and spending.judges
        why_unjudged = spending.why_unjudged if self._tiers.semantic else "the tier semantic is off"
        self._waiting = WaitingJudgements(changed=metrics.waiting_judgements, why_unjudged=why_unjudged)
        self._clock = monotonic
        self._reported_at = -REPORT_EVERY
        calls.on_breaker_closed(self._wake_owners)

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        """Return whether this stage writes dead letters for a topic. The reflector writes them for commands."""
        return topic != COMMANDS.name

    def route(self, record: Record) -> RoutedEvent[ConsolidationEvent]:
        return route_event(record, partitions=self._partitions, secrets=self._secrets)

    def last(self, work: ConsolidationEvent, rows: Rows) -> StageDecision | None:
        if isinstance(work, OwnerCommand) and work.command.kind not in APPLIED_KINDS:
            return None
        if isinstance(work, RecallEvent) or _is_of_recalls(work):
            return self._recall_counters.last(work.owner_key, rows)
        return ProgressRow.last_decision(rows, work.owner_key)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(
        self, work: ConsolidationEvent, record: Record, rows: Rows, queued: QueuedEvents[ConsolidationEvent]
    ) -> AsyncIterator[StageDecision]:
        self._sessions.note(record)
        if isinstance(work, OwnerCommand) and work.command.kind not in APPLIED_KINDS:
            return
        if isinstance(work, RecallEvent):
            decision = await self._recall_counters.decide(work.recall, work.owner_key, record, rows, now=self._now())
            if decision is not None:
                yield decision
            return
        if isinstance(work, OwnerCommand) and work.command.kind == ERASE_UPKEEP:
            async for erasing in self._erase(work, record, rows):
                yield erasing
            self._set_reminders(ProgressRow.load(rows, work.owner_key), work.owner_key, record.position.partition)
            return
        if isinstance(work, OwnerCommand) and _is_of_recalls(work):
            decision = self._recall_counters.restore(work, record, rows, now=self._now())
            if decision is not None:
                yield decision
            return
        row = ProgressRow.load(rows, work.owner_key)
        if not row.has_handled(source_of(record, work.event_id)):
            if isinstance(work, OwnerCommand):
                decision = await self._command(work, record, row, rows)
            else:
                decision = await self._turns(work, record, row, rows, queued)
            if decision is not None:
                yield decision
        self._set_reminders(ProgressRow.load(rows, work.owner_key), work.owner_key, record.position.partition)

    async def _turns(
        self,
        work: ReflectedTurn,
        record: Record,
        row: ProgressRow,
        rows: Rows,
        queued: QueuedEvents[ConsolidationEvent],
    ) -> StageDecision | None:
        """Count a turn and the queued turns behind it, and start a run when the counters require it."""
        group = TurnGroup(
            row,
            work.owner_key,
            rows,
            sessions=self._sessions,
            consolidates=self._spending.consolidates,
            judges=self._judges,
            now=self._now(),
        )
        covers = self._count_turns(group, work, record, queued)
        if group.duplicates:
            self._metrics.counted("duplicate", group.duplicates)
        self._metrics.counted("judgement_overflow", group.unlisted)
        if group.last is None:
            return None
        conclusion = RunConclusion(group.row)
        if group.is_due:
            turn, last_record = group.last
            request = RunRequest(turn.recorded.tenant_id, turn.recorded.owner, turn.run_id, self._now())
            conclusion = await self._run("consolidate", request, group.row, last_record)
        row, session_rows = group.with_turns(conclusion.row)
        outcome = Outcome(
            source=source_of(record, work.event_id),
            after=session_rows,
            writes=conclusion.writes,
            records=conclusion.records,
            tenant_id=work.recorded.tenant_id,
        )
        return replace(self._decision(row, work.owner_key, outcome), covers=covers)

    def _count_turns(
        self, group: TurnGroup, work: ReflectedTurn, record: Record, queued: QueuedEvents[ConsolidationEvent]
    ) -> int:
        """Count this turn and queued turns, up to another kind of event or to the turn that makes a run due.

        Return the number of counted queued turns.
        """
        group.add(work, record, self._policies.of(work.recorded.tenant_id, work.recorded.agent_id))
        if group.last is None or group.is_due:
            return 0
        covers = 0
        for next_record, event in queued.next(QUEUED_MAX):
            if group.is_due or not isinstance(event, ReflectedTurn):
                break
            self._sessions.note(next_record)
            group.add(event, next_record, self._policies.of(event.recorded.tenant_id, event.recorded.agent_id))
            covers += 1
        return covers

    async def _command(self, work: OwnerCommand, record: Record, row: ProgressRow, rows: Rows) -> StageDecision | None:
        """Execute a command and send its result."""
        command, owner_key = work.command, work.owner_key
        if row.is_redelivered(record):
            self._metrics.counted("duplicate")
            return None
        if command.command_id in row.commands:
            self._metrics.counted("duplicate")
            return self._answer_again(work, record, row) if command.kind in EDITS else None
        row = row.with_command(command, record, now=self._now())
        if is_edit(command.kind):
            return await self._edit(work, record, row, rows)
        conclusion = RunConclusion(row)
        result: CommandResult
        if command.expires_at is not None and command.expires_at < self._now():
            result = plain_result(command, "expired", self._now())
        elif (why := refusal_by_tier(command, self._tiers) or refused_args(command)) is not None:
            result = plain_result(command, "refused", self._now(), why)
            conclusion = RunConclusion(without_follow_up(row, cast(Kind, command.kind)))
        else:
            request = self._requested(command, owner_key, rows)
            conclusion = await self._run(cast(Kind, command.kind), request, row, record)
            assert conclusion.record is not None  # a command always makes a run
            result = run_result(command, conclusion.record, conclusion.why)
        outcome = Outcome(
            source=source_of(record, work.event_id),
            writes=conclusion.writes,
            records=(*conclusion.records, result_record(result, of=command, source=SOURCE)),
            tenant_id=command.tenant_id,
        )
        return self._decision(conclusion.row, owner_key, outcome)

    async def _edit(self, work: OwnerCommand, record: Record, row: ProgressRow, rows: Rows) -> StageDecision:
        """Apply a manual edit and send its result."""
        command, now = work.command, self._now()
        assert command.owner is not None  # route refuses a command without an owner
        edit = UpkeepEditResult(result=refusal_by_tier(command, self._tiers) or args_of(command))
        if not isinstance(edit.result, ResultError):
            scope = UpkeepEditScope(
                command=command,
                owner=command.owner,
                owner_key=work.owner_key,
                reader=self._reader,
                embed=lambda text: self._embed(command.tenant_id, text),
                rows=rows,
                row=row,
                policy=self._policies.of(command.tenant_id),
                secrets=self._secrets,
                now=now,
            )
            edit = await EDITS[command.kind](edit.result, scope)
        if isinstance(edit.result, ResultError):
            self._metrics.counted("command_refused")
            result = plain_result(command, "refused", now, edit.result)
        else:
            result = CommandResult(
                command_id=command.command_id, status="applied", result=edit.result.to_payload(), at=now
            )
        outcome = Outcome(
            source=source_of(record, work.event_id),
            writes=edit.writes,
            records=(result_record(result, of=command, source=SOURCE),),
            tenant_id=command.tenant_id,
        )
        row = (edit.row or row).model_copy(update={"results": row.results.add(result, of=command)})
        return self._decision(row, work.owner_key, outcome)

    async def _erase(self, work: OwnerCommand, record: Record, rows: Rows) -> AsyncIterator[StageDecision]:
        """Erase a user from the upkeep of the command's owner."""
        command, owner_key, now = work.command, work.owner_key, self._now()
        source = source_of(record, work.event_id)
        args = erasing_args(command, OwnerErase, self._erased, source=source, sender=SOURCE, now=now)
        if isinstance(args, StageDecision):
            yield args
            return
        erasure = UpkeepErasure(
            store=self._store,
            calls=self._calls,
            command=command,
            args=args,
            owner_key=owner_key,
            row=None if rows.row(owner_key) is None else ProgressRow.load(rows, owner_key),
            source=source,
            now=now,
        )
        async for decision in erasure.decisions():
            yield decision
        self._metrics.counted("owner_erased")

    async def _embed(self, tenant_id: str, text: str) -> Sequence[float]:
        [vector] = await self._calls.call("embedder", lambda: self._embedder.embed([text], tenant_id=tenant_id))
        return vector

    def _answer_again(self, work: OwnerCommand, record: Record, row: ProgressRow) -> StageDecision:
        """Send the stored result of an edit, because the sender has sent the command again."""
        answer = result_record(row.results.again(work.command), of=work.command, source=SOURCE)
        source = source_of(record, work.event_id)
        outcome = Outcome(source=source, records=(answer,), tenant_id=work.command.tenant_id)
        return self._decision(row, work.owner_key, outcome)

    def _decision(self, row: ProgressRow, owner_key: str, outcome: Outcome) -> StageDecision:
        """Return the decision for the owner's row with this outcome.

        Without a schedule no code reads the index of counted turns. The owner's index row then stays: otherwise each
        run would delete it, and the next turn would write it again.
        """
        scheduled = self._policies.of(ids.split(owner_key)[0]).consolidation.trigger == "schedule"
        return row.decision(owner_key, outcome, standing=() if scheduled else (COUNTS,))

    def _requested(self, command: Command, owner_key: str, rows: Rows) -> RunRequest:
        assert command.owner is not None  # route refuses a command without an owner
        return RunRequest(
            tenant_id=command.tenant_id,
            owner=command.owner,
            run_id=ids.run_id(owner_key, command.command_id),
            now=self._now(),
            args=command.args,
            issued_at=command.issued_at,
            links=recall_row(rows, owner_key).links,
            counted=counted_turns(command, rows),
        )

    async def _run(self, kind: Kind, request: RunRequest, row: ProgressRow, record: Record) -> RunConclusion:
        """Execute the steps of a run and collect their effects. `record`: the event that started it."""
        policy = self._policies.of(request.tenant_id)
        steps = Steps(
            self._reader, self._caller, policy, self._spending.consolidates, self._spending.judges, self._pause
        )
        run = await RunExecutor(steps.of, self._spending).run(kind, request, row)
        commands = proposal_commands(run.steps, request)
        made = run_record(run, request, commands)
        row = with_run(
            run.row,
            run,
            made,
            request,
            after=steps.after_run,
            pause=self._pause,
            after_run=policy.consolidation.after_run,
        )
        dead_letters: tuple[OutRecord, ...] = ()
        if run.poison is not None:
            self._metrics.refused(record.position.topic, run.poison.reason)
            kept = keep_unread_record(record, self._secrets)
            dead_letters = (dead_letter(kept, stage=self.name, reason=run.poison.reason, error=run.poison, attempts=1),)
        self._report(made)
        sent = tuple(command_record(command, source=SOURCE) for command in commands)
        return RunConclusion(row, made, (*sent, *dead_letters), run.writes, run.why)

    def _report(self, run: RunRecord) -> None:
        self._metrics.counted(f"run_{run.status}" if run.kind == "consolidate" else f"{run.kind}_{run.status}")
        culled_episodes, culled_facts = (
            sum(part.counts.get(what, 0) for part in run.phases) for what in ("culled_episodes", "culled_facts")
        )
        self._metrics.counted("episodes_culled", culled_episodes)
        self._metrics.counted("facts_culled", culled_facts)
        for reason, n in run.dropped.items():
            self._metrics.counted(f"dropped_{reason}", n)
        log.info(
            "consolidation_run",
            run_id=run.run_id,
            kind=run.kind,
            status=run.status,
            phases={part.name: part.status for part in run.phases},
            episodes=run.episodes,
            facts=run.facts_shown,
            changes=run.changes,
            culled_episodes=culled_episodes or None,
            culled_facts=culled_facts or None,
            dropped=run.dropped or None,
        )

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        tenant_id = outcome.tenant_id or ""

        async def embed(texts: Sequence[str]) -> dict[str, Sequence[float]]:
            return {text: await self._embed(tenant_id, text) for text in texts}

        await apply_writes(self._store, await with_vectors(outcome.writes, embed))

    async def publish_state(self, outcome: Outcome) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ reminders
    def retain(self, partitions: frozenset[int]) -> None:
        self._reminders.retain(partitions)
        self._questions.retain(partitions)
        self._waiting.retain(partitions)
        self._sessions.retain(partitions)

    async def rediscover(self, partition: int, rows: Rows) -> None:
        indexed = sessions_index(progress_index, self._now)
        for kind in (FOLLOWS, COUNTS):
            async for key in pending_keys(rows, partition, kind, partitions=self._partitions, indexed=indexed):
                if kind == COUNTS and self._policies.of(ids.split(key)[0]).consolidation.trigger != "schedule":
                    continue
                row = ProgressRow.load(rows, key, partition=partition)
                if kind in (*row.index_kinds(), *row.indexed):
                    self._set_reminders(row, key, partition, at_once=True)
                else:
                    await forget(rows, partition, kind, key)

    async def end_rows(self, partition: int, rows: Rows) -> None:
        await self._sessions.end_rows(partition, rows, later=lambda key: recent_at(rows, key, partition=partition))

    async def background(self) -> None:
        await send_reminders(self._due_commands, self._send_durably)

    def _due_commands(self, at_most: int) -> Iterator[OutRecord]:
        if self._clock() - self._reported_at >= REPORT_EVERY:
            self._reported_at = self._clock()
            self._calls.remark = self._waiting.report(self._now())
        due = self._questions.take_due(at_most)
        for due_command in (*due, *self._reminders.take_due(at_most - len(due))):
            command = Command(
                command_id=due_command.command_id,
                kind=due_command.kind,
                tenant_id=due_command.tenant_id,
                owner=due_command.owner,
                issued_by=SOURCE,
                issued_at=self._now(),
            )
            yield command_record(command, source=SOURCE)

    def _set_reminders(self, row: ProgressRow, owner_key: str, partition: int, *, at_once: bool = False) -> None:
        """Set or remove the reminders of an owner, depending on the row.

        A run or a question that waits for the model has a reminder. One that waits for other settings has none, because
        settings change only when the worker restarts.
        """
        now, policy = self._now(), self._policies.of(ids.split(owner_key)[0]).consolidation
        self._waiting.set(owner_key, partition, row.judging)
        question = next_question(row, owner_key, now=now) if self._judges else None
        paused = row.waiting is not None and not (self._tiers.semantic and self._spending.consolidates)
        run = upcoming(row, owner_key, policy=policy, pause=self._pause, paused=paused, now=now)
        for reminders, command in ((self._questions, question), (self._reminders, run)):
            if command is None:
                reminders.done(owner_key)
                continue
            seconds = 0.0 if at_once and command.for_model else max(0.0, (command.at - now).total_seconds())
            reminders.wait(owner_key, partition, command, seconds=seconds)

    def _wake_owners(self, breaker: str) -> None:
        tenant_id = tenant_of_breaker(breaker)
        if tenant_id is not None:
            self._reminders.wake(tenant_id)
            self._questions.wake(tenant_id)


def _is_of_recalls(work: ConsolidationEvent) -> bool:
    """Return whether the row of the owner's recalls has the outcome of this command."""
    return isinstance(work, OwnerCommand) and work.command.kind == RESTORE_LINKS
