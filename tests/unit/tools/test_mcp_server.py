"""Memory over MCP: the official client against the protocol's server, with scripted tools behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from memstream.recall.context import ContextRequest, PromptContext
from memstream.schemas.base import Contract
from memstream.schemas.errors import Transient
from memstream.schemas.tools import TOOLS, TOOLS_BY_NAME, FoundTraces, ToolAccepted, ToolSpec, TraceAdded
from memstream.tools import mcp_server
from memstream.tools.mcp_server import (
    IDEMPOTENCY_META,
    SESSION_META,
    MemoryResource,
    MemoryServer,
    RequestContext,
    session_of_meta,
)
from memstream.tools.tool_port import ToolError, ToolIdentity

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
JAKE = ToolIdentity(tenant_id="acme", user_id="jake", caller="test")
MODES = ("legacy", "auto")
"""The handshake of earlier protocol versions, and the present one."""


@dataclass
class ScriptedTools:
    """Answers each tool with a contract or an error, and keeps the calls."""

    answers: dict[str, Contract | Exception] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any], ToolIdentity, str | None]] = field(default_factory=list)
    hold: asyncio.Event | None = None

    async def offered(self, identity: ToolIdentity) -> Sequence[ToolSpec]:
        return TOOLS if identity.tools is None else [TOOLS_BY_NAME[name] for name in sorted(identity.tools)]

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        identity: ToolIdentity,
        key: str | None = None,
        patience: float | None = None,
    ) -> Contract:
        self.calls.append((name, dict(arguments), identity, key))
        if self.hold is not None:
            await self.hold.wait()
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class ScriptedContexts:
    text: str = ""
    error: Exception | None = None
    asked: list[ContextRequest] = field(default_factory=list)

    async def context(self, request: ContextRequest, *, now: datetime) -> PromptContext:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return PromptContext(text=self.text, tokens=0, shown={}, tools=())


async def facts(identity: ToolIdentity) -> str:
    return json.dumps([{"content": "Works at Stripe", "user": identity.user_id}])


async def away(identity: ToolIdentity) -> str:
    raise Transient("store", "no answer")


RESOURCES = (
    MemoryResource("facts", "Facts", "What memory believes.", "application/json", facts),
    MemoryResource("digest", "Digest", "A summary.", "text/plain", away),
)


def server(tools: ScriptedTools, contexts: ScriptedContexts | None = None, identity: ToolIdentity = JAKE) -> Any:
    async def identify(context: RequestContext) -> ToolIdentity:
        return replace(identity, session_id=session_of_meta(context.meta))

    return MemoryServer(
        tools=tools,
        contexts=contexts or ScriptedContexts(),
        resources=RESOURCES,
        identify=identify,
        now=lambda: AT,
        version="1.2.3",
    ).server()


@pytest.mark.parametrize("mode", MODES)
class TestOfficialClient:
    async def test_it_lists_the_tools_with_annotations_and_schemas(self, mode: str) -> None:
        async with Client(server(ScriptedTools()), mode=mode) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(listed) == set(TOOLS_BY_NAME)
        recall, forget = listed["recall"], listed["fact_forget"]
        assert recall.annotations is not None
        assert forget.annotations is not None
        assert (recall.annotations.read_only_hint, recall.annotations.destructive_hint) == (True, False)
        assert (forget.annotations.read_only_hint, forget.annotations.destructive_hint) == (False, True)
        assert recall.input_schema["required"] == ["query"]
        assert recall.output_schema is not None

    async def test_a_caller_has_the_tools_of_its_credential(self, mode: str) -> None:
        only = replace(JAKE, tools=frozenset({"recall"}))
        async with Client(server(ScriptedTools(), identity=only), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["recall"]

    async def test_a_call_gives_the_result_as_text_and_as_structure(self, mode: str) -> None:
        tools = ScriptedTools({"memory_add": TraceAdded(trace_id="mt_1", existing=False)})
        async with Client(server(tools), mode=mode) as client:
            result = await client.call_tool(
                "memory_add", {"content": "Signed the lease"}, meta={SESSION_META: "s1", IDEMPOTENCY_META: "k1"}
            )
        assert result.structured_content == {"trace_id": "mt_1", "existing": False}
        assert json.loads(result.content[0].text) == result.structured_content
        assert not result.is_error
        ((name, arguments, identity, key),) = tools.calls
        assert (name, arguments, key) == ("memory_add", {"content": "Signed the lease"}, "k1")
        assert (identity.user_id, identity.session_id) == ("jake", "s1")

    async def test_an_accepted_write_fits_the_output_schema(self, mode: str) -> None:
        tools = ScriptedTools({"memory_add": ToolAccepted(accepted="c1")})
        async with Client(server(tools), mode=mode) as client:
            result = await client.call_tool("memory_add", {"content": "x"})
        assert result.structured_content == {"accepted": "c1"}

    async def test_what_memory_refuses_is_a_result_that_the_model_reads(self, mode: str) -> None:
        tools = ScriptedTools({"recall": ToolError("query is empty: say what to recall")})
        async with Client(server(tools), mode=mode) as client:
            result = await client.call_tool("recall", {"query": "x"})
        assert result.is_error
        assert result.content[0].text == "query is empty: say what to recall"

    async def test_a_server_that_is_away_is_told_without_its_address(self, mode: str) -> None:
        tools = ScriptedTools({"recall": Transient("store", "http://secret:6333 refused")})
        async with Client(server(tools), mode=mode) as client:
            result = await client.call_tool("recall", {"query": "x"})
        assert result.is_error
        assert result.content[0].text == "memory does not answer now (store); try again in a moment"

    async def test_resources_are_read_for_the_user_of_the_connection(self, mode: str) -> None:
        async with Client(server(ScriptedTools()), mode=mode) as client:
            listed = [str(each.uri) for each in (await client.list_resources()).resources]
            assert listed == ["memory://facts", "memory://digest"]
            read = await client.read_resource("memory://facts")
            assert json.loads(read.contents[0].text) == [{"content": "Works at Stripe", "user": "jake"}]
            with pytest.raises(MCPError, match="there is no resource 'memory://other'"):
                await client.read_resource("memory://other")
            with pytest.raises(MCPError, match="try again in a moment"):
                await client.read_resource("memory://digest")

    async def test_who_asks_for_templates_of_resources_learns_that_there_are_none(self, mode: str) -> None:
        async with Client(server(ScriptedTools()), mode=mode) as client:
            assert (await client.list_resource_templates()).resource_templates == []

    async def test_the_prompt_is_the_context_of_the_user(self, mode: str) -> None:
        contexts = ScriptedContexts("Known facts:\n- Works at Stripe")
        async with Client(server(ScriptedTools(), contexts), mode=mode) as client:
            (prompt,) = (await client.list_prompts()).prompts
            made = await client.get_prompt(prompt.name, {"cue": "work"})
            assert made.messages[0].content.text == contexts.text
            request = contexts.asked[0]
            assert (request.owner.id, request.cue, request.asked_by) == ("jake", "work", JAKE.caller)
            contexts.text = ""
            empty = await client.get_prompt(prompt.name)
            assert "nothing" in empty.messages[0].content.text
            for name, arguments, said in (
                ("other", {}, "there is no prompt 'other'"),
                (prompt.name, {"topic": "x"}, "has no argument topic"),
                (prompt.name, {"cue": "x" * 2_001}, "cue has 2001 characters"),
            ):
                with pytest.raises(MCPError, match=said):
                    await client.get_prompt(name, arguments)

    async def test_a_wrong_session_is_refused(self, mode: str) -> None:
        tools = ScriptedTools({"recall": FoundTraces(results=())})
        async with Client(server(tools), mode=mode) as client:
            with pytest.raises(MCPError, match="must be a text of 1 to 128 characters"):
                await client.call_tool("recall", {"query": "x"}, meta={SESSION_META: 7})
        assert tools.calls == []

    async def test_a_call_that_waits_tells_its_progress(self, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mcp_server, "PROGRESS_SECONDS", 0.01)
        tools = ScriptedTools({"memory_add": TraceAdded(trace_id="mt_1", existing=False)}, hold=asyncio.Event())
        told: list[float] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)
            if len(told) == 3:
                assert tools.hold is not None
                tools.hold.set()

        async with asyncio.timeout(20), Client(server(tools), mode=mode) as client:
            await client.call_tool("memory_add", {"content": "x"}, progress_callback=progress)
        assert len(told) >= 3
        assert told == sorted(told)
