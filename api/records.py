"""Reads of stored records: facts, their history and trace, episodes, the digest, a session's turns and working set."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..recall.paging import CURSOR_MAX, PAGE_MAX
from ..recall.profile import ProfileReader
from ..recall.provenance import (
    VERSIONS_DEFAULT,
    VERSIONS_MAX,
    FactHistory,
    FactRef,
    FactTracer,
    ProvenanceChain,
    SourceTurn,
)
from ..recall.record_filters import SHOWN_BY_NAME, RecordSelection
from ..recall.record_reader import PAGE_DEFAULT, TURNS_MAX, LoggedTurn, RecordReader
from ..schemas.base import TAGS_MAX, Subject, Tag
from ..schemas.digests import Digest
from ..schemas.episodes import Episode
from ..schemas.facts import Decision, Fact, FactAction, FactCause, FactState, FactUpdated
from ..schemas.observations import AppliedPolicy, Category, Observation, TurnCut
from ..schemas.turns import Owner
from ..schemas.working_set import StoredMessage, StoredWorkingEntry
from .credentials import Caller, Credentials, caller_with
from .metadata_query import MetadataPairs
from .owner_params import (
    Ceiling,
    Id,
    Moment,
    OfTenant,
    RecordId,
    RecordQuery,
    ShortSession,
    ShortUser,
    Whose,
    one_of,
)
from .problems import MissingPart, Problem, invalid_field, missing_parts, not_found
from .recall import Slots, selected

T = TypeVar("T")
TURNS_DEFAULT = 20
Cursor = Annotated[str | None, Field(max_length=CURSOR_MAX, description="`next` of the previous page.")]
SessionId = Annotated[Id, Path(description="Percent-encoded, including slashes.")]


# ------------------------------------------------------------------------------------------------ queries
class PageQuery(Whose):
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT
    cursor: Cursor = None
    ceiling: Ceiling = "internal"


class RecordsQuery(PageQuery):
    """Query for records, newest first."""

    session_id: Annotated[Id | None, Field(description="Only records that were learnt in this session.")] = None
    session: ShortSession = None
    subject: Subject | None = None
    category: Category | None = None
    as_of: Annotated[Moment | None, Field(description="Only records that were valid in the world at this time.")] = None
    known_at: Annotated[Moment | None, Field(description="Return records as they were believed at this time.")] = None
    tags: Annotated[
        tuple[Tag, ...],
        Field(max_length=TAGS_MAX, description="Only records with all of these tags; repeat the parameter."),
    ] = ()
    recorded_from: Annotated[
        Moment | None, Field(description="Only records that were recorded at this time or later.")
    ] = None
    recorded_to: Annotated[Moment | None, Field(description="Only records that were recorded until this time.")] = None

    def selection(self, caller: Caller, *, state: FactState | Literal["all"] | None = None) -> RecordSelection:
        tenant_id, owner = self.tenant_of(caller), self.owner_or_all(caller)
        caller.check_ceiling(self.ceiling, tenant_id, owner)
        return RecordSelection(
            tenant_id,
            owner=owner,
            session_id=one_of("session_id", self.session_id, "session", self.session),
            state=state,
            subject=self.subject,
            category=self.category,
            as_of=self.as_of,
            known_at=self.known_at,
            ceiling=self.ceiling,
            tags=self.tags,
            recorded_from=self.recorded_from,
            recorded_to=self.recorded_to,
        )


class FactsQuery(RecordsQuery):
    min_confidence: Annotated[float | None, Field(ge=0, le=1, description="Lowest confidence.")] = None
    metadata: MetadataPairs = ()
    state: Annotated[Literal[FactState, "all"] | None, Field(description="null: active facts.")] = None
    slot: Slots = ()

    def facts(self, caller: Caller, *, profiles: ProfileReader) -> RecordSelection:
        pairs = (each.partition(":") for each in self.metadata)
        selection = self.selection(caller, state=self.state)
        return replace(
            selection,
            min_confidence=self.min_confidence,
            metadata={name: value for name, _, value in pairs},
            slots=selected(selection.tenant_id, self.slot, profiles),
        )


class DigestQuery(Whose):
    ceiling: Ceiling = "internal"


class FactQuery(RecordQuery):
    def ref(self, caller: Caller, fact_id: str) -> FactRef:
        return FactRef(self.tenant_of(caller), fact_id, caller.sees, self.ceiling)


class HistoryQuery(FactQuery):
    limit: Annotated[int, Field(ge=1, le=VERSIONS_MAX)] = VERSIONS_DEFAULT
    cursor: Cursor = None


class SessionQuery(OfTenant):
    """Query for a user's session. Two users may use the same session id."""

    user_id: Annotated[Id | None, Field(description="Required unless the token has exactly one user.")] = None
    user: ShortUser = None
    ceiling: Ceiling = "internal"

    def selection(self, caller: Caller, session_id: str) -> RecordSelection:
        user, tenant_id = caller.user(one_of("user_id", self.user_id, "user", self.user)), self.tenant_of(caller)
        caller.check_ceiling(self.ceiling, tenant_id, Owner(scope="user", id=user))
        return RecordSelection(tenant_id, user_id=user, session_id=session_id, ceiling=self.ceiling)


