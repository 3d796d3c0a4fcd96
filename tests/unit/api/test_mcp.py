"""/mcp by the official client over streamable HTTP: credentials, headers, and what a page may not do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from memstream.api.credentials import Credentials
from memstream.api.mcp import McpServices
from memstream.schemas.tools import RecalledTraces
from tests.support.api_server import OPEN, app_over, bearer, entry, served
from tests.support.audit_lines import audit_lines
from tests.unit.api.test_recall import GroupsOf
from tests.unit.tools.test_mcp_server import AT, RESOURCES, ScriptedContexts, ScriptedTools

JAKES, ANYBODYS, WRITERS = "mst_jake", "mst_any", "mst_writer"
TOKENS = Credentials(
    (
        entry(JAKES, users=("jake",)),
        entry(ANYBODYS),
        entry(WRITERS, scopes=("turns:write",)),
    )
)


@asynccontextmanager
async def mcp_server(tools: ScriptedTools, credentials: Credentials = TOKENS) -> AsyncIterator[str]:
    services = McpServices(tools=tools, contexts=ScriptedContexts(), resources=RESOURCES, now=lambda: AT)
    app = app_over(credentials=credentials, mcp=services)
    async with app.state.mcp.running(), served(app) as address:
        yield f"{address}/mcp"


@asynccontextmanager
async def connected(url: str, headers: dict[str, str], mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def scripted() -> ScriptedTools:
    return ScriptedTools({"recall": RecalledTraces(items=())})


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_identity_comes_from_the_token_and_the_headers(mode: str) -> None:
    tools = scripted()
    headers = bearer(JAKES) | {"X-Memstream-Session": "s%201", "X-Memstream-Agent": "a1"}
    async with mcp_server(tools) as url, connected(url, headers, mode) as client:
        assert len((await client.list_tools()).tools) == 20
        await client.call_tool("recall", {"query": "work"})
        read = await client.read_resource("memory://facts")
    ((_, _, identity, _),) = tools.calls
    assert (identity.tenant_id, identity.user_id, identity.session_id) == ("acme", "jake", "s 1")
    assert identity.agent_id == "a1"
    assert "jake" in read.contents[0].text


async def test_a_slash_at_the_end_of_the_address_changes_nothing() -> None:
    tools = scripted()
    async with mcp_server(tools) as url, connected(f"{url}/", bearer(JAKES)) as client:
        await client.call_tool("recall", {"query": "work"})
    async with mcp_server(tools) as url, httpx.AsyncClient() as http:
        assert (await http.post(f"{url}/", json={})).status_code == 401
    assert len(tools.calls) == 1


async def test_the_session_of_a_request_may_stand_in_its_meta() -> None:
    tools = scripted()
    async with mcp_server(tools) as url, connected(url, bearer(JAKES)) as client:
        await client.call_tool("recall", {"query": "work"}, meta={"memstream/session": "s2"})
    assert tools.calls[0][2].session_id == "s2"


@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({}, 401, "a bearer token is needed"),
        (bearer("mst_unknown"), 401, "unknown token"),
        (bearer(WRITERS), 403, "lacks the scope memory:read"),
        (bearer(ANYBODYS), 422, "user: is required"),
        (bearer(JAKES) | {"X-Memstream-User": "ann"}, 403, "has no access to the user"),
        (bearer(JAKES) | {"X-Memstream-Tenant": "other"}, 403, "has no access to the tenant"),
        (bearer(JAKES) | {"X-Memstream-Session": "%ff"}, 422, "X-Memstream-Session"),
        (bearer(JAKES) | {"X-Memstream-Session": "%00"}, 422, "X-Memstream-Session"),
    ],
)
async def test_who_may_not_gets_a_problem(headers: dict[str, str], status: int, said: str) -> None:
    tools = scripted()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with mcp_server(tools) as url, httpx.AsyncClient() as http:
        accept = {"accept": "application/json, text/event-stream"}
        answer = await http.post(url, json=message, headers=accept | headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert said in answer.json()["detail"]
    assert tools.calls == []


async def test_credentials_of_an_identity_provider_name_their_metadata() -> None:
    class Provided(Credentials):
        challenge = 'Bearer resource_metadata="https://memory.example/.well-known/oauth-protected-resource"'

    for credentials in (TOKENS, Provided(TOKENS.entries)):
        async with mcp_server(scripted(), credentials) as url, httpx.AsyncClient() as http:
            for headers in ({}, bearer("mst_unknown")):
                answer = await http.post(url, json={}, headers=headers)
                assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, credentials.challenge)


async def test_an_expired_token_reaches_no_tool() -> None:
    past = datetime(2020, 1, 31, 12, tzinfo=UTC)
    tools, expired = scripted(), Credentials([entry("t").model_copy(update={"expires_at": past})])
    async with mcp_server(tools, expired) as url, httpx.AsyncClient() as http:
        answer = await http.post(url, json={}, headers=bearer("t"))
    assert answer.status_code == 401
    assert "expired at 2020-01-31T12:00:00Z" in answer.json()["detail"]
    assert tools.calls == []


async def test_a_page_of_another_site_reaches_no_tool() -> None:
    tools = scripted()
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall"}}
    about = {"X-Memstream-Tenant": "acme", "X-Memstream-User": "jake"}
    async with mcp_server(tools, OPEN) as url, httpx.AsyncClient() as http:
        for foreign in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
            answer = await http.post(url, json=message, headers=about | foreign)
            assert answer.status_code == 403
    assert tools.calls == []


async def test_a_large_body_is_refused() -> None:
    async with mcp_server(scripted()) as url, httpx.AsyncClient() as http:
        headers = bearer(JAKES) | {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        answer = await http.post(url, content=b'"' + b"x" * 5_000_000 + b'"', headers=headers)
    assert answer.status_code == 413


async def test_a_wrong_argument_does_not_end_the_connection() -> None:
    tools = scripted()
    async with mcp_server(tools) as url, connected(url, bearer(JAKES)) as client:
        with pytest.raises(MCPError):
            await client.read_resource("memory://nothing")
        await client.call_tool("recall", {"query": "work"})
    assert len(tools.calls) == 1


async def test_a_denied_request_is_in_the_audit_trail() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with mcp_server(scripted()) as url, httpx.AsyncClient() as http:
        with audit_lines() as lines:
            for headers in ({}, bearer(WRITERS), bearer(JAKES) | {"X-Memstream-User": "ann"}):
                await http.post(url, json=message, headers=headers)
    told = [(line["who"], line["action"], line["result"]) for line in lines]
    assert told == [(who, "POST /mcp", "denied") for who in ("unknown", WRITERS, JAKES)]


async def test_the_stream_of_a_removed_token_ends() -> None:
    entries = [entry(JAKES, users=("jake",))]
    headers = bearer(JAKES) | {"accept": "application/json, text/event-stream"}
    async with mcp_server(scripted(), Credentials(entries)) as url, httpx.AsyncClient(timeout=30) as http:
        async with http.stream("GET", url, headers=headers) as stream:
            assert stream.status_code == 200
            entries.clear()
            async with asyncio.timeout(10):
                assert [chunk async for chunk in stream.aiter_bytes()] == []
        assert (await http.get(url, headers=headers)).status_code == 401


@pytest.mark.parametrize(("user", "status"), [("u1", 200), ("u2", 403)])
async def test_a_group_is_named_for_its_members_alone(user: str, status: int) -> None:
    services = McpServices(tools=scripted(), contexts=ScriptedContexts(), resources=RESOURCES, now=lambda: AT)
    app = app_over(credentials=TOKENS, mcp=services, store=GroupsOf("u1", "g1"), tools=scripted())
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = bearer(ANYBODYS) | {"X-Memstream-User": user, "X-Memstream-Group": "g1"}
    accept = {"accept": "application/json, text/event-stream"}
    async with app.state.mcp.running(), served(app) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.post("/mcp", json=message, headers=headers | accept)).status_code == status
        assert (await http.get("/v1/tools", headers=headers)).status_code == status
