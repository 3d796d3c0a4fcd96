"""What a command of a person waits for: its result, and a verdict for each of the commands that it names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.cli.wiring.command_runs import EARLY_MAX, CommandRun, followed
from memstream.schemas.commands import CommandResult, ResultError

AT = datetime(2026, 11, 20, tzinfo=UTC)
DEADLINE = 20.0


def result(command_id: str, status: str = "applied", *, error: str = "", **fields: Any) -> CommandResult:
    told = ResultError(code="why", message=error) if error else None
    return CommandResult.model_validate(
        {"command_id": command_id, "status": status, "result": fields, "error": told, "at": AT}
    )


def ran(*command_ids: str) -> CommandResult:
    phases = [{"name": "light", "status": "done", "settled": 2}, {"name": "deep", "status": "nothing"}]
    return result("mine", run_id="r2", episodes=3, command_ids=list(command_ids), phases=phases)


def verdict(command_id: str, fact_id: str) -> CommandResult:
    change = {"action": "new", "fact_id": fact_id, "verdict": "applied", "reason": "told"}
    return result(command_id, run_id="r2", changes=[change])


async def after(*told: CommandResult, patience: float = DEADLINE) -> CommandRun:
    """A run that was told this, and then nothing more."""

    async def results(told: Sequence[CommandResult]) -> AsyncGenerator[CommandResult]:
        for each in told:
            yield each
        await asyncio.Event().wait()

    run = CommandRun("mine", "r1")
    async with asyncio.timeout(DEADLINE), aclosing(results(told)) as coming:
        await followed(coming, run, patience=patience)
    return run


def changed(*fact_ids: str) -> list[dict[str, str]]:
    return [{"action": "new", "fact_id": fact_id, "verdict": "applied"} for fact_id in fact_ids]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
async def test_verdicts_are_told_in_the_order_of_the_proposals_however_they_come(order: tuple[int, ...]) -> None:
    told = (ran("a", "b"), verdict("a", "f1"), verdict("b", "f2"))
    run = await after(verdict("other", "f0"), *(told[n] for n in order), verdict("other", "f0"))
    assert (run.complete, run.status, run.run_id, run.episodes) == (True, "applied", "r2", 3)
    assert (run.changes, run.counts, run.why) == (changed("f1", "f2"), {"settled": 2}, "")


async def test_what_has_not_come_in_time_goes_on() -> None:
    run = await after(ran("a", "b"), verdict("b", "f2"), patience=0.01)
    assert (run.complete, run.status, run.changes) == (False, "applied", changed("f2"))
    nothing = await after(verdict("a", "f1"), patience=0.01)
    assert (nothing.complete, nothing.status, nothing.changes) == (False, "waiting", [])


async def test_why_nothing_was_done_is_told() -> None:
    run = await after(result("mine", "refused", error="the tier is off"))
    assert (run.complete, run.status, run.why) == (True, "refused", "the tier is off")
    run = await after(ran("a"), result("a", "refused", error="too large"))
    assert (run.complete, run.status, run.why, run.changes) == (True, "applied", "too large", [])


async def test_of_others_no_more_is_kept_than_is_worth_it() -> None:
    others = [result(f"other {n}") for n in range(EARLY_MAX)]
    run = await after(verdict("a", "f1"), *others[1:], ran("a"))
    assert run.changes == changed("f1")
    run = await after(verdict("a", "f1"), *others, ran("a"), patience=0.01)
    assert (run.complete, run.changes) == (False, [])
