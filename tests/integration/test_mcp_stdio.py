"""`memstream mcp` in a folder, by the official client: an agent writes, reads what it wrote, and the command drains."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.support.environment import clean_environment
from tests.support.model_server import ModelServer

COMMAND = ("-m", "memstream.cli", "mcp", "--tenant", "acme", "--user", "jake", "--session", "s1")


async def test_an_agent_writes_and_reads_what_it_wrote(tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=list(COMMAND), cwd=tmp_path, env=clean_environment()
    )
    async with Client(stdio_client(parameters)) as client:

        async def call(tool: str, meta: dict[str, Any] | None = None, /, **given: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, given, meta=meta)
            assert not result.is_error, result.content
            assert result.structured_content is not None
            return dict(result.structured_content)

        key = {"memstream/idempotency-key": "k1"}
        told = await call("fact_remember", key, content="Works at Stripe")
        assert told["decision"] == "admit"
        assert await call("fact_remember", key, content="Works at Stripe") == told
        found = await call("fact_search", query="work")
        assert [each["content"] for each in found["results"]] == ["Works at Stripe"]
        new = await call("fact_supersede", fact_id=told["fact_id"], content="Works at Google")
        recalled = await call("recall", query="work")
        assert [each["content"] for each in recalled["items"]] == ["Works at Google"]

        one = await call("memory_add", content="Moved to Rome in May", tags=["move"])
        two = await call("memory_add", content="Took a flat in Rome", tags=["home"])
        assert await call("memory_add", content="took a flat in Rome") == {**two, "existing": True}
        merged = await call(
            "memory_merge", trace_ids=[one["trace_id"], two["trace_id"]], content="Moved to a flat in Rome"
        )
        assert merged == {"merged_trace_id": one["trace_id"], "sources_deleted": 1}
        (episode,) = (await call("memory_search", query='"flat in rome" NOT office'))["results"]
        assert (episode["id"], episode["tags"]) == (one["trace_id"], ["move", "home"])
        assert await call("memory_update", trace_id=one["trace_id"], content="Moved to a flat in Pisa") == {
            "updated": True
        }
        assert (await call("recall_episodes", query="Pisa"))["items"][0]["content"] == "Moved to a flat in Pisa"
        assert await call("memory_delete", trace_id=one["trace_id"]) == {"deleted": True}
        forgotten = await call("fact_forget", fact_id=new["fact_id"], because="wrong")
        assert forgotten == {"forgotten": True, "restored_fact_ids": [told["fact_id"]]}
        (fact,) = json.loads((await client.read_resource("memory://facts")).contents[0].text)
        assert fact["fact_id"] == told["fact_id"]
        assert (await call("fact_forget", fact_id=told["fact_id"], reason="asked to"))["forgotten"]
        assert json.loads((await client.read_resource("memory://facts")).contents[0].text) == []
        assert (await call("memory_reflect"))["pruned"] == 0

        written = await call("block_rethink", name="Task", value="Plan the trip")
        assert written == {"name": "Task", "value": "Plan the trip", "characters": 13, "limit": 2_000}
        assert (await call("block_append", name="Task", text="Book a hotel"))["characters"] == 26
        assert (await call("block_replace", name="task", old="hotel", new="flat"))["value"].endswith("Book a flat")
        refused = await client.call_tool("block_append", {"name": "Task", "text": "x" * 3_000})
        assert refused.is_error
        assert "3026 characters; its limit is 2000" in str(refused.content)
        blocks = json.loads((await client.read_resource("memory://blocks")).contents[0].text)
        assert [block["value"] for block in blocks["session"]] == ["Plan the trip\nBook a flat"]

        deploy = await call("memory_add", type="procedural", content="Deploy\n- Run the tests\n- Tag the commit")
        assert (await call("procedure_list"))["procedures"][0]["steps"] == ["Run the tests", "Tag the commit"]
        assert (await call("procedure_activate", name="Deploy"))["active"]
        shown = (await client.get_prompt("memory", {})).messages[0].content.text
        assert "Plan the trip" in shown
        assert "Run the tests" in shown
        task = await call("memory_add", type="prospective", content="Ask Tom about the invoice")
        (found,) = (await call("memory_search", query="invoice", type="prospective"))["results"]
        assert found["id"] == task["trace_id"]
        for trace_id in (deploy["trace_id"], task["trace_id"]):
            assert await call("memory_delete", trace_id=trace_id) == {"deleted": True}
        assert (await call("procedure_list"))["procedures"] == []


@pytest.mark.long
def test_a_signal_ends_it_and_nothing_but_the_protocol_is_on_its_output(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=clean_environment(),
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        try:
            print(json.dumps(asked), file=process.stdin, flush=True)
            assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "memstream"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
            assert process.stdout.read() == ""
        finally:
            process.kill()


@pytest.mark.long
def test_a_line_that_is_no_message_is_answered_and_the_session_goes_on(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    said: list[tuple[bytes, list[object]]] = [
        (json.dumps({**ping, "method": "initialize", "params": start}).encode(), [1]),
        (b"garbage", [None]),
        (b'{"jsonrpc":"2.0","id":2,"method":"tools/', [2]),
        (json.dumps({"method": "x", "params": {"text": "x" * 3_000_000}, "jsonrpc": "2.0", "id": 3}).encode(), [3]),
        (b'{"id":4,"method":"ping"}', [4]),
        (b'{"jsonrpc":"2.0","id":"5","method":"ping","params":{"x":"\\ud83d \xff"}}\r', ["5"]),
        (json.dumps([{**ping, "id": 6}, {**ping, "id": 7}]).encode(), [6, 7]),
        (b"\xef\xbb\xbf" + json.dumps({**ping, "id": 8}).encode(), [8]),
    ]
    with subprocess.Popen(
        [sys.executable, *COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=clean_environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line, ids in said:
                process.stdin.write(line + b"\n")
                process.stdin.flush()
                answers = [json.loads(process.stdout.readline()) for _ in ids]
                assert sorted((each["id"] for each in answers), key=str) == ids, line[:80]
                assert all("error" in each or "result" in each for each in answers)
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


@pytest.mark.long
async def test_the_model_chooses_what_the_tool_recall_returns(tmp_path: Path) -> None:
    (tmp_path / "memstream.toml").write_text('[memory.recall.tool]\nstrategy = "model"\n')
    with ModelServer(lambda ask: {"ids": [ask.prompt.id_of("Likes tea"), "f9"]}) as server:
        model = {"MEMSTREAM_MODEL": "any", "OPENAI_BASE_URL": server.base_url}
        parameters = StdioServerParameters(
            command=sys.executable, args=list(COMMAND), cwd=tmp_path, env=clean_environment() | model
        )
        async with Client(stdio_client(parameters)) as client:
            for content in ("Works at Stripe", "Likes tea"):
                await client.call_tool("fact_remember", {"content": content})
            found = await client.call_tool("recall", {"query": "Where does the user work?"})
        assert found.structured_content is not None
        assert [each["content"] for each in found.structured_content["items"]] == ["Likes tea"]
        assert found.structured_content["missing"] == []
        assert [ask.task for ask in server.asks] == ["selection"]


@pytest.mark.long
def test_a_choice_without_a_model_is_refused_at_start(tmp_path: Path) -> None:
    (tmp_path / "memstream.toml").write_text('[memory.recall.tool]\nstrategy = "model"\n')
    refused = subprocess.run(
        [sys.executable, *COMMAND], cwd=tmp_path, env=clean_environment(), input=b"", capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert b'memory.recall.tool.strategy = "model" needs a model: set OPENAI_API_KEY' in refused.stderr
