"""Conversion of messages from all common formats to messages of the contract.

The formats are from OpenAI (chat, responses), Anthropic, Gemini, Bedrock, LangChain and the AI SDK. Calls and results
of tools become messages of the role `tool`, regardless of the sender's role. A message that cannot be read keeps its
place in the turn and its original content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue, ValidationError

from ..turns import MESSAGES_MAX, SHORT_MAX, UNREAD, ContentPart, Role, TurnMessage, known_role
from .faults import FieldFault, faults_of

Json = Mapping[str, JsonValue]

_TEXTS: Final = ("text", "refusal", "transcript")
"""Fields of a part that may contain its text."""
_TEXTS_OF_TEXT: Final = (*_TEXTS, "content", "value")
"""Fields of a part of the type `text` that may contain its text."""
_LISTS: Final = ("parts", "blocks", "contents")
"""Fields of a message that contain its parts when `content` is empty: Gemini and the AI SDK, LlamaIndex."""
_WORDS: Final = ("text", "message", "refusal")
"""Fields of a message that contain its text when `content` is empty."""
_WITHOUT_WORDS: Final = frozenset(
    {"role", "type", "content", "name", "id", "created_at", "createdAt", "timestamp", "metadata", "status", "model"}
    | {"tool_call_id", "toolCallId"}
)
"""Fields of a message without text. A message with only these fields has nothing to read."""
_TOOL_CALLS: Final = ("tool_calls", "toolCalls", "function_call", "toolInvocations")
"""Fields of a message that calls tools. Such a message may have no text."""
_SILENT: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})
"""Types of parts whose text is not part of the conversation."""
_CALLS: Final = frozenset({"tooluse", "toolcall", "functioncall", "servertooluse", "mcptooluse"})
_RESULTS: Final = frozenset(
    {"toolresult", "functioncalloutput", "functionresponse", "toolinvocation", "dynamictool", "codeexecutionresult"}
)
"""Part types of tool calls and tool results, in lower case without separators."""
_CALL_NAMES: Final = ("name", "toolName", "tool_name")
_CALL_INPUTS: Final = ("input", "arguments", "args")
_RESULT_FIELDS: Final = ("content", "output", "result", "response", "errorText")
_SEPARATORS: Final = re.compile("[-_]")
_PART: Final = "part"
"""Default type of a part without a type."""


def read_messages(sent: Sequence[JsonValue]) -> tuple[tuple[TurnMessage, ...], tuple[FieldFault, ...]]:
    """Return the messages, and the faults of the messages that cannot be converted."""
    messages: list[TurnMessage] = []
    faults: list[FieldFault] = []
    room = MESSAGES_MAX - len(sent)
    """Number of messages that may still be split into two."""
    for place, each in enumerate(sent):
        try:
            read = _read(each, divides=room > 0)
        except ValidationError as error:
            faults += faults_of(error, before=("messages", place))
            continue
        room -= len(read) - 1
        messages += read
    return tuple(messages), tuple(faults)


def is_refused(message: TurnMessage) -> bool:
    """Return whether the message is not a chat message. A message with only other parts, such as images, is not
    refused."""
    return message.model_extra is not None and UNREAD in message.model_extra and message.unread is not None


def _read(sent: JsonValue, *, divides: bool) -> list[TurnMessage]:
    if isinstance(sent, dict) and UNREAD in sent and sent.get("role") == "tool" and sent.get("content") is None:
        sent = sent[UNREAD]  # memstream wrote it when it masked a secret in the turn
    if not isinstance(sent, dict):
        return [_unread(sent)]
    inner = _unwrapped(sent)
    if inner is not None:
        return _read(inner, divides=divides)
    item = _item(sent)
    if item is not None:
        return [item]
    role = _role(sent)
    if role is None:
        return [_unread(sent)]
    content = _content(sent)
    if content is None and _says_elsewhere(sent):
        return [_unread(sent)]
    if content is None or isinstance(content, str):
        return [_message(sent, role, content)]
    own, of_tools = _divided(content, role)
    if own is None or of_tools is None:
        return [_unread(sent)]
    if not of_tools:
        return [_message(sent, role, own)]
    if not any(part.type == "text" for part in own) or not divides:
        return [_message(sent, "tool", (*own, *of_tools))]
    both = [_message(sent, role, own), _message(sent, "tool", of_tools)]
    return both[::-1] if role == "user" else both  # a user answers after the results of tools


def _unwrapped(sent: Json) -> dict[str, JsonValue] | None:
    """Return the inner message of a LangChain message, which is wrapped with its class or type; None for other
    messages."""
    kind = sent.get("type")
    if kind == "constructor" and isinstance(sent.get("kwargs"), dict):
        inner, names = sent["kwargs"], sent.get("id")
        kind = names[-1] if isinstance(names, list) and names else None
    else:
        inner = sent.get("data")
    if "role" in sent or "content" in sent or not isinstance(kind, str) or not isinstance(inner, dict):
        return None
    return {**inner, "role": inner.get("role") or kind} if known_role(_class_role(kind)) is not None else None


def _class_role(kind: str) -> str:
    """Return the role in the name of a LangChain class: `HumanMessage`, `AIMessageChunk`."""
    return kind.removesuffix("Chunk").removesuffix("Message")


def _says_elsewhere(sent: Json) -> bool:
    """Return whether a message without content has text in an unknown field."""
    if "content" in sent or any(sent.get(name) for name in _TOOL_CALLS):
        return False
    others = (each for name, each in sent.items() if name not in _WITHOUT_WORDS)
    return any(isinstance(each, str | list | dict) and each for each in others)


def _unread(sent: JsonValue) -> TurnMessage:
    return TurnMessage.model_validate({"role": "tool", UNREAD: sent})


def _message(sent: Json, role: Role, content: str | Sequence[ContentPart] | None) -> TurnMessage:
    rest = {name: each for name, each in sent.items() if name not in _read_fields(sent)}
    return TurnMessage.model_validate({**rest, "role": role, "content": content})


def _role(sent: Json) -> Role | None:
    """Return the role of a message. LangChain has it in `type`."""
    name = sent.get("role") or (sent.get("type") if "content" in sent else None)
    return known_role(_class_role(name)) if isinstance(name, str) else None


# ------------------------------------------------------------------------------------------------ items
def _item(sent: Json) -> TurnMessage | None:
    """Convert an item of the Responses API that is a call of a tool or its result; None for other items."""
    kind = sent.get("type")
    if not isinstance(kind, str) or "content" in sent or "parts" in sent:
        return None
    if not kind.endswith(("_call", "_call_output")):
        return None
    text = _result_text(sent) if kind.endswith("_output") else _call_text(sent)
    return None if text is None else TurnMessage(role="tool", content=text)


# ------------------------------------------------------------------------------------------------ content
def _content(sent: Json) -> str | list[JsonValue] | None:
    """Return the content of a message: a text, a list of parts, or None."""
    content = sent.get("content")
    if content in (None, "", []):
        content = next((sent[name] for name in _others(sent)), content)
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    return content if isinstance(content, list) else [content]


def _others(sent: Json) -> Iterator[str]:
    """Yield the other fields of a message that may have its content when `content` is empty."""
    yield from (name for name in _LISTS if isinstance(sent.get(name), list) and sent[name])
    yield from (name for name in _WORDS if isinstance(sent.get(name), str) and sent[name])
    audio = sent.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        yield "audio"


def _read_fields(sent: Json) -> frozenset[str]:
    """Return the fields of a message from which its role and content were read."""
    from_others = sent.get("content") in (None, "", [])
    used = next(_others(sent), None) if from_others else None
    return frozenset({"role", "content"} if used is None else {"role", "content", used})


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a content. `said`: a text with the message's role; `tool`: a call or result of a tool; `other`: a part
    without text; `broken`: not a part."""

    kind: Literal["said", "tool", "other", "broken"]
    part: ContentPart


