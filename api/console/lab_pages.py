"""Screen Lab: what a recall and a context return for a cue, with the scores, and what they leave out and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from ...memory.policies.recall import LIMIT_MAX
from ...memory.recall.context import OmittedPiece
from ...memory.recall.selection import OmissionReason
from ...recall.context import ContextService, Preset
from ...recall.profile import ProfileReader
from ...recall.record_reader import RecordReader
from ...recall.service import RecallPort
from ...schemas.turns import SENSITIVITIES
from ..context import ContextQuery
from ..credentials import Caller
from ..owner_params import Id
from ..recall import LimitOf, RecallQuery, checked
from .as_commands import as_commands
from .pages import ConsolePages, asked, checked_model

RECALL_REASONS: Final[Mapping[OmissionReason, str]] = {
    "min_score": "its score is below min_score",
    "no_word": "it shares no word with the cue",
    "not_believed": "memory no longer believes its fact",
    "duplicate": "an item of a higher tier has most of its words",
    "tier_share": "its tier already has its share of the answer",
    "limit": "the answer is full",
}
CONTEXT_REASONS: Final[Mapping[OmittedPiece, str]] = {
    "repeated": "another section says it",
    "tokens": "there is no room within max_tokens",
    "unsafe": "its text looks like an instruction or a part of a prompt",
    "in_facts": "the section of facts has all of its facts",
}


class LabQuery(ContextQuery):
    limit: Annotated[int | None, Field(ge=1, le=LIMIT_MAX)] = None
    agent_id: Annotated[Id | None, Field(description="The agent that asks.")] = None

    def recall_query(self) -> RecallQuery:
        """Return the query of the recall with the same parameters."""
        shared = RecallQuery.model_fields.keys() & self.model_fields_set
        return checked_model(RecallQuery, {name: getattr(self, name) for name in shared})


def router(
    pages: ConsolePages,
    reader: Caller,
    *,
    recall: RecallPort,
    contexts: ContextService,
    profiles: ProfileReader,
    record_reader: RecordReader,
    limit: LimitOf,
    now: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class(), include_in_schema=False)

    @routes.get("/lab")
    async def lab(request: Request, caller: Caller = reader) -> Response:
        query = asked(LabQuery, request)
        values: dict[str, Any] = {
            "tenant": query.tenant_of(caller),
            "user": query.given_user or (query.owner(caller).id if caller.users else None),
            "query": query,
            "presets": get_args(Preset),
            "sensitivities": SENSITIVITIES,
        }
        if "cue" not in request.query_params:
            return pages.page(request, "lab.html", caller=caller, recalled=None, **values)
        about = await checked(query, caller, None, record_reader)
        moment = now()
        wanted = query.recall_query().request(about, limit=limit, profiles=profiles)
        recalled = await recall.recall(replace(wanted, explain=True), now=moment)
        made = await contexts.context(replace(query.request(about, profiles=profiles), explain=True), now=moment)
        missing = {each.part: each for each in (*recalled.missing, *made.missing)}
        return pages.page(
            request,
            "lab.html",
            caller=caller,
            recalled=recalled,
            made=made,
            missing=[*missing.values()],
            limit=wanted.limit,
            recall_reasons=RECALL_REASONS,
            context_reasons=CONTEXT_REASONS,
            commands=as_commands(
                request,
                "recall",
                query.recall_query(),
                sent=True,
                cli=[
                    "recall",
                    "--tenant",
                    about.tenant_id,
                    "--user",
                    about.user_id,
                    "--session",
                    query.session_id,
                    "--cue",
                    query.cue,
                ],
            ),
            texts={each.item.id: each.item.content for each in recalled.items}
            | {each.memory.item.id: each.memory.item.content for each in recalled.left_out},
            **values,
        )

    return routes
