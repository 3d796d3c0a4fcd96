"""`GET /v1/profile`: the current values of a subject's slots."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from ..memory.recall.context_lines import USER
from ..recall.profile import ProfileReader, ProfileRequest
from ..recall.record_reader import RecordReader
from ..recall.request import GROUPS_MAX
from ..schemas.base import Subject
from ..schemas.profile import Profile
from .credentials import Caller, Credentials, caller_with
from .memberships import check_groups
from .owner_params import Ceiling, Id, Moment, Whose, bounded
from .problems import forbidden
from .recall import Slots, selected


class ProfileQuery(Whose):
    subject: Annotated[Subject, Field(description="The subject of the profile.")] = USER
    slot: Slots = ()
    groups: Annotated[
        tuple[Id, ...], Field(max_length=GROUPS_MAX, description="Groups that share memory with the owner.")
    ] = ()
    ceiling: Ceiling = "internal"
    as_of: Annotated[Moment | None, Field(description="Only facts that were valid in the world at this time.")] = None
    known_at: Annotated[Moment | None, Field(description="Return facts as they were believed at this time.")] = None

    def request(self, caller: Caller) -> ProfileRequest:
        if self.groups and caller.users is not None:
            raise forbidden(f"the token {caller.name!r} is bound to users and may not see groups")
        tenant_id, owner = self.tenant_of(caller), self.owner(caller)
        caller.check_ceiling(self.ceiling, tenant_id, owner)
        return bounded(
            lambda: ProfileRequest(
                tenant_id=tenant_id,
                owner=owner,
                groups=self.groups,
                subject=self.subject,
                slots=self.slot,
                ceiling=self.ceiling,
                as_of=self.as_of,
                known_at=self.known_at,
            )
        )


def router(
    *, profiles: ProfileReader, memberships: RecordReader, credentials: Credentials, now: Callable[[], datetime]
) -> APIRouter:
    routes = APIRouter(tags=["facts"])
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/profile", summary="The profile: the current values of a subject's slots")
    async def profile(query: Annotated[ProfileQuery, Query()], caller: Caller = reader) -> Profile:
        """Returns at most 200 facts, by slot. A fact with the slot `other` is left out unless `slot` names it."""
        request = query.request(caller)
        user = request.owner.id if request.owner.scope == "user" else query.given_user
        await check_groups(memberships, caller, tenant_id=request.tenant_id, user_id=user, groups=request.groups)
        selected(request.tenant_id, request.slots, profiles)
        return await profiles.profile(request, now=now())

    return routes
