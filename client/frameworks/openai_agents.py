"""OpenAI Agents SDK: a session whose items are in memory's session log, and memory's tools.

Needs `memstream[openai-agents]`.

    session = MemstreamSession(memory, "s1", tenant_id="acme", user_id="u1")
    agent = Agent(name="assistant", tools=await memory_tools(memory, tenant_id="acme", user_id="u1", session_id="s1"))
    await Runner.run(agent, "I work at Stripe.", session=session)

docs/how-to/agent-frameworks.md describes which parts of an item a session keeps.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import JsonValue

from ...schemas.turns import Sensitivity
from ..memory import Memory
from ..tools import ToolCallError, Tools
from . import framework
from .session_turns import MessageFields, SessionTurns
from .tool_calls import call_tool, function_definitions

with framework("openai-agents"):
    from agents.tool_context import ToolContext

    from agents import FunctionTool, SessionSettings, TResponseInputItem

CALLS: Mapping[str, str] = {
    "function_call": "arguments",
    "function_call_output": "output",
    "custom_tool_call": "input",
    "custom_tool_call_output": "output",
}
"""Field that contains the text, by type of the stored item. Items of the type message are not in this table."""
CUT = "session_cut"
"""Name of a message that removes items from the session. The text of this message is the place of the removed item. An
empty text removes all earlier items."""
CALL_ID_MAX = 64
ROLES: Mapping[str, str] = {"developer": "system"}


@dataclass(frozen=True, slots=True)
class _Kept:
    """Message of the session log, with its place."""

    occurred_at: datetime
    turn_id: str
    index: int
    role: str
    name: str | None
    text: str

    @property
    def place(self) -> str:
        return f"{self.turn_id} {self.index}"


class MemstreamSession:
    """Session whose items are turns in memory. Memory learns from the user's messages.

    `add_items` returns when the items are durable. This object immediately returns an item that it added; another
    process returns the item after the recorder has stored it. `pop_item` and `clear_session` remove items from the
    session in every process. Memory keeps the turns and the facts that it learnt from them.

    Args:
        memory: open client that reaches `memstream serve`.
        request_id: id of the request that is being answered, such as the id of the user's message. A repeated request
            with the same id adds its items once. Random by default.
        turn: additional fields of each turn, such as agent_id or scope.
        ceiling: highest sensitivity of the items to read.
        session_settings: `SessionSettings(limit=…)` limits the items that a run reads.
    """

    _ignore_ids_for_matching = True  # the SDK reads this attribute; True because item ids are not stored

    def __init__(
        self,
        memory: Memory,
        session_id: str,
        *,
        tenant_id: str,
        user_id: str,
        request_id: str | None = None,
        turn: Mapping[str, JsonValue] | None = None,
        ceiling: Sensitivity = "internal",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._memory = memory
        self._whose: dict[str, JsonValue] = {"tenant_id": tenant_id, "user_id": user_id, "ceiling": ceiling}
        self._turns = SessionTurns(memory, tenant_id, user_id, session_id, turn=turn or {})
        if request_id is not None:
            self._turns.request_id = request_id
        self._added: dict[str, list[_Kept]] = {}
        """Turns that this object added and has not read back yet."""

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first. With a limit, return only the newest items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        return [_item(each) for each in await self._kept(limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Send items as turns: a user's message begins a turn. After an error, call it again with the same items.

        Raises:
            TooLarge: an item has more than 240 KiB.
            Unavailable, Misconfigured: see `Memory.produce`.
        """
        await self._add([message for item in items if (message := _message(cast(dict[str, Any], item))) is not None])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the session, and return it."""
        newest = await self._kept(1)
        if not newest:
            return None
        await self._add([{"role": "tool", "name": CUT, "content": newest[-1].place}])
        return _item(newest[-1])

    async def clear_session(self) -> None:
        """Remove all present items from the session."""
        await self._kept(1)  # reads the time of the newest item: the cut must be later
        await self._add([{"role": "tool", "name": CUT, "content": ""}])

    async def _add(self, messages: Sequence[MessageFields]) -> None:
        for turn in await self._turns.add(messages):
            self._added[turn.turn_id] = [
                _Kept(turn.occurred_at, turn.turn_id, n, each["role"], each.get("name"), each["content"])
                for n, each in enumerate(turn.messages)
            ]

    async def _kept(self, limit: int | None) -> list[_Kept]:
        """Return the messages that are items of the session, oldest first."""
        if limit is not None and limit <= 0:
            return []
        found = dict(self._added)
        messages = sum(map(len, found.values()))
        async with aclosing(self._memory.api.session_turns(self.session_id, **self._whose)) as turns:
            async for turn in turns:
                self._turns.seen(turn.occurred_at)
                self._added.pop(turn.turn_id, None)
                found[turn.turn_id] = [
                    _Kept(turn.occurred_at, turn.turn_id, each.message_index, each.role, each.name, each.content)
                    for each in turn.messages
                ]
                messages += len(turn.messages)
                enough = limit is not None and messages >= limit and len(_uncut(found.values())) >= limit
                if enough or any(map(_clears, found[turn.turn_id])):
                    break
        kept = _uncut(found.values())
        return kept if limit is None else kept[-limit:]


async def memory_tools(
    memory: Memory | Tools, *, names: Collection[str] | None = None, **identity: str | None
) -> list[FunctionTool]:
    """Return memory's tools for an agent of one user.

    Args:
        memory: open client, or its `tools(…)`.
        names: tools to offer; None: all tools that the token may call.
        identity: identity of the agent, only if `memory` is a client: tenant_id, user_id, session_id, agent_id, org_id,
            group_id.
    """
    tools = memory.tools(**identity) if isinstance(memory, Memory) else memory
    return [_function_tool(tools, each) for each in await function_definitions(tools, names)]


def _function_tool(tools: Tools, function: dict[str, Any]) -> FunctionTool:
    name = function["name"]

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError:
            return f"{name}: the arguments are not JSON; send an object"
        if not isinstance(given, dict):
            return f"{name}: the arguments are not an object; send one"
        try:
            result = await call_tool(tools, name, given, context.tool_call_id)
        except ToolCallError as error:
            return str(error)
        return json.dumps(result, ensure_ascii=False)

    return FunctionTool(
        name=name,
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=bool(function.get("strict")),
    )


def _message(item: Mapping[str, Any]) -> MessageFields | None:
    """Return the message that stores an item, or None if the item is not stored."""
    kind = item.get("type", "message")
    if kind == "message" and "role" in item:
        return {"role": ROLES.get(item["role"], item["role"]), "content": _text_of(item["content"])}
    if kind not in CALLS:
        return None
    call_id = str(item["call_id"])
    if len(call_id) > CALL_ID_MAX:
        call_id = f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:40]}"
    parts = (kind, call_id, item["name"]) if "name" in item else (kind, call_id)
    return {"role": "tool", "name": " ".join(parts), "content": _text_of(item[CALLS[kind]])}


def _text_of(content: Any) -> str:
    """Return the texts of an item's content. A part without text is replaced by its type: `[input_image]`."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") or part.get("refusal") or f"[{part['type']}]" for part in content)
    return "\n".join(map(str, texts))


