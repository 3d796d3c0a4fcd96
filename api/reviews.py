"""`POST /v1/facts/{fact_id}/approve` and `/reject`: a person's decision on a quarantined or pending fact."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ..recall.provenance import FactRef, FactTracer
from ..schemas.base import Reason
from ..schemas.commands import Command, CommandResult, FactReview
from ..schemas.facts import FactState
from ..streams.senders.commands import CommandPort
from ..tools.audit import audit
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .maintenance import WAIT_DEFAULT, WAIT_MAX
from .openapi import body_of
from .owner_params import OfTenant, RecordId
from .problems import Problem, not_found
from .request_body import decode_model, read_body
from .shares import SharedPool, party_of

Verdict = Literal["facts.approve", "facts.reject"]


class ReviewQuery(OfTenant):
    """Tenant and reason of a decision."""

    reason: Annotated[Reason, Field(description="Reason of the decision; the events of the change have it.")] = ""
    wait: Annotated[float, Field(ge=0, le=WAIT_MAX, description="Seconds to wait; 0: do not wait.")] = WAIT_DEFAULT


class ReviewAnswer(BaseModel):
    """State of the fact after the decision, and the ids of all changed facts."""

    model_config = ConfigDict(extra="forbid")

    command_id: str
    fact_id: str
    state: FactState
    changed_fact_ids: list[str]


class ReviewAccepted(BaseModel):
    """The decision waits in the log for a worker. Its result will be on memory.commands.results."""

    model_config = ConfigDict(extra="forbid")

    command_id: str


class FactReviews:
    """Sender of the decisions of persons, for the routes and for the console's forms."""

    def __init__(
        self, commands: CommandPort, places: SharedPool, fact_tracer: FactTracer, now: Callable[[], datetime]
    ) -> None:
        self._commands = commands
        self._places = places
        self._facts = fact_tracer
        self._now = now

    async def decide(
        self, kind: Verdict, fact_id: str, query: ReviewQuery, caller: Caller
    ) -> ReviewAnswer | ReviewAccepted:
        """Send a decision and wait for its result. Raises Problem."""
        tenant_id = query.tenant_of(caller)
        # The answer shows nothing of the fact, so any sensitivity is allowed here.
        fact = await self._facts.fact(FactRef(tenant_id, fact_id, caller.sees, "secret"))
        if fact is None:
            raise not_found(f"there is no fact {fact_id} here, or it may not be changed")
        command = Command(
            command_id=str(uuid.uuid4()),
            kind=kind,
            tenant_id=tenant_id,
            owner=fact.owner,
            args=FactReview(fact_id=fact_id, reason=query.reason).to_payload(),
            issued_by=caller.name,
            issued_at=self._now(),
        )
        result, status = None, "failed"
        async with self._places.place(party_of(caller, tenant_id)):
            try:
                result = await self._commands.ask(command, patience=query.wait)
                status = "accepted" if result is None else result.status
            finally:
                audit(
                    kind,
                    who=caller.name,
                    tenant_id=tenant_id,
                    owner=fact.owner,
                    result=status,
                    command_id=command.command_id,
                    fact_id=fact_id,
                )
        return ReviewAccepted(command_id=command.command_id) if result is None else _answer(result)


def router(
    *,
    commands: CommandPort,
    places: SharedPool,
    fact_tracer: FactTracer,
    credentials: Credentials,
    limits: Limits,
    now: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(
        tags=["facts"],
        responses={
            202: {"model": ReviewAccepted, "description": "Accepted; the decision was not carried out in time."},
            404: {"description": "There is no such fact that the caller may see."},
            409: {
                "description": "The fact is neither quarantined nor pending, or is valid only later; `detail` has the "
                "reason."
            },
        },
    )
    reviewer = Depends(caller_with(credentials, "memory:review"))

    reviews = FactReviews(commands, places, fact_tracer, now)

    async def decide(kind: Verdict, fact_id: str, request: Request, caller: Caller) -> ReviewAnswer | JSONResponse:
        query = decode_model(ReviewQuery, await read_body(request, limit=limits.body))
        answer = await reviews.decide(kind, fact_id, query, caller)
        return JSONResponse(answer.model_dump(), HTTPStatus.ACCEPTED) if isinstance(answer, ReviewAccepted) else answer

    @routes.post(
        "/v1/facts/{fact_id}/approve",
        summary="Approve a quarantined or pending fact",
        openapi_extra=body_of(ReviewQuery),
        response_model=ReviewAnswer,
    )
    async def approve(fact_id: RecordId, request: Request, caller: Caller = reviewer) -> ReviewAnswer | JSONResponse:
        """Memory believes the fact from now on. Approving a pending fact closes the fact that it waits for, and every
        fact that it contradicts. A quarantined fact goes through the conflict rules like a user's new statement."""
        return await decide("facts.approve", fact_id, request, caller)

    @routes.post(
        "/v1/facts/{fact_id}/reject",
        summary="Reject a quarantined or pending fact",
        openapi_extra=body_of(ReviewQuery),
        response_model=ReviewAnswer,
    )
    async def reject(fact_id: RecordId, request: Request, caller: Caller = reviewer) -> ReviewAnswer | JSONResponse:
        """The state of the fact becomes `forgotten`: no read returns it any more; the log keeps it."""
        return await decide("facts.reject", fact_id, request, caller)

    return routes


def _answer(result: CommandResult) -> ReviewAnswer:
    if result.status != "applied" or result.result is None:
        code, why = (result.error.code, result.error.message) if result.error is not None else ("", result.status)
        if code == "unknown":
            raise not_found(why)
        raise Problem(HTTPStatus.CONFLICT, "not-run", why)
    return ReviewAnswer.model_validate({"command_id": result.command_id, **result.result})
