"""Decoding of stored records for reads. A read requests only the fields named here. Ranking decodes a few fields of all
candidates. The other fields are decoded only for the chosen items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from pydantic import Field

from ..adapters.ports import Payload
from ..memory.decay import latest, stability_after, strength
from ..memory.facts.belief import FactClaim, was_believed
from ..memory.facts.routing import needs_own_word, trust_of
from ..memory.facts.slot_predicates import PREDICATE_SLOTS
from ..memory.language.clean_text import clean_text
from ..memory.policies import RecallPolicy
from ..memory.recall.cue_fit import FitText
from ..memory.recall.event_times import DatedFact
from ..memory.recall.prompt_framing import remove_framed
from ..memory.recall.ranking import EpisodicTrace, Impression, SemanticTrace, Trace, TurnTrace, WorkingTrace
from ..schemas.base import CONTENT_MAX, CommandId, Contract, GivenId, Instant, Metadata, OurId, Quote, Subject
from ..schemas.errors import Fatal
from ..schemas.facts import APPROVED, Evidence, FactState, Trust
from ..schemas.observations import Category
from ..schemas.recall import Tier
from ..schemas.slots import OTHER
from ..schemas.turns import Role, Sensitivity

FIELDS: Final[Mapping[Tier, tuple[str, ...]]] = {
    "semantic": (
        *("content", "subject", "category", "sensitivity", "evidence"),
        *("confidence", "reinforcement_count", "last_reinforced_at", "recorded_at", "predicate"),
        *("valid_from", "valid_from_told", "trust", f"metadata.{APPROVED}"),
    ),
    "working": (
        *("content", "subject", "category", "sensitivity", "session_id", "observation_id"),
        *("salience", "updated_at", "source_role"),
    ),
    "episodic": (
        *("content", "subject", "category", "sensitivity", "session_id", "turn_id", "observation_id", "evidence"),
        *("importance", "occurred_at", "archived_at", "turn_ids", "trust", "command_id"),
    ),
    "turns": ("content", "message_index", "role", "name", "session_id", "turn_id", "occurred_at", "sensitivity"),
}
"""Fields of a candidate: the fields shown in an answer, and the fields for the ranking profiles `memstream` and
`classic`. A read has hundreds of candidates, so every field adds to its cost."""
COMPOSITE_FIELDS: Final[Mapping[Tier, tuple[str, ...]]] = {
    "semantic": (*FIELDS["semantic"], "strength", "retrieval_count", "last_accessed_at"),
    "working": (*FIELDS["working"], "importance"),
    "episodic": (*FIELDS["episodic"], "strength", "stability", "last_accessed_at", "emotion"),
    "turns": FIELDS["turns"],
}
"""Fields of a candidate for the ranking profile `composite`."""
EVENT_FIELDS: Final = (
    *("content", "slot", "denied", "predicate", "category"),
    *("valid_from", "valid_from_told", "valid_to", "supersedes"),
)
"""Fields of a fact that can state when an event was."""
SAYING: Final = (
    *("content", "state", "valid_to", "expired_at", "closed_at"),
    *("evidence[].observation_id", "evidence[].session_id", "evidence[].turn_id"),
)
"""Fields of a fact that can confirm or contradict an episode."""
QUOTES_MAX: Final = 4
"""Maximum number of quotes of a fact that are compared with a cue."""


@dataclass(frozen=True, slots=True)
class MemorySource:
    """The source of a memory: a turn, and the evidence in it."""

    session_id: str
    turn_id: str | None = None
    observation_id: str | None = None
    occurred_at: datetime | None = None
    quote: str | None = None
    command_id: str | None = None
    """The command of a record that was added by hand. Its `turn_id` matches no turn."""


@dataclass(frozen=True, slots=True)
class RecordDetails:
    """Data of a record shown in an answer in addition to its text and score."""

    sources: Sequence[MemorySource]
    sensitivity: Sensitivity
    subject: str | None = None
    category: Category | None = None
    role: str | None = None
    """Speaker role of a message."""
    archived_at: datetime | None = None
    """For an episode with a gist: the time at which its original text was archived. verbatim.py returns that text."""
    since: datetime | None = None
    """For a fact: its start time, if the speaker stated it."""
    confirmed: datetime | None = None
    """For a fact: the time at which it was last said or confirmed."""
    at: datetime | None = None
    """For a fact: the time at which it was recorded. For an episode or a message: the time at which it happened or was
    said."""
    approved: bool = False
    """True for a fact that is an instruction approved by a person."""
    needs_own_word: bool = False
    """True for an episode in which a tool, not the person, states the person's preference or attribute."""
    trust: Trust = "user"
    """Origin of a fact, an episode or a working entry."""
    name: str | None = None
    """Speaker name of a message."""


