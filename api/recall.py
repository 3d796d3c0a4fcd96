"""`/v1/recall`: ranked memory for a cue. Each item has the parts of its score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from ..memory.policies.recall import LIMIT_MAX
from ..memory.recall.fusion import Rank
from ..recall.profile import ProfileReader
from ..recall.record_conditions import CONDITIONS_MAX, MetadataCondition, RecordConditions
from ..recall.record_reader import RecordReader
from ..recall.request import CUE_MAX, GROUPS_MAX, ReadSession, RecallRequest
from ..recall.service import RecalledMemory, RecallPort
from ..recall.slots import SLOTS_ASKED_MAX, SlotSelection, tiers_with_slots
from ..schemas.base import TAGS_MAX, Subject, Tag
from ..schemas.facts import Trust
from ..schemas.observations import Category
from ..schemas.recall import TIERS, RecalledItem, Tier
from ..schemas.slots import SlotName
from ..schemas.turns import Owner, Sensitivity
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .memberships import check_groups
from .metadata_query import MetadataPairs, MetadataQuery, with_metadata, with_pairs
from .openapi import body_of
from .owner_params import Ceiling, Id, Moment, SessionHeader, ShortSession, Whose, bounded, one_of, session_of
from .problems import MissingPart, forbidden, invalid_field, missing_parts, silent
from .request_body import decode_model, read_body

Slots = Annotated[
    tuple[SlotName, ...],
    Field(max_length=SLOTS_ASKED_MAX, description="Only facts of these slots; repeat the parameter."),
]
LimitOf = Callable[[str, str | None], int]
"""Function of tenant and agent that returns the number of items for a request without a limit."""


@dataclass(frozen=True, slots=True)
class About:
    """Owner and session of a read, checked against the credential."""

    tenant_id: str
    owner: Owner
    session: ReadSession | None
    user_id: str | None
    """User of the request, if it names one."""
    asked_by: str
    """Name of the caller."""


class MemoryQuery(Whose):
    """Parameters of every read across the tiers."""

    session_id: Annotated[Id | None, Field(description="Include the working set of this session of the user.")] = None
    session: ShortSession = None
    groups: Annotated[
        tuple[Id, ...], Field(max_length=GROUPS_MAX, description="Groups that share memory with the owner.")
    ] = ()
    cue: Annotated[
        str | None, Field(max_length=CUE_MAX, description="Text to search for; null: the most important items.")
    ] = None
    min_score: Annotated[
        float, Field(ge=0, le=1, description="Leave out items with a lower score; 0: leave out none.")
    ] = 0.0
    ceiling: Ceiling = "internal"
    as_of: Annotated[Moment | None, Field(description="Return memory that was valid in the world at this time.")] = None
    known_at: Annotated[Moment | None, Field(description="Return memory as it was believed at this time.")] = None

    subject: Annotated[Subject | None, Field(description="Only facts and episodes about this subject.")] = None
    category: Annotated[Category | None, Field(description="Only facts and episodes of this category.")] = None
    tags: Annotated[
        tuple[Tag, ...], Field(max_length=TAGS_MAX, description="Only records with all of these tags.")
    ] = ()
    trust: Annotated[
        tuple[Trust, ...], Field(max_length=3, description="Only records from these origins: user, assistant, tool.")
    ] = ()
    since: Annotated[Moment | None, Field(description="Only records that were said at this time or later.")] = None
    until: Annotated[Moment | None, Field(description="Only records that were said until this time.")] = None
    of_session: Annotated[Id | None, Field(description="Only records that were said in this session.")] = None
    of_agent: Annotated[Id | None, Field(description="Only records of turns of this agent.")] = None

    def conditions(self, metadata: Sequence[MetadataCondition]) -> RecordConditions:
        return bounded(
            lambda: RecordConditions(
                tags=self.tags,
                metadata=tuple(metadata),
                session_id=self.of_session,
                agent_id=self.of_agent,
                trust=self.trust,
                since=self.since,
                until=self.until,
            )
        )

    def about(self, caller: Caller, header: str | None) -> About:
        """Check the query against the credential, and return its owner and session.

        The session belongs to the owner if the owner is a user, otherwise to `user_id`. Two users may use the same
        session id.
        """
        if self.groups and caller.users is not None:
            raise forbidden(f"the token {caller.name!r} is bound to users and may not see groups")
        tenant_id, owner = self.tenant_of(caller), self.owner(caller)
        caller.check_ceiling(self.ceiling, tenant_id, owner)
        user = owner.id if owner.scope == "user" else self.given_user
        session = session_of(one_of("session_id", self.session_id, "session", self.session), header)
        if session is None:
            return About(tenant_id, owner, None, user, caller.name)
        user = caller.user(user)
        return About(tenant_id, owner, ReadSession(user, session), user, caller.name)


class RecallFields(MemoryQuery):
    """Parameters of a recall. docs/explanation/recall.md explains the ranking."""

    limit: Annotated[int | None, Field(ge=1, le=LIMIT_MAX)] = None
    tiers: Annotated[
        tuple[Tier, ...], Field(min_length=1, max_length=len(TIERS), json_schema_extra={"uniqueItems": True})
    ] = TIERS
    slot: Slots = ()
    agent_id: Annotated[
        Id | None, Field(description="The agent that asks. Its persona may change the default limit.")
    ] = None
    mood: Annotated[float | None, Field(ge=-1, le=1, description="Valence, for the profile composite.")] = None

    def metadata_conditions(self) -> list[MetadataCondition]:
        return []

    def request(self, about: About, *, limit: LimitOf, profiles: ProfileReader) -> RecallRequest:
        slots = selected(about.tenant_id, self.slot, profiles)
        try:
            tiers = tiers_with_slots(self.tiers, slots)
        except ValueError as error:
            raise invalid_field("slot", str(error)) from None
        agent_id = about.owner.id if self.agent_id is None and about.owner.scope == "agent" else self.agent_id
        return bounded(
            lambda: RecallRequest(
                tenant_id=about.tenant_id,
                owner=about.owner,
                session=about.session,
                groups=self.groups,
                cue=self.cue,
                limit=limit(about.tenant_id, agent_id) if self.limit is None else self.limit,
                tiers=tiers,
                subject=self.subject,
                category=self.category,
                conditions=self.conditions(self.metadata_conditions()),
                slots=slots,
                ceiling=self.ceiling,
                as_of=self.as_of,
                known_at=self.known_at,
                min_score=self.min_score,
                mood=self.mood,
                asked_by=about.asked_by,
            )
        )


class RecallQuery(RecallFields):
    """Parameters of a recall in the address."""

    metadata: MetadataPairs = ()

    def metadata_conditions(self) -> list[MetadataCondition]:
        return with_pairs(self.metadata)


class RecallBody(RecallFields):
    """Parameters of a recall in the body."""

    metadata: MetadataQuery = Field(default_factory=dict, max_length=CONDITIONS_MAX)

    def metadata_conditions(self) -> list[MetadataCondition]:
        return with_metadata(self.metadata)


class RankOut(BaseModel):
    model_config = ConfigDict(extra="forbid")

    list: str
    rank: int
    """Place in the list, counted from 0."""


class SourceOut(BaseModel):
    """Source turn of an item."""

    model_config = ConfigDict(extra="forbid")

    session_id: str
    turn_id: str | None
    observation_id: str | None
    occurred_at: datetime | None
    quote: str | None


class RecollectionOut(RecalledItem):
    """Recalled item, with its match, ranks and sources."""

    match: float
    ranks: list[RankOut]
    reranked: int | None
    """Place after the reranker, counted from 0; null if no reranker ran."""
    sources: list[SourceOut]
    sensitivity: Sensitivity
    role: str | None
    archived_at: datetime | None
    """Time at which the original text of an episode was archived; null unless the text is a gist.
    `/v1/episodes/{id}/verbatim` returns the original text."""


class RecallAnswer(BaseModel):
    """Recalled items, best first. If `missing` is not empty, memory may have more items."""

    model_config = ConfigDict(extra="forbid")

    items: list[RecollectionOut]
    missing: list[MissingPart]


def router(
    *,
    recall: RecallPort,
    profiles: ProfileReader,
    memberships: RecordReader,
    credentials: Credentials,
    limits: Limits,
    now: Callable[[], datetime],
    limit: LimitOf,
) -> APIRouter:
    """Build the routes. `limit` returns the number of items for a request without a limit."""
    routes = APIRouter(tags=["recall"])
    reader = Depends(caller_with(credentials, "memory:read"))

    async def answer(query: RecallFields, caller: Caller, session: str | None) -> RecallAnswer:
        about = await checked(query, caller, session, memberships)
        recalled = await recall.recall(query.request(about, limit=limit, profiles=profiles), now=now())
        missing = missing_parts(recalled.missing)
        if recalled.silent:
            raise silent(missing, retry_after=limits.retry_seconds)
        return RecallAnswer(items=[_item(each) for each in recalled.items], missing=missing)

    @routes.get("/v1/recall", summary="Recall")
    async def get(
        query: Annotated[RecallQuery, Query()], session: SessionHeader = None, caller: Caller = reader
    ) -> RecallAnswer:
        """Returns facts, episodes, the session's working set and, with a cue, messages. The best items are first."""
        return await answer(query, caller, session)

    @routes.post("/v1/recall", summary="Recall with the query in the body", openapi_extra=body_of(RecallBody))
    async def post(request: Request, session: SessionHeader = None, caller: Caller = reader) -> RecallAnswer:
        """Returns the same as GET. A cue in the body may be longer, and does not appear in access logs."""
        query = decode_model(RecallBody, await read_body(request, limit=limits.body))
        return await answer(query, caller, session)

    return routes


