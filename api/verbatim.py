"""`/v1/episodes/{episode_id}/verbatim`: the original text of an episode that was reduced to a gist."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict

from ..recall.verbatim import EpisodeRef, Nothing, VerbatimReader
from ..tools.audit import audit
from .credentials import Caller, Credentials, caller_with
from .owner_params import RecordId, RecordQuery
from .problems import not_found


class VerbatimAnswer(BaseModel):
    """Original text of an episode, checked against its archived SHA-256; or null with a reason."""

    model_config = ConfigDict(extra="forbid")

    episode_id: str
    verbatim_content: str | None
    archived_at: datetime | None
    sha256: str | None
    kept_until: datetime | None
    """End of the retention. Each access extends it."""
    nothing: Nothing | None
    """Reason for a missing text. whole: the text was never reduced. gone: its retention is over. damaged: the archived
    text does not match its SHA-256."""


def router(*, verbatim_reader: VerbatimReader, credentials: Credentials, now: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(
        tags=["episodes"], responses={404: {"description": "There is no such record that the caller may see."}}
    )
    reader = Depends(caller_with(credentials, "memory:read"))

    @routes.get("/v1/episodes/{episode_id}/verbatim", summary="Original text of an episode")
    async def verbatim(
        episode_id: RecordId,
        query: Annotated[RecordQuery, Query()],
        caller: Caller = reader,
    ) -> VerbatimAnswer:
        """Each access is logged before the text is returned, and extends the retention of the text."""
        ref = EpisodeRef(query.tenant_of(caller), episode_id, caller.sees, query.ceiling)
        found = await verbatim_reader.rehydrate(ref, now=now())
        audit(
            "rehydrate",
            who=caller.name,
            tenant_id=ref.tenant_id,
            owner=None,
            result="read" if found is not None and found.content is not None else "nothing",
            episode_id=episode_id,
        )
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
