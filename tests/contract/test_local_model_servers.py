"""The requests that we send are requests that Ollama, llama.cpp and vLLM take.

`tests/data/model_servers/` has what each server reads of a request, and which keywords of a JSON schema it turns into
a grammar: recorded from its sources, which each file names.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import JsonValue

from memstream.adapters.completions.openai import OpenAICompletions
from memstream.adapters.ports import CompletionRequest, Message
from memstream.agents.consolidation.prompts import facts, insights, judge, procedures, prune, text_answer
from memstream.agents.observer import evidence_prompt
from memstream.agents.observer.answer_schema import WHOLE, WORKING_ONLY
from memstream.recall import llm_reranker
from memstream.schemas.tasks import TASKS
from tests.support.completion_requests import Ledger
from tests.support.model_server import ModelServer, nothing

FOLDER = Path(__file__).resolve().parents[1] / "data" / "model_servers"
SERVERS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
SCHEMAS: dict[str, Mapping[str, JsonValue]] = {
    "observations": WHOLE.schema(2),
    "observations of one turn, working set alone": WORKING_ONLY.schema(1),
    "observations of two turns, working set alone": WORKING_ONLY.schema(2),
    "evidence": evidence_prompt.SCHEMA,
    "consolidation": facts.SCHEMA,
    "prune": prune.SCHEMA,
    "judge": judge.SCHEMA,
    "insights": insights.SCHEMA,
    "procedures": procedures.SCHEMA,
    "selection": llm_reranker.SCHEMA,
    **dict.fromkeys(("digest", "summary", "gist"), text_answer.SCHEMA),
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(nothing) as running:
        yield running


@pytest.fixture
async def client(server: ModelServer) -> AsyncIterator[OpenAICompletions]:
    made = OpenAICompletions(
        model="qwen3:8b", api_key="none", base_url=server.base_url, timeout=10, concurrency=4, sink=Ledger()
    )
    yield made
    await made.close()


def asked(task: str) -> CompletionRequest[JsonValue]:
    messages = (
        Message("system", "rules"),
        Message("user", "context"),
        Message("assistant", "ok"),
        Message("user", "turns"),
    )
    return CompletionRequest(
        task=task.partition(" ")[0], tenant_id="acme", messages=messages, json_schema=SCHEMAS[task], parse=lambda v: v
    )


def test_every_task_is_held_to_them() -> None:
    assert {name.partition(" ")[0] for name in SCHEMAS} == set(TASKS)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    "refused", [(), ("json_schema",), ("json_schema", "json_object")], ids=["schema", "mode", "text"]
)
async def test_a_server_takes_every_request(
    client: OpenAICompletions, server: ModelServer, name: str, refused: tuple[str, ...]
) -> None:
    """Nothing is sent that the server does not read, but for what is known to be ignored."""
    server.refuse_formats = frozenset(refused)
    recorded = SERVERS[name]
    for task in SCHEMAS:
        await client.complete(asked(task))
    assert len(server.asks) >= len(SCHEMAS)
    for ask in server.asks:
        body = {field: value for field, value in ask.body.items() if field not in recorded["ignored"]}
        jsonschema.validate(body, recorded["request"])
        assert "max_tokens" in body, "the limit of an answer is in a field that the server reads"


@pytest.mark.parametrize("task", SCHEMAS)
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_can_hold_an_answer_to_the_schema(name: str, task: str) -> None:
    assert _keywords(SCHEMAS[task]) <= set(SERVERS[name]["schema_keywords"])


def _keywords(schema: Any) -> set[str]:
    found = set(schema)
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        found |= _keywords(inner)
    return found | (_keywords(schema["items"]) if "items" in schema else set())