def selected(tenant_id: str, names: tuple[str, ...], profiles: ProfileReader) -> SlotSelection | None:
    """Return the selection of these slots. Raises Problem (422) for a name that the tenant's policy does not define."""
    try:
        return profiles.select(tenant_id, names)
    except ValueError as error:
        raise invalid_field("slot", str(error)) from None


async def checked(query: MemoryQuery, caller: Caller, header: str | None, memberships: RecordReader) -> About:
    """Check a query and its groups against the credential."""
    about = query.about(caller, header)
    await check_groups(memberships, caller, tenant_id=about.tenant_id, user_id=about.user_id, groups=query.groups)
    return about


def _item(each: RecalledMemory) -> RecollectionOut:
    return RecollectionOut(
        **dict(each.item),
        match=each.match,
        ranks=[_rank(rank) for rank in each.ranks],
        reranked=each.reranked,
        sources=[
            SourceOut(
                session_id=source.session_id,
                turn_id=source.turn_id,
                observation_id=source.observation_id,
                occurred_at=source.occurred_at,
                quote=source.quote,
            )
            for source in each.sources
        ],
        sensitivity=each.sensitivity,
        role=each.role,
        archived_at=each.archived_at,
    )


def _rank(rank: Rank) -> RankOut:
    return RankOut(list=rank.list, rank=rank.rank)
