"""`memstream serve` as a user runs it: one command that remembers, ends cleanly, is killed, and says what is wrong."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from memstream.cli.commands import console as console_command
from tests.support.cli_process import InProcess, Memstream
from tests.support.kafka import free_port
from tests.support.model_server import ModelServer, hang
from tests.support.polling import wait_for_blocking
from tests.support.serving import DEADLINE, Serving, serving
from tests.support.sse import Block, streaming

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def memstream(tmp_path: Path) -> Memstream:
    return Memstream(tmp_path)


def turn(n: int, text: str) -> dict[str, Any]:
    return {
        "tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": f"t{n}",
        "messages": [{"role": "user", "content": text}],
    }  # fmt: skip


@pytest.mark.long
async def test_one_command_is_a_memory_that_outlives_being_killed(memstream: Memstream) -> None:
    """Turns in, changes out; kill -9 in the middle of a stream; started again, the stream goes on where it was."""
    port = free_port()
    said = ["I work at Google.", "I live in Oslo.", "I like green tea.", "My name is Jake."]
    heard: list[Block] = []
    with serving(memstream, port) as server:
        async with streaming(server.url, begin="beginning", tenant="acme") as stream:
            for n, text in enumerate(said[:2]):
                assert httpx.post(f"{server.url}/v1/turns", json=turn(n, text), timeout=30).status_code == 202
            heard += await stream.changes(1)
            last = stream.last
            assert httpx.post(f"{server.url}/v1/turns", json=turn(2, said[2]), timeout=30).status_code == 202
            server.process.kill()
            server.process.wait(DEADLINE)
    with serving(memstream, port) as server:
        async with streaming(server.url, last=last, tenant="acme") as stream:
            assert httpx.post(f"{server.url}/v1/turns", json=turn(3, said[3]), timeout=30).status_code == 202
            while len({block.json["event_id"] for block in heard}) < 4:
                heard += await stream.changes(1, within=60)
            assert len({block.id for block in heard}) == len(heard), "no record of the log comes twice"
            assert len({block.data for block in heard}) == 4, "what the stages wrote again is equal in every byte"
            assert {block.json["fact"]["content"] for block in heard} == {
                "Works at Google", "Lives in Oslo", "Likes green tea", "Name is Jake"
            }  # fmt: skip

            facts = server.get("/v1/facts", tenant="acme", user="u1")
            assert len(facts["items"]) == 4
            work = next(each for each in facts["items"] if each["content"] == "Works at Google")
            assert server.get(f"/v1/facts/{work['fact_id']}", tenant="acme")["version"] == 1
            history = server.get(f"/v1/facts/{work['fact_id']}/history", tenant="acme")
            assert [each["action"] for each in history["events"]] == ["new"]
            trace = server.get(f"/v1/facts/{work['fact_id']}/trace", tenant="acme")
            assert trace["turns"][0]["content"] == said[0]
            recalled = server.get("/v1/recall", tenant="acme", user="u1", cue="Google", session="s1")
            assert recalled["missing"] == []
            assert "Works at Google" in {each["content"] for each in recalled["items"]}
            asked = {"tenant": "acme", "user": "u1", "session": "s1", "preset": "full"}
            context = httpx.post(f"{server.url}/v1/context", json=asked, timeout=30).json()
            assert "Works at Google" in context["text"]
            turns = server.get("/v1/sessions/s1/turns", tenant="acme", user="u1")
            assert [each["turn_id"] for each in turns["items"]] == ["t3", "t2", "t1", "t0"]
            assert server.get("/v1/sessions/s1/working", tenant="acme", user="u1")["items"]
            assert len(server.get("/v1/episodes", tenant="acme")["items"]) >= 1
            for path in ("/v1/facts", "/v1/episodes"):
                assert server.get(path, tenant="rival")["items"] == []

            server.process.send_signal(signal.SIGTERM)
            assert (await stream.ended()).json["reason"] == "shutdown"
        assert server.process.wait(DEADLINE) == 0, server.log.read_text()[-3000:]


@pytest.mark.long
def test_beside_a_worker_it_serves_what_the_worker_holds(memstream: Memstream) -> None:
    with memstream.worker("all") as worker, serving(memstream, free_port()) as server:
        assert httpx.post(f"{server.url}/v1/turns", json=turn(1, "I work at Google."), timeout=30).status_code == 202
        server.until(lambda: server.get("/v1/facts", tenant="acme")["items"])
        refused = Serving(memstream, free_port(), "--with-stages")
        assert refused.process.wait(DEADLINE) == 2
        assert str(worker.process.pid) in refused.log.read_text()
        assert server.stop() == 0
        assert worker.stop() == 0


def test_what_is_wrong_is_refused_by_name(tmp_path: Path) -> None:
    command = InProcess(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("serve", "--port", str(port))
        assert (done.code, f"--port {port}" in done.err) == (2, True)
    done = command("serve", "--host", "0.0.0.0", "--port", "0")
    assert (done.code, "MEMSTREAM_TOKENS" in done.err) == (2, True)
    done = command("serve", env={"MEMSTREAM_TOKENS": "nowhere.toml"})
    assert (done.code, "nowhere.toml" in done.err) == (2, True)
    (tmp_path / "bad.toml").write_text("[[token]]\nname = 'x'\n")
    done = command("serve", env={"MEMSTREAM_TOKENS": "bad.toml"})
    assert (done.code, "token.0.sha256" in done.err) == (2, True)


@pytest.mark.long
def test_a_token_that_was_made_is_one_that_is_taken(memstream: Memstream, tmp_path: Path) -> None:
    made = InProcess(tmp_path)("tokens", "new", "--name", "chat", "--tenant", "acme", "--json").records[0]
    (tmp_path / "tokens.toml").write_text(made["entry"])
    assert made["token"] not in made["entry"]
    with serving(memstream, free_port(), MEMSTREAM_TOKENS="tokens.toml") as server:
        asked = f"{server.url}/v1/facts"
        assert httpx.get(asked, timeout=30).status_code == 401
        answer = httpx.get(asked, headers={"Authorization": f"Bearer {made['token']}"}, timeout=30)
        assert (answer.status_code, answer.json()) == (200, {"items": [], "next": None})
        assert server.stop() == 0
        told = [json.loads(line) for line in server.log.read_text().splitlines()]
        assert any("event" in line for line in told)  # the audit's lines, which stand between, have none


@pytest.mark.long
def test_a_tenants_limit_of_turns_applies_without_a_restart(memstream: Memstream, tmp_path: Path) -> None:
    command = InProcess(tmp_path)
    tokens = {}
    for tenant in ("acme", "rival"):
        made = command("tokens", "new", "--name", tenant, "--tenant", tenant, "--json").records[0]
        tokens[tenant] = {"Authorization": f"Bearer {made['token']}"}
        with (tmp_path / "tokens.toml").open("a") as file:
            file.write(made["entry"] + "\n")
    (tmp_path / "acme.json").write_text('{"limits": {"turns_per_minute": 3}}')
    with serving(memstream, free_port(), MEMSTREAM_TOKENS="tokens.toml") as server:

        def send(*numbers: int, tenant: str = "acme") -> httpx.Response:
            said = [turn(n, "I like green tea.") | {"tenant_id": tenant} for n in numbers]
            return httpx.post(f"{server.url}/v1/turns", json=said, headers=tokens[tenant], timeout=30)

        def reports(event: str) -> Any:
            return server.until(lambda: event in server.log.read_text())

        assert send(*range(10)).status_code == 202, "there is no limit"
        assert command("policies", "set", "--tenant", "acme", "acme.json").code == 0
        reports("policy_in_force")
        assert send(10, 11, 12).status_code == 202
        refused = send(13, 14)
        assert refused.status_code == 429, refused.text
        assert refused.json()["type"] == "urn:memstream:problem:too-many-requests"
        assert 1 <= int(refused.headers["Retry-After"]) <= 40
        assert send(*range(10), tenant="rival").status_code == 202
        asked = {"user_id": "u1", "session_id": "s1"}
        for n, status in ((12, 200), (13, 404), (14, 404)):
            found = httpx.get(f"{server.url}/v1/turns/t{n}", params=asked, headers=tokens["acme"], timeout=30)
            assert found.status_code == status, "a refused turn is not in the log"
        metrics = httpx.get(f"{server.url}/metrics", timeout=30).text
        assert 'memstream_http_turn_limit_refusals_total{limit="tenant",tenant="acme"} 1.0' in metrics
        assert command("policies", "remove", "--tenant", "acme").code == 0
        server.until(lambda: send(13, 14).status_code == 202)
        assert server.stop() == 0


@pytest.mark.long
def test_the_model_chooses_what_the_tool_recall_returns(memstream: Memstream) -> None:
    """MCP has the same services (tests/integration/test_mcp_stdio.py)."""
    (memstream.folder / "memstream.toml").write_text('[memory.recall.tool]\nstrategy = "model"\npatience = 0.5\n')
    who = {"X-Memstream-Tenant": "acme", "X-Memstream-User": "ana"}
    with ModelServer(lambda ask: {"ids": [ask.prompt.id_of("Likes tea"), "f9"]}) as model:
        env = {"MEMSTREAM_MODEL": "any", "OPENAI_BASE_URL": model.base_url}
        with serving(memstream, free_port(), **env) as server:

            def call(tool: str, **given: Any) -> Any:
                answer = httpx.post(f"{server.url}/v1/tools/{tool}", json=given, headers=who, timeout=30)
                assert answer.status_code == 200, answer.text
                return answer.json()["result"]

            for content in ("Works at Stripe", "Likes tea"):
                call("fact_remember", content=content)
            chosen = call("recall", query="Where does the user work?")
            assert [each["content"] for each in chosen["items"]] == ["Likes tea"]
            assert [ask.task for ask in model.asks] == ["selection"]
            metrics = httpx.get(f"{server.url}/metrics", timeout=30).text
            assert 'task="selection"' in metrics, "counted by task"
            model.script = lambda ask: hang()
            ranked = call("recall", query="Where does the user work?")
            assert ranked["items"][0]["content"] == "Works at Stripe"
            assert ranked["missing"] == ["selection"]
            assert server.stop() == 0


@pytest.mark.long
def test_the_console_opens_in_the_browser(memstream: Memstream, tmp_path: Path) -> None:
    """The command prints the address, and gives it to the browser that the environment names."""
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\necho "$1" > opened\n')
    browser.chmod(0o755)
    opened = tmp_path / "opened"
    with memstream.started("console", env={"BROWSER": str(browser)}) as process:
        address = wait_for_blocking(
            lambda: opened.exists() and opened.read_text().strip(), "the browser", deadline=DEADLINE
        )
        page = httpx.get(address, timeout=30)
        assert (page.status_code, "First steps" in page.text) == (200, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
        assert process.stdout is not None
        assert process.stdout.read().decode() == f"{address}\n"


def test_the_console_needs_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in console_command.SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert console_command._open("http://127.0.0.1:1/console") is False
