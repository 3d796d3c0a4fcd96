"""What follows from a run for its owner's row: its record, what waits, and what is to be done next, and when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ...memory.policies import ConsolidationPolicy
from ...memory.upkeep.consolidation import Counters, next_scheduled_run
from ...schemas import ids
from ...schemas.commands import Command
from ...schemas.turns import Owner
from .rows import NOT_RETRIED, RUNS_KEPT, FollowUp, Kind, PendingRun, ProgressRow, RunRecord
from .run import RunResult
from .steps.base import RunRequest


@dataclass(frozen=True, slots=True)
class ScheduledCommand:
    """A command that consolidation sends itself. The same one until the owner's row says otherwise, so one that is sent
    twice, by whoever, is done once."""

    command_id: str
    kind: Kind
    tenant_id: str
    owner: Owner
    at: datetime
    for_model: bool = False
    """Whether it waits for a model: due at once when that is back, and when a worker starts."""


def recorded(ran: RunResult, asked: RunRequest, commands: Sequence[Command]) -> RunRecord:
    made = next((did for part, did in ran.did if did.model is not None and part != "deep"), None)
    made = made or next((did for _, did in ran.did if did.model is not None), None)
    return RunRecord(
        run_id=asked.run_id,
        status=ran.status,
        at=asked.now,
        kind=ran.kind,
        phases=ran.parts,
        episodes=ran.counts.get("episodes", 0),
        facts_shown=ran.counts.get("facts_shown", 0),
        changes=sum(len(did.changes) for _, did in ran.did),
        dropped=ran.dropped,
        command_ids=tuple(command.command_id for command in commands),
        model=made.model if made else None,
        prompt=made.prompt if made else None,
        usage=ran.usage,
    )


def with_run(
    row: ProgressRow,
    ran: RunResult,
    record: RunRecord,
    asked: RunRequest,
    *,
    after: Sequence[Kind],
    pause: float,
    after_run: float,
) -> ProgressRow:
    """`after`: what follows a `consolidate` that did something, each `after_run` seconds after the one before it.
    `pause`: seconds until what was deferred is tried again."""
    row = row.model_copy(
        update={
            "runs": (*row.runs, record)[-RUNS_KEPT:],
            "changed_facts": row.changed_facts + record.changes,
            "counted_since": row.counted_since if row.counters.turns else None,
        }
    )
    stopped = ran.status in ("paused", "deferred")
    soon = asked.now + timedelta(seconds=after_run)
    if ran.kind == "consolidate":
        waiting = _waiting(row, ran, asked) if stopped else None
        row = row.model_copy(update={"waiting": waiting})
        if ran.status == "done":
            errands = tuple(FollowUp(kind=kind, run_id=asked.run_id, not_before=soon) for kind in after)
            row = row.model_copy(update={"errands": errands})
        return row
    if ran.kind == "hygiene" and asked.args.get("run") is not None:
        return row  # maintenance is no visit of the janitor: that is owed as before
    before = next((errand for errand in row.errands if errand.kind == ran.kind), None)
    rest = tuple(
        errand.model_copy(update={"not_before": max(errand.not_before, soon)})
        for errand in row.errands
        if errand.kind != ran.kind
    )
    is_tried_again = ran.status == "deferred" or ran.retry_after is not None
    if stopped and is_tried_again and ran.kind not in NOT_RETRIED:
        again = FollowUp(
            kind=ran.kind,
            run_id=before.run_id if before else asked.run_id,
            attempt=before.attempt + 1 if before else 1,
            not_before=asked.now + timedelta(seconds=ran.retry_after or pause),
        )
        rest = (again, *rest)
    return row.model_copy(update={"errands": rest})


def without_follow_up(row: ProgressRow, kind: Kind) -> ProgressRow:
    """Of a kind that is refused: nothing is owed any more."""
    return row.model_copy(update={"errands": tuple(errand for errand in row.errands if errand.kind != kind)})


def upcoming(
    row: ProgressRow, owner_key: str, *, policy: ConsolidationPolicy, pause: float, paused: bool, now: datetime
) -> ScheduledCommand | None:
    """The next command that this owner needs. `paused`: no call is granted under these settings; what waits for others
    is found again when a worker starts with them."""
    tenant_id, scope, owner_id = ids.split(owner_key)
    blank = ScheduledCommand("", "consolidate", tenant_id, Owner.model_validate({"scope": scope, "id": owner_id}), now)
    waiting = row.waiting
    if waiting is not None and not paused:
        at = waiting.until or now + timedelta(seconds=pause)
        command_id = ids.retry_command_id(waiting.run_id, waiting.attempt)
        return replace(blank, command_id=command_id, at=at, for_model=waiting.until is None)
    if row.errands:
        first = row.errands[0]
        command_id = ids.errand_command_id(first.run_id, first.kind, first.attempt)
        return replace(blank, command_id=command_id, kind=first.kind, at=first.not_before, for_model=first.attempt > 0)
    last = next((run.at for run in reversed(row.runs) if run.kind == "consolidate"), row.counted_since)
    at_ = next_scheduled_run(row.counters, last, policy)
    if at_ is None:
        return None
    return replace(blank, command_id=ids.scheduled_command_id(owner_key, at_), at=at_)


def _waiting(row: ProgressRow, ran: RunResult, asked: RunRequest) -> PendingRun:
    """The same run until it is done, under its first name."""
    before = row.waiting
    return PendingRun(
        tenant_id=asked.tenant_id,
        owner=asked.owner,
        run_id=before.run_id if before else asked.run_id,
        attempt=before.attempt + 1 if before else 0,
        status="paused" if ran.status == "paused" else "deferred",
        turns=row.counters.turns,
        until=None if ran.retry_after is None else asked.now + timedelta(seconds=ran.retry_after),
    )


def tried_again(waiting: PendingRun, counters: Counters, policy: ConsolidationPolicy) -> bool:
    """Whether a turn asks again for a run that is paused: after as many turns as a run needs, so that what costs
    nothing is done. One that is deferred has its reminder."""
    return waiting.status == "paused" and counters.turns - waiting.turns >= policy.turns
