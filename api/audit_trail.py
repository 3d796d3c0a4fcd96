"""`GET /v1/audit`: records of the audit trail of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from ..schemas.audit import AUDIT_PAGE_MAX, AuditPage
from ..tools.audit import audit
from ..tools.audit_topic import AuditQuery, AuditReader
from .credentials import Caller, Credentials, caller_with
from .owner_params import Id, Moment, OfTenant
from .problems import forbidden, invalid_field

PAGE_DEFAULT = 100
_TEXT = Field(min_length=1, max_length=256)


class AuditParams(OfTenant):
    """Selection of records. Every parameter is optional, except a tenant that the token does not decide."""

    user_id: Annotated[Id | None, Field(description="Only actions on the memory of this user.")] = None
    who: Annotated[str | None, _TEXT] = None
    action: Annotated[str | None, _TEXT] = None
    result: Annotated[str | None, _TEXT] = None
    since: Annotated[Moment | None, Field(description="Only actions at this time or later.")] = None
    until: Annotated[Moment | None, Field(description="Only actions before this time.")] = None
    limit: Annotated[int, Field(ge=1, le=AUDIT_PAGE_MAX)] = PAGE_DEFAULT
    cursor: Annotated[str | None, Field(max_length=16_384, description="`next` of the previous page.")] = None


def router(*, reader: AuditReader, credentials: Credentials) -> APIRouter:
    routes = APIRouter(tags=["audit"])
    auditor = Depends(caller_with(credentials, "memory:audit"))

    @routes.get("/v1/audit", summary="Records of the audit trail, oldest first")
    async def trail(query: Annotated[AuditParams, Query()], caller: Caller = auditor) -> AuditPage:
        """Returns who did what, to whose memory, when, and with which result. A page may have fewer records than
        `limit` and still have `next`: follow it until it is null. Each request is a record itself."""
        tenant_id = query.tenant_of(caller)
        if caller.users is not None:
            raise forbidden(f"the token {caller.name!r} is bound to users and may not read the audit trail")
        audit(caller.action, who=caller.name, tenant_id=tenant_id, owner=None, result="allowed")
        wanted = AuditQuery(
            tenant_id=tenant_id,
            user_id=query.user_id,
            who=query.who,
            action=query.action,
            result=query.result,
            since=query.since,
            until=query.until,
        )
        try:
            return await reader.page(wanted, limit=query.limit, cursor=query.cursor)
        except ValueError as error:
            raise invalid_field("cursor", str(error)) from None

    return routes
