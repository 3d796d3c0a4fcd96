"""`GET /v1/turns/{turn_id}`: the stage of a turn, and the outcome of each of its statements."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from ..recall.statement_outcomes import OutcomeStatus, StatementOutcome
from ..recall.turn_trace import TurnOutcome, TurnRef, TurnStage, TurnTracer
from ..schemas.turns import Owner
from ..schemas.working_set import StoredMessage
from .credentials import Caller, Credentials, caller_with
from .owner_params import Ceiling, Id, Moment, OfTenant, ShortSession, ShortUser, one_of
from .problems import MissingPart, missing_parts, not_found


class TurnQuery(OfTenant):
    """User and session of a turn. Turns of two sessions may have the same id."""

    user_id: Annotated[Id | None, Field(description="Required unless the token has exactly one user.")] = None
    user: ShortUser = None
    session_id: Annotated[
        Id | None, Field(description="Only the turn of this session; also finds a turn that is not recorded yet.")
    ] = None
    session: ShortSession = None
    since: Annotated[
        Moment | None,
        Field(description="The turn was sent at this time or later, so older parts of the log are not read."),
    ] = None
    ceiling: Ceiling = "internal"

    def ref(self, caller: Caller, turn_id: str) -> TurnRef:
        tenant_id = self.tenant_of(caller)
        user_id = caller.user(one_of("user_id", self.user_id, "user", self.user))
        caller.check_ceiling(self.ceiling, tenant_id, Owner(scope="user", id=user_id))
        return TurnRef(
            tenant_id,
            turn_id,
            session_id=one_of("session_id", self.session_id, "session", self.session),
            user_id=user_id,
            ceiling=self.ceiling,
            sees=caller.sees,
            since=self.since,
        )


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StatementAnswer(_Answer):
    subject: str
    content: str
    status: OutcomeStatus
    why: str
    """The reason as a sentence, without its full stop."""
    observation_id: str | None
    quote: str | None
    fact_id: str | None
    """The fact of the statement, or the known fact that it repeats."""
    other_fact_id: str | None
    """The fact that the statement waits for, or the fact that closed it."""
    closes: list[str]
    """The facts that the statement closed."""


class TurnProgress(_Answer):
    user_id: str
    session_id: str
    turn_id: str
    stage: TurnStage
    why: str | None
    """The reason as a sentence, for a turn that is not observed, or in which the observer found no statement."""
    messages: list[StoredMessage]
    statements: list[StatementAnswer]
    unlisted: int
    """Number of refused statements that the record does not list."""


class TurnsAnswer(_Answer):
    """The turns with this id, sorted by session."""

    items: list[TurnProgress]
    missing: list[MissingPart]


def router(*, turn_tracer: TurnTracer, credentials: Credentials) -> APIRouter:
    routes = APIRouter(
        tags=["turns"], responses={404: {"description": "There is no such turn that the caller may see."}}
    )
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/turns/{turn_id:path}", summary="What became of a turn")
    async def turn(
        turn_id: Annotated[Id, Path(description="Percent-encoded, including slashes.")],
        query: Annotated[TurnQuery, Query()],
        caller: Caller = reader,
    ) -> TurnsAnswer:
        """Returns the stage of the turn, and for each of its statements the outcome and the reason."""
        found = await turn_tracer.trace(query.ref(caller, turn_id))
        if not found.turns:
            raise not_found(f"there is no turn {turn_id} here, or it may not be read")
        return TurnsAnswer(items=[_progress(each) for each in found.turns], missing=missing_parts(found.missing))

    return routes


def _progress(turn: TurnOutcome) -> TurnProgress:
    return TurnProgress(
        user_id=turn.user_id,
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        stage=turn.stage,
        why=turn.why,
        messages=list(turn.messages),
        statements=[_statement(each) for each in turn.statements],
        unlisted=turn.unlisted,
    )


def _statement(each: StatementOutcome) -> StatementAnswer:
    return StatementAnswer(
        subject=each.subject,
        content=each.content,
        status=each.status,
        why=each.why,
        observation_id=each.observation_id,
        quote=each.quote,
        fact_id=each.fact_id,
        other_fact_id=each.other_fact_id,
        closes=list(each.closes),
    )
