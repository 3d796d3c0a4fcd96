"""`/v1/episodes/{episode_id}/verbatim`: the original text of an episode that was reduced to a gist."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict

from ..recall.verbatim import EpisodeRef, Nothing, VerbatimReader
from .credentials import Caller, Credentials, caller_with
from .owner_params import RecordId, RecordQuery
from .problems import not_found


class VerbatimAnswer(BaseModel):
    """The original text, checked against the SHA-256 that was archived with it; or null, and the reason."""

    model_config = ConfigDict(extra="forbid")

    episode_id: str
    verbatim_content: str | None
    archived_at: datetime | None
    sha256: str | None
    kept_until: datetime | None
    """Each access moves this time forward."""
    nothing: Nothing | None
    """whole: the text was never reduced. gone: its time in the archive is over. damaged: the archive does not hold what
    was stored."""


def router(*, verbatim_reader: VerbatimReader, credentials: Credentials, now: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(tags=["episodes"], responses={404: {"description": "The caller may see no such record."}})
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/episodes/{episode_id}/verbatim", summary="The original text of an episode")
    async def verbatim(
        episode_id: RecordId,
        query: Annotated[RecordQuery, Query()],
        caller: Caller = reader,
    ) -> VerbatimAnswer:
        """Each access is logged before the text is returned, and extends the time that the text is kept."""
        ref = EpisodeRef(query.tenant_of(caller), episode_id, caller.sees, query.ceiling)
        found = await verbatim_reader.rehydrate(ref, now=now())
        if found is None:
            raise not_found(f"there is no episode {episode_id} here, or it may not be read")
        return VerbatimAnswer(
            episode_id=found.episode_id,
            verbatim_content=found.content,
            archived_at=found.archived_at,
            sha256=found.sha256,
            kept_until=found.kept_until,
            nothing=found.nothing,
        )

    return routes
