"""The adapter of the OpenAI Agents SDK against a memory that is served, with the real SDK and a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from agents.memory import Session
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    Runner,
    SessionSettings,
    Usage,
    set_tracing_disabled,
)
from memstream.client import ClientError, Memory, Misconfigured, Unavailable, connect
from memstream.client.frameworks.openai_agents import MemstreamSession, memory_tools
from tests.support.kafka import free_port
from tests.support.polling import wait_for
from tests.support.served_memory import TENANT, ServedMemory, contents, wait_until_learnt

set_tracing_disabled(True)
pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]
Said = Callable[[Sequence[dict[str, Any]]], Any]


class ScriptedModel(Model):
    """Gives the outputs of a script, one a call, and keeps what it was asked."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.asked: list[list[dict[str, Any]]] = []

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **fields: Any) -> ModelResponse:
        self.asked.append(input if isinstance(input, list) else [{"role": "user", "content": input}])
        return ModelResponse(output=[self.script.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *more: Any, **fields: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def says(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{uuid4().hex}", role="assistant", status="completed", type="message", content=[part]
    )


def calls(name: str, call_id: str | None = None, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        id=f"fc_{uuid4().hex}", call_id=call_id or f"call_{uuid4().hex}", name=name,
        arguments=json.dumps(arguments), type="function_call",
    )  # fmt: skip


def user_says(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts(items: Sequence[Any]) -> list[str]:
    return [each["content"] if each["role"] == "user" else each["content"][0]["text"] for each in items]


@pytest.fixture
async def memory(served: ServedMemory) -> AsyncIterator[Memory]:
    async with connect(served.url, token=served.token) as memory:
        yield memory


def session_of(memory: Memory, user: str, session_id: str = "s1", **fields: Any) -> MemstreamSession:
    return MemstreamSession(memory, session_id, tenant_id=TENANT, user_id=user, **fields)


async def read_back(memory: Memory, user: str, count: int, **fields: Any) -> list[Any]:
    """The items as another process reads them, when the recorder has stored them."""
    return await wait_for(
        lambda: session_of(memory, user, **fields).get_items(), f"{count} items", until=lambda got: len(got) == count
    )


def test_it_is_a_session_of_the_sdk(memory: Memory) -> None:
    assert isinstance(session_of(memory, "u"), Session)


async def test_what_is_said_in_a_run_is_learnt_and_stands_in_the_next_run(memory: Memory) -> None:
    model = ScriptedModel(says("Good to know."), says("At Stripe."))
    agent = Agent(name="assistant", model=model)
    session = session_of(memory, "ana")
    await Runner.run(agent, "I work at Stripe.", session=session)
    await Runner.run(agent, "Where do I work?", session=session)
    assert texts(model.asked[1]) == ["I work at Stripe.", "Good to know.", "Where do I work?"]
    await wait_until_learnt(memory, "ana", "Works at Stripe")
    context = await memory.api.context("Where do I work?", tenant_id=TENANT, user_id="ana", session_id="s2")
    assert "Works at Stripe" in context.text
    said = ["I work at Stripe.", "Good to know.", "Where do I work?", "At Stripe."]
    assert texts(await read_back(memory, "ana", 4)) == said
    assert texts(await session.get_items(limit=2)) == said[2:]
    assert texts(await session_of(memory, "ana", session_settings=SessionSettings(limit=1)).get_items()) == said[3:]
    assert await session_of(memory, "ana", "another").get_items() == []
    assert await session_of(memory, "bob").get_items() == []


async def test_calls_of_tools_come_back_as_they_were_but_for_their_ids(memory: Memory) -> None:
    tools = await memory_tools(memory, names=["fact_remember"], tenant_id=TENANT, user_id="carl", session_id="s1")
    call = calls("fact_remember", content="Likes green tea", subject=None, category=None, valid_from=None, tags=None)
    model = ScriptedModel(call, says("Noted."), says("Yes."))
    agent = Agent(name="assistant", model=model, tools=tools)
    session = session_of(memory, "carl")
    await Runner.run(agent, "Remember that I like green tea.", session=session)
    await Runner.run(agent, "Do you know what I like?", session=session)
    _, called, output, answer, _ = model.asked[2]
    wanted = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
    assert called == wanted
    assert output["call_id"] == call.call_id
    assert json.loads(output["output"])["fact_id"]
    assert texts([answer]) == ["Noted."]
    assert (await read_back(memory, "carl", 6))[1:3] == [called, output]
    assert "Likes green tea" in await contents(memory, "carl")


async def test_parts_that_are_not_kept_leave_their_kind_and_reasoning_leaves_nothing(memory: Memory) -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA"},
    ]
    session = session_of(memory, "dora")
    await session.add_items([
        {"role": "user", "content": parts},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        says("A cat.").model_dump(exclude_unset=True),
    ])  # fmt: skip
    assert texts(await read_back(memory, "dora", 2)) == ["What is this?\n[input_image]", "A cat."]


async def test_an_item_that_is_added_again_under_its_request_counts_once(memory: Memory) -> None:
    for _ in range(2):  # the process of the first attempt died
        session = session_of(memory, "emil", request_id="m1")
        await session.add_items([user_says("I live in Oslo.")])
        await session.add_items([says("Nice.").model_dump(exclude_unset=True)])
    await session_of(memory, "emil", request_id="m2").add_items([user_says("I live in Oslo.")])
    assert texts(await read_back(memory, "emil", 3)) == ["I live in Oslo.", "Nice.", "I live in Oslo."]


async def test_after_an_error_the_same_items_are_added_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(memory, "finn")
    produce = memory.produce

    async def lost(turn: Any) -> Any:
        await produce(turn)
        raise Unavailable("the answer was lost")

    said = [user_says("One."), says("Two.").model_dump(exclude_unset=True), user_says("Three.")]
    monkeypatch.setattr(memory, "produce", lost)
    with pytest.raises(Unavailable):
        await session.add_items(said)
    monkeypatch.setattr(memory, "produce", produce)
    await session.add_items(said)
    await session.add_items(said[2:])
    assert texts(await read_back(memory, "finn", 4)) == ["One.", "Two.", "Three.", "Three."]


async def test_a_popped_item_and_a_cleared_session_are_out_everywhere_and_what_was_learnt_stays(memory: Memory) -> None:
    session = session_of(memory, "gina")
    await session.add_items([user_says("I work at Google."), says("Nice.").model_dump(exclude_unset=True)])
    assert texts([await session.pop_item()]) == ["Nice."]
    assert texts(await session.get_items()) == ["I work at Google."]
    assert texts(await read_back(memory, "gina", 1)) == ["I work at Google."]
    await wait_until_learnt(memory, "gina", "Works at Google")

    another = session_of(memory, "gina")
    assert texts([await another.pop_item()]) == ["I work at Google."]
    assert await another.pop_item() is None
    await another.add_items([user_says("Hello.")])
    await another.clear_session()
    assert await another.get_items() == []
    await another.add_items([user_says("Again.")])
    assert texts(await another.get_items()) == ["Again."]
    assert texts(await read_back(memory, "gina", 1)) == ["Again."]
    assert texts(await session.get_items()) == ["Again."]
    assert "Works at Google" in await contents(memory, "gina")


async def test_who_added_an_item_reads_it_before_the_recorder_has_stored_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*arguments: Any, **fields: Any) -> AsyncIterator[Any]:
        for turn in ():
            yield turn

    session = session_of(memory, "lou")
    with monkeypatch.context() as patch:
        patch.setattr(memory.api, "session_turns", nothing)
        await session.add_items([user_says("One."), user_says("Two.")])
        assert texts(await session.get_items()) == ["One.", "Two."]
        assert texts([await session.pop_item()]) == ["Two."]
        assert texts(await session.get_items()) == ["One."]
    assert texts(await read_back(memory, "lou", 1)) == ["One."]
    assert texts(await session.get_items()) == ["One."]


async def test_many_items_come_back_in_their_order(memory: Memory) -> None:
    said = [
        item
        for n in range(70)
        for item in (user_says(f"Question {n}."), says(f"Answer {n}.").model_dump(exclude_unset=True))
    ]
    session = session_of(memory, "hugo")
    await session.add_items(said)
    assert texts(await session.get_items()) == texts(said)
    assert texts(await read_back(memory, "hugo", 140)) == texts(said)
    assert texts(await session_of(memory, "hugo").get_items(limit=3)) == texts(said[-3:])


async def invoke(tool: FunctionTool, call_id: str, arguments: str) -> str:
    context = ToolContext(context=None, tool_name=tool.name, tool_call_id=call_id, tool_arguments=arguments)
    return str(await tool.on_invoke_tool(context, arguments))


async def test_a_wrong_call_is_a_sentence_for_the_model(memory: Memory) -> None:
    call = calls("fact_remember", content="Likes tea", user_id="ana")
    model = ScriptedModel(call, says("Sorry."))
    tools = await memory_tools(memory, tenant_id=TENANT, user_id="iris")
    await Runner.run(Agent(name="assistant", model=model, tools=tools), "I like tea.")
    assert "user_id" in model.asked[1][-1]["output"]
    assert await contents(memory, "iris") == []
    remember = next(each for each in tools if each.name == "fact_remember")
    assert "not JSON" in await invoke(remember, "c1", "{")
    assert "not an object" in await invoke(remember, "c1", "[]")


async def test_a_repeated_call_is_applied_once_and_another_one_is_not_taken_for_it(memory: Memory) -> None:
    tools = await memory_tools(memory.tools(tenant_id=TENANT, user_id="jon"), names=["fact_remember"])
    first = await invoke(tools[0], "call_0", '{"content": "Likes tea"}')
    assert await invoke(tools[0], "call_0", '{"content": "Likes tea"}') == first
    assert await invoke(tools[0], "call_0", '{"content": "Lives in Oslo"}') != first
    facts = [fact async for fact in memory.api.facts(tenant_id=TENANT, user_id="jon")]
    assert sorted((fact.content, len(fact.evidence)) for fact in facts) == [("Likes tea", 1), ("Lives in Oslo", 1)]
    assert await contents(memory, "ana2") == []


async def test_tools_that_are_not_there_and_a_memory_that_is_away(memory: Memory, served: ServedMemory) -> None:
    with pytest.raises(ValueError, match="no tool fact_forge"):
        await memory_tools(memory, names=["fact_forge"], tenant_id=TENANT, user_id="kim")
    tools = await memory_tools(memory, names=["fact_search"], tenant_id=TENANT, user_id="kim")
    memory.api.http.base_url = f"http://127.0.0.1:{free_port()}"  # type: ignore[assignment]
    memory.api.timeout = 0.3
    assert "go on without it" in await invoke(tools[0], "c1", '{"query": "tea"}')
    with pytest.raises(Unavailable, match="memstream serve"):
        await session_of(memory, "kim").get_items()


async def test_a_token_reaches_no_other_user(served: ServedMemory) -> None:
    async with connect(served.url, token=served.bound_token) as memory:
        session = session_of(memory, "ana")
        with pytest.raises(ClientError, match="no access to the user"):
            await session.get_items()
        with pytest.raises(ClientError, match="no access to the user"):
            await session.add_items([user_says("Hello.")])
        with pytest.raises(ClientError, match="no access to the user"):
            await memory_tools(memory, tenant_id=TENANT, user_id="ana")
    async with connect(served.url) as memory:
        with pytest.raises(Misconfigured, match="token"):
            await session_of(memory, "ana").get_items()