# ------------------------------------------------------------------------------------------------ ranking
def content_of(payload: Payload) -> str:
    """Return the text of a memory. Recalled memories that were inserted into a message are removed, because nobody said
    them."""
    content = clean_text(_text(payload, "content"))
    return remove_framed(content) if "message_index" in payload else content


def trace_of(tier: Tier, payload: Payload) -> Trace:
    match tier:
        case "semantic":
            reinforcements = int(_number(payload, "reinforcement_count"))
            return SemanticTrace(_number(payload, "confidence"), reinforcements, _since(payload))
        case "working":
            return WorkingTrace(_number(payload, "salience"))
        case "episodic":
            return EpisodicTrace(_number(payload, "importance"), _moment(payload, "occurred_at"))
        case "turns":
            return TurnTrace(_moment(payload, "occurred_at"))


def times_of(tier: Tier, payload: Payload) -> list[datetime]:
    """Return the times at which a record was said, and at which a fact began to be true as its speaker stated. A
    working entry has none."""
    if tier == "working":
        return []
    if tier != "semantic":
        return [_moment(payload, "occurred_at")]
    evidence = payload.get("evidence")
    said = (
        [_moment(each, "occurred_at") for each in evidence if isinstance(each, dict)]
        if isinstance(evidence, list)
        else []
    )
    begun = [_moment(payload, "valid_from")] if payload.get("valid_from_told") else []
    return said + begun or [_moment(payload, "recorded_at")]


def impression_of(tier: Tier, payload: Payload, *, now: datetime, policy: RecallPolicy) -> Impression:
    """Return the values for the ranking profile `composite`. A message has no importance. The strength of a working
    entry is its salience, which decreases with each turn."""
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


# ------------------------------------------------------------------------------------------------ comparison
def fit_text_of(tier: Tier, payload: Payload, content: str, similarity: float | None) -> FitText:
    """Return the data to compare with the cue: the text (from `content_of`), and the record's subject and evidence
    quotes. The text of a message is cut to the maximum length of a statement."""
    beside: tuple[str, ...]
    match tier:
        case "turns":
            return FitText(content[:CONTENT_MAX], None, (), False, "", similarity)
        case "semantic":
            at = payload.get("recorded_at")
            beside = _quotes(payload)
            if (predicate := payload.get("predicate")) is not None:
                beside = (*beside, str(predicate).replace("_", " "))
        case "episodic":
            at, beside = payload.get("occurred_at"), (_text(payload, "evidence"),)
        case "working":
            at, beside = payload.get("updated_at"), ()
    related = payload.get("category") == "relationship"
    return FitText(content, subject_of(payload), beside, related, str(at or ""), similarity)


def _quotes(payload: Payload) -> tuple[str, ...]:
    evidence = payload.get("evidence")
    if not isinstance(evidence, list):
        return ()
    quotes = [each.get("quote") for each in evidence[:QUOTES_MAX] if isinstance(each, dict)]
    return tuple([each for each in quotes if isinstance(each, str)])


def subject_of(payload: Payload) -> str | None:
    """Return the subject, or None for a message."""
    subject = payload.get("subject")
    return None if subject is None else _text(payload, "subject")


def observation_of(payload: Payload) -> str:
    """Return the id of the observation behind an episode or a working entry."""
    return _text(payload, "observation_id")


def summarised_by(payload: Payload) -> frozenset[tuple[str, str]]:
    """Return the turns that a summary covers, as pairs of session id and turn id. For other records, return an empty
    set."""
    turns = payload.get("turn_ids")
    if not isinstance(turns, list):
        return frozenset()
    return frozenset((_text(payload, "session_id"), str(each)) for each in turns)


def saying_of(payload: Payload, *, valid: datetime, known: datetime, not_yet: Collection[FactState] = ()) -> FactClaim:
    """Return the claim of a fact. The claim is not believed when the fact is in one of the states `not_yet`."""
    evidence = payload.get("evidence")
    said = [each for each in evidence if isinstance(each, dict)] if isinstance(evidence, list) else []
    return FactClaim(
        content=content_of(payload),
        observation_ids=frozenset(str(each.get("observation_id")) for each in said),
        turns=frozenset((str(each.get("session_id")), str(each.get("turn_id"))) for each in said),
        believed=payload.get("state") not in not_yet
        and was_believed(
            cast(FactState, _text(payload, "state")),
            valid_to=_moment(payload, "valid_to") if payload.get("valid_to") else None,
            expired_at=_moment(payload, "expired_at") if payload.get("expired_at") else None,
            closed_at=_moment(payload, "closed_at") if payload.get("closed_at") else None,
            valid=valid,
            known=known,
        ),
    )


