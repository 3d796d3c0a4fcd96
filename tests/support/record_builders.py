"""Builders of observations and other records, with defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memstream.memory.facts.statements import Statement, statement_from_observation
from memstream.memory.facts.transitions import Stamp, create
from memstream.memory.policies import MemoryPolicy
from memstream.schemas import ids
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import Decision, StoredFact
from memstream.schemas.observations import Observation, Observed
from memstream.schemas.turns import Owner

NOW = datetime(2026, 11, 20, 10, 0, 0, tzinfo=UTC)


def observation(content: str = "Works at Stripe", **fields: Any) -> Observation:
    """Return an observation about the user, permanent and important by default, with the derived id
    (docs/reference/ids.md).
    """
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


OWNER = Owner(scope="user", id="u1")


def observed(*observations: Observation, turn: str = "t1", number: int = 1, **fields: Any) -> Observed:
    defaults: dict[str, Any] = {
        "tenant_id": "acme",
        "owner": OWNER,
        "user_id": "u1",
        "session_id": "s1",
        "turn_id": turn,
        "turn_number": max(1, number),
        "occurred_at": NOW + timedelta(minutes=number),
    }
    return Observed(**(defaults | fields), observations=observations)


def statement(content: str, *, turn: str = "t1", number: int = 1, episode: bool = False, **fields: Any) -> Statement:
    said = observation(content, turn=turn, **fields)
    return statement_from_observation(observed(said, turn=turn, number=number), said, MemoryPolicy(), episode=episode)


def stored_fact(content: str = "Works at Google", **fields: Any) -> StoredFact:
    """Return a fact as its first observation makes it."""
    changes = fields.pop("changes", {})
    made = create(
        statement(content, **fields),
        Stamp(now=NOW, cause="test", embedder="hashing"),
        reason="",
        decision=Decision(stage="admit"),
    )
    return made.fact.model_copy(update=changes)


def episode(content: str, *, turn: str = "t1", **fields: Any) -> StoredEpisode:
    made = observation(content, turn=turn)
    defaults: dict[str, Any] = {
        "episode_id": ids.episode_id(made.observation_id),
        "tenant_id": "acme",
        "owner": OWNER,
        "session_id": "s1",
        "turn_id": turn,
        "observation_id": made.observation_id,
        "subject": "user",
        "content": content,
        "category": "event",
        "durability": "persistent",
        "importance": 0.7,
        "occurred_at": NOW,
        "valid_from": NOW,
        "recorded_at": NOW,
        "evidence": content,
        "content_hash": ids.content_hash(content),
        "owner_key": OWNER.key("acme"),
        "user_id": "u1",
    }
    return StoredEpisode(**(defaults | fields))
