"""`/v1/tools`: which tools a credential has, whose memory they touch, and what a refusal looks like."""

from __future__ import annotations

from typing import Any

from memstream.api.credentials import ANYONE, Credentials
from memstream.schemas.commands import Command, CommandResult
from tests.support.api_server import NoCommands, app_over, called, entry
from tests.support.record_builders import NOW

TOKENS = Credentials(
    (
        entry("agent", scopes=("memory:read", "memory:write"), users=("u1",)),
        entry("voice", scopes=("memory:read", "memory:write", "memory:speak-for-user"), users=("u1",)),
        entry("reader", scopes=("memory:read",), users=("u1",)),
    )
)
IN_SESSION = {"X-Memstream-Session": "s1"}


def applied(command: Command) -> CommandResult:
    result: dict[str, Any] = {"name": "Task", "value": "x", "characters": 1, "limit": 2_000}
    return CommandResult(command_id=command.command_id, status="applied", result=result, at=NOW)


async def test_the_definitions_are_those_that_the_credential_may_call() -> None:
    app = app_over(credentials=TOKENS)
    names: dict[str, set[str]] = {}
    for token in ("agent", "reader"):
        async with called(app, token=token) as client:
            tools = (await client.get("/v1/tools")).json()["tools"]
        assert all(each["type"] == "function" and each["function"]["strict"] for each in tools)
        names[token] = {each["function"]["name"] for each in tools}
    assert "fact_remember" in names["agent"]
    assert names["reader"] < names["agent"]
    assert "recall" in names["reader"]


async def test_a_write_goes_to_the_session_of_the_headers_and_returns_its_result() -> None:
    commands = NoCommands(applied)
    async with called(app_over(commands=commands, credentials=TOKENS), token="agent") as client:
        done = await client.post("/v1/tools/block_append", json={"name": "Task", "text": "x"}, headers=IN_SESSION)
    ((command, _),) = commands.asked
    assert command.session is not None
    assert (command.kind, command.session.user_id, command.session.session_id) == ("blocks.append", "u1", "s1")
    assert done.json() == {"result": {"name": "Task", "value": "x", "characters": 1, "limit": 2_000}}


async def test_what_was_not_applied_in_time_is_accepted_and_what_is_wrong_is_told() -> None:
    commands = NoCommands()
    async with called(app_over(commands=commands, credentials=TOKENS), token="agent") as client:
        accepted = await client.post("/v1/tools/fact_remember", json={"content": "Likes tea"})
        wrong = await client.post("/v1/tools/fact_remember", json={"contents": "Likes tea"})
        unknown = await client.post("/v1/tools/fact_eat", json={})
        no_object = await client.post("/v1/tools/recall", json=[1])
    ((command, _),) = commands.asked
    assert accepted.json() == {"result": {"accepted": command.command_id}}
    assert (wrong.status_code, unknown.status_code, no_object.status_code) == (409, 404, 422)
    assert "contents" in wrong.json()["detail"]


async def test_a_credential_that_may_only_read_has_no_tool_that_writes() -> None:
    commands = NoCommands(applied)
    async with called(app_over(commands=commands, credentials=TOKENS), token="reader") as client:
        refused = await client.post("/v1/tools/fact_remember", json={"content": "Likes tea"})
        other = await client.get("/v1/tools", headers={"X-Memstream-User": "u2"})
    assert (refused.status_code, other.status_code, commands.asked) == (404, 403, [])


async def test_only_a_token_with_the_scope_speaks_for_the_user() -> None:
    trusts: dict[str, object] = {}
    for token in ("agent", "voice"):
        commands = NoCommands(applied)
        async with called(app_over(commands=commands, credentials=TOKENS), token=token) as client:
            await client.post("/v1/tools/block_append", json={"name": "Task", "text": "x"}, headers=IN_SESSION)
        ((command, _),) = commands.asked
        trusts[token] = command.args["trust"]
    assert trusts == {"agent": "assistant", "voice": "user"}
    assert "memory:speak-for-user" not in ANYONE.scopes