def _divided(parts: Sequence[JsonValue], role: Role) -> tuple[list[ContentPart], list[ContentPart]] | tuple[None, None]:
    """Split the parts into the message's own parts and parts of tools. (None, None): every part is broken."""
    read = [_part(each) for each in parts]
    if role == "tool" and not any(each.kind in ("said", "tool") for each in read):
        answers = [text for each in parts if (text := _answered(each)) is not None]  # the answer may be any JSON
        if answers:
            return [_text(each) for each in answers], []
    if read and all(each.kind == "broken" for each in read):
        return None, None
    of_tools = [each.part for each in read if each.kind == "tool" and role != "tool"]
    return [each.part for each in read if each.kind != "tool" or role == "tool"], of_tools


def _part(given: JsonValue) -> _Part:
    if isinstance(given, str):
        return _Part("said", _text(given))
    if not isinstance(given, dict) or not given:
        return _Part("broken", ContentPart.model_validate({"type": UNREAD, UNREAD: given}))
    kind = _type_of(given)
    if kind in _SILENT or given.get("thought") is True:
        return _Part("other", _other(given, kind if kind in _SILENT else "thought"))
    inner = given.get("toolInvocation") if kind == "tool-invocation" else None if "type" in given else given.get(kind)
    fields = inner if isinstance(inner, dict) else given
    plain = _SEPARATORS.sub("", kind).lower()
    if plain in _CALLS or plain.endswith("tooluse"):
        text = _call_text(fields)
        return _Part("other", _other(given, kind)) if text is None else _Part("tool", _text(text))
    is_tool = "toolCallId" in given and kind.startswith("tool-")  # AI SDK: `tool-weather`
    if is_tool or plain in _RESULTS or plain.endswith("toolresult"):
        text = _result_text(fields) or _call_text({"name": kind.removeprefix("tool-"), **fields})
        return _Part("other", _other(given, kind)) if text is None else _Part("tool", _text(text))
    texts = _TEXTS_OF_TEXT if plain == "text" else _TEXTS
    text = _said(given, texts)
    if text is not None:
        rest = {name: each for name, each in given.items() if name not in texts and name != "type"}
        return _Part("said", ContentPart.model_validate({**rest, "type": "text", "text": text}))
    if kind == "text" and all(each is None for name, each in given.items() if name != "type"):
        return _Part("said", ContentPart(type="text"))
    if kind == "text":
        return _Part("broken", ContentPart.model_validate({"type": UNREAD, UNREAD: given}))
    return _Part("other", _other(given, kind))