def _item(kept: _Kept) -> TResponseInputItem:
    """Return the item that a message stores."""
    item: dict[str, Any]
    if kept.role == "tool":
        kind, call_id, *name = (kept.name or "").split(" ", 2)
        item = {"type": kind, "call_id": call_id, CALLS[kind]: kept.text}
        if name:
            item["name"] = name[0]
    elif kept.role == "assistant":
        text = {"type": "output_text", "text": kept.text, "annotations": []}
        item = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
    else:
        item = {"role": kept.role, "content": kept.text}
    return cast(TResponseInputItem, item)


def _uncut(turns: Iterable[Sequence[_Kept]]) -> list[_Kept]:
    """Return the messages that are items and were not removed, oldest first."""
    every = sorted((each for turn in turns for each in turn), key=lambda each: (each.occurred_at, each.index))
    cut: set[str] = set()
    items: list[_Kept] = []
    for each in every:
        if _clears(each):
            items = []
        elif _cuts(each):
            cut.add(each.text)
        elif each.role != "tool" or _is_call(each):
            items.append(each)
    return [each for each in items if each.place not in cut]


def _is_call(kept: _Kept) -> bool:
    kind, _, rest = (kept.name or "").partition(" ")
    return kind in CALLS and bool(rest)


def _cuts(kept: _Kept) -> bool:
    return kept.role == "tool" and kept.name == CUT


def _clears(kept: _Kept) -> bool:
    return _cuts(kept) and not kept.text
