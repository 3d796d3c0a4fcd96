"""The archive: the words of episodes of which a gist is left."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Content, Contract, GivenId, Hash, Instant, OurId
from .turns import Owner, Sensitivity


class Archived(Contract):
    """An episode's text as it was, in the collection `archive`; one an episode, never written over."""

    archive_id: OurId
    episode_id: OurId
    observation_id: OurId
    tenant_id: GivenId
    owner: Owner
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    user_id: GivenId
    session_id: GivenId
    turn_id: GivenId
    content: Content
    sha256: Hash
    """Of the UTF-8 bytes of `content` when it was archived."""
    archived_at: Instant
    accessed_at: Instant
    """Its last rehydration, else its making: retention counts from here."""
    access_count: Annotated[int, Field(ge=0)] = 0
    sensitivity: Sensitivity = "internal"
