"""The routes of edits: the command that each sends, whose memory it may be, and what is answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, cast

import pytest
from fastapi import FastAPI

from memstream.adapters.ports import StoredPoint, VectorStore
from memstream.api.credentials import Credentials
from memstream.api.edit_routes import EDIT_ROUTES, body_model
from memstream.schemas.command_kinds import KINDS
from memstream.schemas.commands import Command, CommandResult, ResultError
from memstream.schemas.topics import StageName
from tests.support.api_server import CommandsOfTest, NoCommands, app_over, called, entry
from tests.support.record_builders import NOW, episode, stored_fact

FACT = stored_fact("Works at Stripe")
EPISODE = episode("Moved to Rome")
OTHER = "00000000-0000-0000-0000-000000000001"
TOKENS = Credentials(
    (
        entry("writer", scopes=("memory:write",)),
        entry("reader", scopes=("memory:read",)),
        entry("other", scopes=("memory:write",), users=("u2",)),
        entry("own", scopes=("memory:write",), users=("u1",)),
    )
)
SESSION = {"user_id": "u1", "session_id": "s1"}
CHANGED: dict[str, Any] = {"turn": 1, "entry": None, "evicted": []}


class OneOfEach:
    """A store with one fact and one episode of the user u1."""

    async def exists(self, collection: str) -> bool:
        return True

    async def get(self, collection: str, *, tenant_id: str, ids: Any, **more: Any) -> dict[str, StoredPoint]:
        records = {"facts": (FACT.fact_id, FACT), "episodes": (EPISODE.episode_id, EPISODE)}
        record_id, record = records[collection]
        found = record_id in ids and tenant_id == "acme"
        return {record_id: StoredPoint(id=record_id, payload=record.to_payload())} if found else {}


def answers(**result: Any) -> Callable[[Command], CommandResult]:
    def answer(command: Command) -> CommandResult:
        return CommandResult(command_id=command.command_id, status="applied", result=cast(Any, result), at=NOW)

    return answer


def refuses(code: str) -> Callable[[Command], CommandResult]:
    def answer(command: Command) -> CommandResult:
        error = ResultError(code=code, message="it says why")
        return CommandResult(command_id=command.command_id, status="refused", error=error, at=NOW)

    return answer


@cache
def shared_app() -> tuple[FastAPI, CommandsOfTest]:
    port = CommandsOfTest()
    return app_over(store=cast(VectorStore, OneOfEach()), commands=port, credentials=TOKENS), port


async def ask(
    commands: NoCommands,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str = "writer",
    headers: dict[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    app, port = shared_app()
    port.of = commands
    async with called(app, token=token) as client:
        if method == "DELETE":
            answer = await client.request(method, path, params=body, headers=headers)
        else:
            answer = await client.request(method, path, json=body or {}, headers=headers)
    return answer.status_code, answer.json()


FACTS, EPISODES = f"/v1/facts/{FACT.fact_id}", f"/v1/episodes/{EPISODE.episode_id}"
CASES: tuple[tuple[str, str, dict[str, Any], str, dict[str, Any]], ...] = (
    ("POST", "/v1/facts", {"user_id": "u1", "content": "Likes tea"}, "facts.remember", {"content": "Likes tea"}),
    ("POST", "/v1/facts", {"user_id": "u1", "content": "Likes tea", "as_it_is": True}, "facts.add", {}),
    ("PATCH", FACTS, {"tags": ["work"]}, "facts.update", {"fact_id": FACT.fact_id, "tags": ["work"]}),
    ("DELETE", FACTS, {"reason": "asked"}, "facts.forget", {"fact_id": FACT.fact_id, "reason": "asked"}),
    ("DELETE", FACTS, {"because": "wrong", "restore": False}, "facts.forget", {"because": "wrong", "restore": False}),
    ("POST", f"{FACTS}/reinforce", {}, "facts.reinforce", {"fact_id": FACT.fact_id}),
    ("POST", f"{FACTS}/pin", {"reason": "asked"}, "facts.pin", {"fact_id": FACT.fact_id, "reason": "asked"}),
    ("POST", f"{FACTS}/unpin", {}, "facts.unpin", {"fact_id": FACT.fact_id}),
    ("POST", f"{FACTS}/supersede", {"content": "Works at Adobe"}, "facts.supersede", {"content": "Works at Adobe"}),
    ("POST", f"{FACTS}/merge", {"fact_ids": [OTHER]}, "facts.merge", {"fact_ids": [FACT.fact_id, OTHER]}),
    ("POST", "/v1/episodes", {"user_id": "u1", "content": "Moved"}, "episodes.add", {"user_id": "u1"}),
    ("PATCH", EPISODES, {"content": "Moved"}, "episodes.update", {"episode_id": EPISODE.episode_id}),
    ("DELETE", EPISODES, {}, "episodes.forget", {"episode_id": EPISODE.episode_id}),
    ("POST", f"{EPISODES}/merge", {"episode_ids": [OTHER]}, "episodes.merge",
     {"episode_ids": [EPISODE.episode_id, OTHER]}),
    ("POST", f"{EPISODES}/mark-consolidated", {}, "episodes.mark_consolidated", {"episode_ids": [EPISODE.episode_id]}),
    ("POST", "/v1/working", {**SESSION, "content": "Friday", "pinned": True}, "working.add", {"pinned": True}),
    ("POST", "/v1/working/advance", {**SESSION, "turns": 3}, "working.advance", {"turns": 3}),
    ("DELETE", "/v1/working/e1", SESSION, "working.evict", {"entry_id": "e1"}),
    ("POST", "/v1/working/e1/pin", SESSION, "working.pin", {"entry_id": "e1"}),
    ("POST", "/v1/working/e1/unpin", SESSION, "working.unpin", {"entry_id": "e1"}),
    ("POST", "/v1/working/e1/refresh", SESSION, "working.refresh", {"entry_id": "e1"}),
    ("POST", "/v1/blocks/define", {**SESSION, "name": "Task", "value": "x"}, "blocks.define", {"name": "Task"}),
    ("POST", "/v1/blocks/append", {"user_id": "u1", "name": "Task", "text": "x"}, "blocks.append", {"text": "x"}),
    ("POST", "/v1/blocks/replace", {**SESSION, "name": "Task", "old": "a", "new": "b"}, "blocks.replace", {"new": "b"}),
    ("POST", "/v1/blocks/rethink", {"scope": "agent", "id": "bot", "name": "Task", "value": "x"}, "blocks.rethink", {}),
    ("POST", "/v1/blocks/remove", {"user_id": "u1", "name": "Task"}, "blocks.remove", {"name": "Task"}),
    ("POST", "/v1/blocks/attach", {**SESSION, "name": "Task"}, "blocks.attach",
     {"owner": {"scope": "user", "id": "u1"}}),
    ("POST", "/v1/blocks/detach", {**SESSION, "name": "Task", "owner": {"scope": "agent", "id": "bot"}},
     "blocks.detach", {"owner": {"scope": "agent", "id": "bot"}}),
    ("POST", "/v1/procedures/define", {"user_id": "u1", "name": "Deploy", "trigger": "t", "steps": ["one"]},
     "procedures.define", {"steps": ["one"]}),
    ("POST", "/v1/procedures/remove", {"user_id": "u1", "name": "Deploy"}, "procedures.remove", {"name": "Deploy"}),
    ("POST", "/v1/procedures/activate", {**SESSION, "name": "Deploy"}, "procedures.activate", {"name": "Deploy"}),
    ("POST", "/v1/procedures/deactivate", {**SESSION, "name": "Deploy"}, "procedures.deactivate", {"name": "Deploy"}),
    ("POST", "/v1/groups/define", {"group_id": "team", "description": "us"}, "groups.define", {"description": "us"}),
    ("POST", "/v1/groups/attach", {"group_id": "team", "members": [{"scope": "user", "id": "u1"}]}, "groups.attach",
     {"members": [{"scope": "user", "id": "u1"}]}),
    ("POST", "/v1/groups/detach", {"group_id": "team", "fact_ids": [OTHER]}, "groups.detach", {"fact_ids": [OTHER]}),
    ("DELETE", "/v1/turns/t1", {"session_id": "s1", "user_id": "u1", "reason": "no"}, "turn.retract",
     {"turn_id": "t1", "reason": "no"}),
    ("DELETE", "/v1/turns/a%2Fb" + "c" * 125, {"session_id": "s1", "user_id": "u1"}, "turn.retract",
     {"turn_id": "a/b" + "c" * 125}),
    ("DELETE", "/v1/sessions", {"session_id": "s1", "user_id": "u1", "reason": "no"}, "session.erase",
     {"reason": "no"}),
    ("POST", "/v1/groups/remove", {"group_id": "team"}, "groups.remove", {}),
    ("POST", "/v1/tasks", {"user_id": "u1", "content": "Call", "due_at": "2026-12-01T09:00:00Z"}, "tasks.add",
     {"due_at": "2026-12-01T09:00:00Z"}),
    ("POST", "/v1/tasks/t1/done", {"user_id": "u1"}, "tasks.done", {"task_id": "t1"}),
    ("POST", "/v1/tasks/t1/cancel", {"user_id": "u1", "reason": "no"}, "tasks.cancel", {"reason": "no"}),
)  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "kind", "args"), CASES)
async def test_each_route_sends_its_command(
    method: str, path: str, body: dict[str, Any], kind: str, args: dict[str, Any]
) -> None:
    commands = NoCommands()
    status, answer = await ask(commands, method, path, body)
    ((command, patience),) = commands.asked
    assert (status, answer) == (202, {"command_id": command.command_id})
    assert (command.kind, command.tenant_id, command.issued_by, patience) == (kind, "acme", "writer", 10.0)
    assert args.items() <= command.args.items()
    in_session = (command.session and command.session.to_payload()) == {"session_id": "s1", "user_id": "u1"}
    assert in_session == ("session_id" in body)


def test_every_edit_has_a_route_and_every_route_a_case() -> None:
    edits = {each.name for each in KINDS if each.result is not None}
    not_for_people = {"tasks.due", "facts.import", "facts.retract", "episodes.retract", "facts.erase", "episodes.erase"}
    not_for_people |= {each for each in edits if each.startswith("restore.")}
    assert {each.kind for each in EDIT_ROUTES} | {"facts.add"} == edits - not_for_people
    assert {case[3] for case in CASES} == {each.kind for each in EDIT_ROUTES} | {"facts.add"}
    writers: set[StageName] = {each.command.writer for each in EDIT_ROUTES}
    assert writers == {"observer", "reflector", "consolidation"}


def may_not_be_empty(schema: Any) -> bool:
    """Whether a JSON Schema has a text with a minimum length."""
    if isinstance(schema, dict):
        return "minLength" in schema or any(map(may_not_be_empty, schema.values()))
    return isinstance(schema, list) and any(map(may_not_be_empty, schema))


IDS = ("tenant", "user", "session", "id", "replaces", "name", "owner", "members")
"""Fields with an id or a name. Names have a pattern."""
TEXTS_OF_BLOCKS = {"text", "old"}
"""Parts of the text of a block, which may be white space."""


async def test_no_edit_takes_a_text_of_white_space_only() -> None:
    asked = set()
    for method, path, body, kind, _ in CASES:
        route = next((each for each in EDIT_ROUTES if each.kind == kind), EDIT_ROUTES[0])
        for name, schema in body_model(route).model_json_schema()["properties"].items():
            if not may_not_be_empty(schema) or name in IDS or name.endswith(("_id", "_ids")) or name in TEXTS_OF_BLOCKS:
                continue
            blank = ["step", " "] if schema.get("type") == "array" else " \t\n\u00a0"
            commands = NoCommands()
            status, answer = await ask(commands, method, path, body | {name: blank})
            assert (status, commands.asked) == (422, []), (kind, name)
            assert answer["errors"][0]["field"].startswith(name), (kind, name)
            assert "white space" in answer["errors"][0]["detail"], (kind, name)
            asked.add((kind, name))
    assert {("facts.update", "content"), ("tasks.add", "condition"), ("procedures.define", "steps")} <= asked


async def test_an_applied_edit_is_answered_with_its_result() -> None:
    commands = NoCommands(answers(fact_id=FACT.fact_id, forgotten=True))
    status, answer = await ask(commands, "DELETE", FACTS, {"wait": "3"})
    ((command, patience),) = commands.asked
    assert (status, patience) == (200, 3.0)
    given = {"fact_id": FACT.fact_id, "forgotten": True, "restored_fact_ids": [], "still_closed": []}
    assert answer == given | {"command_id": command.command_id}


async def test_an_edit_is_audited_with_its_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="memstream.audit")
    await ask(NoCommands(answers(fact_id=FACT.fact_id, forgotten=True)), "DELETE", FACTS, {"reason": "asked"})
    await ask(NoCommands(), "POST", "/v1/working/e1/pin", SESSION)
    forgotten, pinned = (json.loads(record.getMessage()) for record in caplog.records)
    assert (forgotten["action"], forgotten["result"], forgotten["fact_id"]) == ("facts.forget", "applied", FACT.fact_id)
    assert (pinned["session_id"], pinned["entry_id"], pinned["result"]) == ("s1", "e1", "accepted")
    assert "asked" not in json.dumps(forgotten)


@pytest.mark.parametrize(("code", "status"), [("unknown", 404), ("invalid_args", 422), ("stale", 409)])
async def test_a_refusal_says_why(code: str, status: int) -> None:
    told, answer = await ask(NoCommands(refuses(code)), "POST", f"{FACTS}/reinforce", {})
    assert told == status
    assert "it says why" in json.dumps(answer)


@pytest.mark.parametrize(
    ("token", "method", "path", "body", "status"),
    [
        ("reader", "POST", "/v1/facts", {"user_id": "u1", "content": "x"}, 403),
        ("other", "POST", "/v1/facts", {"user_id": "u1", "content": "x"}, 403),
        ("other", "DELETE", FACTS, {}, 404),
        ("other", "POST", "/v1/working/e1/pin", SESSION, 403),
        ("own", "POST", "/v1/blocks/attach", {**SESSION, "name": "B", "owner": {"scope": "agent", "id": "a"}}, 403),
        ("own", "POST", "/v1/blocks/rethink", {"scope": "group", "id": "g", "name": "B", "value": ""}, 403),
        ("own", "POST", "/v1/groups/attach", {"group_id": "g", "members": [{"scope": "user", "id": "u1"}]}, 403),
        ("own", "POST", "/v1/episodes", {"scope": "user", "id": "u1", "user_id": "u2", "content": "x"}, 403),
        ("writer", "PATCH", f"/v1/facts/{OTHER}", {"tags": []}, 404),
        ("writer", "PATCH", FACTS, {}, 422),
        ("writer", "PATCH", FACTS, {"contents": "x"}, 422),
        ("writer", "POST", "/v1/working", {"user_id": "u1", "content": "x"}, 422),
        ("writer", "DELETE", FACTS, {"wait": "60"}, 422),
        ("writer", "POST", "/v1/tasks", {"user_id": "u1", "content": "x"}, 422),
    ],
)
async def test_who_may_not_or_asks_wrongly_sends_nothing(
    token: str, method: str, path: str, body: dict[str, Any], status: int
) -> None:
    commands = NoCommands()
    told, answer = await ask(commands, method, path, body, token=token)
    assert (told, commands.asked) == (status, [])
    assert status != 422 or answer["errors"]


async def test_a_repeated_request_is_the_same_command() -> None:
    commands = NoCommands()
    for key in ("k1", "k1", "k2"):
        await ask(commands, "POST", "/v1/facts", {"user_id": "u1", "content": "x"}, headers={"Idempotency-Key": key})
    first, again, other = (command.command_id for command, _ in commands.asked)
    assert first == again != other
    status, _ = await ask(commands, "POST", "/v1/facts", {"content": "x"}, headers={"Idempotency-Key": "k" * 129})
    assert status == 422


async def test_a_key_of_another_request_is_refused() -> None:
    commands, headers = NoCommands(refuses("key_reused")), {"Idempotency-Key": "k1"}
    for content in ("x", "y", "x"):
        status, answer = await ask(
            commands, "POST", "/v1/facts", {"user_id": "u1", "content": content}, headers=headers
        )
        assert (status, answer["errors"][0]["field"]) == (422, "Idempotency-Key")
    first, other, again = (command for command, _ in commands.asked)
    assert first.command_id == other.command_id == again.command_id
    assert first.request_hash == again.request_hash != other.request_hash


async def test_the_header_names_the_session() -> None:
    commands = NoCommands()
    headers = {"X-Memstream-Session": "s%209"}
    status, _ = await ask(commands, "POST", "/v1/working/e1/pin", {"user_id": "u1"}, headers=headers)
    ((command, _),) = commands.asked
    assert (status, command.session and command.session.session_id) == (202, "s 9")


async def test_a_header_that_is_too_long_is_refused_even_if_it_is_not_used() -> None:
    commands, headers = NoCommands(), {"X-Memstream-Session": "s" * 1537}
    body = {"user_id": "u1", "session_id": "s1"}
    status, answer = await ask(commands, "POST", "/v1/working/e1/pin", body, headers=headers)
    assert (status, answer["errors"][0]["field"], commands.asked) == (422, "X-Memstream-Session", [])
