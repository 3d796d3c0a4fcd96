"""Records that consolidation sends: proposals as commands, and results of commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from ...memory.upkeep.consolidation import split_into_commands
from ...schemas import ids
from ...schemas.commands import Command, CommandResult, EpisodesRecord, FactsApply, ResultError, ResultStatus
from .rows import NOT_RETRIED, RunRecord, RunStatus
from .step import RunRequest, StepResult

SOURCE: Final = "/memstream/consolidation"
CODES: Final[dict[RunStatus, str]] = {
    "paused": "paused_by_tier",
    "deferred": "model_away",
    "failed": "refused_by_model",
}
MESSAGES: Final[dict[RunStatus, str]] = {
    "paused": "the tier spends nothing on it: set MEMSTREAM_TIER=standard",
    "deferred": "the model is not available; the run is retried automatically",
    "failed": "the model's answer was unusable, even after one repair; the command is a dead letter",
}
ASK_AGAIN: Final = "the model is not available; nothing was lost: send the command again"


def proposal_commands(results: Sequence[StepResult], request: RunRequest) -> tuple[Command, ...]:
    """Build a run's commands for the reflector: fact changes first, then summaries, then rejections.

    In this order, a change of a fact takes effect before a rejection of the same run could reject the fact.
    """
    facts = _facts_apply(results, request)
    episodes = _episodes_record(results, request, after=len(facts))
    return (*facts, *episodes, *_facts_reject(results, request, after=len(facts) + len(episodes)))


def _facts_apply(results: Sequence[StepResult], request: RunRequest) -> tuple[Command, ...]:
    """Build `facts.apply` commands of at most 20 changes.

    Each command has the changes of one step, and the step's model and prompt.
    """
    chunks = [(result, changes) for result in results for changes in split_into_commands(result.changes)]
    return tuple(
        Command(
            command_id=ids.command_id(request.run_id, n),
            kind="facts.apply",
            tenant_id=request.tenant_id,
            owner=result.to or request.owner,
            args=FactsApply(
                run_id=request.run_id, changes=changes, model=result.model, prompt=result.prompt
            ).to_payload(),
            issued_by=SOURCE,
            issued_at=request.now,
        )
        for n, (result, changes) in enumerate(chunks)
    )


def _episodes_record(results: Sequence[StepResult], request: RunRequest, *, after: int) -> tuple[Command, ...]:
    """Build one `episodes.record` command per step with summaries. `after`: number of the run's earlier commands."""
    with_summaries = [result for result in results if result.summaries]
    return tuple(
        Command(
            command_id=ids.command_id(request.run_id, n),
            kind="episodes.record",
            tenant_id=request.tenant_id,
            owner=request.owner,
            args=EpisodesRecord(
                run_id=request.run_id, summaries=result.summaries, model=result.model, prompt=result.prompt
            ).to_payload(),
            issued_by=SOURCE,
            issued_at=request.now,
        )
        for n, result in enumerate(with_summaries, start=after)
    )


def _facts_reject(results: Sequence[StepResult], request: RunRequest, *, after: int) -> tuple[Command, ...]:
    """Build one `facts.reject` command per fact. `after`: number of the run's earlier commands."""
    rejections = [each for result in results for each in result.rejections]
    return tuple(
        Command(
            command_id=ids.command_id(request.run_id, n),
            kind="facts.reject",
            tenant_id=request.tenant_id,
            owner=request.owner,
            args=each.to_payload(),
            issued_by=SOURCE,
            issued_at=request.now,
        )
        for n, each in enumerate(rejections, start=after)
    )


def run_result(command: Command, run: RunRecord, why: str) -> CommandResult:
    """Build the result of a command from its run.

    `command_ids` names the run's commands to the reflector. Their results contain the reflector's verdicts.
    """
    phases: list[JsonValue] = [{"name": part.name, "status": part.status, **dict(part.counts)} for part in run.phases]
    result: dict[str, JsonValue] = {
        "run_id": run.run_id,
        "status": run.status,
        "episodes": run.episodes,
        "changes": run.changes,
        "command_ids": list(run.command_ids),
        "dropped": dict(run.dropped),
        "phases": phases,
    }
    if run.kind in ("hygiene", "compact"):  # the caller needs these counts
        result |= {name: n for part in run.phases for name, n in part.counts.items()}
    status: ResultStatus = "applied"
    error: ResultError | None = None
    if run.status not in ("done", "nothing"):
        status = "refused" if run.status == "paused" else "failed"
        message = why if why and (run.status == "paused" or run.kind == "judge") else MESSAGES[run.status]
        if run.status == "deferred" and run.kind in NOT_RETRIED:
            message = ASK_AGAIN
        error = ResultError(code=CODES[run.status], message=message[:1_000])
    return CommandResult(command_id=command.command_id, status=status, error=error, result=result, at=run.at)


def plain_result(
    command: Command, status: ResultStatus, at: datetime, error: ResultError | None = None
) -> CommandResult:
    """Return the result of a command that caused no run."""
    return CommandResult(command_id=command.command_id, status=status, error=error, at=at)
