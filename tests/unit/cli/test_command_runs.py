"""What a command of a person waits for: its result, and a verdict for each of the commands that it names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from memstream.cli.wiring import command_runs
from memstream.cli.wiring.command_runs import EARLY_MAX, CommandRun, followed, while_at_work
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


class Stages:
    """Stages of this process as `while_at_work` sees them."""

    def __init__(self, *why: str) -> None:
        self.why = list(why)
        self.work = asyncio.create_task(asyncio.Event().wait())

    def why_idle(self, stage: str) -> str:
        return self.why.pop(0) if len(self.why) > 1 else self.why[0]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runs, "PATIENCE", 0.05)
    monkeypatch.setattr(command_runs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(command_runs, "PROGRESS_SECONDS", 0.03)


async def waited(coming: asyncio.Event, stages: Stages) -> str:
    async def result() -> None:
        await coming.wait()

    async with asyncio.timeout(DEADLINE):
        return await while_at_work(result(), cast(Any, stages), "consolidation", "digest")


@pytest.mark.usefixtures("impatient")
async def test_a_command_waits_as_long_as_its_stage_works(capsys: pytest.CaptureFixture[str]) -> None:
    coming, looks = asyncio.Event(), 0
    stages = Stages("")

    def why_idle(stage: str) -> str:
        nonlocal looks
        looks += 1
        if looks == 20:  # 0.2 s: four times the patience
            coming.set()
        return "away: model:acme: 503" if looks % 3 == 0 else ""

    stages.why_idle = why_idle  # type: ignore[method-assign]
    assert await waited(coming, stages) == ""
    assert looks >= 20
    assert "digest: 0 s so far" in capsys.readouterr().err


@pytest.mark.usefixtures("impatient")
async def test_a_command_ends_when_its_stage_makes_no_progress() -> None:
    stages = Stages("", "", "away: model:acme: 503")
    assert await waited(asyncio.Event(), stages) == "no progress for 0 s: away: model:acme: 503"


@pytest.mark.usefixtures("impatient")
async def test_a_command_ends_with_its_stages() -> None:
    stages = Stages("")
    stages.work.cancel()
    assert await waited(asyncio.Event(), stages) == "the stages ended"


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
