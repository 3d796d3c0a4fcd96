"""Removal of secrets from a turn, before the recorder and the observer store the turn, index it, and show it to a
model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ...schemas.base import TAG_MAX
from ...schemas.turns import ContentPart, Sensitivity, Turn, TurnMessage
from ...schemas.working_set import StoredMessage
from ..language.clean_text import clean_text, clean_value
from .across import across_messages, across_parts
from .findings import Finding
from .secret_filter import SecretFilter, at_least, highest

NAME_MAX = 128


@dataclass(frozen=True, slots=True)
class ProtectedTurn:
    """A turn after protection."""

    turn: Turn
    """The turn without its secrets; the original object when nothing changed."""
    sensitivities: tuple[Sensitivity, ...]
    """The sensitivity of each message: the turn's own, or the label of the message if that is higher."""
    sensitivity: Sensitivity | None
    """The highest label of the turn, including its metadata; None when there is none."""
    changed: bool
    """True when a text was masked or dropped."""


def protect_messages(messages: Sequence[StoredMessage], secrets: SecretFilter) -> tuple[StoredMessage, ...]:
    """Return stored messages, for example of an export, with masked and labelled secrets."""
    found = [(each, secrets.text(each.content)) for each in messages]
    return tuple(
        each.model_copy(update={"content": text.text, "sensitivity": at_least(each.sensitivity, text.sensitivity)})
        for each, text in found
    )


def protect_turn(turn: Turn, secrets: SecretFilter) -> ProtectedTurn:
    """Protect every text of a turn: messages with their names and tool calls, metadata, and unknown fields.

    Invisible characters are removed first, so that detectors read the text that a person sees. This removal does not
    set `changed`, because a repeated turn is recognised by its value. The ids of a turn do not change. A dropped
    message keeps its position, with an empty text.
    """
    turn = _cleaned(turn)
    across = across_messages(turn.messages, secrets)
    messages = [_protect_message(message, secrets, across.get(n, ())) for n, message in enumerate(turn.messages)]
    rest: dict[str, JsonValue] = {**(turn.model_extra or {}), "metadata": turn.metadata, "tags": list(turn.tags)}
    protected = secrets.value(rest)
    labels = [label for _, label in messages]
    changed = protected.value != rest or any(
        new is not old for (new, _), old in zip(messages, turn.messages, strict=True)
    )
    if changed:
        assert isinstance(protected.value, dict)  # protecting an object returns an object
        turn = _with_rest(turn, protected.value).model_copy(update={"messages": tuple(new for new, _ in messages)})
    return ProtectedTurn(
        turn=turn,
        sensitivities=tuple(at_least(turn.sensitivity or "internal", label) for label in labels),
        sensitivity=highest(protected.sensitivity, *labels),
        changed=changed,
    )


def _cleaned(turn: Turn) -> Turn:
    """Return the turn without invisible characters; the same object when it has none."""
    messages = [_cleaned_message(message) for message in turn.messages]
    rest: dict[str, JsonValue] = {**(turn.model_extra or {}), "metadata": turn.metadata, "tags": list(turn.tags)}
    cleaned = clean_value(rest)
    if cleaned == rest and all(new is old for new, old in zip(messages, turn.messages, strict=True)):
        return turn
    assert isinstance(cleaned, dict)  # cleaning an object returns an object
    return _with_rest(turn, cleaned).model_copy(update={"messages": tuple(messages)})


def _with_rest(turn: Turn, rest: Mapping[str, JsonValue]) -> Turn:
    """Return the turn with other metadata, tags and unknown fields."""
    tags = rest["tags"]
    assert isinstance(tags, list)
    return turn.model_copy(update={**rest, "tags": tuple(str(each)[:TAG_MAX] for each in tags)})


def _cleaned_message(message: TurnMessage) -> TurnMessage:
    content, update = message.content, dict[str, object]()
    if isinstance(content, str):
        update["content"] = clean_text(content)
    elif content is not None:
        parts = [part.model_dump() for part in content]
        cleaned = [clean_value(part) for part in parts]
        update["content"] = content if cleaned == parts else tuple(map(ContentPart.model_validate, cleaned))
    if message.name is not None:
        update["name"] = clean_text(message.name)
    if message.model_extra:
        extra = clean_value({**message.model_extra})
        assert isinstance(extra, dict)  # cleaning an object returns an object
        update |= extra
    changed = any(getattr(message, name) != each for name, each in update.items())
    return message.model_copy(update=update) if changed else message


def _protect_message(
    message: TurnMessage, secrets: SecretFilter, across: Sequence[Finding]
) -> tuple[TurnMessage, Sensitivity | None]:
    """Return the protected message and its label. The message is the same object when nothing was masked.

    `across` are the findings of secrets that cross the message's boundaries.
    """
    text, name = (
        secrets.text(message.text, (*across, *across_parts(message, secrets))),
        secrets.text(message.name or ""),
    )
    rest: dict[str, JsonValue] = {**(message.model_extra or {})}
    parts = [_rest_of(part) for part in message.content] if isinstance(message.content, tuple) else []
    protected, of_parts = secrets.value(rest), secrets.value(parts)
    label = highest(text.sensitivity, name.sensitivity, protected.sensitivity, of_parts.sensitivity)
    update: dict[str, object] = {}
    if text.text != message.text or of_parts.value != parts:
        assert isinstance(of_parts.value, list)
        update["content"] = _with_text(message, text.text, of_parts.value)
    if name.text != (message.name or ""):
        update["name"] = name.text[:NAME_MAX] or None
    if protected.value != rest:
        assert isinstance(protected.value, dict)
        update |= protected.value
    return (message.model_copy(update=update) if update else message), label


def _rest_of(part: ContentPart) -> JsonValue:
    """Return the content of a part except the text that belongs to the message's text."""
    text = {"text": part.text} if part.type != "text" and part.text is not None else {}
    return {**text, **(part.model_extra or {})}


def _with_text(message: TurnMessage, text: str, rest: list[JsonValue]) -> str | tuple[ContentPart, ...]:
    """Return the message's content with a new text. Several text parts become one part, because a secret may cross from
    one part to the next."""
    if not isinstance(message.content, tuple):
        return text
    others = [
        part.model_copy(update=fields)
        for part, fields in zip(message.content, rest, strict=True)
        if part.type != "text" and isinstance(fields, dict)
    ]
    had_text = any(part.type == "text" for part in message.content)
    return (*((ContentPart(type="text", text=text),) if had_text else ()), *others)
