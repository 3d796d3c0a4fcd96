"""The scripted model itself: what tests rely on."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from memstream.adapters.ports import CompletionRequest
from tests.support.completion_requests import Json, observe
from tests.support.model_server import Answer, Ask, Gate, ModelServer, held, observing

ROOT = Path(__file__).resolve().parents[2]


def post(base_url: str, request: CompletionRequest[list[Json]], timeout: float = 20) -> httpx.Response:
    body = {
        "model": "m",
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "response_format": {"type": "json_schema", "json_schema": {"name": request.task, "schema": {}}},
    }
    return httpx.post(f"{base_url}/chat/completions", json=body, timeout=timeout, trust_env=False)


def answered(response: httpx.Response) -> list[Json]:
    found: list[Json] = json.loads(response.json()["choices"][0]["message"]["content"])["observations"]
    return found


def test_observations_by_what_was_said_and_what_they_replace() -> None:
    script = observing(
        {
            "I work at Acme": [{"content": "Works at Acme"}],
            "I joined Initech": [{"content": "Works at Initech", "replaces": "Works at Acme"}],
        }
    )
    with ModelServer(script) as server:
        [shown] = answered(post(server.base_url, observe("user: I joined Initech", known=[("user", "Works at Acme")])))
        first, second = answered(post(server.base_url, observe("user: I work at Acme", "user: I joined Initech")))
        [alone] = answered(post(server.base_url, observe("user: I joined Initech")))
        assert [ask.task for ask in server.asks] == ["observations"] * 3
    assert (shown["turn"], shown["replaces"], shown["evidence"]) == ("t1", "w1", "I joined Initech")
    assert (first["turn"], second["turn"], second["replaces"]) == ("t1", "t2", "o1")
    assert alone["replaces"] is None


def test_what_an_assistant_says_is_not_observed() -> None:
    with ModelServer(observing({"I work at Acme": [{"content": "Works at Acme"}]})) as server:
        assert answered(post(server.base_url, observe("user: hi\nassistant: I work at Acme"))) == []


def test_an_answer_is_held_until_the_gate_opens() -> None:
    gate = Gate()
    with ModelServer(lambda ask: held(gate, {"observations": []})) as server:
        done = threading.Event()
        thread = threading.Thread(target=lambda: (post(server.base_url, observe("user: hi")), done.set()))
        thread.start()
        server.wait_in_hand()
        assert not done.is_set()
        gate.open()
        thread.join(10)
        assert done.is_set()
        assert server.in_hand == 0


@pytest.mark.slow
def test_a_client_that_died_is_no_longer_in_hand() -> None:
    with ModelServer(lambda ask: held(Gate(), {})) as server:
        body = "json={'model': 'm', 'messages': []}, timeout=60, trust_env=False"
        code = f"import httpx; httpx.post('{server.base_url}/chat/completions', {body})"
        process = subprocess.Popen([sys.executable, "-c", code])
        server.wait_in_hand()
        process.kill()
        process.wait()
        server.wait_idle()


def test_a_script_that_fails_fails_its_test() -> None:
    def broken(ask: Ask) -> Answer:
        raise KeyError("no answer to this")

    with pytest.raises(AssertionError, match="no answer to this"), ModelServer(broken) as server:
        assert post(server.base_url, observe("user: hi")).status_code == 500


@pytest.mark.slow
def test_as_a_process_of_its_own(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"observations": {"I work at Acme": [{"content": "Works at Acme"}]}}))
    command = [sys.executable, "-m", "tests.support.model_server", "--rules", str(rules)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready, base_url = process.stdout.readline().split()
            assert ready == "ready"
            assert len(answered(post(base_url, observe("user: I work at Acme.")))) == 1
        finally:
            process.kill()
