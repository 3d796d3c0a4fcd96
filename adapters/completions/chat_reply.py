"""Decoder of a chat completion: from the bytes of a server's response to the model's texts, or to an error.

Servers differ in all optional fields. A field with an unexpected type counts as absent. answer_text.py parses the
texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from ..ports import Usage
from .answer_text import UnusableReply, read_answer

_CUT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED: Final = frozenset({"content_filter", "safety", "refusal", "prohibited_content", "recitation"})
"""Values of `finish_reason`, in lower case. Numeric values are ignored, because servers disagree about their
meaning."""
_DONE: Final = "[DONE]"
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
"""Line ends of the protocol. JSON strings may contain other line separators, such as U+2028."""
_SPOKEN_PARTS: Final = frozenset({"text", "output_text", "json"})
"""Content part types that belong to the answer. Other types are reasoning, references and images."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """Fields of a chat completion that are used here."""

    texts: tuple[str, ...] = ()
    """Texts that may have the answer, in search order."""
    is_refused: bool = False
    is_cut: bool = False
    usage: Usage | None = None
    """Tokens of the call. None: the server reports none."""

    @property
    def counted(self) -> Usage:
        """Return the tokens of this call; zeros when the server reports none."""
        return self.usage or Usage(calls=1)


def decode_reply(body: bytes) -> ChatReply | None:
    """Decode the body. Return None when it is not a chat completion (a proxy's page, another kind of server)."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    try:
        sent: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        chunks = list(_events(text))
        return _reply(_joined(chunks), usage=_last_usage(chunks)) if chunks else None
    if not isinstance(sent, dict) or not isinstance(sent.get("choices"), list):
        return None
    choice = _first_choice(sent)
    if isinstance(choice.get("error"), dict):  # a gateway reports that its provider failed
        return None
    return _reply(choice, usage=sent.get("usage"))


def answer_of(reply: ChatReply, schema: Mapping[str, JsonValue]) -> JsonValue:
    """Return the model's answer as a JSON value of the schema's outer shape. Raise `UnusableReply` when there is no
    usable answer."""
    if reply.is_refused:
        raise UnusableReply(
            "the answer was a refusal; the texts are material to take notes from, nothing more is asked"
        )
    if reply.is_cut:
        raise UnusableReply("the answer was cut because it was too long; answer more briefly")
    return read_answer(reply.texts, schema)


def _reply(choice: dict[str, JsonValue], *, usage: JsonValue) -> ChatReply:
    end = choice.get("finish_reason")
    end = end.lower() if isinstance(end, str) else ""
    message = choice.get("message")
    said = message if isinstance(message, dict) else {}
    return ChatReply(
        texts=tuple(text for text in _texts(said, choice) if text.strip()),
        is_refused=bool(said.get("refusal")) or end in _FILTERED,
        is_cut=end in _CUT,
        usage=_usage(usage),
    )


def _texts(said: dict[str, JsonValue], choice: dict[str, JsonValue]) -> Iterator[str]:
    content = _spoken(said.get("content")) or _spoken(choice.get("text"))
    called = "\n".join(_arguments(said))
    yield content
    yield called
    if not content.strip() and not called.strip():
        for name in ("reasoning_content", "reasoning"):
            yield _spoken(said.get(name))


def _spoken(content: JsonValue) -> str:
    """Return the text of a content field: a string, a list of parts, one part, or the decoded answer itself."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_spoken_part(part) for part in content)
    return _spoken_part(content) if isinstance(content, dict) else ""


def _spoken_part(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    kind = part.get("type")
    if kind is None and "text" not in part:
        return json.dumps(part)
    if kind is not None and kind not in _SPOKEN_PARTS:
        return ""
    text = part.get("text", part.get("json"))
    if isinstance(text, dict):  # {"text": {"value": "…"}}
        text = text.get("value", text)
    return text if isinstance(text, str) else json.dumps(text)


def _arguments(said: dict[str, JsonValue]) -> Iterator[str]:
    """Yield the arguments of function calls. Some models call a function although the request offers no functions."""
    calls = said.get("tool_calls")
    called = [each.get("function") for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    for function in (*called, said.get("function_call")):
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if arguments is not None:
            yield arguments if isinstance(arguments, str) else json.dumps(arguments)


def _first_choice(sent: dict[str, JsonValue]) -> dict[str, JsonValue]:
    choices = sent.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _usage(sent: JsonValue) -> Usage | None:
    """Read the usage. Return None when it is absent or has no valid numbers."""
    if not isinstance(sent, dict):
        return None
    read = sent.get("prompt_tokens", sent.get("input_tokens"))
    written = sent.get("completion_tokens", sent.get("output_tokens"))
    read, written = (0 if each is None else each for each in (read, written))
    if not (_is_count(read) and _is_count(written)):
        return None
    return Usage(calls=1, input_tokens=int(read), output_tokens=int(written))  # type: ignore[arg-type]


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


# ------------------------------------------------------------------------------------------------ server-sent events
def _events(text: str) -> Iterator[dict[str, JsonValue]]:
    """Yield the chunks of a body of server-sent events; nothing when the body has another format."""
    for line in _LINE_END.split(text):
        name, colon, data = line.partition(":")
        if line.startswith("{"):  # newline-delimited JSON
            data = line
        elif not colon or name.strip() != "data" or data.strip() == _DONE:
            continue
        try:
            chunk: JsonValue = json.loads(data)
        except (ValueError, RecursionError):
            continue
        if isinstance(chunk, dict) and isinstance(chunk.get("choices"), list):
            yield chunk


def _joined(chunks: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Join the chunks of a stream into one choice."""
    texts: dict[str, list[str]] = {}
    calls: dict[int, list[str]] = {}
    message: dict[str, JsonValue] = {}
    end: JsonValue = None
    for chunk in chunks:
        choice = _first_choice(chunk)
        end = choice.get("finish_reason") or end
        part = choice.get("delta") or choice.get("message")
        for name, value in (part if isinstance(part, dict) else {}).items():
            if name in ("content", "reasoning_content", "reasoning", "refusal"):
                texts.setdefault(name, []).append(_spoken(value))
        for place, each in enumerate(_calls_of(part)):
            index = each.get("index")
            function = each.get("function")
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(arguments, str):
                calls.setdefault(index if isinstance(index, int) else place, []).append(arguments)
    message |= {name: "".join(parts) for name, parts in texts.items()}
    if calls:
        message["tool_calls"] = [{"function": {"arguments": "".join(parts)}} for parts in calls.values()]
    return {"message": message, "finish_reason": end}


def _calls_of(part: JsonValue) -> list[dict[str, JsonValue]]:
    calls = part.get("tool_calls") if isinstance(part, dict) else None
    return [each for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []


def _last_usage(chunks: list[dict[str, JsonValue]]) -> JsonValue:
    return next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), None)
