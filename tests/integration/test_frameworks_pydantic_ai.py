"""The toolset of Pydantic AI against a memory that is served, with the real Pydantic AI and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memstream.client import ClientError, Memory, connect
from memstream.client.frameworks.pydantic_ai import MemstreamToolset
from tests.support.kafka import free_port
from tests.support.served_memory import TENANT, ServedMemory, contents

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]


class Script:
    """Gives the parts of a script, one a request, and keeps what it was shown."""

    def __init__(self, *parts: TextPart | ToolCallPart) -> None:
        self.parts = list(parts)
        self.shown: list[list[ModelMessage]] = []
        self.tools: dict[str, Any] = {}

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append(messages)
        self.tools = {each.name: each for each in info.function_tools}
        return ModelResponse(parts=[self.parts.pop(0)])

    @property
    def answers(self) -> list[Any]:
        """What the tools gave to the model."""
        parts = [part for message in self.shown[-1] for part in message.parts]
        return [part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def remembers(content: str, **more: Any) -> ToolCallPart:
    return ToolCallPart("fact_remember", {"content": content, **more}, tool_call_id="call_0")


@pytest.fixture
async def memory(served: ServedMemory) -> AsyncIterator[Memory]:
    async with connect(served.url, token=served.token) as memory:
        yield memory


def agent_of(memory: Memory, user: str, script: Script, **fields: Any) -> Agent:
    toolset = MemstreamToolset(memory.tools(tenant_id=TENANT, user_id=user, session_id="s1"), **fields)
    return Agent(FunctionModel(script), toolsets=[toolset])


async def test_a_call_of_the_model_writes_and_one_reads(memory: Memory) -> None:
    search = ToolCallPart("fact_search", {"query": "tea", "subject": None, "category": None, "limit": None})
    script = Script(remembers("Likes green tea"), search, TextPart("Green tea."))
    done = await agent_of(memory, "ana", script).run("I like green tea. What do I like?")
    assert done.output == "Green tea."
    remembered, found = script.answers
    assert remembered.content["decision"] == "admit"
    assert found.content["results"][0]["content"] == "Likes green tea"
    assert await contents(memory, "ana") == ["Likes green tea"]
    assert await contents(memory, "bob") == []
    assert script.tools["fact_remember"].strict
    assert script.tools["fact_remember"].parameters_json_schema["additionalProperties"] is False


async def test_an_argument_that_is_not_known_is_an_error_for_the_model(memory: Memory) -> None:
    script = Script(remembers("Likes tea", user_id="ana2"), remembers("Likes tea"), TextPart("Noted."))
    await agent_of(memory, "carl", script).run("I like tea.")
    wrong, right = script.answers
    assert isinstance(wrong, RetryPromptPart) or wrong.outcome == "retried"
    assert "user_id" in str(wrong.content)
    assert right.content["decision"] == "admit"
    assert (await contents(memory, "carl"), await contents(memory, "ana2")) == (["Likes tea"], [])


async def test_a_model_that_repeats_a_wrong_call_ends_its_run(memory: Memory) -> None:
    script = Script(*(remembers("Likes tea", colour="red") for _ in range(3)))
    with pytest.raises(UnexpectedModelBehavior):
        await agent_of(memory, "dora", script, retries=1).run("I like tea.")
    assert len(script.shown) == 2


async def test_a_call_that_is_carried_out_again_is_applied_once_and_one_of_another_run_is_not_taken_for_it(
    memory: Memory,
) -> None:
    class Twice(MemstreamToolset):
        """Carries out each call twice, as durable execution does after a crash."""

        async def call_tool(self, *arguments: Any) -> Any:
            first = await super().call_tool(*arguments)
            assert await super().call_tool(*arguments) == first
            return first

    toolset = Twice(memory.tools(tenant_id=TENANT, user_id="emil"))
    script = Script(remembers("Likes tea"), TextPart("Noted."), remembers("Likes tea"), TextPart("Noted."))
    agent = Agent(FunctionModel(script), toolsets=[toolset])
    for wanted in (1, 2):
        await agent.run("I like tea.")
        (fact,) = [fact async for fact in memory.api.facts(tenant_id=TENANT, user_id="emil")]
        assert len(fact.evidence) == wanted


async def test_only_the_tools_that_are_named_are_offered(memory: Memory) -> None:
    script = Script(TextPart("Hello."))
    await agent_of(memory, "finn", script, names=["recall", "fact_search"]).run("Hello.")
    assert sorted(script.tools) == ["fact_search", "recall"]
    with pytest.raises(ValueError, match="no tool fact_forge"):
        await agent_of(memory, "finn", script, names=["fact_forge"]).run("Hello.")


async def test_a_memory_that_is_away_does_not_end_the_run(memory: Memory) -> None:
    script = Script(TextPart("Hello."), remembers("Likes tea"), TextPart("Sorry."))
    agent = agent_of(memory, "gina", script)
    await agent.run("Hello.")
    memory.api.http.base_url = f"http://127.0.0.1:{free_port()}"  # type: ignore[assignment]
    memory.api.timeout = 0.3
    assert (await agent.run("I like tea.")).output == "Sorry."
    assert "go on without it" in script.answers[0].content["error"]


async def test_a_token_reaches_no_other_user(served: ServedMemory) -> None:
    async with connect(served.url, token=served.bound_token) as memory:
        with pytest.raises(ClientError, match="no access to the user"):
            await agent_of(memory, "ana", Script(remembers("Likes tea"))).run("I like tea.")
