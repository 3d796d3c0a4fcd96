"""Facts and their changes: memory.facts and memory.facts.updated."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints

from .base import (
    CommandId,
    Content,
    Contract,
    GivenId,
    Hash,
    Instant,
    IssuedBy,
    Metadata,
    ModelName,
    OurId,
    Quote,
    Reason,
    Subject,
    Tags,
    Unit,
)
from .observations import Category, PromptName
from .slots import OTHER, Qualifier, SlotName, SlotValue, TypedValue
from .turns import Owner, Sensitivity

FactState = Literal["active", "pending", "superseded", "invalidated", "expired", "forgotten", "quarantined"]
FactAction = Literal[
    "new",
    "reinforced",
    "updated",
    "approved",
    "promoted",
    "superseded",
    "invalidated",
    "merged",
    "pruned",
    "expired",
    "forgotten",
    "quarantined",
    "erased",
]
Trust = Literal["user", "assistant", "tool"]
Zone = Literal["HOT", "NEAR-DUP", "CONFLICT-CHECK", "COLD"]
EVIDENCE_KEPT = 32
"""The first 32 and the last 32 pieces of evidence are stored."""
APPLIED_KEPT = 64
WAITS_FOR = "waits_for"
UNCONFIRMED = "unconfirmed"
"""Metadata key of a pending fact. The value is the id of the fact that the pending fact will be compared with. The
metadata is a part of the `fact` object, so a fact that is rebuilt from memory.facts still has this id."""
APPROVED = "approved"
"""Metadata key of a fact that is an instruction to the assistant. The value is true when a person has approved the
fact; otherwise the key is absent."""
OWN_METADATA = frozenset((WAITS_FOR, UNCONFIRMED, APPROVED))
"""Metadata keys that only memory sets."""
SOURCE_EPISODES_MAX = 64


class ImportedFrom(Contract):
    """The place of an imported statement: a file, and the line where the statement begins."""

    file: Annotated[str, StringConstraints(max_length=255)]
    line: Annotated[int, Field(ge=1)]


class Evidence(Contract):
    """Evidence of a fact: one turn with its quote, one manual edit, or one statement of an imported file. The `turn_id`
    of an edit and of an import matches no turn, and its `quote` is the text of the statement."""

    turn_id: GivenId
    session_id: GivenId
    observation_id: OurId
    occurred_at: Instant
    quote: Quote
    trust: Trust | None = None
    """Origin of the evidence. Null: an earlier version recorded it; then the fact's trust applies."""
    command_id: CommandId | None = None
    """The command of a manual edit; null for a turn."""
    user_id: GivenId | None = None
    """The user of the turn, in a fact of another owner than this user. Null in other facts, in manual edits, and in
    evidence of earlier versions."""
    agent_id: GivenId | None = None
    """The agent of the turn; null when the turn has none, and in evidence of earlier versions."""
    imported: ImportedFrom | None = None
    """The place of a statement that an import read from the file of another memory. Null in other evidence, and in
    evidence of earlier versions."""


