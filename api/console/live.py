"""`GET /console/updates`: the stream that reports changes of memory to an open page, and its address in a page.

The pages of facts follow the changes of facts. The trail and the page of a turn also follow the turns and observations
of the user that a stage has committed: such a commit changes the stage of a turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Header, Request
from pydantic import Field, ValidationError
from starlette.responses import Response

from ...schemas import ids
from ...schemas.errors import Transient
from ...schemas.observations import Observed
from ...schemas.topics import FACTS_UPDATED, TURNS
from ...schemas.turns import Owner, Sensitivity
from ...streams.log.fanout import TopicFanout
from ...streams.log.offsets import Offsets
from ...streams.log.port import Record
from ..credentials import Caller
from ..problems import invalid_field
from ..updates import Audience, UpdatesQuery, UpdateStreams, begin_of
from .pages import asked


class LiveQuery(UpdatesQuery):
    """Query of the stream. A browser cannot give the position of its first request in a header."""

    of: Annotated[Literal["facts", "turns"], Field(description="What the page shows.")] = "facts"
    after: Annotated[str | None, Field(description="Position of the page; ignored with Last-Event-ID.")] = None


HANDLED: Final = "turn.handled"
"""Type of the event after which the trail of a user differs. Its data is `{}`."""


@dataclass(frozen=True, slots=True)
class TurnAudience:
    """Selection of the records that may change the trail of a user."""

    tenant_id: str
    user: Owner
    ceiling: Sensitivity

    def hears(self, record: Record) -> bool:
        """Return whether a record is of this user. Keys are compared first, because every open page reads each record:
        only a change of the user's facts, and an observation for an owner that is no user, is decoded."""
        key = (record.key or b"").decode("utf-8", "replace")
        match record.position.topic:
            case TURNS.name:
                return key.startswith(f"{ids.join(self.tenant_id, self.user.id)}/")
            case FACTS_UPDATED.name:
                return Audience(self.tenant_id, self.user, self.ceiling).hears(record)
        if key == self.user.key(self.tenant_id):
            return True
        tenant = f"{ids.encode(self.tenant_id)}/"
        if not key.startswith(tenant) or key.startswith(f"{tenant}user/"):
            return False
        try:
            observed = Observed.read(record.value or b"")
        except ValidationError:
            return False
        return (observed.tenant_id, observed.user_id) == (self.tenant_id, self.user.id)


async def position(followers: TopicFanout) -> str | None:
    """Return the position in the log before a page is read, or None when the log does not answer.

    The page's stream continues after it, so no change between the page and its stream is lost.
    """
    try:
        return (await followers.end()).token()
    except Transient:
        return None


def stream_query(
    after: str | None,
    tenant_id: str,
    owner: Owner | None,
    ceiling: Sensitivity,
    *,
    of: Literal["turns"] | None = None,
) -> Mapping[str, object] | None:
    """Return the query of the stream for a page of one owner, or None when the page has no stream."""
    if after is None or owner is None:
        return None
    return {"tenant_id": tenant_id, "scope": owner.scope, "id": owner.id, "ceiling": ceiling, "of": of, "after": after}


async def _of_turns(turns: UpdateStreams, query: LiveQuery, caller: Caller, after: str | None) -> Response:
    tenant_id, owner = query.tenant_of(caller), query.owner(caller)
    if owner.scope != "user":
        raise invalid_field("of", "turns are turns of a user")
    caller.check_ceiling(query.ceiling, tenant_id, owner)
    begin = begin_of(after, query.begin)
    is_close = not isinstance(begin, Offsets) or await turns.followers.is_close(begin)
    return turns.selected(
        caller,
        tenant_id,
        begin=begin if is_close else "now",
        select=TurnAudience(tenant_id, owner, query.ceiling).hears,
        change=lambda record: (HANDLED, "{}"),
        missed=None if is_close else HANDLED,
    )


def router(reader: Caller, *, streams: UpdateStreams, turns: UpdateStreams) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/updates")
    async def updates(
        request: Request, last: Annotated[str | None, Header(alias="Last-Event-ID")] = None, caller: Caller = reader
    ) -> Response:
        query = asked(LiveQuery, request)
        after = last or query.after
        if query.of == "facts":
            return streams.stream(query, caller, last=after)
        return await _of_turns(turns, query, caller, after)

    return routes
