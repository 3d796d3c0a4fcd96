"""Edits of groups, which share memory within a tenant. The reflector applies the edits of a group in their order."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, StringConstraints, model_validator

from ..base import Contract, GivenId, OurId, Reason
from ..turns import Owner

MEMBERS_MAX: Final = 1_000
SHARED_MAX: Final = 1_000
"""Maximum number of single facts, and of single procedures, that a group shares."""
EDITED_MAX: Final = 100


class GroupDefine(Contract):
    """`args` of groups.define. The command's owner is the group."""

    description: Annotated[str, StringConstraints(max_length=500)] = ""


class GroupAttach(Contract):
    """`args` of groups.attach and groups.detach: add or remove members, and single records of other owners of this
    tenant.

    A member can read the group's own records and the attached records. A detached record is removed from every read
    immediately.
    """

    members: Annotated[tuple[Owner, ...], Field(max_length=EDITED_MAX)] = ()
    """Users and agents."""
    fact_ids: Annotated[tuple[OurId, ...], Field(max_length=EDITED_MAX)] = ()
    procedure_ids: Annotated[tuple[OurId, ...], Field(max_length=EDITED_MAX)] = ()
    reason: Reason = ""

    @model_validator(mode="after")
    def _names_something(self) -> GroupAttach:
        if not (self.members or self.fact_ids or self.procedure_ids):
            raise ValueError("members, fact_ids or procedure_ids is needed")
        if any(each.scope not in ("user", "agent") for each in self.members):
            raise ValueError("members: only users and agents can be members")
        return self


class GroupRemove(Contract):
    """`args` of groups.remove: remove all members and attached records. The group's own records stay."""

    reason: Reason = ""


class GroupChanged(Contract):
    """Result of every edit of a group: the numbers of its members and attached records after the edit."""

    group_id: GivenId
    members: Annotated[int, Field(ge=0)]
    facts: Annotated[int, Field(ge=0)]
    procedures: Annotated[int, Field(ge=0)]
    changed: bool
