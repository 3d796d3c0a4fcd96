"""Digest of an owner: a summary in prose, written again when its basis has changed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Instant, ModelName, OurId
from .observations import PromptName
from .turns import Owner, Sensitivity

TEXT_MAX = 8_000
Count = Annotated[int, Field(ge=0)]


class Basis(Contract):
    """Numbers of the sources of a digest."""

    facts: Count = 0
    """Number of active facts."""
    reinforcements: Count = 0
    """Sum of these facts' reinforcements."""
    episodes: Count = 0
    newest: Instant | None = None
    """Recording time of the newest active fact. Null: an earlier version wrote the digest."""


class Digest(Contract):
    """The digest of an owner, at most 400 tokens of prose."""

    digest_id: OurId
    tenant_id: GivenId
    owner: Owner
    text: Annotated[str, StringConstraints(min_length=1, max_length=TEXT_MAX)]
    at: Instant
    basis: Basis
    sensitivity: Sensitivity = "internal"
    """The highest sensitivity of its sources. Secret sources are never used."""
    model: ModelName | None = None
    prompt: PromptName | None = None
    run_id: OurId | None = None


class StoredDigest(Digest):
    """A digest as Qdrant stores it."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]

    def public(self) -> Digest:
        return Digest.from_payload(self.to_payload())
