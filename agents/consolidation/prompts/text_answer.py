"""Text answers `{"text": "..."}` of the tasks digest, gist and summary."""

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
    """Return the text without surrounding white space; an object without a text gives "".

    Raises ValueError when the answer is no object, or its text is no string.
    """
    text = (value.get("text") or "") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise ValueError('the answer must be an object {"text": "..."}')
    return text.strip()
