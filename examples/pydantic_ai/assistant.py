"""Pydantic AI agent with a memory: memory's tools as a toolset.

    pip install 'memstream[server,pydantic-ai]'
    memstream serve --with-stages
    python examples/pydantic_ai/assistant.py

It needs no API key: the model is a script. For a real model write `Agent("openai:gpt-5-mini", …)`.
MEMORY_URL and MEMORY_TOKEN set the server, MEMORY_TENANT and MEMORY_USER the user.
"""

from __future__ import annotations

import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memstream.client import ClientError, connect
from memstream.client.frameworks.pydantic_ai import MemstreamToolset

URL = os.environ.get("MEMORY_URL", "http://127.0.0.1:8000")
TOKEN = os.environ.get("MEMORY_TOKEN") or None
TENANT, USER = os.environ.get("MEMORY_TENANT", "examples"), os.environ.get("MEMORY_USER", "ana")


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Remember a statement, search for a question, and answer with the tool's result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart) and last.tool_name == "fact_search":
        found = last.content["results"]
        return ModelResponse([TextPart(f"You told me: {found[0]['content']}." if found else "I do not know yet.")])
    if isinstance(last, ToolReturnPart):
        return ModelResponse([TextPart("Noted.")])
    assert isinstance(last, UserPromptPart)
    said = str(last.content)
    if said.endswith("?"):
        return ModelResponse([ToolCallPart("fact_search", {"query": said, "limit": 1})])
    return ModelResponse([ToolCallPart("fact_remember", {"content": said.replace("I like", "Likes").rstrip(".")})])


async def main() -> None:
    async with connect(URL, token=TOKEN) as memory:
        tools = memory.tools(tenant_id=TENANT, user_id=USER, session_id="desk")
        agent = Agent(FunctionModel(script), toolsets=[MemstreamToolset(tools, names=["fact_remember", "fact_search"])])
        for text in ("I like green tea.", "What do I like?"):
            done = await agent.run(text)
            print(f"you: {text}\nassistant: {done.output}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"memory: {error}")
