"""`GET /v1/facts/updates`: memory.facts.updated as server-sent events, only for the credential's tenant."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

import structlog
from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import Response
from pydantic import Field, ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Receive, Scope, Send

from ..schemas import ids
from ..schemas.facts import FactUpdated
from ..schemas.turns import Owner, Sensitivity, up_to
from ..streams.log.fanout import Begin, Ended, OffsetsLost, Select, TooManyReaders, TopicFanout, TopicReader
from ..streams.log.offsets import Offsets
from ..streams.log.port import Record
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .owner_params import Ceiling, Whose
from .problems import busy, gone, invalid_field
from .revocation import CHECK_SECONDS
from .shares import Party, Pools, party_of

log = structlog.get_logger(__name__)

EVENT_STREAM = "text/event-stream"
CHANGE = "fact.updated"
POSITION = "position"
"""Type of an event with only an id. Its data is `{}`, because some clients ignore the id of an event without data."""
END = "end"
RECONNECT_MILLISECONDS = 2_000
LEAVE_SECONDS = 1.0
"""Seconds that a stream may take to send its last event when another tenant needs its place."""
GONE = "start over: read memory.facts (the current state) or GET /v1/facts, then follow from=now"
End = Ended | Literal["unauthorized"]
"""Reason of a stream's end."""
ADVICE: dict[End, str] = {
    "busy": "another tenant needed this place; reconnect after a moment with the id of the last event",
    "slow": "this reader was too slow; reconnect with the id of the last event",
    "unavailable": "the log is unavailable; reconnect with the id of the last event",
    "gone": f"the log no longer has the next records; {GONE}",
    "unauthorized": "the token of this stream was removed, or has other rights now",
    "shutdown": "this server stops; reconnect with the id of the last event",
}


class UpdatesQuery(Whose):
    """Owner and start position of a stream of changes."""

    begin: Annotated[
        Literal["beginning", "now"],
        Field(
            alias="from",
            description="Start at the oldest record of the log, or with new records; ignored with Last-Event-ID.",
        ),
    ] = "now"
    ceiling: Ceiling = "internal"


@dataclass(frozen=True, slots=True)
class Audience:
    """Selection of the changes that a stream sends: a tenant, an owner, and the highest sensitivity."""

    tenant_id: str
    owner: Owner | None
    """None means all owners of the tenant."""
    ceiling: Sensitivity

    def hears(self, record: Record) -> bool:
        """Return whether a record is for this audience.

        The key is compared first, so that records of other tenants and other owners are not decoded: many streams
        read each record. The decoded value then decides.
        """
        if record.key is not None and not self._may_have(record.key):
            return False
        try:
            event = FactUpdated.read(record.value or b"")
        except ValidationError:
            log.warning("update_unreadable", partition=record.position.partition, offset=record.position.offset)
            return False
        return (
            event.tenant_id == event.fact.tenant_id == self.tenant_id
            and self.owner in (None, event.owner)
            and all(fact.sensitivity in up_to(self.ceiling) for fact in (event.fact, event.before) if fact is not None)
        )

    def _may_have(self, key: bytes) -> bool:
        """Return whether a record with this key may be for this audience. The key of a change is its owner's."""
        if self.owner is None:
            return key.startswith(f"{ids.encode(self.tenant_id)}/".encode())
        return key == self.owner.key(self.tenant_id).encode()


Change = Callable[[Record], tuple[str, str]]
"""Function that returns the type and the data of the event of a record."""


def fact_change(record: Record) -> tuple[str, str]:
    """Return the value unchanged, including fields of later versions."""
    return CHANGE, (record.value or b"").decode()


Place = AbstractAsyncContextManager[Callable[[], None]]


class _Leaving:
    """Callback that ends a stream whose place another tenant needs: it sends a last event, then cuts the connection."""

    def __init__(self, cut: asyncio.Timeout) -> None:
        self._cut = cut
        self.following: TopicReader | None = None

    def __call__(self) -> None:
        if self.following is not None:
            self.following.end("busy")
        self._cut.reschedule(asyncio.get_running_loop().time() + LEAVE_SECONDS)


@dataclass(frozen=True, slots=True)
class StreamPlaces:
    """Places that a stream holds. `may` returns whether the token of the stream still exists with the same rights."""

    pools: Pools
    party: Party
    may: Callable[[], bool]

    def of_streams(self, leave: Callable[[], None]) -> Place:
        return self.pools.streams.place(self.party, leave=leave)

    def of_catching_up(self, leave: Callable[[], None]) -> Place:
        return self.pools.catching_up.place(self.party, leave=leave)


class UpdatesResponse(Response):
    """Stream of events. The reader of the topic is created only when the response is sent, so that a client that
    disconnects earlier leaves no open reader."""

    media_type = EVENT_STREAM

    def __init__(
        self,
        *,
        followers: TopicFanout,
        begin: Begin,
        select: Select,
        limits: Limits,
        places: StreamPlaces,
        change: Change,
        missed: str | None = None,
        status_code: int = HTTPStatus.OK,
    ) -> None:
        super().__init__(status_code=status_code)
        self._followers = followers
        self._begin = begin
        self._select = select
        self._limits = limits
        self._places = places
        self._change = change
        self._missed = missed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(None) as cut:
                leaving = _Leaving(cut)
                async with (
                    self._places.of_streams(leaving),
                    self._followers.follow(
                        self._begin, self._select, catching_up=lambda: self._places.of_catching_up(leaving)
                    ) as following,
                ):
                    leaving.following = following
                    stream = EventSourceResponse(
                        events(
                            following,
                            heartbeat=self._limits.heartbeat_seconds,
                            may=self._places.may,
                            change=self._change,
                            missed=self._missed,
                        ),
                        ping=0,
                        sep="\n",
                        send_timeout=self._limits.stream_send_seconds,
                    )
                    await stream(scope, receive, send)
        except TimeoutError:
            if not cut.expired():
                raise
            log.warning("stream_cut_off", why="another tenant needed its place, and its client read nothing")
        except SendTimeoutError:
            log.warning("stream_cut_off", why=f"the client read nothing for {self._limits.stream_send_seconds:g} s")
        except OffsetsLost as lost:
            raise gone(f"{lost}; {GONE}") from None
        except TooManyReaders as error:
            raise busy(str(error), retry_after=self._limits.retry_seconds) from None


