"""A real llama.cpp server with a small real model takes every request that we send: `make real-model`.

The tests prove the wire, and not quality: SmolLM2-135M is too small for the tasks. Answers are cut after few tokens.
Without MEMSTREAM_TEST_MODEL_SERVER, the base address of such a server, the tests are skipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from pydantic import JsonValue

from memstream.adapters.completions.openai import LIMIT_NAMES, AnswerFormat, OpenAICompletions
from memstream.adapters.ports import CompletionRequest
from memstream.agents.observer.batch import request_for
from memstream.agents.observer.prompt import ObservePrompt, ShownTurn
from memstream.agents.observer.speakers import ShownMessage
from memstream.agents.observer.timeouts import is_answering
from memstream.memory.policies import CapturePolicy
from memstream.schemas.errors import Poison, TimedOut
from memstream.schemas.working_set import WorkingSet
from memstream.streams.engine.retry import Calls
from tests.contract.test_local_model_servers import SCHEMAS, asked
from tests.support.completion_requests import Ledger

BASE_URL: Final = os.environ.get("MEMSTREAM_TEST_MODEL_SERVER", "")
TOKENS: Final = 24
"""Maximum tokens of an answer: enough for the first name of the schema."""

pytestmark = pytest.mark.skipif(not BASE_URL, reason="needs a model server: make real-model")


def new_client(ledger: Ledger, **given: Any) -> OpenAICompletions:
    fields: dict[str, Any] = {"base_url": BASE_URL, "timeout": 50.0, "concurrency": 1, **given}
    return OpenAICompletions(model="local", sink=ledger, **fields)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
async def client(ledger: Ledger) -> AsyncIterator[OpenAICompletions]:
    made = new_client(ledger)
    yield made
    await made.close()


def limited(task: str) -> CompletionRequest[JsonValue]:
    return replace(asked(task), max_output_tokens=TOKENS)


def begins_as(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a cut answer begins as the schema requires."""
    return "".join(text.split()).startswith(f'{{"{next(iter(schema["properties"]))}":')


@pytest.mark.parametrize("task", SCHEMAS)
async def test_every_schema_is_taken_and_holds_the_answer(client: OpenAICompletions, task: str) -> None:
    """The grammar of the schema decides how the answer begins. The limit ends it."""
    reply = await client._ask(limited(task), AnswerFormat.JSON_SCHEMA)
    assert begins_as(reply.texts[0], SCHEMAS[task])
    assert 0 < reply.counted.output_tokens <= TOKENS
    assert reply.counted.input_tokens > 0
    assert reply.is_cut or isinstance(json.loads(reply.texts[0]), dict)
    assert client._limit_names[0] == LIMIT_NAMES[1]  # the server took the first name


@pytest.mark.parametrize("answer_format", [AnswerFormat.JSON_MODE, AnswerFormat.PLAIN])
async def test_every_fallback_is_taken(client: OpenAICompletions, answer_format: AnswerFormat) -> None:
    reply = await client._ask(limited("judge"), answer_format, "the answer was not JSON")
    assert 0 < reply.counted.output_tokens <= TOKENS
    assert answer_format is AnswerFormat.PLAIN or reply.texts[0].lstrip().startswith("{")


async def test_the_prompt_of_the_observer_is_taken(client: OpenAICompletions, ledger: Ledger) -> None:
    """The answer to the whole prompt is cut, so it is asked for once more, and then refused."""
    said = (ShownMessage("user", "I work at Fixpoint as a nurse."),)
    turn = ShownTurn(turn_id="t", occurred_at=datetime.now(UTC), said=said)
    prompt = ObservePrompt((turn,), WorkingSet(), (), CapturePolicy())
    request = replace(request_for(prompt, tenant_id="acme"), max_output_tokens=TOKENS)
    with pytest.raises(Poison, match="the answer was cut because it was too long"):
        await client.complete(request)
    assert ledger.calls == 2
    assert client.answer_format("observations") is AnswerFormat.JSON_SCHEMA


async def test_the_short_question_is_answered(client: OpenAICompletions) -> None:
    assert await is_answering("acme", completions=client, calls=Calls())


async def test_a_call_that_takes_too_long_is_a_time_out(ledger: Ledger) -> None:
    """The server serves the next call afterwards."""
    hasty = new_client(ledger, timeout=0.05)
    with pytest.raises(TimedOut):
        await hasty.complete(asked("digest"))
    await hasty.close()
    client = new_client(ledger)
    assert (await client._ask(limited("digest"), AnswerFormat.JSON_SCHEMA)).texts
    await client.close()
