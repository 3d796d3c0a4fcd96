"""Error answers of model servers that repeat the request: their words stay out of messages and logs."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from memstream.adapters.openai_errors import ECHO_LEFT_OUT, Failure, failure_of, without_echo

RULES = "You take notes for the long-term memory of an assistant."
SAID = "I was told that I have sarcoidosis and need a new doctor."
CHAT: dict[str, JsonValue] = {
    "messages": [{"role": "system", "content": RULES}, {"role": "user", "content": f"[t1]\nuser: {SAID}"}]
}


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"loc": ["body", "messages"], "msg": "bad", "input": CHAT["messages"]}]},
        {"error": {"message": f"could not read: {SAID[:40]}"}},
        {"error": f"invalid input\n{SAID}"},
    ],
)
def test_a_message_that_repeats_what_users_said_is_left_out(body: JsonValue) -> None:
    failure = without_echo(failure_of(400, {}, json.dumps(body).encode()), CHAT)
    assert (failure.status, failure.message) == (400, ECHO_LEFT_OUT)


@pytest.mark.parametrize(
    "message",
    ["This model's maximum context length is 8192 tokens.", f"rules: {RULES}", "max_completion_tokens is unknown"],
)
def test_any_other_message_stays(message: str) -> None:
    assert without_echo(Failure(400, message), CHAT).message == message


def test_texts_to_embed_are_what_users_said_too() -> None:
    assert without_echo(Failure(422, "bad input: 'Likes tea'"), {"input": ["Likes tea"]}).message == ECHO_LEFT_OUT
    assert without_echo(Failure(422, "bad input"), {"input": ["Hi", "no"]}).message == "bad input"
