"""`POST /v1/reflect`: maintenance of an owner's memory, started by a command."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from ..schemas.commands import Command, CommandResult
from ..streams.senders.commands import CommandPort
from ..tools.audit import audit
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .openapi import body_of
from .owner_params import Whose
from .problems import Problem
from .request_body import decode_model, read_body
from .shares import SharedPool, party_of

WAIT_DEFAULT, WAIT_MAX = 10.0, 20.0
"""Seconds that a caller waits for the result of the run. The maximum is below the timeout of a request."""
TOPIC_MAX = 200


class ReflectQuery(Whose):
    """Query for a maintenance run of an owner's memory."""

    topic: Annotated[str | None, Field(max_length=TOPIC_MAX, description="Reserved; has no effect yet.")] = None
    wait: Annotated[float, Field(ge=0, le=WAIT_MAX, description="Seconds to wait; 0: do not wait.")] = WAIT_DEFAULT


class ReflectAnswer(BaseModel):
    """Counts of the run. All are zero if there was nothing to do, or if another run was in progress."""

    model_config = ConfigDict(extra="forbid")

    command_id: str
    run_id: str
    pruned: int = 0
    merged: int = 0
    strengthened: int = 0
    derived: int = 0
    compacted: int = 0
    reindexed: int = 0
    duration_ms: int = 0


class ReflectAccepted(BaseModel):
    """The run continues, or waits in the log for a worker. Its result will be on memory.commands.results."""

    model_config = ConfigDict(extra="forbid")

    command_id: str


COUNTS = tuple(name for name in ReflectAnswer.model_fields if name not in ("command_id", "run_id"))


def router(
    *,
    commands: CommandPort,
    places: SharedPool,
    credentials: Credentials,
    limits: Limits,
    now: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(tags=["upkeep"])
    writer = Depends(caller_with(credentials, "memory:write", "memory:admin"))

    @routes.post(
        "/v1/reflect",
        summary="Maintain an owner's memory now",
        openapi_extra=body_of(ReflectQuery),
        response_model=ReflectAnswer,
        responses={
            202: {"model": ReflectAccepted, "description": "Accepted; the run did not end in time."},
            409: {"description": "The run was refused or failed; `detail` has the reason."},
        },
    )
    async def reflect(request: Request, caller: Caller = writer) -> ReflectAnswer | JSONResponse:
        """Prunes faded entries, merges duplicates, strengthens links, derives insights if the tier allows model calls,
        and turns episodes that are recalled often into facts. Each owner has at most one run at a time."""
        query = decode_model(ReflectQuery, await read_body(request, limit=limits.body))
        command = Command(
            command_id=str(uuid.uuid4()),
            kind="hygiene",
            tenant_id=query.tenant_of(caller),
            owner=query.owner(caller),
            args={"run": "reflect"},
            issued_by=caller.name,
            issued_at=now(),
        )
        status = "failed"
        async with places.place(party_of(caller, command.tenant_id)):
            try:
                result = await commands.ask(command, patience=query.wait)
                status = "accepted" if result is None else result.status
            finally:
                audit(
                    "reflect",
                    who=caller.name,
                    tenant_id=command.tenant_id,
                    owner=command.owner,
                    result=status,
                    command_id=command.command_id,
                )
        if result is None:
            accepted = ReflectAccepted(command_id=command.command_id)
            return JSONResponse(accepted.model_dump(), HTTPStatus.ACCEPTED)
        return _answer(result)

    return routes


def _answer(result: CommandResult) -> ReflectAnswer:
    if result.status != "applied":
        why = result.error.message if result.error is not None else result.status
        raise Problem(HTTPStatus.CONFLICT, "not-run", f"the run was {result.status}: {why}")
    outcome = result.result or {}
    counts = {name: n for name in COUNTS if isinstance(n := outcome.get(name), int)}
    return ReflectAnswer(command_id=result.command_id, run_id=str(outcome.get("run_id", "")), **counts)
