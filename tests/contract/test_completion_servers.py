"""What OpenAI-compatible servers answer besides the protocol: other fields, streams, and errors for one format."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest

from memstream.adapters.completions.openai import (
    ANSWER_LIMIT,
    FORMAT_FAILURES,
    LIMIT_NAMES,
    REPAIRS_MAX,
    OpenAICompletions,
)
from memstream.adapters.completions.request_fields import RequestFields
from memstream.adapters.ports import Usage
from memstream.schemas.errors import Poison, TimedOut, Transient
from tests.support.completion_requests import Ledger, observe
from tests.support.model_server import Answer, Ask, ModelServer, Reply, error, hang, in_turn, observing

OBSERVED: Final = observing({"I work at Google.": [{"content": "Works at Google", "category": "profession"}]})
ITEM: Final = {"content": "Works at Google", "evidence": "I work at Google."}
TEXT: Final = json.dumps({"observations": [ITEM]})
PART: Final = {"type": "text", "text": TEXT}
JSON: Final = {"content-type": "application/json"}


def body(message: object, *, usage: object = None, finish_reason: object = "stop", **more: object) -> Reply:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    sent = {"id": "x", "choices": [choice], "usage": usage, **more}
    return Reply(raw=json.dumps(sent).encode(), headers=JSON)


def streamed(*deltas: dict[str, Any], end: str = "\n\n") -> Reply:
    chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None})
    chunks.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    lines = [": a comment", "event: message", *(f"data: {json.dumps(chunk)}" for chunk in chunks), "data: [DONE]"]
    return Reply(raw=end.join(lines).encode(), headers={"content-type": "text/event-stream"})


def said(content: object, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **more}


def calls(*arguments: object) -> list[dict[str, object]]:
    return [{"id": "c", "type": "function", "function": {"name": "f", "arguments": each}} for each in arguments]


REPLIES: Final[dict[str, Reply]] = {
    "a list of parts": body(said([{"type": "text", "text": TEXT[:20]}, {"type": "text", "text": TEXT[20:]}])),
    "a reasoning part first": body(said([{"type": "reasoning", "summary": [{"text": "hm"}]}, PART])),
    "a thinking part first": body(said([{"type": "thinking", "thinking": "hm"}, {**PART, "type": "output_text"}])),
    "a text part with a value": body(said([{"type": "text", "text": {"value": TEXT}}])),
    "one part": body(said({"type": "text", "text": TEXT})),
    "a list of strings": body(said([TEXT])),
    "a decoded object": body(said(json.loads(TEXT))),
    "reasoning_content": body(said(None, reasoning_content=TEXT)),
    "reasoning_content beside an empty text": body(said("", reasoning_content=f"hm {TEXT}")),
    "reasoning": body(said(None, reasoning=TEXT)),
    "a tool call": body(said(None, tool_calls=calls(TEXT)), finish_reason="tool_calls"),
    "a tool call with decoded arguments": body(said("", tool_calls=calls(json.loads(TEXT)))),
    "a tool call beside prose": body(said("I call the tool.", tool_calls=calls(TEXT))),
    "a function call": body(said(None, function_call={"name": "f", "arguments": TEXT})),
    "no usage": body(said(TEXT)),
    "negative usage": body(said(TEXT), usage={"prompt_tokens": -1, "completion_tokens": -1}),
    "null in usage": body(said(TEXT), usage={"prompt_tokens": None, "completion_tokens": None}),
    "usage of another kind": body(said(TEXT), usage=[1, 2]),
    "a numeric finish_reason": body(said(TEXT), finish_reason=1),
    "no finish_reason": body(said(TEXT), finish_reason=None),
    "null ids": body(said(TEXT), id=None, created=None, model=None, object=None),
    "other fields of other types": body(said(TEXT, refusal="", annotations=3), service_tier={"a": 1}),
    "a byte order mark": Reply(raw=b"\xef\xbb\xbf" + (body(said(TEXT)).raw or b""), headers=JSON),
    "server-sent events": streamed(said(TEXT[:9]), {"content": TEXT[9:]}),
    "server-sent events with other line ends": streamed({"content": TEXT}, end="\r\n"),
    "reasoning in server-sent events": streamed({"reasoning_content": "hm"}, {"content": TEXT}),
    "a tool call in server-sent events": streamed(
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": TEXT[:9]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": TEXT[9:]}}]},
    ),
}  # fmt: skip


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(OBSERVED) as running:
        yield running


@pytest.fixture
async def make(server: ModelServer, ledger: Ledger) -> AsyncIterator[Callable[..., OpenAICompletions]]:
    made: list[OpenAICompletions] = []

    def one(**given: Any) -> OpenAICompletions:
        given = {"api_key": "k", "base_url": server.base_url, "timeout": 10, "concurrency": 4, **given}
        made.append(OpenAICompletions(model="gpt-test", sink=ledger, **given))
        return made[-1]

    yield one
    for each in made:
        await each.close()


Make = Callable[..., OpenAICompletions]


@pytest.mark.parametrize("name", REPLIES)
async def test_an_answer_is_found_in_the_first_call(make: Make, server: ModelServer, name: str) -> None:
    server.script = lambda ask: REPLIES[name]
    answer = await make().complete(observe("user: I work at Google."))
    assert answer.value == [ITEM]
    assert len(server.asks) == 1
    wanted = Usage(1, 7, 3) if "server-sent" in name else Usage(calls=1)
    assert answer.usage == wanted


@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw=b'data: {"error": "overloaded"}\n\n', headers={"content-type": "text/event-stream"}),
        Reply(raw=b'{"choices": null}', headers=JSON),
        Reply(raw=b'{"error": {"message": "no"}}', headers=JSON),
        Reply(raw=b"[]", headers=JSON),
        Reply(raw=b"\xff\xfe", headers=JSON),
    ],
    ids=lambda reply: repr(reply.raw),
)
async def test_what_is_no_completion_is_transient(make: Make, server: ModelServer, reply: Reply) -> None:
    server.script = lambda ask: reply
    with pytest.raises(Transient, match="did not answer with a chat completion"):
        await make().complete(observe("user: hi"))


async def test_drafts_in_reasoning_are_no_answer_beside_a_text(make: Make, server: ModelServer) -> None:
    server.script = lambda ask: body(said("I cannot help with that.", reasoning_content=TEXT))
    with pytest.raises(Poison):
        await make().complete(observe("user: I work at Google."))


@pytest.mark.parametrize("end", ["length", "MAX_TOKENS", "max_output_tokens"])
async def test_a_cut_answer_is_asked_for_again(make: Make, server: ModelServer, end: str) -> None:
    server.script = in_turn(body(said(TEXT), finish_reason=end), then=OBSERVED)
    assert len((await make().complete(observe("user: I work at Google."))).value) == 1
    assert len(server.asks) == 2
    assert "too long" in str(server.asks[1].messages)


async def test_a_second_call_shows_the_schema_in_the_prompt(make: Make, server: ModelServer) -> None:
    """Some servers ignore `response_format` without an error."""
    server.script = in_turn("I noticed that the user works.", then=OBSERVED)
    await make().complete(observe("user: I work at Google."))
    first, second = server.asks
    assert "JSON schema" not in str(first.messages)
    assert 'JSON schema, named "observations"' in str(second.messages)


# ------------------------------------------------------------------------------------------------ formats
async def test_a_schema_that_is_ignored_again_and_again_comes_into_the_first_prompt(
    make: Make, server: ModelServer
) -> None:
    server.script = lambda ask: OBSERVED(ask) if "JSON schema" in str(ask.messages) else "I noticed something."
    client = make()
    for _ in range(FORMAT_FAILURES + 1):
        assert (await client.complete(observe("user: I work at Google."))).value
    assert [ask.response_format for ask in server.asks] == ["json_schema"] * 2 * FORMAT_FAILURES + ["json_object"]


async def test_a_repair_now_and_then_changes_no_format(make: Make, server: ModelServer) -> None:
    client = make()
    await client.complete(observe("user: I work at Google."))
    for _ in range(2):
        server.script = lambda ask: OBSERVED(ask) if "JSON schema" in str(ask.messages) else "I noticed something."
        for _ in range(REPAIRS_MAX - 1):
            await client.complete(observe("user: I work at Google."))
        server.script = OBSERVED
        await client.complete(observe("user: I work at Google."))
    assert {ask.response_format for ask in server.asks} == {"json_schema"}


async def test_a_schema_that_is_ignored_from_now_on_comes_into_the_first_prompt(
    make: Make, server: ModelServer
) -> None:
    client = make()
    await client.complete(observe("user: I work at Google."))
    server.script = lambda ask: OBSERVED(ask) if "JSON schema" in str(ask.messages) else "I noticed something."
    for _ in range(REPAIRS_MAX + 1):
        await client.complete(observe("user: I work at Google."))
    formats = [ask.response_format for ask in server.asks]
    assert formats == ["json_schema"] * (1 + 2 * REPAIRS_MAX) + ["json_object"]


def failing(status: int, *formats: str) -> Callable[[Ask], Answer]:
    return lambda ask: error(status, "failed") if ask.response_format in formats else OBSERVED(ask)


@pytest.mark.parametrize("status", [403, 404, 500, 501])
async def test_a_format_that_fails_again_and_again_is_left(make: Make, server: ModelServer, status: int) -> None:
    server.script = failing(status, "json_schema")
    client = make()
    for _ in range(FORMAT_FAILURES - 1):
        with pytest.raises(Transient):
            await client.complete(observe("user: I work at Google."))
    for _ in range(2):
        assert (await client.complete(observe("user: I work at Google."))).value
    assert [ask.response_format for ask in server.asks] == ["json_schema", "json_schema", "json_object", "json_object"]
    assert client.answer_format("observations") == 1


async def test_two_formats_may_fail(make: Make, server: ModelServer) -> None:
    server.script = failing(500, "json_schema", "json_object")
    client = make()
    with pytest.raises(Transient):
        await client.complete(observe("user: I work at Google."))
    assert (await client.complete(observe("user: I work at Google."))).value
    assert server.asks[-1].response_format == "text"


async def test_a_server_that_fails_in_each_format_is_asked_as_before(make: Make, server: ModelServer) -> None:
    server.script = lambda ask: error(500)
    client = make()
    for _ in range(4):
        with pytest.raises(Transient, match="said 500"):
            await client.complete(observe("user: hi"))
    assert [ask.response_format for ask in server.asks] == ["json_schema", "json_schema", "json_object", "text"] * 2


@pytest.mark.parametrize("status", [401, 408, 429, 502, 503])
async def test_other_errors_are_not_about_the_format(make: Make, server: ModelServer, status: int) -> None:
    server.script = lambda ask: error(status)
    client = make()
    for _ in range(4):
        with pytest.raises(Transient):
            await client.complete(observe("user: hi"))
    assert {ask.response_format for ask in server.asks} == {"json_schema"}


async def test_an_outage_changes_no_format_that_has_worked(make: Make, server: ModelServer) -> None:
    client = make()
    await client.complete(observe("user: hi"))
    server.script = lambda ask: error(500)
    for _ in range(4):
        with pytest.raises(Transient):
            await client.complete(observe("user: hi"))
    assert {ask.response_format for ask in server.asks} == {"json_schema"}


# ------------------------------------------------------------------------------------------------ streams
STREAMS_ONLY: Final = (
    "parameter.enable_thinking must be set to false for non-streaming calls",
    "This model only support stream mode, please enable the stream parameter to access the model.",
)


@pytest.mark.parametrize("message", STREAMS_ONLY)
async def test_a_server_that_only_streams_is_asked_for_a_stream(make: Make, server: ModelServer, message: str) -> None:
    server.script = lambda ask: streamed({"content": TEXT}) if ask.body.get("stream") else error(400, message)
    client = make()
    for _ in range(2):
        assert (await client.complete(observe("user: I work at Google."))).usage == Usage(1, 7, 3)
    assert [ask.body.get("stream") for ask in server.asks] == [None, True, True]
    assert {ask.response_format for ask in server.asks} == {"json_schema"}


async def test_a_refusal_by_something_upstream_is_not_about_streams(make: Make, server: ModelServer) -> None:
    server.script = lambda ask: error(400, "upstream error")
    with pytest.raises(Poison):
        await make().complete(observe("user: hi"))
    assert all("stream" not in ask.body for ask in server.asks)


# ------------------------------------------------------------------------------------------------ request fields
async def test_request_fields_go_with_each_request(make: Make, server: ModelServer) -> None:
    fields = RequestFields(
        body={"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}},
        headers={"X-Team": "memory"},
        query={"api-version": "2024-10-21"},
    )
    server.script = in_turn("no", then=OBSERVED)
    await make(fields=fields).complete(observe("user: I work at Google."))
    assert len(server.asks) == 2
    for ask in server.asks:
        assert ask.body["reasoning_effort"] == "low"
        assert ask.body["chat_template_kwargs"] == {"enable_thinking": False}
        headers = {name.lower(): value for name, value in ask.headers.items()}
        assert [headers[name] for name in ("x-team", "authorization", "api-key")] == ["memory", "Bearer k", "k"]
        assert ask.query == {"api-version": "2024-10-21"}


async def test_a_query_of_the_address_is_kept(make: Make, server: ModelServer) -> None:
    await make(base_url=f"{server.base_url}?api-version=1").complete(observe("user: hi"))
    [ask] = server.asks
    assert ask.query == {"api-version": "1"}
    assert ask.headers["api-key"] == "k"


class Limited:
    max_output_tokens = 500

    def settle(self, usage: Usage | None) -> None:
        return


class Budget:
    async def reserve(self, **call: Any) -> Limited:
        return Limited()


@pytest.mark.parametrize(("own", "sent"), [(100, 100), (9_000, 500)])
async def test_the_lower_limit_of_an_answer_counts(make: Make, server: ModelServer, own: int, sent: int) -> None:
    await make(fields=RequestFields(body={"max_tokens": own}), meter=Budget()).complete(observe("user: hi"))
    [ask] = server.asks
    assert ask.body["max_tokens"] == sent
    assert "max_completion_tokens" not in ask.body


async def test_every_request_has_a_limit_of_its_answer(make: Make, server: ModelServer) -> None:
    """A server of one's own gets the older name: Ollama ignores the current one without an error."""
    await make().complete(observe("user: hi"))
    await make(meter=Budget()).complete(observe("user: hi"))
    await make(fields=RequestFields(body={"max_completion_tokens": 60_000})).complete(observe("user: hi"))
    await make().complete(replace(observe("user: hi"), max_output_tokens=64))
    limits = [{name: each.body[name] for name in LIMIT_NAMES if name in each.body} for each in server.asks]
    assert limits == [
        {"max_tokens": ANSWER_LIMIT},
        {"max_tokens": 500},
        {"max_completion_tokens": 60_000},
        {"max_tokens": 64},
    ]


