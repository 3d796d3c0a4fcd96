"""Agent of the OpenAI Agents SDK with a memory: its session is in memory, and it has memory's tools.

    pip install 'memstream[server,openai-agents]'
    memstream serve --with-stages
    python examples/openai_agents/assistant.py

It needs no API key: the model is a script. For a real model omit `model=`, and set OPENAI_API_KEY.
MEMORY_URL and MEMORY_TOKEN set the server, MEMORY_TENANT and MEMORY_USER the user.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from memstream.client import BEGINNING, ClientError, Memory, connect
from memstream.client.frameworks.openai_agents import MemstreamSession, memory_tools
from memstream.schemas.turns import Owner

URL = os.environ.get("MEMORY_URL", "http://127.0.0.1:8000")
TOKEN = os.environ.get("MEMORY_TOKEN") or None
TENANT, USER = os.environ.get("MEMORY_TENANT", "examples"), os.environ.get("MEMORY_USER", "ana")


class ScriptedModel(Model):
    """Model that searches memory for a question, and answers with the result."""

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **fields: Any) -> ModelResponse:
        last = input[-1]
        if last.get("type") == "function_call_output":
            results = json.loads(last["output"])["results"]
            output = says(f"You told me: {results[0]['content']}." if results else "I do not know yet.")
        elif last["content"].endswith("?"):
            arguments = json.dumps({"query": last["content"], "subject": None, "category": None, "limit": 1})
            output = ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{uuid4().hex}", name="fact_search", arguments=arguments
            )
        else:
            output = says("Good to know.")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *more: Any, **fields: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def says(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id=f"msg_{uuid4().hex}", type="message", role="assistant", status="completed", content=[part]
    )


async def main() -> None:
    set_tracing_disabled(True)
    async with connect(URL, token=TOKEN) as memory:
        session = MemstreamSession(memory, f"s-{uuid4()}", tenant_id=TENANT, user_id=USER)
        whose = {"tenant_id": TENANT, "user_id": USER, "session_id": session.session_id}
        tools = await memory_tools(memory, names=["fact_search"], **whose)
        agent = Agent(name="assistant", instructions="Use memory.", tools=tools, model=ScriptedModel())
        await ask(agent, session, "I work at Stripe.")
        await something_learnt(memory)
        await ask(agent, session, "Where do I work?")
        print(f"The session has {len(await session.get_items())} items.")


async def something_learnt(memory: Memory) -> None:
    """Wait until memory has a fact about the user. Memory learns in the background, within about a second."""
    owner = Owner(scope="user", id=USER)
    async with asyncio.timeout(30), aclosing(memory.updates(after=BEGINNING, tenant_id=TENANT, owner=owner)) as updates:
        await anext(updates)


async def ask(agent: Agent, session: MemstreamSession, text: str) -> None:
    done = await Runner.run(agent, text, session=session)
    print(f"you: {text}\nassistant: {done.final_output}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"memory: {error}")
