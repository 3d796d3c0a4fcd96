"""Reflector stage: turns observations into episodes and facts. Processing of an event, from top to bottom:

route    decode (events.py); mask secrets (memory/secrets/); one lane per owner, over both topics
decide   handled before → nothing
         an observed turn   → episodes; fact changes by the conflict pipeline; tasks; a record for consolidation;
                              together with the queued turns behind it in the lane (turn_group.py)
         a facts.apply      → fact changes by the same pipeline; a verdict per proposal
         a facts.approve, facts.reject → a person's or the janitor's decision about a quarantined or pending fact
         an episodes.record → summaries of a session become episodes; a verdict per summary
         an episodes.keep   → entries of a working set become episodes; a verdict per entry
         a manual edit      → facts, episodes, blocks, tasks, groups (edits/), and a result
         another command    → nothing if consolidation handles it, otherwise a refusal
store    missing episodes; one compare-and-set per changed fact
publish  memory.facts.updated, memory.episodes.recorded, results; then the state of the changed facts on memory.facts

The reflector is the only writer of the table ledger, of the collections `episodes`, `facts`, `blocks`, `tasks` and
`groups`, and of the topics memory.facts.updated, memory.episodes.recorded and memory.facts. When a task is due, the
reflector sends `tasks.due` to itself (timers.py).
See docs/design/reflector.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Literal

import structlog
from pydantic import ValidationError

from ...adapters.ports import Embedder, VectorStore
from ...memory.erasures import ErasedUsers
from ...memory.facts.transitions import Stamp
from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter, at_least
from ...memory.tenant_policies import TenantPolicies, TurnPolicies
from ...schemas import ids
from ...schemas.base import REASON_MAX, Contract, explain
from ...schemas.collections import FACTS
from ...schemas.command_kinds import ERASE_OWNER, command_kind
from ...schemas.commands import (
    Command,
    CommandResult,
    EpisodesKeep,
    EpisodesRecord,
    FactReview,
    FactsApply,
    ResultError,
)
from ...schemas.episodes import StoredEpisode
from ...schemas.erasures import OwnerErase
from ...schemas.observations import Observed
from ...schemas.outcomes import Outcome, OutRecord, Source
from ...schemas.topics import COMMANDS, OBSERVATIONS, Topic
from ...streams.engine.applied import Committed
from ...streams.engine.decision import Rows, StageDecision
from ...streams.engine.handler import source_of
from ...streams.engine.lane_events import QueuedEvents, RoutedEvent
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.faust.table import MAX_VALUE
from ...streams.log.port import Record
from ...streams.senders.commands import result_record
from ..common.handled_sessions import HandledSessions
from ..common.outcomes import row_size
from ..common.owner_erasure import erasing_args
from ..common.owner_routing import OwnerCommand
from ..common.reminders import send_reminders
from ..common.store_writes import apply_writes, with_vectors
from ..common.tier_gate import refusal_by_tier
from .edits.catalogue import EDITS
from .edits.scope import OwnerEditScope
from .episodes import Episodes
from .erasure import OwnerErasure
from .events import ObservedTurn, ReflectorEvent, route_event
from .fact_changes import FactChange, FactChanger, changed_ids
from .fact_overlay import FactOverlay, Vector
from .fact_state_topic import publish_state
from .messages import SOURCE, applied_result, fact_events
from .proposals import apply
from .reviews import review
from .rows import LedgerRow, turns_of
from .timers import DueTasks, TaskTimers, timers_key
from .turn_group import TurnDecider, turns_together

log = structlog.get_logger(__name__)


class Reflector:
    """The stage; see the module docstring. `send_durably` sends fact states, which belong to no outcome."""

    name: Literal["reflector"] = "reflector"
    reads: tuple[Topic, ...] = (OBSERVATIONS, COMMANDS)

    def __init__(
        self,
        *,
        store: VectorStore,
        embedder: Embedder,
        calls: Calls,
        metrics: StageMetrics,
        send_durably: Callable[[OutRecord], Awaitable[None]],
        policies: TenantPolicies,
        partitions: int,
        now: Callable[[], datetime],
        secrets: SecretFilter,
        committed: Committed = lambda topic, partition: None,
        erased: ErasedUsers | None = None,
    ) -> None:
        self._erased = erased or ErasedUsers()
        self._store = store
        self._embedder = embedder
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        # Similarity thresholds depend on the embedder: hashing compares words, not meanings.
        self._lexical = embedder.identity.name.partition(":")[0] == "hashing"
        self._policies = policies
        self._of_turns = TurnPolicies(policies.deployment)
        self._episodes = Episodes(
            store, calls, lambda tenant_id: policies.of(tenant_id).routing.episodes_kept, metrics.counted
        )
        self._partitions = partitions
        self._secrets = secrets
        self._now = now
        self._due = DueTasks(now=now)
        self._sessions = HandledSessions(policies.deployment.rows, OBSERVATIONS, committed=committed, now=now)
        self._turns = TurnDecider(
            facts=self._facts_of_turn,
            embed=self._embed,
            episodes=self._episodes,
            sessions=self._sessions,
            store=store,
            calls=calls,
        )

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[ReflectorEvent]:
        return route_event(record, partitions=self._partitions, secrets=self._secrets)

    def last(self, work: ReflectorEvent, rows: Rows) -> StageDecision | None:
        return LedgerRow.last_decision(rows, work.owner_key)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(
        self, work: ReflectorEvent, record: Record, rows: Rows, queued: QueuedEvents[ReflectorEvent]
    ) -> AsyncIterator[StageDecision]:
        self._sessions.note(record)
        if isinstance(work, OwnerCommand) and work.command.kind == ERASE_OWNER:
            async for erasing in self._erase(work, record, rows):
                yield erasing
            return
        row = LedgerRow.load(rows, work.owner_key)
        last: Outcome | None
        if not row.has_handled(source_of(record, work.event_id)):
            if isinstance(work, OwnerCommand):
                decision = await self._command(work, record, row, rows)
            else:
                decision = await self._turn(work, record, row, rows, queued)
            if decision is None:
                return
            yield decision
            last = decision.outcome
        else:
            last = row.last
        if last is not None and timers_key(work.owner_key) in last.after:
            self._due.keep(work.owner_key, record.position.partition, TaskTimers.of(rows, work.owner_key))

    async def _turn(
        self, work: ObservedTurn, record: Record, row: LedgerRow, rows: Rows, queued: QueuedEvents[ReflectorEvent]
    ) -> StageDecision | None:
        """Reflect an observed turn, once, together with the queued turns behind it.

        Raises Poison for a turn whose outcome is too large for the table.
        """
        if turns_of(rows, work.owner_key, work.session_key).has(work.observed.number):
            self._metrics.counted("duplicate")
            return None
        group = turns_together(work, record, queued)
        for _, each in group[1:]:
            self._sessions.note(each)
        decided = await self._turns.decide(group, row, rows)
        for what, n in decided.counted.items():
            self._metrics.counted(what, n)
        self._report(decided.changes)
        return decided.decision

    async def _command(self, work: OwnerCommand, record: Record, row: LedgerRow, rows: Rows) -> StageDecision | None:
        """Execute or refuse a command, once."""
        command, owner_key = work.command, work.owner_key
        kind = command_kind("owner", command.kind)
        if kind is not None and kind.writer != self.name:
            return None
        source = source_of(record, work.event_id)
        if row.is_redelivered(record):
            self._metrics.counted("duplicate")
            return None
        if command.command_id in row.commands:
            self._metrics.counted("duplicate")
            return self._answer_again(command, owner_key, row, source) if command.kind in EDITS else None
        row = row.with_command(command, record, now=self._now())
        args = self._args(command)
        match args:
            case ResultError():
                return self._refuse(command, owner_key, row, source, args)
            case FactsApply():
                return await self._apply(command, args, owner_key, row, rows, source)
            case FactReview():
                return await self._review(command, args, owner_key, row, source)
            case EpisodesRecord() | EpisodesKeep():
                return await self._add_episodes(command, args, owner_key, row, rows, source)
            case _:
                return await self._edit(command, args, owner_key, row, rows, source)

    def _args(self, command: Command) -> Contract:
        """Return the arguments of a command, or the reason for its refusal."""
        kind = command_kind("owner", command.kind)
        if kind is None or kind.args is None or (kind.result is not None and kind.name not in EDITS):
            return ResultError(code="unknown_kind", message=f"no stage knows the kind {command.kind!r}"[:REASON_MAX])
        if (off := refusal_by_tier(command, self._policies.deployment.tiers)) is not None:
            return off
        try:
            return kind.args.from_payload(command.args)
        except ValidationError as error:
            return ResultError(code="invalid_args", message=explain(error)[:REASON_MAX])

    async def _apply(
        self, command: Command, args: FactsApply, owner_key: str, row: LedgerRow, rows: Rows, source: Source
    ) -> StageDecision:
        """Apply proposals to the facts. Refuse proposals whose outcome is too large for the table."""
        assert command.owner is not None  # route refuses a command without an owner
        facts = self._facts(command, row, owner_key)
        applied = await apply(command, command.owner, args, rows=rows, facts=facts, episodes=self._episodes)
        for verdict in applied.verdicts:
            self._metrics.counted(f"verdict_{verdict.verdict}")
        result = applied_result(
            command,
            {"run_id": args.run_id, "changes": [verdict.to_payload() for verdict in applied.verdicts]},
            at=facts.stamp.now,
        )
        outcome = Outcome(
            source=source,
            writes=await facts.overlay.writes(),
            records=(*self._fact_events(applied.changes, facts.stamp), result),
            tenant_id=command.tenant_id,
            state_ids=changed_ids(applied.changes),
        )
        decision = row.model_copy(update={"changes": row.changes + len(applied.changes)}).decision(owner_key, outcome)
        if (size := row_size(decision)) > MAX_VALUE:
            message = f"its changes have {size} bytes together; at most {MAX_VALUE} fit: send fewer in one command"
            return self._refuse(command, owner_key, row, source, ResultError(code="too_large", message=message))
        return decision

    async def _review(
        self, command: Command, args: FactReview, owner_key: str, row: LedgerRow, source: Source
    ) -> StageDecision:
        """Apply a person's decision about a quarantined or pending fact."""
        facts = self._facts(command, row, owner_key)
        reviewed = await review(command, args, facts=facts)
        if reviewed.error is not None:
            return self._refuse(command, owner_key, row, source, reviewed.error)
        result = applied_result(command, reviewed.result, at=facts.stamp.now)
        outcome = Outcome(
            source=source,
            writes=await facts.overlay.writes(),
            records=(*self._fact_events(reviewed.changes, facts.stamp), result),
            tenant_id=command.tenant_id,
            state_ids=changed_ids(reviewed.changes),
        )
        return row.model_copy(update={"changes": row.changes + len(reviewed.changes)}).decision(owner_key, outcome)

    async def _add_episodes(
        self,
        command: Command,
        args: EpisodesRecord | EpisodesKeep,
        owner_key: str,
        row: LedgerRow,
        rows: Rows,
        source: Source,
    ) -> StageDecision:
        """Add summaries or entries of a working set that are not yet episodes."""
        assert command.owner is not None  # route refuses a command without an owner
        tenant_id, now = command.tenant_id, self._now()
        if isinstance(args, EpisodesRecord):
            new = await self._episodes.from_summaries(
                args, rows=rows, tenant_id=tenant_id, owner=command.owner, now=now
            )
        else:
            new = await self._episodes.from_working_set(
                args, rows=rows, tenant_id=tenant_id, owner=command.owner, now=now
            )
        new = replace(new, episodes=tuple(self._labelled(each) for each in new.episodes))
        vectors = await self._embed(tenant_id, list(dict.fromkeys(each.content for each in new.episodes)))
        result = applied_result(
            command,
            ({"run_id": args.run_id} if isinstance(args, EpisodesRecord) else {})
            | {"episodes": [verdict.to_payload() for verdict in new.verdicts]},
            at=now,
        )
        outcome = Outcome(
            source=source,
            writes=await self._episodes.writes(
                new.episodes, vectors, tenant_id=tenant_id, owner_key=owner_key, recorded=row.episodes
            ),
            records=(result,),
            tenant_id=tenant_id,
        )
        return row.model_copy(update={"episodes": row.episodes + len(new.episodes)}).decision(owner_key, outcome)

    async def _edit(
        self, command: Command, args: Contract, owner_key: str, row: LedgerRow, rows: Rows, source: Source
    ) -> StageDecision:
        """Apply a manual edit. Refuse an edit whose outcome is too large for the table."""
        assert command.owner is not None  # route refuses a command without an owner
        facts = self._facts(command, row, owner_key)
        scope = OwnerEditScope(
            command=command,
            owner=command.owner,
            owner_key=owner_key,
            facts=facts,
            episodes=self._episodes,
            recorded_episodes=row.episodes,
            rows=rows,
            sessions=self._sessions,
            store=self._store,
            calls=self._calls,
            embed=facts.embed,
            policy=facts.policy,
            secrets=self._secrets,
            now=facts.stamp.now,
        )
        edit = await EDITS[command.kind](args, scope)
        if isinstance(edit.result, ResultError):
            return self._refuse(command, owner_key, row, source, edit.result)
        answer = CommandResult(
            command_id=command.command_id, status="applied", result=edit.result.to_payload(), at=facts.stamp.now
        )
        outcome = Outcome(
            source=source,
            after=dict(edit.after),
            cleanup=edit.cleanup,
            writes=(*edit.writes, *await facts.overlay.writes()),
            records=(
                *self._fact_events(edit.changes, facts.stamp),
                *edit.records,
                result_record(answer, of=command, source=SOURCE),
            ),
            tenant_id=command.tenant_id,
            state_ids=(*changed_ids(edit.changes), *edit.state_ids),
        )
        edited = row.model_copy(
            update={
                "changes": row.changes + len(edit.changes),
                "episodes": row.episodes + edit.episodes,
                "results": row.results.add(answer, of=command),
                "requests": facts.overlay.requests,
            }
        )
        decision = edited.decision(owner_key, outcome)
        if (size := row_size(decision)) > MAX_VALUE:
            message = f"its effects have {size} bytes together; at most {MAX_VALUE} fit: edit less in one command"
            return self._refuse(command, owner_key, row, source, ResultError(code="too_large", message=message))
        return decision

    async def _erase(self, work: OwnerCommand, record: Record, rows: Rows) -> AsyncIterator[StageDecision]:
        """Erase a user from the memory of the command's owner."""
        command, owner_key, now = work.command, work.owner_key, self._now()
        source = source_of(record, work.event_id)
        args = erasing_args(command, OwnerErase, self._erased, source=source, sender=SOURCE, now=now)
        if isinstance(args, StageDecision):
            yield args
            return
        erasure = OwnerErasure(
            store=self._store,
            calls=self._calls,
            command=command,
            args=args,
            owner_key=owner_key,
            row=None if rows.row(owner_key) is None else LedgerRow.load(rows, owner_key),
            source=source,
            stamp=Stamp(now=now, cause=command.command_id, embedder=self._embedder.identity.name),
        )
        if erasure.is_own:
            self._due.keep(owner_key, record.position.partition, TaskTimers())
        async for decision in erasure.decisions():
            yield decision
        self._metrics.counted("owner_erased")

    def _answer_again(self, command: Command, owner_key: str, row: LedgerRow, source: Source) -> StageDecision:
        """Send the stored result of an edit, because the sender has sent the command again."""
        answer = result_record(row.results.again(command), of=command, source=SOURCE)
        return row.decision(owner_key, Outcome(source=source, records=(answer,), tenant_id=command.tenant_id))

    def _labelled(self, episode: StoredEpisode) -> StoredEpisode:
        """Return the episode of a command, marked as secret if its text contains labelled data."""
        label = self._secrets.label(episode.content, episode.subject, episode.evidence)
        return episode.model_copy(update={"sensitivity": at_least(episode.sensitivity, label)})

    def _refuse(
        self, command: Command, owner_key: str, row: LedgerRow, source: Source, error: ResultError
    ) -> StageDecision:
        self._metrics.counted("command_refused")
        refusal_of_it = CommandResult(command_id=command.command_id, status="refused", error=error, at=self._now())
        if command.kind in EDITS:
            row = row.model_copy(update={"results": row.results.add(refusal_of_it, of=command)})
        result = result_record(refusal_of_it, of=command, source=SOURCE)
        return row.decision(owner_key, Outcome(source=source, records=(result,), tenant_id=command.tenant_id))

    def _policy_of(self, observed: Observed) -> MemoryPolicy:
        """Return the policy by which a turn was observed.

        Return the deployment's policy if the turn's settings are invalid.
        """
        policy = self._of_turns.of(observed)
        if policy is None:
            self._metrics.counted("settings_refused")
            log.warning("settings_refused", tenant_id=observed.tenant_id, turn_id=observed.turn_id)
            return self._policies.deployment
        return policy

    def _facts_of_turn(self, observed: Observed, overlay: FactOverlay, count: Callable[[str], None]) -> FactChanger:
        """Return the fact changer for one observed turn."""
        session = ids.session_key(observed.tenant_id, observed.user_id, observed.session_id)
        cause = ids.observed_id(session, observed.turn_id)
        return self._changer(overlay, cause=cause, policy=self._policy_of(observed), count=count)

    def _facts(self, command: Command, row: LedgerRow, owner_key: str) -> FactChanger:
        """Return the fact changer for one command."""
        overlay = FactOverlay(
            store=self._store,
            calls=self._calls,
            tenant_id=command.tenant_id,
            owner_key=owner_key,
            requests=row.requests,
        )
        policy = self._policies.of(command.tenant_id)
        return self._changer(overlay, cause=command.command_id, policy=policy, count=self._metrics.counted)

    def _changer(
        self, overlay: FactOverlay, *, cause: str, policy: MemoryPolicy, count: Callable[[str], None]
    ) -> FactChanger:
        return FactChanger(
            overlay=overlay,
            embed=lambda texts: self._embed(overlay.tenant_id, texts),
            stamp=Stamp(now=self._now(), cause=cause, embedder=self._embedder.identity.name),
            policy=replace(policy, conflict=replace(policy.conflict, lexical=self._lexical)),
            count=count,
            secrets=self._secrets,
        )

    async def _embed(self, tenant_id: str, texts: Sequence[str]) -> Mapping[str, Vector]:
        """Embed all texts of an event in one call."""
        if not texts:
            return {}
        vectors = await self._calls.call("embedder", lambda: self._embedder.embed(texts, tenant_id=tenant_id))
        return dict(zip(texts, vectors, strict=True))

    def _fact_events(self, changes: Sequence[FactChange], stamp: Stamp) -> tuple[OutRecord, ...]:
        """Return one event per change, and log and count the changes."""
        self._report(changes)
        return fact_events(changes, at=stamp.now)

    def _report(self, changes: Sequence[FactChange]) -> None:
        for each in changes:
            action = each.transition.action
            self._metrics.fact_action(action)
            log.info(
                f"fact_{action}",
                fact_id=each.fact.fact_id,
                version=each.fact.version,
                state=each.fact.state,
                other=each.transition.decision.other_fact_id,
            )

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        tenant_id = outcome.tenant_id or ""
        writes = await with_vectors(outcome.writes, lambda texts: self._embed(tenant_id, texts))
        await apply_writes(self._store, writes)

    async def publish_state(self, outcome: Outcome) -> None:
        tenant_id, fact_ids = outcome.tenant_id, outcome.state_ids
        assert tenant_id is not None  # an outcome with state_ids has a tenant
        get = partial(self._store.get, FACTS, tenant_id=tenant_id, ids=fact_ids)
        read = partial(self._calls.call, "store", get)
        await publish_state(fact_ids, read=read, send_durably=self._send_durably, now=self._now)

    # ------------------------------------------------------------------------------------------------ reminders
    def retain(self, partitions: frozenset[int]) -> None:
        self._due.retain(partitions)
        self._sessions.retain(partitions)

    async def rediscover(self, partition: int, rows: Rows) -> None:
        await self._due.rediscover(partition, rows, partitions=self._partitions)

    async def end_rows(self, partition: int, rows: Rows) -> None:
        await self._sessions.end_rows(partition, rows)

    async def background(self) -> None:
        await send_reminders(self._due.due, self._send_durably)
