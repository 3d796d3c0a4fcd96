"""Episodes (past events), and the record that reports them to consolidation."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from .base import CommandId, Content, Contract, GivenId, Hash, Instant, Metadata, OurId, Quote, Subject, Tags, Unit
from .facts import Trust
from .observations import Category, Durability, Emotion
from .turn_number import Epoch, TurnNumber
from .turns import Owner, Sensitivity

SUMMARY: Final = "summary"
"""Tag of an episode that summarises several turns of a session. Its `turn_ids` are these turns, and its `turn_id` is
the last of these turns."""
SUMMARISED_MAX: Final = 64
"""Maximum number of turns in one summary."""


class Episode(Contract):
    """One event, decision or milestone. After its creation, only consolidation changes it."""

    episode_id: OurId
    tenant_id: GivenId
    owner: Owner
    session_id: GivenId
    turn_id: GivenId
    observation_id: OurId
    subject: Subject
    content: Content
    category: Category
    durability: Durability
    importance: Unit
    tags: Tags = ()
    metadata: Metadata = Field(default_factory=dict)
    """The metadata of the turn; empty in episodes of earlier versions."""
    agent_id: GivenId | None = None
    """The agent of the turn; null when the turn has none, and in episodes of earlier versions."""
    emotion: Emotion | None = None
    occurred_at: Instant
    valid_from: Instant
    valid_to: Instant | None = None
    recorded_at: Instant
    consolidated_at: Instant | None = None
    strength: Unit = 1.0
    stability: Annotated[float, Field(gt=0)] = 14.0
    """Stability in days."""
    retrieval_count: Annotated[int, Field(ge=0)] = 0
    last_accessed_at: Instant | None = None
    archived_at: Instant | None = None
    sensitivity: Sensitivity = "internal"
    trust: Trust = "user"
    evidence: Quote
    content_hash: Hash
    deleted_at: Instant | None = None
    turn_ids: Annotated[tuple[GivenId, ...], Field(max_length=SUMMARISED_MAX)] = ()
    """The turns of a summary, in their order."""
    command_id: CommandId | None = None
    """The command of an episode that was added by hand. The `turn_id` of such an episode matches no turn."""
    edited_at: Instant | None = None
    """Time of the last edit of the text by hand. Null: the text was not edited."""
    merged_into: OurId | None = None
    """For a deleted episode: the episode that now contains its text."""

    @property
    def is_summary(self) -> bool:
        return SUMMARY in self.tags


class StoredEpisode(Episode):
    """An episode as Qdrant stores it."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    user_id: GivenId

    def public(self) -> Episode:
        return Episode.from_payload(self.to_payload())


class RecordedEpisode(Contract):
    episode_id: OurId
    importance: Unit
    category: Category


class EpisodesRecorded(Contract):
    """Report of one reflected turn. A turn without episodes is reported, too."""

    tenant_id: GivenId
    owner: Owner
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    turn_number: Annotated[int, Field(ge=1)]
    occurred_at: Instant
    episodes: Annotated[tuple[RecordedEpisode, ...], Field(max_length=64)] = ()
    fact_ids: Annotated[tuple[OurId, ...], Field(max_length=256)] = ()
    pending_fact_ids: Annotated[tuple[OurId, ...], Field(max_length=256)] = ()
    evicted_persistent: Annotated[int, Field(ge=0)] = 0
    agent_id: GivenId | None = None
    """The agent of the turn. The time of the next consolidation may depend on the agent's persona."""
    notes_tokens: Annotated[int, Field(ge=0)] = 0
    """Tokens of all observations of the turn, including observations that did not become episodes. A token is 4 bytes
    of UTF-8."""
    epoch: Epoch = 0
    """Epoch of the turn number."""

    @property
    def number(self) -> TurnNumber:
        return TurnNumber(self.epoch, self.turn_number)
