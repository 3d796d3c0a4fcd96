"""The memory block of LlamaIndex against a memory that is served, with the real LlamaIndex."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.memory import Memory as ChatMemory

from memstream.client import ClientError, Memory, SaidTurn, Unavailable, connect
from memstream.client.frameworks.llama_index import ROLES, MemstreamMemoryBlock
from tests.support.kafka import free_port
from tests.support.polling import wait_for
from tests.support.served_memory import TENANT, ServedMemory, contents, wait_until_learnt

pytestmark = [pytest.mark.long, pytest.mark.timeout(120)]


@pytest.fixture
async def memory(served: ServedMemory) -> AsyncIterator[Memory]:
    async with connect(served.url, token=served.token) as memory:
        yield memory


def block_of(memory: Memory, user: str, **fields: Any) -> MemstreamMemoryBlock:
    return MemstreamMemoryBlock(memory=memory, tenant_id=TENANT, user_id=user, **fields)


def said(text: str, role: str = "user") -> ChatMessage:
    return ChatMessage(role=role, content=text)


async def log(memory: Memory, user: str, session: str, count: int) -> list[SaidTurn]:
    """The turns of a session, oldest first, when there are so many."""

    async def turns() -> list[SaidTurn]:
        return [turn async for turn in memory.api.session_turns(session, tenant_id=TENANT, user_id=user)]

    found = await wait_for(turns, f"{count} turns", until=lambda got: len(got) >= count)
    return found[::-1]


def test_every_role_has_one_of_a_turn() -> None:
    assert set(ROLES) == set(MessageRole)


async def test_what_leaves_the_short_term_memory_is_learnt_and_shown_in_the_next_session(memory: Memory) -> None:
    block = block_of(memory, "ana")
    chat = ChatMemory.from_defaults(
        session_id="s1", memory_blocks=[block], token_limit=40, token_flush_size=10, chat_history_token_ratio=0.5,
        tokenizer_fn=str.split,
    )  # fmt: skip
    await chat.aput_messages([said("I work at Stripe."), said("Good to know.", "assistant")])
    await chat.aput_messages([said("word " * 30), said("That was long.", "assistant"), said("Yes.")])
    await wait_until_learnt(memory, "ana", "Works at Stripe")
    later = ChatMemory.from_defaults(session_id="s2", memory_blocks=[block], tokenizer_fn=str.split)
    await later.aput(said("Where do I work?"))
    shown = await later.aget()
    assert shown[0].role is MessageRole.SYSTEM
    assert "Works at Stripe" in str(shown[0].content)
    assert await contents(memory, "bob") == []


async def test_an_exchange_that_is_put_by_hand_is_one_turn_of_its_session(memory: Memory) -> None:
    block = block_of(memory, "carl", accept_short_term_memory=False)
    await block.aput(
        [said("Hi."), said("Hello.", "assistant"), said("I live in Oslo."), said("Nice.", "assistant")], session_id="s1"
    )
    await block.aput([said("ignored")], from_short_term_memory=True, session_id="s1")
    turns = await log(memory, "carl", "s1", 2)
    heard = [[(each.role, each.content) for each in turn.messages] for turn in turns]
    assert heard == [[("user", "Hi."), ("assistant", "Hello.")], [("user", "I live in Oslo."), ("assistant", "Nice.")]]


async def test_a_message_without_text_is_left_out_and_parts_are_joined(memory: Memory) -> None:
    block = block_of(memory, "dora", session_id="s1")
    parts = ChatMessage(role="user", blocks=[TextBlock(text="One."), TextBlock(text="Two.")])
    await block.aput([said("", "assistant"), parts])
    (turn,) = await log(memory, "dora", "s1", 1)
    assert [each.content for each in turn.messages] == ["One.\nTwo."]


async def test_after_an_error_and_in_a_repeated_request_the_same_messages_count_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce = memory.produce

    async def lost(turn: Any) -> Any:
        await produce(turn)
        raise Unavailable("the answer was lost")

    for _ in range(2):
        block = block_of(memory, "emil", session_id="s1", request_id="m1")
        monkeypatch.setattr(memory, "produce", lost)
        with pytest.raises(Unavailable):
            await block.aput([said("One.")])
        monkeypatch.setattr(memory, "produce", produce)
        await block.aput([said("One.")])
        await block.aput([said("One.")])
    turns = await log(memory, "emil", "s1", 2)
    assert [turn.messages[0].content for turn in turns] == ["One.", "One."]


async def test_what_is_wrong_is_said(memory: Memory, served: ServedMemory) -> None:
    block = block_of(memory, "finn")
    with pytest.raises(ValueError, match="session_id"):
        await block.aget([said("Hi.")])
    with pytest.raises(ValueError, match="session_id"):
        await block.aput([said("Hi.")])
    async with connect(served.url, token=served.bound_token) as narrow:
        for call in (block_of(narrow, "finn").aget, block_of(narrow, "finn").aput):
            with pytest.raises(ClientError, match="no access to the user"):
                await call([said("Hi.")], session_id="s1")
    memory.api.http.base_url = f"http://127.0.0.1:{free_port()}"  # type: ignore[assignment]
    memory.api.timeout = 0.3
    with pytest.raises(Unavailable, match="memstream serve"):
        await block.aget([said("Hi.")], session_id="s1")
