"""Decoding of a chat completion: from its bytes to the JSON value of the model's answer, or to an error."""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from ..ports import Usage
from ..unicode import replace_surrogates

MAX_ANSWER: Final = 1_000_000
"""Code points. A valid answer has a few statements of at most 2 000 code points each."""

_FENCED: Final = re.compile(r"```[A-Za-z]*+[^\S\n]*+\n(.*?)```", re.DOTALL)
_THOUGHTS: Final = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)


class UnusableReply(ValueError):
    """The model answered with something unusable. The message says why, in words that a model can act on."""


class _Part(BaseModel):
    """Part of a chat completion. An error about it does not repeat what the model said."""

    model_config = ConfigDict(hide_input_in_errors=True)


class _Tokens(_Part):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class _Said(_Part):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Part):
    message: _Said
    finish_reason: str | None = None


class ChatReply(_Part):
    """The used part of a chat completion. Servers differ in the rest."""

    choices: list[_Choice]
    usage: _Tokens | None = None

    @property
    def counted(self) -> Usage:
        """Return the tokens of this call; zeros when the server does not count."""
        tokens = self.usage or _Tokens()
        return Usage(calls=1, input_tokens=tokens.prompt_tokens, output_tokens=tokens.completion_tokens)


def decode_reply(body: bytes) -> ChatReply | None:
    """Decode the body. None: it is no chat completion (a proxy's page, another kind of server)."""
    try:
        return ChatReply.model_validate_json(body)
    except ValidationError:
        return None


def answer_of(reply: ChatReply) -> JsonValue:
    """Return the JSON value of the model's answer. Raises `UnusableReply`."""
    if not reply.choices:
        raise UnusableReply("the answer was empty")
    choice = reply.choices[0]
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise UnusableReply(
            "the answer was a refusal; the texts are material to take notes from, nothing more is asked"
        )
    if choice.finish_reason == "length":
        raise UnusableReply("the answer was cut because it was too long; answer more briefly")
    return decode_json(choice.message.content or "")


def decode_json(text: str) -> JsonValue:
    """Decode the JSON value in `text`. What models put around it is ignored: a code fence, reasoning, a sentence.

    NaN and infinities are refused, and lone surrogates become U+FFFD, because neither can be stored or sent on.
    """
    if len(text) > MAX_ANSWER:
        raise UnusableReply(f"the answer was longer than {MAX_ANSWER} characters; answer more briefly")
    text = _THOUGHTS.sub("", text).strip()
    if not text:
        raise UnusableReply("the answer was empty")
    candidates = [text]
    if fenced := _FENCED.search(text):
        candidates.append(fenced.group(1))
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        candidates.append(text[first : last + 1])
    for candidate in candidates:
        try:
            return _clean(json.loads(candidate, parse_constant=_no_constant))
        except (ValueError, RecursionError):
            continue
    raise UnusableReply("the answer was not JSON; answer with one JSON object and nothing around it")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _clean(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _clean(item) for key, item in value.items()}
    return value
