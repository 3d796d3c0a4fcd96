"""`POST /v1/reflect`: who may start maintenance, which command is sent, and how its result is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.api.credentials import Credentials
from memstream.schemas.commands import Command, CommandResult, ResultError
from memstream.schemas.turns import Owner
from tests.support.api_server import NoCommands, app_over, called, entry

AT = datetime(2026, 11, 20, tzinfo=UTC)
COUNTS = {"pruned": 2, "merged": 1, "strengthened": 3, "derived": 0, "compacted": 0, "reindexed": 0, "duration_ms": 7}
TOKENS = Credentials(
    [
        entry("keeper", scopes=["memory:write", "memory:admin"]),
        entry("writer", scopes=["memory:write"]),
        entry("admin", scopes=["memory:admin"]),
        entry("reader"),
        entry("of-u1", scopes=["memory:write", "memory:admin"], users=["u1"]),
    ]
)


def applied(command: Command) -> CommandResult:
    result: dict[str, Any] = {"run_id": "r1", "status": "done", "phases": [], **COUNTS}
    return CommandResult(command_id=command.command_id, status="applied", result=result, at=AT)


def refused(command: Command) -> CommandResult:
    error = ResultError(code="deferred", message="the model is away")
    return CommandResult(command_id=command.command_id, status="failed", error=error, at=AT)


async def post(commands: NoCommands, body: dict[str, Any], *, token: str = "keeper") -> Any:
    async with called(app_over(commands=commands, credentials=TOKENS), token=token) as api:
        return await api.post("/v1/reflect", json=body)


async def test_what_the_run_did_is_told() -> None:
    commands = NoCommands(applied)
    answer = await post(commands, {"user": "u1", "topic": "work"})
    [(command, patience)] = commands.asked
    assert (answer.status_code, answer.json()) == (200, {"command_id": command.command_id, "run_id": "r1", **COUNTS})
    assert (command.kind, command.args, command.tenant_id) == ("hygiene", {"run": "reflect"}, "acme")
    assert (command.owner, patience) == (Owner(scope="user", id="u1"), 10.0)


async def test_what_takes_longer_is_accepted() -> None:
    commands = NoCommands()
    answer = await post(commands, {"scope": "agent", "id": "mara", "wait": 0})
    [(command, patience)] = commands.asked
    assert (answer.status_code, answer.json()) == (202, {"command_id": command.command_id})
    assert (command.owner, patience) == (Owner(scope="agent", id="mara"), 0.0)


async def test_a_run_that_failed_is_told_with_its_reason() -> None:
    answer = await post(NoCommands(refused), {"user": "u1"})
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:memstream:problem:not-run")
    assert "the model is away" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("token", "body", "status"),
    [
        ("reader", {"user": "u1"}, 403),
        ("writer", {"user": "u1"}, 403),
        ("admin", {"user": "u1"}, 403),
        ("of-u1", {"user": "u2"}, 403),
        ("of-u1", {"scope": "group", "id": "g1"}, 403),
        ("keeper", {"tenant": "rival", "user": "u1"}, 403),
        ("keeper", {}, 422),
        ("keeper", {"user": "u1", "wait": 21}, 422),
    ],
)
async def test_nothing_is_asked_for_who_may_not(token: str, body: dict[str, Any], status: int) -> None:
    commands = NoCommands(applied)
    assert (await post(commands, body, token=token)).status_code == status
    assert commands.asked == []
