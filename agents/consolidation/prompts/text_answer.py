"""Answers of the form `{"text": "..."}` for the tasks digest, gist and summary."""

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
    """Return the stripped text, or "" for an object without a text.

    Raises ValueError when the answer is not an object, or its text is not a string.
    """
    text = (value.get("text") or "") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ValueError('the answer must be an object {"text": "..."}')
    return text.strip()
