"""`GET /console/updates`: the stream that reports changes of memory to an open page, and its address in a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Header, Request
from pydantic import Field
from starlette.responses import Response

from ...schemas.errors import Transient
from ...schemas.turns import Owner, Sensitivity
from ...streams.log.fanout import TopicFanout
from ..credentials import Caller
from ..updates import FactStreams, UpdatesQuery
from .pages import asked


class LiveQuery(UpdatesQuery):
    """Query of the stream. A browser cannot give the position of its first request in a header."""

    after: Annotated[str | None, Field(description="Position of the page; ignored with Last-Event-ID.")] = None


async def position(followers: TopicFanout) -> str | None:
    """Return the position in the log before a page is read, or None when the log does not answer.

    The page's stream continues after it, so no change between the page and its stream is lost.
    """
    try:
        return (await followers.end()).token()
    except Transient:
        return None


def stream_query(
    after: str | None, tenant_id: str, owner: Owner | None, ceiling: Sensitivity
) -> Mapping[str, object] | None:
    """Return the query of the stream for a page of one owner, or None when the page has no stream."""
    if after is None or owner is None:
        return None
    return {"tenant_id": tenant_id, "scope": owner.scope, "id": owner.id, "ceiling": ceiling, "after": after}


def router(reader: Caller, *, streams: FactStreams) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/updates")
    async def updates(
        request: Request, last: Annotated[str | None, Header(alias="Last-Event-ID")] = None, caller: Caller = reader
    ) -> Response:
        query = asked(LiveQuery, request)
        return streams.stream(query, caller, last=last or query.after)

    return routes
