"""Schedule of an owner: the effect of a run on the owner's row, and the next command with its time. Pure functions."""

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
from .step import RunRequest


@dataclass(frozen=True, slots=True)
class ScheduledCommand:
    """A command that consolidation sends to itself.

    The command id is derived from the owner's row and changes only with the row. So the command is executed once, even
    if several workers send it.
    """

    command_id: str
    kind: Kind
    tenant_id: str
    owner: Owner
    at: datetime
    for_model: bool = False
    """True when the command waits for a model. The command becomes due when the model is reachable again, and when a
    worker starts."""


# ------------------------------------------------------------------------------------------------ after a run
def run_record(run: RunResult, request: RunRequest, commands: Sequence[Command]) -> RunRecord:
    """Return the record of a run.

    Model and prompt come from the first step that called a model; a step of the deep phase counts only when no other
    step called a model.
    """
    by_model = [(part, result) for part, result in run.results if result.model is not None]
    main = next((result for part, result in by_model if part != "deep"), None)
    main = main or next((result for _, result in by_model), None)
    return RunRecord(
        run_id=request.run_id,
        status=run.status,
        at=request.now,
        kind=run.kind,
        phases=run.parts,
        episodes=run.counts.get("episodes", 0),
        facts_shown=run.counts.get("facts_shown", 0),
        changes=sum(len(result.changes) for result in run.steps),
        dropped=run.dropped,
        command_ids=tuple(command.command_id for command in commands),
        model=main.model if main else None,
        prompt=main.prompt if main else None,
        usage=run.usage,
    )


def with_run(
    row: ProgressRow,
    run: RunResult,
    record: RunRecord,
    request: RunRequest,
    *,
    after: Sequence[Kind],
    pause: float,
    after_run: float,
) -> ProgressRow:
    """Return the owner's row with a run added.

    `after`: the kinds that follow a completed `consolidate`, each `after_run` seconds after the previous run. `pause`:
    seconds until a deferred run is retried.
    """
    row = row.model_copy(update={"changed_facts": row.changed_facts + record.changes})
    if run.kind == "judge":
        return row  # its step has changed the list, and the last 20 runs are of other kinds
    row = row.model_copy(
        update={
            "runs": (*row.runs, record)[-RUNS_KEPT:],
            "counted_since": row.counted_since if row.counters.turns else None,
        }
    )
    stopped = run.status in ("paused", "deferred")
    soon = request.now + timedelta(seconds=after_run)
    if run.kind == "consolidate":
        row = row.model_copy(update={"waiting": _pending_run(row, run, request) if stopped else None})
        if run.status == "done":
            follow_ups = tuple(FollowUp(kind=kind, run_id=request.run_id, not_before=soon) for kind in after)
            row = row.model_copy(update={"errands": follow_ups})
        return row
    if run.kind == "hygiene" and request.args.get("run") is not None:
        return row  # a maintenance run does not replace the janitor's visit
    before = next((each for each in row.errands if each.kind == run.kind), None)
    rest = tuple(
        each.model_copy(update={"not_before": max(each.not_before, soon)})
        for each in row.errands
        if each.kind != run.kind
    )
    is_tried_again = run.status == "deferred" or run.retry_after is not None
    if stopped and is_tried_again and run.kind not in NOT_RETRIED:
        again = FollowUp(
            kind=run.kind,
            run_id=before.run_id if before else request.run_id,
            attempt=before.attempt + 1 if before else 1,
            not_before=request.now + timedelta(seconds=run.retry_after or pause),
        )
        rest = (again, *rest)
    return row.model_copy(update={"errands": rest})


def without_follow_up(row: ProgressRow, kind: Kind) -> ProgressRow:
    """Return the row without the follow-up of a refused kind."""
    return row.model_copy(update={"errands": tuple(each for each in row.errands if each.kind != kind)})


def _pending_run(row: ProgressRow, run: RunResult, request: RunRequest) -> PendingRun:
    """Return the pending run. It keeps the id of the first attempt."""
    before = row.waiting
    return PendingRun(
        tenant_id=request.tenant_id,
        owner=request.owner,
        run_id=before.run_id if before else request.run_id,
        attempt=before.attempt + 1 if before else 0,
        status="paused" if run.status == "paused" else "deferred",
        turns=row.counters.turns,
        until=None if run.retry_after is None else request.now + timedelta(seconds=run.retry_after),
    )


# ------------------------------------------------------------------------------------------------ what is next
def may_try_again(waiting: PendingRun, counters: Counters, policy: ConsolidationPolicy) -> bool:
    """Return whether a turn may restart a paused run. True when as many new turns were counted as a run needs.

    The restarted run executes the steps without a model call. A deferred run is restarted by a reminder instead.
    """
    return waiting.status == "paused" and counters.turns - waiting.turns >= policy.turns


def upcoming(
    row: ProgressRow, owner_key: str, *, policy: ConsolidationPolicy, pause: float, paused: bool, now: datetime
) -> ScheduledCommand | None:
    """Return the next command that this owner needs, if any.

    `paused`: the settings allow no model call. A waiting run then gets no command. A worker that starts with other
    settings finds the run.
    """
    if row.waiting is None and not row.errands and policy.trigger != "schedule":
        return None
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
    last_run = next((run.at for run in reversed(row.runs) if run.kind == "consolidate"), row.counted_since)
    next_run = next_scheduled_run(row.counters, last_run, policy)
    if next_run is None:
        return None
    return replace(blank, command_id=ids.scheduled_command_id(owner_key, next_run), at=next_run)
