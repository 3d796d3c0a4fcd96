"""Groups: users and agents of a tenant that share memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Instant, OurId, Reason
from .edits.groups import MEMBERS_MAX, SHARED_MAX
from .turns import Owner


class MemoryGroup(Contract):
    """A group. Its members can read its facts, episodes and procedures, and the attached single records of other
    owners. `version` counts its edits."""

    tenant_id: GivenId
    group_id: GivenId
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    members: Annotated[tuple[Owner, ...], Field(max_length=MEMBERS_MAX)] = ()
    fact_ids: Annotated[tuple[OurId, ...], Field(max_length=SHARED_MAX)] = ()
    procedure_ids: Annotated[tuple[OurId, ...], Field(max_length=SHARED_MAX)] = ()
    version: Annotated[int, Field(ge=1)] = 1
    updated_at: Instant
    reason: Reason = ""
    """Reason of the last edit."""


class StoredGroup(MemoryGroup):
    """A group as Qdrant stores it. `member_keys` has the owner keys of its members, `applied` the commands of its last
    versions."""

    record_id: OurId
    owner_key: Annotated[str, StringConstraints(max_length=4_096)]
    member_keys: tuple[str, ...] = ()
    applied: tuple[str, ...] = ()

    def public(self) -> MemoryGroup:
        return MemoryGroup.from_payload(self.to_payload())
