"""LlamaIndex memory block that reads and writes memory. Needs `memstream[llama-index]`.

    block = MemstreamMemoryBlock(memory=memory, tenant_id="acme", user_id="u1")
    chat_memory = Memory.from_defaults(session_id="s1", memory_blocks=[block])

LlamaIndex passes messages to a block when the messages leave LlamaIndex's short-term memory. To learn from each
exchange immediately, create the block with `accept_short_term_memory=False`. After each exchange call `await
block.aput([question, answer], session_id="s1")`.
"""

from __future__ import annotations

import uuid
from typing import Any

from pydantic import Field, JsonValue, PrivateAttr

from ...schemas.base import CONTENT_MAX
from ..memory import Memory
from . import framework
from .session_turns import MessageFields, SessionTurns

with framework("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.memory.memory import BaseMemoryBlock

ROLES = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
}
SESSION = "session_id"
"""Field of a message in which LlamaIndex names the session."""


class MemstreamMemoryBlock(BaseMemoryBlock[str]):
    """Memory block that shows the session's context and sends messages as turns. One object serves one user."""

    name: str = Field(default="memstream", description="Name of the memory block.")
    memory: Memory = Field(exclude=True, repr=False, description="Open client that reaches memstream serve.")
    tenant_id: str
    user_id: str
    session_id: str | None = Field(default=None, description="The session, if LlamaIndex names none.")
    preset: str = Field(default="full", description="Sections of a context: default, full or small.")
    max_tokens: int | None = Field(default=None, description="Maximum tokens of a context. None: the server's default.")
    turn: dict[str, JsonValue] = Field(default_factory=dict, description="Additional fields of each turn.")
    request_id: str = Field(
        default_factory=lambda: str(uuid.uuid4()),
        description="Id of the request that is being answered. Messages that are put again with it count once.",
    )
    _sessions: dict[str, SessionTurns] = PrivateAttr(default_factory=dict)

    async def _aget(
        self, messages: list[ChatMessage] | None = None, session_id: str | None = None, **block_kwargs: Any
    ) -> str:
        """Return the context for the user's last message. Raises ClientError."""
        said = [each.content for each in messages or () if each.role is MessageRole.USER and each.content]
        fields: dict[str, JsonValue] = {} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        context = await self.memory.api.context(
            said[-1][:CONTENT_MAX] if said else None,
            tenant_id=self.tenant_id,
            user_id=self.user_id,
            session_id=self._named(session_id),
            preset=self.preset,
            **fields,
        )
        return context.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Send messages as turns. After a ClientError, put the same messages again."""
        by_session: dict[str, list[MessageFields]] = {}
        for each in messages:
            name = self._named(each.additional_kwargs.get(SESSION))
            if each.content:
                by_session.setdefault(name, []).append({"role": ROLES[each.role], "content": each.content})
        for name, said in by_session.items():
            turns = self._sessions.setdefault(
                name,
                SessionTurns(self.memory, self.tenant_id, self.user_id, name, self.turn, self.request_id),
            )
            await turns.add(said)

    def _named(self, given: str | None) -> str:
        """Return the given session, or the block's. Raises ValueError if neither is set."""
        session_id = given or self.session_id
        if session_id is None:
            raise ValueError("the session is missing: give the block a session_id, or use it within a Memory")
        return session_id
