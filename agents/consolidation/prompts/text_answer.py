"""Answers that are prose: `{"text"}`, of the tasks digest, gist and summary."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue

SCHEMA: Final[dict[str, JsonValue]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def parse(value: JsonValue) -> str:
    """Line breaks stay, what is around the text goes; an object without a text says nothing. Raises ValueError when it
    is no object, or the text is none."""
    text = (value.get("text") or "") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ValueError('the answer must be an object {"text": "..."}')
    return text.strip()
