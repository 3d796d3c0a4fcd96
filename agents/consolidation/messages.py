"""What consolidation sends: proposals as commands, and the results of commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from ...memory.upkeep.consolidation import split_into_commands
from ...schemas import ids
from ...schemas.commands import Command, CommandResult, EpisodesRecord, FactsApply, ResultError, ResultStatus
from .rows import NOT_RETRIED, RunRecord, RunStatus
from .steps.base import RunRequest, StepResult

SOURCE: Final = "/memstream/consolidation"
CODES: Final[dict[RunStatus, str]] = {
    "paused": "paused_by_tier",
    "deferred": "model_away",
    "failed": "refused_by_model",
}
MESSAGES: Final[dict[RunStatus, str]] = {
    "paused": "the tier spends nothing on it: set MEMSTREAM_TIER=standard",
    "deferred": "the model is away; the run is tried again by itself",
    "failed": "the model's answer could not be used, also after one repair; the command is a dead letter",
}
ASK_AGAIN: Final = "the model is away; nothing was lost: ask again"


def proposals(did: Sequence[StepResult], asked: RunRequest) -> tuple[Command, ...]:
    """`facts.apply` commands of at most 20 changes, each of one step: it names model and prompt."""
    chunks = [(one, changes) for one in did for changes in split_into_commands(one.changes)]
    return tuple(
        Command(
            command_id=ids.command_id(asked.run_id, n),
            kind="facts.apply",
            tenant_id=asked.tenant_id,
            owner=one.to or asked.owner,
            args=FactsApply(run_id=asked.run_id, changes=changes, model=one.model, prompt=one.prompt).to_payload(),
            issued_by=SOURCE,
            issued_at=asked.now,
        )
        for n, (one, changes) in enumerate(chunks)
    )


def summaries(did: Sequence[StepResult], asked: RunRequest, *, after: int) -> tuple[Command, ...]:
    """`episodes.record` commands, each of one step; `after`: so many commands of the run go before them."""
    told = [one for one in did if one.summaries]
    return tuple(
        Command(
            command_id=ids.command_id(asked.run_id, n),
            kind="episodes.record",
            tenant_id=asked.tenant_id,
            owner=asked.owner,
            args=EpisodesRecord(
                run_id=asked.run_id, summaries=one.summaries, model=one.model, prompt=one.prompt
            ).to_payload(),
            issued_by=SOURCE,
            issued_at=asked.now,
        )
        for n, one in enumerate(told, start=after)
    )


def run_result(command: Command, ran: RunRecord, why: str) -> CommandResult:
    """The run; its verdicts come as results of the commands that it names."""
    phases: list[JsonValue] = [{"name": part.name, "status": part.status, **dict(part.counts)} for part in ran.phases]
    result: dict[str, JsonValue] = {
        "run_id": ran.run_id,
        "status": ran.status,
        "episodes": ran.episodes,
        "changes": ran.changes,
        "command_ids": list(ran.command_ids),
        "dropped": dict(ran.dropped),
        "phases": phases,
    }
    if ran.kind in ("hygiene", "compact"):  # their counts are what is asked for
        result |= {name: n for part in ran.phases for name, n in part.counts.items()}
    status: ResultStatus = "applied"
    error: ResultError | None = None
    if ran.status not in ("done", "nothing"):
        status = "refused" if ran.status == "paused" else "failed"
        message = why if ran.status == "paused" and why else MESSAGES[ran.status]
        if ran.status == "deferred" and ran.kind in NOT_RETRIED:
            message = ASK_AGAIN
        error = ResultError(code=CODES[ran.status], message=message[:1_000])
    return CommandResult(command_id=command.command_id, status=status, error=error, result=result, at=ran.at)


def plain_result(
    command: Command, status: ResultStatus, at: datetime, error: ResultError | None = None
) -> CommandResult:
    return CommandResult(command_id=command.command_id, status=status, error=error, at=at)