def _type_of(part: Json) -> str:
    """Return the type of a part. In the formats of Gemini and Bedrock, the type is the name of a field:
    `{"toolUse": {…}}`."""
    kind = part.get("type")
    if not isinstance(kind, str):
        kind = part.get("block_type")  # LlamaIndex
    if isinstance(kind, str):
        return kind
    if any(name in part for name in _TEXTS):
        return "text"
    return next((name for name in part if name != "type"), _PART)


def _said(part: Json, texts: Sequence[str] = _TEXTS) -> str | None:
    for name in texts:
        value = part.get(name)
        if isinstance(value, dict):  # OpenAI's Assistants API
            value = value.get("value", value.get("text"))
        if isinstance(value, str):
            return value
    return None


def _text(text: str) -> ContentPart:
    return ContentPart(type="text", text=text)


def _other(given: Json, kind: str) -> ContentPart:
    text = given.get("text")
    rest = {name: each for name, each in given.items() if name not in ("type", "text")}
    kept = {"text": text} if isinstance(text, str) else {}
    return ContentPart.model_validate({**rest, **kept, "type": kind[:SHORT_MAX]})


# ------------------------------------------------------------------------------------------------ tools
def _call_text(call: Json) -> str | None:
    """Return a tool call as text: the tool's name and its arguments. None without a name or arguments."""
    name = next((call[each] for each in _CALL_NAMES if isinstance(call.get(each), str)), None)
    given = next((call[each] for each in _CALL_INPUTS if call.get(each) is not None), None)
    if name is None or given is None:
        return None
    return f"{name} {_compact(given)}"


def _result_text(result: Json) -> str | None:
    """Return a tool's result as text. None when it has no readable part."""
    given = next((result[each] for each in _RESULT_FIELDS if result.get(each) is not None), None)
    if given is None or isinstance(given, str):
        return given
    parts = given if isinstance(given, list) else [given]
    texts = [text for part in parts if (text := _answered(part)) is not None]
    return "\n".join(texts) if texts else None


def _answered(part: JsonValue) -> str | None:
    """Return the text of one part of a tool's result. None for other parts, such as images."""
    if not isinstance(part, dict):
        return _compact(part)
    text = _said(part)
    if text is not None:
        return text
    if "json" in part:
        return _compact(part["json"])
    if part.get("type") in ("json", "text", "error-text", "error-json") and part.get("value") is not None:
        return _compact(part["value"])  # AI SDK
    return _compact(part) if "type" not in part and "image" not in part and "document" not in part else None


def _compact(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
