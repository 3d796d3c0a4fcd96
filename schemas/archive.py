"""Archive: the original texts of episodes that have a gist."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Content, Contract, GivenId, Hash, Instant, OurId
from .turns import Owner, Sensitivity


class ArchivedText(Contract):
    """An episode's original text in the collection `archive`. An episode has at most one such row, which is never
    overwritten."""

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
    """SHA-256 of the UTF-8 bytes of `content` when it was archived."""
    archived_at: Instant
    accessed_at: Instant
    """Time when the original text was last read (rehydrated). Before the first read, this is the time of archiving.
    Retention counts from this time."""
    access_count: Annotated[int, Field(ge=0)] = 0
    sensitivity: Sensitivity = "internal"