class SessionTurnsQuery(SessionQuery):
    agent_id: Annotated[Id | None, Field(description="Only turns in which this agent took part.")] = None
    limit: Annotated[int, Field(ge=1, le=TURNS_MAX)] = TURNS_DEFAULT
    cursor: Cursor = None

    def selection(self, caller: Caller, session_id: str) -> RecordSelection:
        return replace(super().selection(caller, session_id), agent_id=self.agent_id)


# ------------------------------------------------------------------------------------------------ answers
class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FactsPage(_Answer):
    items: list[Fact]
    next: str | None
    """Cursor of the next page; null on the last page."""


class EpisodesPage(_Answer):
    items: list[Episode]
    next: str | None


class HistoryAnswer(_Answer):
    """Changes of a fact, oldest first. Changes older than the log's retention are missing."""

    fact: Fact
    events: list[FactUpdated]
    missing: list[MissingPart]
    next: str | None


class DecisionMade(_Answer):
    version: int
    event_id: str
    action: FactAction
    at: datetime
    reason: str
    decision: Decision | None
    cause: FactCause


class ObservationMade(_Answer):
    user_id: str
    session_id: str
    turn_id: str
    observation: Observation
    applied: AppliedPolicy | None
    """Settings that the tenant's policy or the agent's persona changed for the turn."""
    cut: TurnCut | None
    """Part of a long turn that the model did not see."""


class TraceAnswer(_Answer):
    """Provenance of a fact. Each list is sorted, oldest first."""

    fact: Fact
    versions: list[Fact]
    decisions: list[DecisionMade]
    observations: list[ObservationMade]
    turns: list[StoredMessage]
    missing: list[MissingPart]


class SessionTurn(_Answer):
    """Turn with the exact text of its messages."""

    user_id: str
    session_id: str
    turn_id: str
    occurred_at: datetime
    messages: list[StoredMessage]


class SessionTurnsPage(_Answer):
    """Page of turns, newest first."""

    items: list[SessionTurn]
    next: str | None


class WorkingSetAnswer(_Answer):
    """Working set of a session, most salient entries first."""

    items: list[StoredWorkingEntry]


