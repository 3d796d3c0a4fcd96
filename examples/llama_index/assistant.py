"""LlamaIndex chat with a memory: a memory block that adds memory to the prompt, and sends the messages to memory.

    pip install 'memstream[server,llama-index]'
    memstream serve --with-stages
    python examples/llama_index/assistant.py

It needs no API key: the model repeats its prompt. MEMORY_URL and MEMORY_TOKEN set the server, MEMORY_TENANT and
MEMORY_USER the user.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory as ChatMemory

from memstream.client import BEGINNING, ClientError, Memory, connect
from memstream.client.frameworks.llama_index import MemstreamMemoryBlock
from memstream.schemas.turns import Owner

URL = os.environ.get("MEMORY_URL", "http://127.0.0.1:8000")
TOKEN = os.environ.get("MEMORY_TOKEN") or None
TENANT, USER = os.environ.get("MEMORY_TENANT", "examples"), os.environ.get("MEMORY_USER", "ana")


async def main() -> None:
    async with connect(URL, token=TOKEN) as memory:
        block = MemstreamMemoryBlock(memory=memory, tenant_id=TENANT, user_id=USER, accept_short_term_memory=False)
        await talk(block, "I work at Stripe.")
        await something_learnt(memory)
        await talk(block, "Where do I work?")


async def something_learnt(memory: Memory) -> None:
    """Wait until memory has a fact about the user. Memory learns in the background, within about a second."""
    owner = Owner(scope="user", id=USER)
    async with asyncio.timeout(30), aclosing(memory.updates(after=BEGINNING, tenant_id=TENANT, owner=owner)) as updates:
        await anext(updates)


async def talk(block: MemstreamMemoryBlock, text: str) -> None:
    """Talk once in a new session, which knows earlier sessions only through memory."""
    chat = ChatMemory.from_defaults(session_id=f"s-{uuid4()}", memory_blocks=[block], tokenizer_fn=str.split)
    question = ChatMessage(role="user", content=text)
    await chat.aput(question)
    reply = await MockLLM().achat(await chat.aget())
    answer = ChatMessage(role="assistant", content=str(reply.message.content))
    await chat.aput(answer)
    await block.aput([question, answer], session_id=chat.session_id)
    print(f"you: {text}\nassistant, which repeats its prompt:\n{answer.content}\n")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClientError as error:
        sys.exit(f"memory: {error}")