def dated_fact(payload: Payload) -> DatedFact:
    """Return the fields of a fact that can state when an event was. A fact of an earlier version has no slot; its
    predicate names one."""
    slot, predicate = payload.get("slot"), payload.get("predicate")
    return DatedFact(
        content=content_of(payload),
        slot=str(slot) if slot not in (None, OTHER) else PREDICATE_SLOTS.get(str(predicate), OTHER),
        category=_text(payload, "category"),
        begin=_moment(payload, "valid_from"),
        begin_told=payload.get("valid_from_told") is True,
        end=_moment(payload, "valid_to") if payload.get("valid_to") else None,
        follows=bool(payload.get("supersedes")),
        denied=payload.get("denied") is True,
    )


# ------------------------------------------------------------------------------------------------ details
class _Record(Contract):
    subject: Subject
    category: Category
    sensitivity: Sensitivity = "internal"


class _Fact(_Record):
    recorded_at: Instant
    valid_from: Instant
    valid_from_told: bool = False
    evidence: tuple[Evidence, ...] = ()
    trust: Trust = "user"
    metadata: Metadata = Field(default_factory=dict)


class _Entry(_Record):
    session_id: GivenId
    observation_id: OurId


class _Working(_Entry):
    source_role: Role = "user"


class _Episode(_Entry):
    turn_id: GivenId
    command_id: CommandId | None = None
    occurred_at: Instant
    evidence: Quote
    archived_at: Instant | None = None
    trust: Trust = "user"


class _Message(Contract):
    role: str
    name: str | None = None
    session_id: GivenId
    turn_id: GivenId
    occurred_at: Instant
    sensitivity: Sensitivity = "internal"


def told_of(tier: Tier, payload: Payload) -> RecordDetails:
    match tier:
        case "semantic":
            fact = _Fact.from_payload(payload)
            sources = [
                MemorySource(
                    each.session_id, each.turn_id, each.observation_id, each.occurred_at, each.quote, each.command_id
                )
                for each in fact.evidence
            ]
            since = fact.valid_from if fact.valid_from_told else None
            return RecordDetails(
                sources,
                fact.sensitivity,
                fact.subject,
                fact.category,
                since=since,
                confirmed=_since(payload),
                at=fact.recorded_at,
                approved=fact.metadata.get(APPROVED) is True,
                trust=fact.trust,
            )
        case "working":
            entry = _Working.from_payload(payload)
            source = MemorySource(entry.session_id, observation_id=entry.observation_id)
            trust = trust_of(entry.source_role)
            return RecordDetails([source], entry.sensitivity, entry.subject, entry.category, trust=trust)
        case "episodic":
            it = _Episode.from_payload(payload)
            source = MemorySource(
                it.session_id, it.turn_id, it.observation_id, it.occurred_at, it.evidence, it.command_id
            )
            return RecordDetails(
                [source],
                it.sensitivity,
                it.subject,
                it.category,
                archived_at=it.archived_at,
                at=it.occurred_at,
                needs_own_word=needs_own_word(it.trust, it.category),
                trust=it.trust,
            )
        case "turns":
            message = _Message.from_payload(payload)
            source = MemorySource(message.session_id, message.turn_id, occurred_at=message.occurred_at)
            return RecordDetails(
                [source], message.sensitivity, role=message.role, at=message.occurred_at, name=message.name
            )


# ------------------------------------------------------------------------------------------------ fields
def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    if isinstance(value, str):
        return value
    raise Fatal(f"a stored record has no text in {name!r}")


def _number(payload: Payload, name: str) -> float:
    value = payload.get(name)
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value)
    raise Fatal(f"a stored record has no number in {name!r}")


def _moment(payload: Payload, name: str) -> datetime:
    try:
        return datetime.fromisoformat(payload[name])  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        raise Fatal(f"a stored record has no time in {name!r}") from error


def _since(payload: Payload) -> datetime:
    """Return the time of the last reinforcement, or the recording time when there was none."""
    return _moment(payload, "last_reinforced_at" if payload.get("last_reinforced_at") else "recorded_at")


def _touched(payload: Payload, begun: datetime) -> datetime:
    return latest(begun, _moment(payload, "last_accessed_at") if payload.get("last_accessed_at") else None)


def _valence(payload: Payload) -> float | None:
    emotion = payload.get("emotion")
    valence = emotion.get("valence") if isinstance(emotion, dict) else None
    return float(valence) if isinstance(valence, int | float) else None
