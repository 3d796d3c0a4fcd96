"""Stored records as ranking sees them. Of a candidate only the fields of its formula are read: whole records are
decoded for what is answered alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from ..adapters.ports import Payload
from ..memory.boundaries import without_framed
from ..memory.policies import RecallPolicy
from ..memory.ranking import EpisodicTrace, Impression, SemanticTrace, Trace, TurnTrace, WorkingTrace
from ..memory.standing import Saying, believed
from ..memory.strength import last_of, stability_after, strength
from ..schemas.episodes import StoredEpisode
from ..schemas.errors import Fatal
from ..schemas.facts import FactState, StoredFact
from ..schemas.observations import Category
from ..schemas.recalled import Tier
from ..schemas.turns import Sensitivity
from ..schemas.working import StoredMessage, StoredWorkingEntry


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from: a turn, and what proves it there."""

    session_id: str
    turn_id: str | None = None
    observation_id: str | None = None
    occurred_at: datetime | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What an answer tells of a record, besides its text and score."""

    sources: Sequence[Source]
    sensitivity: Sensitivity
    subject: str | None = None
    category: Category | None = None
    role: str | None = None
    """Of a message: who said it."""


# ------------------------------------------------------------------------------------------------ to rank by
def content_of(payload: Payload) -> str:
    """Of a message what was said: memories that were rendered into it are no news of their own."""
    content = _text(payload, "content")
    return without_framed(content) if "message_index" in payload else content


def trace_of(tier: Tier, payload: Payload) -> Trace:
    match tier:
        case "semantic":
            return SemanticTrace(
                confidence=_number(payload, "confidence"),
                reinforcements=int(_number(payload, "reinforcement_count")),
                since=_since(payload),
            )
        case "working":
            return WorkingTrace(_number(payload, "salience"))
        case "episodic":
            return EpisodicTrace(_number(payload, "importance"), _moment(payload, "occurred_at"))
        case "turns":
            return TurnTrace(_moment(payload, "occurred_at"))


def impression_of(tier: Tier, payload: Payload, *, now: datetime, policy: RecallPolicy) -> Impression:
    """As the profile `composite` sees it. A message has no importance of its own; a working entry's strength is its
    salience, which fades by turns."""
    match tier:
        case "semantic":
            at = _since(payload)
            stability = stability_after(
                int(_number(payload, "retrieval_count")),
                first_days=policy.stability_days,
                growth=policy.stability_growth,
            )
            left = strength(_number(payload, "strength"), _touched(payload, at), now, stability_days=stability)
            return Impression(strength=left, at=at, importance=_number(payload, "confidence"))
        case "working":
            at, importance = _moment(payload, "updated_at"), _number(payload, "importance")
            return Impression(strength=_number(payload, "salience"), at=at, importance=importance)
        case "episodic":
            at, stability = _moment(payload, "occurred_at"), _number(payload, "stability")
            left = strength(_number(payload, "strength"), _touched(payload, at), now, stability_days=stability)
            return Impression(
                strength=left, at=at, importance=_number(payload, "importance"), valence=_valence(payload)
            )
        case "turns":
            at = _moment(payload, "occurred_at")
            left = strength(1.0, at, now, stability_days=policy.stability_days)
            return Impression(strength=left, at=at, importance=0.0)


# ------------------------------------------------------------------------------------------------ to compare
def subject_of(payload: Payload) -> str | None:
    """None of a message."""
    return _text(payload, "subject") if payload.get("subject") is not None else None


def observation_of(payload: Payload) -> str:
    """Of an episode: the observation that it was."""
    return _text(payload, "observation_id")


def saying_of(payload: Payload, *, valid: datetime, known: datetime) -> Saying:
    """Of a fact."""
    evidence = payload.get("evidence")
    said = (
        [each.get("observation_id") for each in evidence if isinstance(each, dict)]
        if isinstance(evidence, list)
        else []
    )
    return Saying(
        content=content_of(payload),
        observation_ids=frozenset(each for each in said if isinstance(each, str)),
        believed=believed(
            cast(FactState, _text(payload, "state")),
            valid_to=_moment(payload, "valid_to") if payload.get("valid_to") else None,
            expired_at=_moment(payload, "expired_at") if payload.get("expired_at") else None,
            valid=valid,
            known=known,
        ),
    )


# ------------------------------------------------------------------------------------------------ to tell
def told_of(tier: Tier, payload: Payload) -> Told:
    match tier:
        case "semantic":
            return _fact(StoredFact.from_payload(payload))
        case "working":
            return _entry(StoredWorkingEntry.from_payload(payload))
        case "episodic":
            return _episode(StoredEpisode.from_payload(payload))
        case "turns":
            return _message(StoredMessage.from_payload(payload))


def _fact(fact: StoredFact) -> Told:
    sources = [
        Source(each.session_id, each.turn_id, each.observation_id, each.occurred_at, each.quote)
        for each in fact.evidence
    ]
    return Told(sources, fact.sensitivity, fact.subject, fact.category)


def _entry(entry: StoredWorkingEntry) -> Told:
    source = Source(entry.session_id, observation_id=entry.observation_id)
    return Told([source], entry.sensitivity, entry.subject, entry.category)


def _episode(episode: StoredEpisode) -> Told:
    source = Source(episode.session_id, episode.turn_id, episode.observation_id, episode.occurred_at, episode.evidence)
    return Told([source], episode.sensitivity, episode.subject, episode.category)


def _message(message: StoredMessage) -> Told:
    source = Source(message.session_id, message.turn_id, occurred_at=message.occurred_at)
    return Told([source], message.sensitivity, role=message.role)


# ------------------------------------------------------------------------------------------------ fields
def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    if not isinstance(value, str):
        raise Fatal(f"a stored record has no text in {name!r}")
    return value


def _number(payload: Payload, name: str) -> float:
    value = payload.get(name)
    if not isinstance(value, int | float):
        raise Fatal(f"a stored record has no number in {name!r}")
    return float(value)


def _moment(payload: Payload, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_text(payload, name))
    except ValueError as error:
        raise Fatal(f"a stored record has no time in {name!r}") from error


def _since(payload: Payload) -> datetime:
    """The last reinforcement, else the record."""
    return _moment(payload, "last_reinforced_at" if payload.get("last_reinforced_at") else "recorded_at")


def _touched(payload: Payload, begun: datetime) -> datetime:
    return last_of(begun, _moment(payload, "last_accessed_at") if payload.get("last_accessed_at") else None)


def _valence(payload: Payload) -> float | None:
    emotion = payload.get("emotion")
    valence = emotion.get("valence") if isinstance(emotion, dict) else None
    return float(valence) if isinstance(valence, int | float) else None
