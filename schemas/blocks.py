"""Blocks: short named texts in an agent's prompt, which belong to a session or an owner. Holdings: the blocks and
procedures of a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Instant, OurId
from .edits.blocks import BLOCKS_MAX, BlockLimit, BlockText
from .edits.common import Name
from .facts import Trust
from .turns import Owner, Sensitivity


class MemoryBlock(Contract):
    """A block. `limit` is in characters. `version` counts its edits."""

    name: Name
    value: BlockText = ""
    limit: BlockLimit
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    sensitivity: Sensitivity = "internal"
    version: Annotated[int, Field(ge=1)] = 1
    updated_at: Instant
    trust: Trust | None = None
    """`user`: a person wrote a part of the text, so the text may contain instructions to the assistant. Null: an agent
    or an earlier version of memstream wrote the text."""


class OwnerBlock(MemoryBlock):
    """A block of an owner. It is in the context of each session to which it is attached."""

    block_id: OurId
    tenant_id: GivenId
    owner: Owner


class StoredBlock(OwnerBlock):
    """An owner's block as Qdrant stores it. `applied` has the commands of its last versions."""

    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    applied: tuple[str, ...] = ()

    def public(self) -> OwnerBlock:
        return OwnerBlock.from_payload(self.to_payload())


class NamedRecord(Contract):
    """A block or a procedure of an owner, by its name."""

    name: Name
    owner: Owner


class SessionHoldings(Contract):
    """Context of a session besides its working entries: its own blocks, the attached blocks of owners, and the active
    procedures."""

    tenant_id: GivenId
    user_id: GivenId
    session_id: GivenId
    blocks: Annotated[tuple[MemoryBlock, ...], Field(max_length=BLOCKS_MAX)] = ()
    attached: Annotated[tuple[NamedRecord, ...], Field(max_length=BLOCKS_MAX)] = ()
    procedures: Annotated[tuple[NamedRecord, ...], Field(max_length=BLOCKS_MAX)] = ()
    updated_at: Instant


class StoredHoldings(SessionHoldings):
    """Holdings of a session as Qdrant stores them. The observer copies them from the session's row."""

    holdings_id: OurId

    def public(self) -> SessionHoldings:
        return SessionHoldings.from_payload(self.to_payload())
