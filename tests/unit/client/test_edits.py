"""Every edit of the client against the server's own routes: what is sent fits them, and the answer is read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, cast

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from memstream.adapters.ports import VectorStore
from memstream.api.credentials import Credentials
from memstream.api.edit_routes import EDIT_ROUTES
from memstream.client import Accepted, Api, NotFound, Refused, ToolCallError, Tools
from memstream.client.blocking import BlockingMemory
from memstream.client.edits import Edits
from memstream.schemas.commands import Command, CommandResult
from memstream.schemas.edits.facts import FactForgotten
from tests.support.api_server import CommandsOfTest, NoCommands, app_over, entry
from tests.unit.api.test_edits import EPISODE, FACT, OTHER, OneOfEach, answers, refuses

FACT_ID, EPISODE_ID = FACT.fact_id, EPISODE.episode_id
WHOSE: dict[str, Any] = {"user_id": "u1"}
CALLS: dict[str, Callable[[Api], Awaitable[Any]]] = {
    "facts.remember": lambda api: api.remember("Likes tea", tags=["tea"], **WHOSE),
    "facts.add": lambda api: api.remember("Likes tea", as_it_is=True, user="u1"),
    "facts.update": lambda api: api.update_fact(f"mt_{FACT_ID}", content="Works at Stripe, Inc."),
    "facts.reinforce": lambda api: api.reinforce_fact(FACT_ID),
    "facts.pin": lambda api: api.pin_fact(FACT_ID, reason="asked"),
    "facts.unpin": lambda api: api.unpin_fact(FACT_ID),
    "facts.supersede": lambda api: api.supersede_fact(FACT_ID, "Works at Adobe", reason="told by phone"),
    "facts.merge": lambda api: api.merge_facts(FACT_ID, [OTHER]),
    "facts.forget": lambda api: api.forget_fact(FACT_ID, because="wrong", reason="asked by mail"),
    "facts.approve": lambda api: api.approve_fact(FACT_ID, reason="yes"),
    "facts.reject": lambda api: api.reject_fact(FACT_ID),
    "hygiene": lambda api: api.reflect(**WHOSE),
    "episodes.add": lambda api: api.add_episode("Moved to Rome", **WHOSE),
    "episodes.update": lambda api: api.update_episode(EPISODE_ID, tags=["move"]),
    "episodes.forget": lambda api: api.forget_episode(EPISODE_ID),
    "episodes.merge": lambda api: api.merge_episodes(EPISODE_ID, [OTHER]),
    "episodes.mark_consolidated": lambda api: api.mark_consolidated(EPISODE_ID),
    "working.add": lambda api: api.add_entry("s1", "The deploy is on Friday", pinned=True, **WHOSE),
    "turn.retract": lambda api: api.retract_turn("s1", "t1", **WHOSE),
    "session.erase": lambda api: api.erase_session("s1", **WHOSE),
    "working.evict": lambda api: api.evict_entry("s1", "e1", **WHOSE),
    "working.pin": lambda api: api.pin_entry("s1", "e1", **WHOSE),
    "working.unpin": lambda api: api.unpin_entry("s1", "e1", **WHOSE),
    "working.refresh": lambda api: api.refresh_entry("s1", "e1", **WHOSE),
    "working.advance": lambda api: api.advance_turns("s1", 2, **WHOSE),
    "blocks.define": lambda api: api.define_block("Task", "Plan", session_id="s1", **WHOSE),
    "blocks.append": lambda api: api.append_to_block("Task", "more", **WHOSE),
    "blocks.replace": lambda api: api.replace_in_block("Task", "a", "b", **WHOSE),
    "blocks.rethink": lambda api: api.rethink_block("Task", "x", scope="agent", id="bot"),
    "blocks.remove": lambda api: api.remove_block("Task", **WHOSE),
    "blocks.attach": lambda api: api.attach_block("s1", "Task", owner={"scope": "agent", "id": "bot"}, **WHOSE),
    "blocks.detach": lambda api: api.detach_block("s1", "Task", **WHOSE),
    "procedures.define": lambda api: api.define_procedure("Deploy", "before a release", ["Test"], **WHOSE),
    "procedures.remove": lambda api: api.remove_procedure("Deploy", **WHOSE),
    "procedures.activate": lambda api: api.activate_procedure("s1", "Deploy", **WHOSE),
    "procedures.deactivate": lambda api: api.deactivate_procedure("s1", "Deploy", **WHOSE),
    "groups.define": lambda api: api.define_group("team", description="us"),
    "groups.attach": lambda api: api.attach_to_group("team", members=[{"scope": "user", "id": "u1"}]),
    "groups.detach": lambda api: api.detach_from_group("team", fact_ids=[OTHER]),
    "groups.remove": lambda api: api.remove_group("team"),
    "tasks.add": lambda api: api.add_task("Call", due_at="2026-12-01T09:00:00Z", **WHOSE),
    "tasks.done": lambda api: api.finish_task("t1", **WHOSE),
    "tasks.cancel": lambda api: api.cancel_task("t1", reason="no", **WHOSE),
}
READS = {"holdings", "groups", "blocks", "procedures", "tasks"}


@cache
def shared_app() -> tuple[FastAPI, CommandsOfTest]:
    port = CommandsOfTest()
    token = entry("t", scopes=("memory:read", "memory:write", "memory:review", "memory:admin"))
    return app_over(store=cast(VectorStore, OneOfEach()), commands=port, credentials=Credentials([token])), port


def client_of(commands: NoCommands) -> Api:
    app, port = shared_app()
    port.of = commands
    http = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://memory", headers={"Authorization": "Bearer t"}
    )
    return Api(http=http, timeout=5.0)


@pytest.mark.parametrize("kind", CALLS)
async def test_each_edit_reaches_its_command(kind: str) -> None:
    commands = NoCommands()
    answer = await CALLS[kind](client_of(commands))
    ((command, patience),) = commands.asked
    assert answer == Accepted(command_id=command.command_id)
    assert (command.kind, command.tenant_id, patience) == (kind, "acme", 4.0)


def test_every_route_has_a_call_and_every_call_a_blocking_form() -> None:
    assert {each.kind for each in EDIT_ROUTES} <= set(CALLS)
    methods = {name for name in vars(Edits) if not name.startswith("_")} - {"call", "timeout"}
    assert len(methods) == len(CALLS) - 1 + len(READS), "remember makes two kinds of command"
    assert methods <= set(vars(BlockingMemory))


async def test_a_result_is_read_and_a_refusal_is_raised() -> None:
    done = await client_of(NoCommands(answers(fact_id=FACT_ID, forgotten=True))).forget_fact(FACT_ID)
    assert isinstance(done, FactForgotten)
    assert done.forgotten
    with pytest.raises(Refused, match="it says why"):
        await client_of(NoCommands(refuses("stale"))).reinforce_fact(FACT_ID)
    with pytest.raises(NotFound):
        await client_of(NoCommands()).reinforce_fact(OTHER)


async def test_an_edit_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        if len(keys) == 1:
            raise httpx.ReadError("cut")
        return httpx.Response(202, json={"command_id": "c1"})

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://memory")
    assert await Api(http=http, timeout=5.0).remember("x", user_id="u1") == Accepted(command_id="c1")
    assert len(keys) == 2
    assert keys[0] == keys[1]


async def test_tools_are_defined_and_called_for_the_user_that_is_named() -> None:
    def applied(command: Command) -> CommandResult:
        return answers(name="Task", value="x", characters=1, limit=2_000)(command)

    commands = NoCommands(applied)
    tools = Tools(client_of(commands), user_id="ü 1", session_id="s1")
    names = {each["function"]["name"] for each in await tools.definitions()}
    assert {"recall", "fact_remember", "block_append"} <= names
    result = await tools.call("block_append", {"name": "Task", "text": "x"}, key="call_1")
    again = await tools.call("block_append", {"name": "Task", "text": "x"}, key="call_1")
    (first, _), (second, _) = commands.asked
    assert first.session is not None
    assert (first.session.user_id, first.command_id) == ("ü 1", second.command_id)
    assert result == again == {"name": "Task", "value": "x", "characters": 1, "limit": 2_000}
    for name, arguments in (("block_append", {"name": "Task"}), ("nothing", {})):
        with pytest.raises(ToolCallError):
            await tools.call(name, arguments)
    with pytest.raises(TypeError, match="usr_id"):
        Tools(client_of(commands), usr_id="u1")


def test_answers_have_the_fields_of_the_contracts() -> None:
    for route in EDIT_ROUTES:
        assert issubclass(route.result, BaseModel)
        assert json.dumps(route.result.model_json_schema())
