"""Bodies of the OpenAI protocol that every scripted model of tests and bench programs answers with."""

from __future__ import annotations

import time
from typing import Any

CHARACTERS_A_TOKEN = 4
OBSERVATION: dict[str, Any] = {
    "turn": "t1",
    "subject": "user",
    "content": "",
    "importance": 0.7,
    "durability": "persistent",
    "category": "attribute",
    "replaces": None,
    "is_correction": False,
    "pinned": False,
    "due_at": None,
    "valid_from": None,
    "valid_to": None,
    "sensitivity": "internal",
    "emotion": None,
    "evidence": "",
}
"""One item of an observer's answer with every field at a default."""


def completion(
    content: str | None,
    *,
    model: str,
    tokens_in: int,
    tokens_out: int,
    number: int = 1,
    finish_reason: str = "stop",
    refusal: str | None = None,
) -> dict[str, Any]:
    """The body of a chat completion."""
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
            }
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }
