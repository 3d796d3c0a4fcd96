"""Records of the audit trail: who did what, to whose memory, when, and with which result. They have no content."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from .base import Contract, GivenId, Instant, OurId
from .turns import Owner, Sensitivity

WHO_MAX = 128
ACTION_MAX = 256
AnId = Annotated[str, StringConstraints(max_length=256)]


class AuditRecord(Contract):
    """One action. A record that is sent twice has the same `audit_id`."""

    audit_id: OurId
    at: Instant
    who: Annotated[str, StringConstraints(max_length=WHO_MAX)]
    """Name of a token, `oidc:<subject>`, `cli:<account>`, `anyone` if no token is needed, or `unknown`."""
    action: Annotated[str, StringConstraints(max_length=ACTION_MAX)]
    """`turns.produce`, the kind of a command, or the method and route of a request that is denied or reads."""
    tenant_id: GivenId | None = None
    owner: Owner | None = None
    result: Annotated[str, StringConstraints(max_length=64)]
    ceiling: Sensitivity | None = None
    """Highest sensitivity that the action may read. Only reads with `secret` are in the trail."""
    session_id: AnId | None = None
    turn_id: AnId | None = None
    command_id: AnId | None = None
    fact_id: AnId | None = None
    episode_id: AnId | None = None
    entry_id: AnId | None = None
    task_id: AnId | None = None
    procedure_id: AnId | None = None
    letter: AnId | None = None
    """Position of a dead letter that was put back: `<topic>/<partition>@<offset>`."""
    user_hash: AnId | None = None
    """Hash of the user in place of an owner, for an erasure."""


AUDIT_PAGE_MAX = 500


class AuditPage(Contract):
    """Records, oldest first. `next` continues after them; it is null when the end of the trail is reached."""

    items: Annotated[tuple[AuditRecord, ...], Field(max_length=AUDIT_PAGE_MAX)]
    next: str | None
