"""Small chat service with a memory.

It uses memory in three calls: `context` before it asks the model, `produce` after the model's answer, and `updates` for
changes of facts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse
from openai import AsyncOpenAI, OpenAIError
from pydantic import BaseModel, Field
from sse_starlette import EventSourceResponse

from memstream.client import NOW, ClientError, Memory, PositionLost, Update, connect

ADDRESS = os.environ.get("CHAT_MEMORY", "http://127.0.0.1:8000")
"""Address for turns and changes of facts: memstream serve, or kafka://host:port."""
API = os.environ.get("CHAT_MEMORY_API", "http://127.0.0.1:8000")
"""Address of memstream serve, for reading memory."""
TOKEN = os.environ.get("CHAT_MEMORY_TOKEN") or None
MODEL = os.environ.get("CHAT_MODEL", "gpt-5-mini")
HAS_MODEL = bool(os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"))
POSITION = Path(os.environ.get("CHAT_POSITION", "changes.position"))
"""File with the position of the last change, so that the service misses no change while it is down."""
PORT = int(os.environ.get("CHAT_PORT", "8080"))
TENANT = os.environ.get("CHAT_TENANT", "chat")
SYSTEM = "You are a friendly assistant. Answer briefly."
ECHO = "(No model is set, so this is an echo. Set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server.) You said: "
PATIENCE = 2.0
"""Seconds that an answer waits for memory."""
HISTORY = 20
"""Number of recent messages in the prompt. The model knows older messages only through memory."""
log = logging.getLogger("chat")


class Said(BaseModel):
    """Message from a browser. In a real service the user comes from the login, not from the request."""

    user: str = Field(min_length=1, max_length=128)
    session: str = Field(min_length=1, max_length=128)
    text: str = Field(min_length=1, max_length=8_000)
    id: str = Field(default_factory=lambda: str(uuid.uuid4()), min_length=1, max_length=128)
    """Id that the browser chooses. A message that is sent twice with it is remembered once."""


class Chat:
    """Conversations of this process, and the listeners of each user's changes."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.model = AsyncOpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none")) if HAS_MODEL else None
        self.spoken: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
        self.listeners: dict[str, set[asyncio.Queue[Update]]] = defaultdict(set)

    async def answer(self, said: Said) -> dict[str, object]:
        remembered = await self.remembered(said)
        spoken = self.spoken[said.user, said.session]
        spoken.append({"role": "user", "content": said.text})
        answer = await self.asked(remembered, spoken[-HISTORY:])
        spoken.append({"role": "assistant", "content": answer})
        del spoken[:-HISTORY]
        kept = await self.keep(said, answer)
        return {"answer": answer, "remembered": remembered, "kept": kept}

    async def remembered(self, said: Said) -> str:
        """Return memory as text for the prompt, or "" if memory does not answer."""
        try:
            async with asyncio.timeout(PATIENCE):
                context = await self.memory.api.context(
                    said.text[:2_000], tenant_id=TENANT, user_id=said.user, session_id=said.session, preset="full"
                )
        except (ClientError, TimeoutError) as error:
            log.warning("without memory: %s", error)
            return ""
        return context.text

    async def asked(self, remembered: str, spoken: list[dict[str, str]]) -> str:
        if self.model is None:
            return ECHO + spoken[-1]["content"]
        prompt = [{"role": "system", "content": f"{SYSTEM}\n\n{remembered}".strip()}, *spoken]
        try:
            answer = await self.model.chat.completions.create(model=MODEL, messages=prompt)  # type: ignore[arg-type]
        except OpenAIError as error:
            log.error("the model did not answer: %s", error)
            return "(The model did not answer.)"
        return answer.choices[0].message.content or ""

    async def keep(self, said: Said, answer: str) -> bool:
        """Send the turn to memory. The acknowledgement takes milliseconds; memory learns from the turn later."""
        turn = {
            "tenant_id": TENANT,
            "user_id": said.user,
            "session_id": said.session,
            "turn_id": said.id,
            "occurred_at": datetime.now(UTC).isoformat(),
            "messages": [{"role": "user", "content": said.text}, {"role": "assistant", "content": answer}],
        }
        try:
            await self.memory.produce(turn)
        except ClientError as error:
            log.error("turn %s is not remembered: %s", said.id, error)
            return False
        return True

    async def follow(self) -> None:
        """Deliver every change of a fact once, including changes while this service was down."""
        while True:
            try:
                async with aclosing(self.memory.updates(after=position(), tenant_id=TENANT)) as changes:
                    async for change in changes:
                        for listener in self.listeners[change.fact.owner.id]:
                            listener.put_nowait(change)
                        keep_position(change.position or NOW)
            except PositionLost as error:
                log.warning("%s; continuing with new changes", error)
                keep_position(NOW)
            except ClientError as error:
                log.warning("no changes: %s", error)
                await asyncio.sleep(2)


def position() -> str:
    return POSITION.read_text() if POSITION.exists() else NOW


def keep_position(reached: str) -> None:
    """Write the position atomically."""
    written = POSITION.with_suffix(".new")
    written.write_text(reached)
    written.replace(POSITION)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    async with connect(ADDRESS, api=API, token=TOKEN) as memory:
        app.state.chat = Chat(memory)
        following = asyncio.create_task(app.state.chat.follow())
        yield
        following.cancel()


app = FastAPI(title="chat", lifespan=running)


@app.post("/chat")
async def chat(said: Said, request: Request) -> dict[str, object]:
    chat: Chat = request.app.state.chat
    return await chat.answer(said)


@app.get("/changes")
async def changes(user: str, request: Request) -> EventSourceResponse:
    """Stream changes of a user's facts to the browser."""
    listeners = request.app.state.chat.listeners[user]

    async def events() -> AsyncIterator[dict[str, str]]:
        listener: asyncio.Queue[Update] = asyncio.Queue()
        listeners.add(listener)
        try:
            while True:
                change = await listener.get()
                action = change.event.action if change.event is not None else "known"
                yield {"data": json.dumps({"action": action, "content": change.fact.content})}
        finally:
            listeners.discard(listener)

    return EventSourceResponse(events())


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("page.html"))


if __name__ == "__main__":
    if not HAS_MODEL:
        print("No model is set: answers are an echo. Set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server.")
    print(f"Chat on http://127.0.0.1:{PORT}")
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