async def events(
    following: TopicReader,
    *,
    heartbeat: float,
    may: Callable[[], bool] = lambda: True,
    change: Change = fact_change,
    missed: str | None = None,
) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a stream.

    The first event has only the start position. A client that loses the connection before the first change can continue
    from it. An event of the type `missed` follows, for changes before the start. The last event has the end position.
    The stream ends when `may` returns False; `may` is called every CHECK_SECONDS.
    """
    at, clock = following.begins, asyncio.get_running_loop().time
    yield _block(comment="memstream", id=at.token(), event=POSITION, data="{}", retry=RECONNECT_MILLISECONDS)
    if missed is not None:
        yield _block(id=at.token(), event=missed, data="{}")
    beat, check = clock() + heartbeat, clock() + CHECK_SECONDS
    why: End | None = None
    while (why := following.ended) is None:
        if clock() >= check:
            if not may():
                why = "unauthorized"
                break
            check = clock() + CHECK_SECONDS
        update = await following.next(within=max(0.0, min(beat, check) - clock()))
        if update is not None:
            at = update.places
            event, data = change(update.record)
            yield _block(id=at.token(), event=event, data=data)
            beat = clock() + heartbeat
        elif following.ended is None and clock() >= beat:
            now = following.place()
            if now == at:
                yield _block(comment="heartbeat")
            else:
                yield _block(comment="heartbeat", id=now.token(), event=POSITION, data="{}")
            at, beat = now, clock() + heartbeat
    yield _block(id=at.token(), event=END, data=json.dumps({"reason": why, "detail": ADVICE[why]}))


def _block(
    *,
    data: str | None = None,
    event: str | None = None,
    id: str | None = None,
    comment: str | None = None,
    retry: int | None = None,
) -> ServerSentEvent:
    return ServerSentEvent(data, event=event, id=id, comment=comment, retry=retry, sep="\n")


@dataclass(frozen=True, slots=True)
class UpdateStreams:
    """Streams of changes, within the rights of a caller and the places of its tenant."""

    followers: TopicFanout
    pools: Pools
    credentials: Credentials
    limits: Limits

    def stream(self, query: UpdatesQuery, caller: Caller, *, last: str | None) -> UpdatesResponse:
        """Return the stream after the position `last`. Raises Problem if the caller may not read the owner or the
        sensitivity, or if `last` is no position."""
        audience = Audience(query.tenant_of(caller), query.owner_or_all(caller), query.ceiling)
        caller.check_ceiling(query.ceiling, audience.tenant_id, audience.owner)
        return self.selected(caller, audience.tenant_id, begin=begin_of(last, query.begin), select=audience.hears)

    def selected(
        self,
        caller: Caller,
        tenant_id: str,
        *,
        begin: Begin,
        select: Select,
        change: Change = fact_change,
        missed: str | None = None,
    ) -> UpdatesResponse:
        """Return a stream of the records that `select` selects, in a place of the caller. `missed`: type of an event
        that comes first, for changes before `begin`."""
        return UpdatesResponse(
            followers=self.followers,
            begin=begin,
            select=select,
            limits=self.limits,
            places=StreamPlaces(self.pools, party_of(caller, tenant_id), may=lambda: self.credentials.holds(caller)),
            change=change,
            missed=missed,
        )


def router(streams: UpdateStreams) -> APIRouter:
    routes = APIRouter(tags=["facts"])
    reader = Depends(caller_with(streams.credentials, "memory:read"))

    @routes.get(
        "/v1/facts/updates",
        summary="Stream of changes of facts",
        response_class=UpdatesResponse,
        responses={
            200: {
                "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
                "description": "Events, without end.",
            },
            410: {"description": "Records after Last-Event-ID were deleted from the log: start over without it."},
        },
    )
    async def follow(
        query: Annotated[UpdatesQuery, Query()],
        last: Annotated[
            str | None,
            Header(
                alias="Last-Event-ID", description="`id` of the last received event. The stream continues after it."
            ),
        ] = None,
        caller: Caller = reader,
    ) -> UpdatesResponse:
        """Sends an event `fact.updated` for each change. Its data is a record of memory.facts.updated. Its id is the
        position after the record in all partitions. A client that reconnects with this id in Last-Event-ID misses no
        record and receives none twice (but a record may be in the log twice: compare `event_id`). An event `position`
        has only an id. When the server ends a stream, it sends an event `end` whose data has the reason. Blocks with
        only a comment are heartbeats."""
        return streams.stream(query, caller, last=last)

    return routes


def begin_of(last: str | None, otherwise: Literal["beginning", "now"]) -> Begin:
    """Return the position to begin at. Raises Problem if `last` is no position."""
    if not last:
        return otherwise
    try:
        return Offsets.read(last)
    except ValueError as error:
        raise invalid_field("Last-Event-ID", str(error)) from None
