"""Observations and other records of the memory, short to write in tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from memstream.schemas import ids
from memstream.schemas.observations import Observation

NOW = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)


def observation(content: str = "Works at Stripe", **fields: Any) -> Observation:
    """One about the user, permanent and important unless told otherwise; its id is derived as the contracts say."""
    session = fields.pop("session", ids.session_key("acme", "u1", "s1"))
    turn = fields.pop("turn", "t1")
    subject = fields.setdefault("subject", "user")
    identity = ids.observation_id(session, turn, subject, content)
    defaults: dict[str, Any] = {
        "observation_id": identity,
        "entry_id": identity,
        "content": content,
        "importance": 0.8,
        "durability": "permanent",
        "category": "profession",
        "evidence": content,
    }
    return Observation(**(defaults | fields))
