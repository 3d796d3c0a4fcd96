"""Entries of a session's working set, as the observer keeps them and as Qdrant stores them. Also stored messages."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Content, Contract, GivenId, Instant, Metadata, OurId, Subject, Tags, Unit
from .observations import Category, Durability
from .turns import Role, Sensitivity

ENTRIES_MAX = 64
"""Maximum number of entries of a working set."""


class WorkingEntry(Contract):
    """One entry about the current topic of the conversation. salience = importance x decay(turns since last access)."""

    entry_id: OurId
    content: Content
    subject: Subject
    category: Category
    durability: Durability
    importance: Unit
    pinned: bool = False
    salience: Unit
    created_turn: Annotated[int, Field(ge=0)]
    last_access_turn: Annotated[int, Field(ge=0)]
    observation_id: OurId
    sensitivity: Sensitivity = "internal"
    source_role: Role = "user"
    """The most trusted role that said the entry. Entries of earlier versions have the default."""
    metadata: Metadata = Field(default_factory=dict)


class WorkingSet(Contract):
    """Entries by salience, greatest first, and the current turn number."""

    turn: Annotated[int, Field(ge=0)] = 0
    entries: Annotated[tuple[WorkingEntry, ...], Field(max_length=ENTRIES_MAX)] = ()


class StoredWorkingEntry(WorkingEntry):
    """A working entry as Qdrant stores it, for readers."""

    tenant_id: GivenId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    user_id: GivenId
    session_id: GivenId
    turn_number: Annotated[int, Field(ge=0)]
    updated_at: Instant

    def public(self) -> WorkingEntry:
        return WorkingEntry.from_payload(self.to_payload())


class StoredMessage(Contract):
    """One message of a turn, verbatim, in the collection `turns`."""

    message_id: OurId
    message_index: Annotated[int, Field(ge=0)]
    role: Annotated[str, StringConstraints(max_length=32)]
    name: Annotated[str, StringConstraints(max_length=128)] | None = None
    content: str
    tenant_id: GivenId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    occurred_at: Instant
    sensitivity: Sensitivity = "internal"
    agent_id: GivenId | None = None
    """The agent that took part in the turn. None: the turn has no agent, or version 0.1 recorded it."""
    tags: Tags = ()
    metadata: Metadata = Field(default_factory=dict)
    """Tags and metadata of the turn; empty in messages of earlier versions."""
    turn_sha256: Annotated[str, StringConstraints(max_length=64)] | None = None
    """On message 0 only: the SHA-256 of the turn's value. It shows whether a later turn with the same id is a different
    turn."""
    session_place: Annotated[int, Field(ge=0)] | None = None
    """Index of the message in its session's thread, from 0, in log order. The thread contains the messages of
    the roles user and assistant that have a text. None for other messages and for messages that version 0.1
    recorded."""
    first_place: Annotated[int, Field(ge=0)] | None = None
    """On message 0 only: the index in the thread at which the turn begins. It is set even when no message of the turn
    is in the thread."""
