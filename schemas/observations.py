"""What the observer found in a turn: records of memory.observations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from .base import Content, Contract, GivenId, Instant, ModelName, OurId, Quote, Signed, Subject, Unit
from .turn_number import Epoch, TurnNumber
from .turns import MESSAGES_MAX, Owner, Role, Sensitivity, UnreadMessage

Durability = Literal["transient", "session", "persistent", "permanent"]
Category = Literal[
    "identity",
    "profession",
    "preference",
    "belief",
    "relationship",
    "attribute",
    "pattern",
    "knowledge",
    "goal",
    "event",
    "task",
]
STABLE_CATEGORIES: frozenset[Category] = frozenset(
    ("identity", "profession", "preference", "belief", "relationship", "attribute", "pattern", "knowledge")
)
LASTING: frozenset[Durability] = frozenset(("persistent", "permanent"))
OBSERVATIONS_MAX = 64
EVICTED_MAX = 64
OVER_CAP_MAX = 16
"""Statements over the cap that a record names."""
UNREAD_MAX = MESSAGES_MAX

PromptName = Annotated[str, StringConstraints(max_length=128)]
"""Name, version and hash of the prompt, `observe/v1:sha256…`."""


class Emotion(Contract):
    valence: Signed
    arousal: Signed


class Observation(Contract):
    """One statement, in the third person, with its quote from the source turn."""

    observation_id: OurId
    entry_id: OurId
    subject: Subject
    content: Content
    importance: Unit
    durability: Durability
    category: Category
    replaces_observation_id: OurId | None = None
    """The observation behind the working entry that this one replaces."""
    is_correction: bool = False
    retracts: bool = False
    """The user asked memory to forget what it states. It becomes no entry, no episode and no fact."""
    due_at: Instant | None = None
    valid_from: Instant | None = None
    """Null when the model gave no time."""
    valid_to: Instant | None = None
    sensitivity: Sensitivity = "internal"
    emotion: Emotion | None = None
    source_role: Role = "user"
    evidence: Quote
    occurred_at: Instant | None = None
    """The time of the message that says it. Null: the turn's."""


class Evicted(Contract):
    """A persistent or permanent working entry that was evicted."""

    entry_id: OurId
    observation_id: OurId
    durability: Durability


class TokenUsage(Contract):
    calls: Annotated[int, Field(ge=0)] = 0
    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0


class AppliedPolicy(Contract):
    """What a tenant's policy, or the persona of the turn's agent, changed for a turn."""

    persona: GivenId | None = None
    """The agent whose persona was applied."""
    settings: Annotated[dict[str, JsonValue], Field(max_length=256, default_factory=dict)]
    """By name what differs from the deployment's policy: `{"capture.threshold": 0.3}`. The turn is reflected by it."""
    boosted: Annotated[tuple[OurId, ...], Field(max_length=OBSERVATIONS_MAX)] = ()
    """The observations whose importance was raised."""


class TurnCut(Contract):
    """What a long turn said beyond what the model saw of it."""

    messages: Annotated[int, Field(ge=1)]
    """Messages of which a part in the middle was left out."""
    tokens: Annotated[int, Field(ge=1)]
    """Of what was left out, at 4 characters a token."""


class OverCap(Contract):
    """Statements of a turn that were left out, because it had too many."""

    observations: Annotated[int, Field(ge=1)]
    statements: Annotated[tuple[Content, ...], Field(max_length=OVER_CAP_MAX)] = ()
    """The first of them, without those that are secret."""


class ObservedBy(Contract):
    """The model and prompt that made the observations. `usage` stands on the first turn of a call."""

    model: ModelName | None = None
    prompt: PromptName | None = None
    usage: TokenUsage | None = None
    applied: AppliedPolicy | None = None
    """None: the deployment's policy held as it is."""
    cut: TurnCut | None = None
    """None: the model saw the whole turn."""
    over_cap: OverCap | None = None
    """None: no statement was left out."""
    unread: Annotated[tuple[UnreadMessage, ...], Field(max_length=UNREAD_MAX)] = ()
    """Messages of the turn of which nothing could be read."""
    repaired_characters: Annotated[int, Field(ge=0)] = 0
    """Half characters of the turn that were replaced by U+FFFD, and NUL and byte order marks that were removed."""


class Observed(Contract):
    """The record of one observed turn. It is also sent when nothing was observed, because others count turns."""

    tenant_id: GivenId
    owner: Owner
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    turn_number: Annotated[int, Field(ge=1)]
    """Counts from 1 within the epoch."""
    occurred_at: Instant
    agent_id: GivenId | None = None
    observations: Annotated[tuple[Observation, ...], Field(max_length=OBSERVATIONS_MAX)] = ()
    evicted: Annotated[tuple[Evicted, ...], Field(max_length=EVICTED_MAX)] = ()
    cause: ObservedBy = ObservedBy()
    epoch: Epoch = 0
    """Of the turn number. A later epoch begins when the session's row was ended, or lost."""

    def said_at(self, observation: Observation) -> datetime:
        """Return when a statement of this turn was made."""
        return observation.occurred_at or self.occurred_at

    @property
    def number(self) -> TurnNumber:
        return TurnNumber(self.epoch, self.turn_number)