# ------------------------------------------------------------------------------------------------ routes
def router(
    *, record_reader: RecordReader, profiles: ProfileReader, fact_tracer: FactTracer, credentials: Credentials
) -> APIRouter:
    routes = APIRouter(responses={404: {"description": "There is no such record that the caller may see."}})
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/facts", tags=["facts"], summary="Facts, newest first")
    async def facts(query: Annotated[FactsQuery, Query()], caller: Caller = reader) -> FactsPage:
        selection = query.facts(caller, profiles=profiles)
        page = await within_bounds(record_reader.facts(selection, limit=query.limit, cursor=query.cursor))
        return FactsPage(items=list(page.items), next=page.next)

    @routes.get("/v1/facts/{fact_id}", tags=["facts"], summary="One fact")
    async def fact(fact_id: RecordId, query: Annotated[FactQuery, Query()], caller: Caller = reader) -> Fact:
        found = await fact_tracer.fact(query.ref(caller, fact_id))
        if found is None or found.state in SHOWN_BY_NAME:
            raise _no_fact(fact_id)
        return found

    @routes.get("/v1/facts/{fact_id}/history", tags=["facts"], summary="Changes of a fact")
    async def history(
        fact_id: RecordId, query: Annotated[HistoryQuery, Query()], caller: Caller = reader
    ) -> HistoryAnswer:
        ref = query.ref(caller, fact_id)
        found = await within_bounds(fact_tracer.history(ref, limit=query.limit, cursor=query.cursor))
        if found is None:
            raise _no_fact(fact_id)
        return _history(found)

    @routes.get("/v1/facts/{fact_id}/trace", tags=["facts"], summary="Why a fact is believed")
    async def trace(fact_id: RecordId, query: Annotated[FactQuery, Query()], caller: Caller = reader) -> TraceAnswer:
        """Returns the versions of the fact, the decisions, the observations, and the turns with their exact text."""
        found = await fact_tracer.trace(query.ref(caller, fact_id))
        if found is None:
            raise _no_fact(fact_id)
        return _trace(found)

    @routes.get("/v1/episodes", tags=["episodes"], summary="Episodes, newest first")
    async def episodes(query: Annotated[RecordsQuery, Query()], caller: Caller = reader) -> EpisodesPage:
        selection = query.selection(caller)
        page = await within_bounds(record_reader.episodes(selection, limit=query.limit, cursor=query.cursor))
        return EpisodesPage(items=list(page.items), next=page.next)

    @routes.get("/v1/digest", tags=["digest"], summary="The digest: a summary of facts and episodes")
    async def digest(query: Annotated[DigestQuery, Query()], caller: Caller = reader) -> Digest:
        """Returns at most 400 tokens of prose. Consolidation rewrites the digest after facts or episodes change."""
        tenant_id, owner = query.tenant_of(caller), query.owner(caller)
        caller.check_ceiling(query.ceiling, tenant_id, owner)
        found = await record_reader.digest(tenant_id, owner, ceiling=query.ceiling)
        if found is None:
            raise not_found(f"there is no digest of {owner.scope} {owner.id} yet, or it may not be read")
        return found

    @routes.get("/v1/sessions/{session_id:path}/turns", tags=["sessions"], summary="Turns of a session, newest first")
    async def turns(
        session_id: SessionId, query: Annotated[SessionTurnsQuery, Query()], caller: Caller = reader
    ) -> SessionTurnsPage:
        selection = query.selection(caller, session_id)
        page = await within_bounds(record_reader.log(selection, limit=query.limit, cursor=query.cursor))
        return SessionTurnsPage(items=[_turn(each) for each in page.items], next=page.next)

    @routes.get("/v1/sessions/{session_id:path}/working", tags=["sessions"], summary="The working set of a session")
    async def working(
        session_id: SessionId, query: Annotated[SessionQuery, Query()], caller: Caller = reader
    ) -> WorkingSetAnswer:
        page = await record_reader.working(query.selection(caller, session_id))
        return WorkingSetAnswer(items=list(page.items))

    return routes


async def within_bounds(read: Awaitable[T]) -> T:
    """Await a read. Convert its ValueError about a limit or a cursor to a Problem (422)."""
    try:
        return await read
    except ValidationError:  # a stored record is invalid, not the request
        raise
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None


def _no_fact(fact_id: str) -> Problem:
    return not_found(f"there is no fact {fact_id} here, or it may not be read")


def _history(found: FactHistory) -> HistoryAnswer:
    return HistoryAnswer(
        fact=found.fact, events=list(found.events), missing=missing_parts(found.missing), next=found.next
    )


def _trace(found: ProvenanceChain) -> TraceAnswer:
    return TraceAnswer(
        fact=found.fact,
        versions=[event.fact for event in found.events],
        decisions=[_decision(event) for event in found.events],
        observations=[_seen(each) for each in found.observations],
        turns=list(found.turns),
        missing=missing_parts(found.missing),
    )


def _decision(event: FactUpdated) -> DecisionMade:
    return DecisionMade(
        version=event.fact.version,
        event_id=event.event_id,
        action=event.action,
        at=event.at,
        reason=event.reason,
        decision=event.decision,
        cause=event.cause,
    )


def _seen(each: SourceTurn) -> ObservationMade:
    return ObservationMade(
        user_id=each.user_id,
        session_id=each.session_id,
        turn_id=each.turn_id,
        observation=each.observation,
        applied=each.applied,
        cut=each.cut,
    )


def _turn(each: LoggedTurn) -> SessionTurn:
    return SessionTurn(
        user_id=each.user_id,
        session_id=each.session_id,
        turn_id=each.turn_id,
        occurred_at=each.occurred_at,
        messages=list(each.messages),
    )
