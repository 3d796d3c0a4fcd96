"""Results of the observer for a turn: records of memory.observations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from .base import (
    Content,
    Contract,
    GivenId,
    Instant,
    Metadata,
    ModelName,
    OurId,
    Quote,
    Signed,
    Subject,
    Tags,
    Unit,
)
from .slots import OTHER, Qualifier, SlotName, SlotValue, TypedValue
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
"""Maximum number of statements that a record lists when the turn had too many statements."""
UNREAD_MAX = MESSAGES_MAX
REFUSED_MAX = 16
"""Maximum number of refused statements that a record lists."""
REFUSED_TEXT_MAX = 300
"""Maximum length of a listed refused statement, in code points. Longer statements are cut."""

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
    slot: SlotName = OTHER
    """The attribute that the statement is about, one of the slots of the policy; `other` when none fits, and in records
    of earlier versions."""
    value: SlotValue | None = None
    """The value of the slot: `Stripe` for `Works at Stripe`."""
    denied: bool = False
    """True when the subject does not have the value, or no longer has it: `No longer works at Stripe`."""
    qualifier: Qualifier | None = None
    """The condition of the value: `at night`, `with milk`. For a slot of several kinds, the kind: `colour` for
    `favourite`."""
    replaces_observation_id: OurId | None = None
    """The observation of the working entry that this observation replaces."""
    is_correction: bool = False
    retracts: bool = False
    """True when the user asked memory to forget the statement. The observation becomes no entry, no episode and no
    fact."""
    due_at: Instant | None = None
    valid_from: Instant | None = None
    """Null when the model gave no time."""
    valid_to: Instant | None = None
    sensitivity: Sensitivity = "internal"
    emotion: Emotion | None = None
    source_role: Role = "user"
    evidence: Quote
    unconfirmed: bool = False
    """True when it is not certain that the quote says the statement. The statement becomes no entry and no episode, and
    a fact only in the state `pending`."""
    occurred_at: Instant | None = None
    """Time of the message with the statement. Null: the turn's time."""

    @property
    def typed(self) -> TypedValue:
        return TypedValue(self.slot, self.value, self.denied, self.qualifier)


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
    """Changes of the policy for a turn, from the tenant's policy or the persona of the turn's agent."""

    persona: GivenId | None = None
    """The agent whose persona was applied."""
    settings: Annotated[dict[str, JsonValue], Field(max_length=256, default_factory=dict)]
    """Settings by name that differ from the deployment's policy: `{"capture.threshold": 0.3}`. The reflector uses them
    for the turn."""
    boosted: Annotated[tuple[OurId, ...], Field(max_length=OBSERVATIONS_MAX)] = ()
    """Observations whose importance was raised."""


class TurnCut(Contract):
    """Parts of a long turn that were cut from the model's input."""

    messages: Annotated[int, Field(ge=1)]
    """Number of messages whose middle part was left out."""
    tokens: Annotated[int, Field(ge=1)]
    """Number of tokens that were left out, at 4 characters per token."""


class OverCap(Contract):
    """Statements that were left out because the turn had too many."""

    observations: Annotated[int, Field(ge=1)]
    statements: Annotated[tuple[Content, ...], Field(max_length=OVER_CAP_MAX)] = ()
    """The first of these statements. Secret statements are not listed."""


class RefusedStatement(Contract):
    """A statement of the model that was refused before it became an observation."""

    subject: Subject
    content: Annotated[str, StringConstraints(min_length=1, max_length=REFUSED_TEXT_MAX)]
    why: Annotated[str, StringConstraints(max_length=64)]
    """Name of the reason: `invented`, `weak_evidence` or `unsaid`. A later version may add names."""
    sensitivity: Sensitivity = "internal"


class RefusedStatements(Contract):
    """Statements of the model that were refused."""

    statements: Annotated[int, Field(ge=1)]
    listed: Annotated[tuple[RefusedStatement, ...], Field(max_length=REFUSED_MAX)] = ()
    """The first of these statements. Secret statements are not listed."""


class ObservedBy(Contract):
    """Model and prompt of the observations. Only the first turn of a call has `usage`."""

    model: ModelName | None = None
    prompt: PromptName | None = None
    usage: TokenUsage | None = None
    applied: AppliedPolicy | None = None
    """None: the deployment's policy was not changed."""
    cut: TurnCut | None = None
    """None: the model saw the whole turn."""
    over_cap: OverCap | None = None
    """None: no statement was left out."""
    refused: RefusedStatements | None = None
    """None: no statement was refused, or an earlier version observed the turn."""
    unread: Annotated[tuple[UnreadMessage, ...], Field(max_length=UNREAD_MAX)] = ()
    """Messages of the turn without readable content."""
    repaired_characters: Annotated[int, Field(ge=0)] = 0
    """Number of incomplete characters of the turn that were replaced by U+FFFD, and of NUL and byte order marks that
    were removed."""


class Observed(Contract):
    """Record of one observed turn. A turn without observations has a record, too, because consumers count turns."""

    tenant_id: GivenId
    owner: Owner
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    turn_number: Annotated[int, Field(ge=1)]
    """Counts from 1 within the epoch."""
    occurred_at: Instant
    agent_id: GivenId | None = None
    tags: Tags = ()
    """The tags of the turn."""
    metadata: Metadata = Field(default_factory=dict)
    """The metadata of the turn."""
    observations: Annotated[tuple[Observation, ...], Field(max_length=OBSERVATIONS_MAX)] = ()
    evicted: Annotated[tuple[Evicted, ...], Field(max_length=EVICTED_MAX)] = ()
    cause: ObservedBy = ObservedBy()
    epoch: Epoch = 0
    """Epoch of the turn number. A later epoch begins after the session's row was ended or lost."""

    def said_at(self, observation: Observation) -> datetime:
        """Return the time of a statement of this turn."""
        return observation.occurred_at or self.occurred_at

    @property
    def number(self) -> TurnNumber:
        return TurnNumber(self.epoch, self.turn_number)