@pytest.mark.parametrize(
    ("base_url", "first"),
    [
        (None, "max_completion_tokens"),
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://r.openai.azure.com/openai/v1/", "max_completion_tokens"),
        ("http://localhost:11434/v1", "max_tokens"),
        ("https://api.openai.com.example.org/v1", "max_tokens"),
    ],
)
async def test_the_name_of_the_limit_depends_on_the_server(base_url: str | None, first: str) -> None:
    client = OpenAICompletions(model="m", sink=Ledger(), api_key="k", base_url=base_url)
    assert client._limit_names[0] == first
    await client.close()


CONTEXT: Final = 5_000
"""Tokens that the server below has for an answer."""


def _short_context(message: str) -> Callable[[Ask], Answer]:
    def script(ask: Ask) -> Answer:
        limit = ask.body.get("max_tokens", 0)
        assert isinstance(limit, int)
        return error(400, message.format(limit)) if limit > CONTEXT else OBSERVED(ask)

    return script


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: {}. This model supports at most 5000 completion tokens",
        "This model's maximum context length is 8192 tokens. However, you requested 3192 tokens in the messages and {} "
        "in the completion.",
    ],
    ids=["names the field", "names the sum"],
)
async def test_a_server_with_a_short_context_gets_a_lower_limit(make: Make, server: ModelServer, message: str) -> None:
    """The limit is halved until the server takes it. Later calls begin with the limit that worked."""
    server.script = _short_context(message)
    client = make()
    for _ in range(2):
        await client.complete(observe("user: hi"))
    assert [ask.body["max_tokens"] for ask in server.asks] == [16_384, 8_192, 4_096, 4_096]


