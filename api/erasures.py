"""`/v1/erasures`: erase a user, and follow the erasure."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from pydantic import Field

from ..schemas import ids
from ..schemas.turns import Owner
from ..tools.audit import audit
from ..tools.erasure.runs import ErasurePort, ErasureState
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .openapi import body_of
from .owner_params import Id, OfTenant
from .problems import Problem
from .request_body import decode_model, read_body


class ErasureRequest(OfTenant):
    """The user to erase."""

    user_id: Annotated[Id, Field(description="The user to erase, for ever.")]


def router(*, erasures: ErasurePort, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["erasure"])
    eraser = Depends(caller_with(credentials, "memory:erase"))

    @routes.post(
        "/v1/erasures",
        summary="Erase a user",
        status_code=HTTPStatus.ACCEPTED,
        openapi_extra=body_of(ErasureRequest),
        response_model=ErasureState,
    )
    async def begin(request: Request, caller: Caller = eraser) -> ErasureState:
        """Memory ignores the user from this answer on, and everything of the user is deleted in the background. The
        same request again continues the same erasure."""
        query = decode_model(ErasureRequest, await read_body(request, limit=limits.body))
        tenant_id, owner = query.tenant_of(caller), Owner(scope="user", id=query.user_id)
        caller.check_owner(owner)
        status = "failed"
        try:
            begun = await erasures.begin(tenant_id, query.user_id, issued_by=caller.name)
            status = "accepted"
        finally:
            user = ids.user_hash(tenant_id, query.user_id)  # the trail must not keep the id of an erased user
            audit("erase", who=caller.name, tenant_id=tenant_id, owner=None, result=status, user_hash=user)
        return begun

    @routes.get("/v1/erasures/{erasure_id}", summary="The state and the receipt of an erasure")
    async def state(erasure_id: Annotated[str, Path(max_length=64)], caller: Caller = eraser) -> ErasureState:
        """The receipt names the user by a hash."""
        found = await erasures.state(erasure_id)
        if found is None or (caller.tenants is not None and found.tenant_id not in caller.tenants):
            raise Problem(HTTPStatus.NOT_FOUND, "unknown", "there is no such erasure")
        return found

    return routes