class Fact(Contract):
    """The state of a fact. `strength`, `retrieval_count` and `last_accessed_at` change without a new version or
    event."""

    fact_id: OurId
    version: Annotated[int, Field(ge=1)]
    tenant_id: GivenId
    owner: Owner
    subject: Subject
    predicate: Annotated[str, StringConstraints(max_length=64)] | None = None
    content: Content
    category: Category
    slot: SlotName = OTHER
    """The attribute that the fact is about; `other` when no slot fits, and in facts of earlier versions."""
    value: SlotValue | None = None
    """The value of the slot: `Stripe` for `Works at Stripe`."""
    denied: bool = False
    """True when the subject does not have the value, or no longer has it."""
    qualifier: Qualifier | None = None
    """The condition or the kind of the value: `at night`, `colour`."""
    confidence: Unit
    state: FactState
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    valid_from: Instant
    valid_from_told: bool = False
    """True when the speaker stated `valid_from`. False when `valid_from` is the time of the turn, and in rows of
    earlier versions. Two facts that both have stated times are ordered by these times."""
    valid_to: Instant | None = None
    recorded_at: Instant
    expired_at: Instant | None = None
    supersedes: OurId | None = None
    superseded_by: OurId | None = None
    reinforcement_count: Annotated[int, Field(ge=0)] = 0
    last_reinforced_at: Instant | None = None
    strength: Unit = 1.0
    retrieval_count: Annotated[int, Field(ge=0)] = 0
    last_accessed_at: Instant | None = None
    pinned_at: Instant | None = None
    """Time when a person pinned the fact. It has an effect only while the fact is active. Null in other facts, and in
    facts of earlier versions."""
    tags: Tags = ()
    metadata: Metadata = Field(default_factory=dict)
    embedder: ModelName
    content_hash: Hash
    evidence: Annotated[tuple[Evidence, ...], Field(max_length=2 * EVIDENCE_KEPT)] = ()
    source_episode_ids: Annotated[tuple[OurId, ...], Field(max_length=SOURCE_EPISODES_MAX)] = ()

    @property
    def typed(self) -> TypedValue:
        return TypedValue(self.slot, self.value, self.denied, self.qualifier)

    @property
    def waits_for(self) -> str | None:
        """The fact that a pending fact will be compared with; None when the fact only waits for the start of its
        validity."""
        other = self.metadata.get(WAITS_FOR)
        return other if self.state == "pending" and isinstance(other, str) else None

    @property
    def is_unconfirmed(self) -> bool:
        """True when a pending fact waits until its user says it again, or a person approves it."""
        return self.state == "pending" and self.metadata.get(UNCONFIRMED) is True

    @property
    def is_pinned(self) -> bool:
        """True when a person pinned the fact and it is active."""
        return self.state == "active" and self.pinned_at is not None

    @property
    def is_approved(self) -> bool:
        """True when a person approved the fact as an instruction to the assistant."""
        return self.metadata.get(APPROVED) is True


class BeforeClosing(Contract):
    """The fields of a row that closing it changes."""

    state: FactState
    valid_to: Instant | None = None
    merged: bool = False
    """True when the row was merged into another row, which says the same."""


class StoredFact(Fact):
    """A fact as Qdrant stores it: with its owner's key and the last causes applied to it. Unknown fields from a later
    version are kept when the row is rewritten."""

    model_config = ConfigDict(extra="allow")

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    applied: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=128)], ...], Field(max_length=APPLIED_KEPT)
    ] = ()
    closed_at: Instant | None = None
    """Time when memory learnt that a superseded fact is no longer true. A read with an earlier `known_at` still returns
    the fact. A row that was rebuilt from memory.facts has no `closed_at`; reads use its `valid_to` instead."""
    before_closing: BeforeClosing | None = None
    """State and end of a closed row before it closed. None in open rows, in rows of earlier versions and in rows that
    were rebuilt from memory.facts."""

    @classmethod
    def from_payload(cls, payload: Any) -> Self:
        return cls.model_validate(payload, extra="allow")

    def public(self) -> Fact:
        """Return the `fact` object of the contracts."""
        return Fact.from_payload(self.to_payload())


class Decision(Contract):
    """Stage of the conflict pipeline that decided, and the basis of its decision."""

    stage: Annotated[str, StringConstraints(max_length=64)]
    zone: Zone | None = None
    similarity: Annotated[float, Field(ge=-1.001, le=1.001)] | None = None
    other_fact_id: OurId | None = None


class FactCause(Contract):
    turn_ids: Annotated[tuple[GivenId, ...], Field(max_length=64)] = ()
    observation_ids: Annotated[tuple[OurId, ...], Field(max_length=64)] = ()
    command_id: CommandId | None = None
    issued_by: IssuedBy = ""
    """The sender of the command; empty when unknown."""
    run_id: OurId | None = None
    model: ModelName | None = None
    prompt: PromptName | None = None


class FactUpdated(Contract):
    """One event per change of a fact. The version increases by one with each event."""

    event_id: OurId
    action: FactAction
    at: Instant
    tenant_id: GivenId
    owner: Owner
    fact: Fact
    before: Fact | None = None
    reason: Reason = ""
    decision: Decision | None = None
    cause: FactCause = FactCause()