async def test_a_server_that_knows_neither_name_gets_no_limit(make: Make, server: ModelServer) -> None:
    def script(ask: Ask) -> Answer:
        named = [name for name in LIMIT_NAMES if name in ask.body]
        return error(400, f"unknown field {named[0]}") if named else OBSERVED(ask)

    server.script = script
    client = make()
    for _ in range(2):
        await client.complete(observe("user: hi"))
    assert [sorted(LIMIT_NAMES & ask.body.keys()) for ask in server.asks] == [
        ["max_tokens"], ["max_completion_tokens"], [], [],
    ]  # fmt: skip


@pytest.mark.parametrize("status", [408, 504, 524])
async def test_a_gateway_that_gives_up_is_a_time_out(make: Make, server: ModelServer, status: int) -> None:
    server.script = lambda ask: error(status)
    with pytest.raises(TimedOut):
        await make().complete(observe("user: hi"))


async def test_a_call_without_an_answer_in_time_is_a_time_out(make: Make, server: ModelServer) -> None:
    server.script = lambda ask: hang()
    with pytest.raises(TimedOut, match=r"did not answer within 0\.05 s"):
        await make(timeout=0.05).complete(observe("user: hi"))


async def test_a_failing_server_is_no_time_out(make: Make, server: ModelServer) -> None:
    server.script = lambda ask: error(503)
    with pytest.raises(Transient) as caught:
        await make().complete(observe("user: hi"))
    assert not isinstance(caught.value, TimedOut)
