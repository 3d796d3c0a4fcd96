"""`/v1/dead-letters` and `/v1/parked-keys`: records that a stage refused, redrive of them, and parked keys."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from ..agents.common.protection import keep_unread_record
from ..memory.secrets.secret_filter import SecretFilter
from ..recall.paging import PAGE_MAX
from ..recall.record_reader import PAGE_DEFAULT
from ..schemas.errors import DeadLetterReason
from ..schemas.topics import StageName
from ..schemas.turns import Owner
from ..streams.log.port import Record
from ..tools.dead_letters.letters import (
    LETTER_TOPICS,
    DeadLetter,
    LetterContent,
    LetterFilter,
    letter_content,
    letter_topic,
)
from ..tools.dead_letters.reader import LETTER_CURSOR_MAX, DeadLetterReader, LetterPage, ListedLetter, ParkedEntry
from ..tools.dead_letters.redriver import LetterRedrives
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .openapi import body_of
from .owner_params import Ceiling, Id, OfTenant, one_of
from .problems import MissingPart, Problem, invalid_field, missing_parts, not_found
from .records import within_bounds
from .request_body import decode_model, read_body
from .shares import SharedPool, party_of

OFFSET_MAX = 2**63 - 1


class LetterTenant(OfTenant):
    """Tenant of dead letters. Without a file of tokens it may be omitted: then the letters of every tenant are meant,
    and the letters whose tenant cannot be read."""

    def tenant_or_all(self, caller: Caller) -> str | None:
        given = one_of("tenant_id", self.tenant_id, "tenant", self.tenant)
        return None if given is None and caller.tenants is None else caller.tenant(given)


class ParkedQuery(LetterTenant):
    """Filters of parked keys. Each may be omitted."""

    user_id: Annotated[Id | None, Field(description="Only of this user.")] = None
    stage: Annotated[StageName | None, Field(description="Only of this stage.")] = None
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = PAGE_DEFAULT
    cursor: Annotated[str | None, Field(max_length=LETTER_CURSOR_MAX, description="`next` of the previous page.")] = (
        None
    )

    def user(self, caller: Caller) -> Owner | None:
        """Return the named user. Raises Problem if the caller has no access to it."""
        if self.user_id is None:
            return None
        owner = Owner(scope="user", id=self.user_id)
        caller.check_owner(owner)
        return owner


class LettersQuery(ParkedQuery):
    """Filters of dead letters. Each may be omitted."""

    reason: Annotated[DeadLetterReason | None, Field(description="Only with this reason.")] = None
    topic: Annotated[str | None, Field(max_length=128, description="Only of this topic, such as memory.turns.")] = None


class LetterQuery(LetterTenant):
    """Query for one letter."""

    ceiling: Ceiling = "internal"


class RedriveQuery(LetterTenant):
    """Tenant of the letter to put back."""


class LettersAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    items: list[ListedLetter]
    next: str | None
    missing: list[MissingPart]


class LetterAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    letter: DeadLetter
    content: LetterContent | None
    """null unless the query has `ceiling=secret`: nobody has judged the sensitivity of a refused record."""


class RedriveAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topic: str
    partition: int
    offset: int
    action: Literal["put_back", "was_put_back"]
    """`was_put_back`: an earlier redrive did it, and nothing was sent."""
    masked: bool
    """True if the record has a mask in place of a secret."""


class ParkedAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    items: list[ParkedEntry]
    next: str | None


@dataclass(frozen=True, slots=True)
class LetterPlace:
    """Position of a letter."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters and parked keys with the rights of a caller, for the routes and for the console. Its methods raise
    Problem."""

    reader: DeadLetterReader
    redrives: LetterRedrives
    places: SharedPool
    secrets: SecretFilter

    async def page(self, query: LettersQuery, caller: Caller) -> LetterPage:
        """Return a page of letters, newest first."""
        query.user(caller)
        topics = LETTER_TOPICS
        if query.topic is not None:
            named = letter_topic(query.topic)
            if named is None:
                raise invalid_field("topic", "has no dead letters, because no stage reads it")
            topics = (named,)
        tenant_id = query.tenant_or_all(caller)
        chosen = LetterFilter(reason=query.reason, tenant=tenant_id, user=query.user_id, stage=query.stage)

        def takes(letter: DeadLetter) -> bool:
            return chosen.matches(letter) and _sees(caller, letter.owners)

        return await within_bounds(self.reader.page(topics, takes, limit=query.limit, cursor=query.cursor))

    async def parked(self, query: ParkedQuery, caller: Caller) -> ParkedAnswer:
        """Return a page of parked keys."""
        user, tenant_id = query.user(caller), query.tenant_or_all(caller)

        def takes(entry: ParkedEntry) -> bool:
            named = (tenant_id, entry.tenant_id), (query.stage, entry.stage), (user, entry.owner)
            return caller.sees(entry.owner) and all(wanted in (None, found) for wanted, found in named)

        page = await within_bounds(self.reader.parked(takes, limit=query.limit, cursor=query.cursor))
        return ParkedAnswer(items=list(page.items), next=page.next)

    async def one(self, place: LetterPlace, query: LetterQuery, caller: Caller) -> LetterAnswer:
        """Return one letter, with its content if the query asks for secrets. Secrets in it are masked."""
        record, letter = await self._found(place, query, caller)
        caller.check_ceiling(query.ceiling, letter.tenant_id, next(iter(letter.owners), None))
        if query.ceiling != "secret":
            return LetterAnswer(letter=letter, content=None)
        return LetterAnswer(letter=letter, content=letter_content(keep_unread_record(record, self.secrets)))

    async def redrive(self, place: LetterPlace, query: LetterTenant, caller: Caller) -> RedriveAnswer:
        """Put a letter back, unless it was put back before."""
        record, letter = await self._found(place, query, caller)
        async with self.places.place(party_of(caller, letter.tenant_id)):
            step = await self.redrives.put_back(record, who=caller.name)
        if step.action not in ("put_back", "was_put_back") or step.redrive is None:
            raise Problem(HTTPStatus.CONFLICT, "not-run", f"the letter cannot be put back: {step.why}")
        return RedriveAnswer(
            topic=letter.topic,
            partition=letter.partition,
            offset=letter.offset,
            action=step.action,
            masked=step.redrive.masked,
        )

    async def _found(self, place: LetterPlace, query: LetterTenant, caller: Caller) -> tuple[Record, DeadLetter]:
        tenant_id, topic = query.tenant_or_all(caller), letter_topic(place.topic)
        found = None if topic is None else await self.reader.letter(topic, place.partition, place.offset)
        if found is None or tenant_id not in (None, found[1].tenant_id) or not _sees(caller, found[1].owners):
            raise not_found("there is no dead letter at this position, or it may not be read")
        return found


def _sees(caller: Caller, owners: tuple[Owner, ...]) -> bool:
    """Return whether a caller may see a letter of these owners. A token that is bound to users sees no letter whose
    user is unknown."""
    return caller.users is None or (bool(owners) and all(map(caller.sees, owners)))


def letter_place(
    topic: Annotated[str, Path(max_length=128, description="Such as memory.turns, or memory.turns.dlq.")],
    partition: Annotated[int, Path(ge=0, le=OFFSET_MAX)],
    offset: Annotated[int, Path(ge=0, le=OFFSET_MAX)],
) -> LetterPlace:
    return LetterPlace(topic, partition, offset)


def router(*, dead_letters: DeadLetters, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["dead letters"])
    reader = Depends(caller_with(credentials, "memory:read"))
    admin = Depends(caller_with(credentials, "memory:admin"))
    position = Depends(letter_place)

    @routes.get("/v1/dead-letters", summary="Records that a stage refused, newest first")
    async def letters(query: Annotated[LettersQuery, Query()], caller: Caller = reader) -> LettersAnswer:
        """Returns dead letters without their content. A page reads at most 5 000 letters, so it may have fewer than
        `limit`, and a `next`: follow it until it is null."""
        page = await dead_letters.page(query, caller)
        return LettersAnswer(items=list(page.items), next=page.next, missing=missing_parts(page.missing))

    @routes.get(
        "/v1/dead-letters/{topic}/{partition}/{offset}",
        summary="One dead letter",
        responses={404: {"description": "There is no such letter that the caller may see."}},
    )
    async def letter(
        query: Annotated[LetterQuery, Query()], place: LetterPlace = position, caller: Caller = reader
    ) -> LetterAnswer:
        """Returns a letter, with key, value and headers if `ceiling=secret`. Secrets in them are masked."""
        return await dead_letters.one(place, query, caller)

    @routes.post(
        "/v1/dead-letters/{topic}/{partition}/{offset}/redrive",
        summary="Put a dead letter back",
        openapi_extra=body_of(RedriveQuery),
        responses={
            404: {"description": "There is no such letter that the caller may see."},
            409: {"description": "The letter cannot be put back; `detail` has the reason."},
        },
    )
    async def redrive(request: Request, place: LetterPlace = position, caller: Caller = admin) -> RedriveAnswer:
        """Appends the refused record to its topic, once. Its stage handles it like any record, so remove the cause
        first."""
        query = decode_model(RedriveQuery, await read_body(request, limit=limits.body))
        return await dead_letters.redrive(place, query, caller)

    @routes.get("/v1/parked-keys", summary="Keys whose last outcome cannot be applied")
    async def parked(query: Annotated[ParkedQuery, Query()], caller: Caller = reader) -> ParkedAnswer:
        """Returns parked keys. A worker tries the outcome of each again; then put its dead letters back."""
        return await dead_letters.parked(query, caller)

    return routes
