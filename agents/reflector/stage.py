"""The reflector. The way of an event through it, from top to bottom:

route    decode; a lane per owner, over both topics; what cannot be decoded leaves as a dead letter
decide   done before? → nothing
         an observed turn  → episodes; facts, through the conflict pipeline; a record for consolidation
         a facts.apply     → facts, through the same pipeline; a verdict for each change
         an episodes.record → summaries of a session, as episodes; a verdict for each
         an episodes.keep  → what stood in a working set, as episodes; a verdict for each
         another kind      → passed over when it is consolidation's, else refused
store    episodes where absent; each changed fact by one compare and set
publish  memory.facts.updated, memory.episodes.recorded, results; then the facts as they stand, on memory.facts

One writer: of the table ledger, the collections `episodes` and `facts`, and these topics. docs/design/reflector.md.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import structlog
from pydantic import JsonValue, ValidationError

from ...adapters.ports import Embedder, VectorStore
from ...memory.facts.transitions import Stamp
from ...memory.policies import MemoryPolicy
from ...memory.recall.context import tokens
from ...schemas import ids
from ...schemas.base import explain
from ...schemas.commands import (
    CONSOLIDATION_KINDS,
    REFLECTOR_KINDS,
    Command,
    CommandResult,
    EpisodesKeep,
    EpisodesRecord,
    FactsApply,
    ResultError,
)
from ...schemas.episodes import EpisodesRecorded, RecordedEpisode, StoredEpisode
from ...schemas.errors import Poison
from ...schemas.observations import Observed
from ...schemas.outcomes import (
    Outcome,
    OutRecord,
    Source,
)
from ...schemas.topics import COMMANDS, OBSERVATIONS, Topic
from ...streams.engine.codec import decode
from ...streams.engine.commands import result_record
from ...streams.engine.handler import Decision, RoutedEvent, Rows, same_source
from ...streams.engine.metrics import StageMetrics
from ...streams.engine.retry import Calls
from ...streams.faust.table import MAX_VALUE
from ...streams.log.port import Record
from ..common.owner_routing import OwnerCommand, in_lane_of_owner, owner_command
from ..common.store_writes import apply_writes
from ..common.tier_gate import refusal
from .episodes import Episodes
from .events import SOURCE, episodes_recorded, fact_updated, touched
from .fact_overlay import FactOverlay, Vector
from .fact_state_topic import publish_state
from .observed_turns import FactChange, reflect, routed, texts_of
from .proposals import apply, episodes_of
from .rows import LedgerRow, ReflectedTurns, owner_row, session_row_key, turns_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ObservedTurn:
    observed: Observed
    owner_key: str

    @property
    def id(self) -> str:
        return self.observed.turn_id


Work = ObservedTurn | OwnerCommand


class Reflector:
    """See the module. `send_durably` sends the state of facts, which is read at the send."""

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
        policy: MemoryPolicy,
        partitions: int,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._calls = calls
        self._metrics = metrics
        self._send_durably = send_durably
        # The zones belong to the embedder: hashing knows words, not meanings.
        lexical = embedder.identity.name.partition(":")[0] == "hashing"
        self._policy = replace(policy, conflict=replace(policy.conflict, lexical=lexical))
        self._episodes = Episodes(store, calls, policy.routing.episodes_kept, metrics.counted)
        self._partitions = partitions
        self._now = now

    # ------------------------------------------------------------------------------------------------ route
    def writes_dead_letters(self, topic: str) -> bool:
        return True

    def route(self, record: Record) -> RoutedEvent[Work]:
        work: Work
        if record.position.topic == COMMANDS.name:
            work = owner_command(record)
        else:
            observed = decode(record, Observed)
            work = ObservedTurn(observed, observed.owner.key(observed.tenant_id))
        return in_lane_of_owner(record, work, partitions=self._partitions)

    def last(self, work: Work, rows: Rows) -> Decision | None:
        raw = rows.row(work.owner_key)
        row = LedgerRow() if raw is None else LedgerRow.read(raw)
        return None if row.last is None else Decision(row.last, work.owner_key, raw)

    # ------------------------------------------------------------------------------------------------ decide
    async def decide(self, work: Work, record: Record, rows: Rows) -> AsyncIterator[Decision]:
        row = owner_row(rows, work.owner_key)
        if row.last is not None and same_source(row.last.source, record.position):
            return
        if isinstance(work, OwnerCommand):
            decided = await self._command(work, record, row)
        else:
            decided = await self._turn(work, record, row, rows)
        if decided is not None:
            yield decided

    async def _turn(self, work: ObservedTurn, record: Record, row: LedgerRow, rows: Rows) -> Decision | None:
        observed, owner_key = work.observed, work.owner_key
        session = ids.session_key(observed.tenant_id, observed.user_id, observed.session_id)
        if observed.turn_number <= turns_of(rows, owner_key, session):
            self._metrics.counted("duplicate")
            return None
        stamp = self._stamp(ids.observed_id(session, observed.turn_id))
        view = self._view(observed.tenant_id, owner_key)
        observations = routed(observed, self._policy)
        vectors = await self._embed(observed.tenant_id, texts_of(observations))
        reflected = await reflect(
            observed,
            observations,
            vectors=vectors,
            view=view,
            stamp=stamp,
            policy=self._policy,
            count=self._metrics.counted,
        )
        recorded = _recorded(observed, reflected.episodes, reflected.changes)
        outcome = Outcome(
            source=_source(record, work.id),
            after={session_row_key(owner_key, session): ReflectedTurns(turn_number=observed.turn_number).to_bytes()},
            writes=(
                *await self._episodes.writes(
                    reflected.episodes,
                    vectors,
                    tenant_id=observed.tenant_id,
                    owner_key=owner_key,
                    recorded=row.episodes,
                ),
                *await view.writes(stamp.cause),
            ),
            records=(*self._events(reflected.changes, stamp), episodes_recorded(recorded, at=stamp.now)),
            tenant_id=observed.tenant_id,
            state_ids=touched([each.transition for each in reflected.changes]),
        )
        row = row.model_copy(
            update={
                "turns": row.turns + 1,
                "episodes": row.episodes + len(reflected.episodes),
                "changes": row.changes + len(reflected.changes),
            }
        )
        decided = _decided(row, owner_key, outcome)
        if decided.row is not None and len(decided.row) > MAX_VALUE:
            raise Poison("oversized", f"what follows from it has {len(decided.row)} bytes; at most {MAX_VALUE} fit")
        return decided

    async def _command(self, work: OwnerCommand, record: Record, row: LedgerRow) -> Decision | None:
        command, owner_key = work.command, work.owner_key
        if command.kind in CONSOLIDATION_KINDS:
            return None
        if command.command_id in row.commands:
            self._metrics.counted("duplicate")
            return None
        source = _source(record, work.id)
        row = row.model_copy(update={"commands": row.commands.add(command.command_id)})
        if command.kind not in REFLECTOR_KINDS:
            return self._refused(
                command, owner_key, row, source, "unknown_kind", f"no stage knows the kind {command.kind!r}"
            )
        if (off := refusal(command.kind, self._policy.tiers)) is not None:
            return self._refused(command, owner_key, row, source, off.code, off.message)
        try:
            args = _args_of(command)
        except ValidationError as error:
            return self._refused(command, owner_key, row, source, "invalid_args", explain(error))
        if isinstance(args, FactsApply):
            return await self._apply(command, args, owner_key, row, source)
        return await self._add_episodes(command, args, owner_key, row, source)

    async def _add_episodes(
        self, command: Command, args: EpisodesRecord | EpisodesKeep, owner_key: str, row: LedgerRow, source: Source
    ) -> Decision:
        assert command.owner is not None  # held by route
        tenant_id, now = command.tenant_id, self._now()
        told: dict[str, JsonValue] = {}
        if isinstance(args, EpisodesRecord):
            done = await self._episodes.summarised(args, tenant_id=tenant_id, owner=command.owner, now=now)
            told["run_id"] = args.run_id
        else:
            done = await self._episodes.flushed(args, tenant_id=tenant_id, owner=command.owner, now=now)
        told["episodes"] = [verdict.to_payload() for verdict in done.verdicts]
        vectors = await self._embed(tenant_id, list(dict.fromkeys(each.content for each in done.episodes)))
        result = CommandResult(
            command_id=command.command_id,
            status="applied",
            result=told,
            at=now,
        )
        outcome = Outcome(
            source=source,
            writes=await self._episodes.writes(
                done.episodes, vectors, tenant_id=tenant_id, owner_key=owner_key, recorded=row.episodes
            ),
            records=(result_record(result, source=SOURCE, subject=owner_key),),
            tenant_id=tenant_id,
        )
        return _decided(row.model_copy(update={"episodes": row.episodes + len(done.episodes)}), owner_key, outcome)

    async def _apply(
        self, command: Command, args: FactsApply, owner_key: str, row: LedgerRow, source: Source
    ) -> Decision:
        assert command.owner is not None  # held by route
        stamp = self._stamp(command.command_id)
        view = self._view(command.tenant_id, owner_key)
        episodes = await episodes_of(
            args, store=self._store, calls=self._calls, tenant_id=command.tenant_id, owner_key=owner_key
        )
        applied = await apply(
            command,
            command.owner,
            args,
            embed=lambda texts: self._embed(command.tenant_id, texts),
            episodes=episodes,
            view=view,
            stamp=stamp,
            policy=self._policy,
            count=self._metrics.counted,
        )
        for verdict in applied.verdicts:
            self._metrics.counted(f"verdict_{verdict.verdict}")
        result = CommandResult(
            command_id=command.command_id,
            status="applied",
            result={"run_id": args.run_id, "changes": [verdict.to_payload() for verdict in applied.verdicts]},
            at=stamp.now,
        )
        outcome = Outcome(
            source=source,
            writes=await view.writes(stamp.cause),
            records=(
                *self._events(applied.changes, stamp),
                result_record(result, source=SOURCE, subject=owner_key),
            ),
            tenant_id=command.tenant_id,
            state_ids=touched([each.transition for each in applied.changes]),
        )
        decided = _decided(row.model_copy(update={"changes": row.changes + len(applied.changes)}), owner_key, outcome)
        if decided.row is not None and len(decided.row) > MAX_VALUE:
            message = f"its changes have {len(decided.row)} bytes together; at most {MAX_VALUE} fit: send fewer at once"
            return self._refused(command, owner_key, row, source, "too_large", message)
        return decided

    def _refused(
        self, command: Command, owner_key: str, row: LedgerRow, source: Source, code: str, message: str
    ) -> Decision:
        self._metrics.counted("command_refused")
        result = CommandResult(
            command_id=command.command_id,
            status="refused",
            error=ResultError(code=code, message=message[:1_000]),
            at=self._now(),
        )
        record = result_record(result, source=SOURCE, subject=owner_key)
        return _decided(row, owner_key, Outcome(source=source, records=(record,), tenant_id=command.tenant_id))

    # ------------------------------------------------------------------------------------------------ effects
    async def store(self, outcome: Outcome) -> None:
        await apply_writes(self._store, outcome.writes)

    async def publish_state(self, outcome: Outcome) -> None:
        assert outcome.tenant_id is not None  # set wherever state_ids are
        await publish_state(
            outcome.state_ids,
            tenant_id=outcome.tenant_id,
            store=self._store,
            send_durably=self._send_durably,
            now=self._now,
        )

    def on_assigned(self, partitions: frozenset[int], rows: Rows) -> None:
        return None

    async def background(self) -> None:
        return None

    # ------------------------------------------------------------------------------------------------ within
    def _stamp(self, cause: str) -> Stamp:
        return Stamp(now=self._now(), cause=cause, embedder=self._embedder.identity.name)

    def _view(self, tenant_id: str, owner_key: str) -> FactOverlay:
        return FactOverlay(store=self._store, calls=self._calls, tenant_id=tenant_id, owner_key=owner_key)

    async def _embed(self, tenant_id: str, texts: list[str]) -> dict[str, Vector]:
        """All texts of an event in one call."""
        if not texts:
            return {}
        vectors = await self._calls.call("embedder", lambda: self._embedder.embed(texts, tenant_id=tenant_id))
        return dict(zip(texts, vectors, strict=True))

    def _events(self, changes: Sequence[FactChange], stamp: Stamp) -> tuple[OutRecord, ...]:
        for each in changes:
            fact = each.transition.fact
            self._metrics.fact_action(each.transition.action)
            log.info(
                f"fact_{each.transition.action}",
                fact_id=fact.fact_id,
                version=fact.version,
                state=fact.state,
                other=each.transition.decision.other_fact_id,
            )
        return tuple(fact_updated(each.transition, cause=each.cause, at=stamp.now) for each in changes)


def _args_of(command: Command) -> FactsApply | EpisodesRecord | EpisodesKeep:
    """Of a kind that is the reflector's. Raises ValidationError."""
    match command.kind:
        case "episodes.record":
            return EpisodesRecord.from_payload(command.args)
        case "episodes.keep":
            return EpisodesKeep.from_payload(command.args)
        case _:
            return FactsApply.from_payload(command.args)


def _decided(row: LedgerRow, owner_key: str, outcome: Outcome) -> Decision:
    return Decision(outcome, owner_key, row.model_copy(update={"last": outcome}).to_bytes())


def _source(record: Record, event_id: str) -> Source:
    position = record.position
    return Source(topic=position.topic, partition=position.partition, offset=position.offset, id=event_id)


def _recorded(observed: Observed, episodes: Sequence[StoredEpisode], changes: Sequence[FactChange]) -> EpisodesRecorded:
    states = {each.transition.fact.fact_id: each.transition.fact.state for each in changes}
    return EpisodesRecorded(
        tenant_id=observed.tenant_id,
        owner=observed.owner,
        user_id=observed.user_id,
        session_id=observed.session_id,
        turn_id=observed.turn_id,
        turn_number=observed.turn_number,
        occurred_at=observed.occurred_at,
        episodes=tuple(
            RecordedEpisode(episode_id=each.episode_id, importance=each.importance, category=each.category)
            for each in episodes
        ),
        fact_ids=tuple(states),
        pending_fact_ids=tuple(fact_id for fact_id, state in states.items() if state == "pending"),
        evicted_persistent=len(observed.evicted),
        notes_tokens=sum(tokens(each.content) for each in observed.observations),
    )
