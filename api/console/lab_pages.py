"""Screen Lab: what a recall and a context return for a cue, with the scores, and what they leave out and why. A second
answer, with other times, another preset or another profile, may be next to the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from ...memory.policies.recall import LIMIT_MAX, RankingProfile
from ...memory.recall.context import OmittedPiece
from ...memory.recall.selection import OmissionReason
from ...recall.context import TOKENS_MAX, ContextService, Preset, PromptContext
from ...recall.profile import ProfileReader
from ...recall.record_reader import RecordReader
from ...recall.service import RecallPort, RecallResult
from ...schemas.turns import SENSITIVITIES
from ..context import ContextQuery
from ..credentials import Caller
from ..owner_params import Id, Moment
from ..recall import About, LimitOf, RecallQuery, checked
from .as_commands import as_commands
from .pages import ConsolePages, asked, checked_model

RECALL_REASONS: Final[Mapping[OmissionReason, str]] = {
    "min_score": "its score is below min_score",
    "no_word": "it shares no word with the cue",
    "not_believed": "memory no longer believes its fact",
    "duplicate": "most of its words are in an item of the answer",
    "tier_share": "its tier already has its share of the answer",
    "limit": "the answer is full",
}
CONTEXT_REASONS: Final[Mapping[OmittedPiece, str]] = {
    "repeated": "another section says it",
    "tokens": "there is no room within max_tokens",
    "unsafe": "its text looks like an instruction or a part of a prompt",
    "in_facts": "the section of facts has all of its facts",
}
OTHER: Final = "other_"


class LabQuery(ContextQuery):
    """Query of the lab. The fields `other_…` are the differences of the second answer."""

    limit: Annotated[int | None, Field(ge=1, le=LIMIT_MAX)] = None
    agent_id: Annotated[Id | None, Field(description="The agent that asks.")] = None
    profile: RankingProfile | None = None
    other_as_of: Moment | None = None
    other_known_at: Moment | None = None
    other_preset: Preset | None = None
    other_profile: RankingProfile | None = None
    other_max_tokens: Annotated[int | None, Field(ge=1, le=TOKENS_MAX)] = None
    other_limit: Annotated[int | None, Field(ge=1, le=LIMIT_MAX)] = None
    other_min_score: Annotated[float | None, Field(ge=0, le=1)] = None

    def recall_query(self) -> RecallQuery:
        """Return the query of the recall with the same parameters."""
        shared = RecallQuery.model_fields.keys() & self.model_fields_set
        return checked_model(RecallQuery, {name: getattr(self, name) for name in shared})

    def second(self) -> LabQuery | None:
        """Return the query of the second answer, or None without a difference."""
        given = {name: getattr(self, name) for name in LabQuery.model_fields if name.startswith(OTHER)}
        others = {name.removeprefix(OTHER): value for name, value in given.items() if value is not None}
        return self.model_copy(update=others) if others else None


@dataclass(frozen=True, slots=True)
class LabAnswer:
    """A recall and a context for one query."""

    query: LabQuery
    limit: int
    recalled: RecallResult
    made: PromptContext

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of all candidates by id."""
        every = (*self.recalled.items, *(each.memory for each in self.recalled.left_out))
        return {each.item.id: each.item.content for each in every}

    @property
    def places(self) -> Mapping[str, int]:
        """The places of the items in the answer by id, from 1."""
        return {each.item.id: place for place, each in enumerate(self.recalled.items, start=1)}

    def lines(self, other: LabAnswer | None) -> Sequence[tuple[str, bool]]:
        """Return the lines of the context, each with True if the other context lacks it. The frame of a context has a
        mark of its own, so it is never such a line."""
        same = None if other is None else frozenset(other.made.text.splitlines())
        return [
            (line, same is not None and line not in same and bool(line.strip()) and not line.startswith("[memory "))
            for line in self.made.text.splitlines()
        ]


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

    async def answer(query: LabQuery, about: About, moment: datetime) -> LabAnswer:
        wanted = query.recall_query().request(about, limit=limit, profiles=profiles)
        context = query.request(about, profiles=profiles)
        recalled = await recall.recall(replace(wanted, explain=True, profile=query.profile), now=moment)
        made = await contexts.context(replace(context, explain=True, profile=query.profile), now=moment)
        return LabAnswer(query, wanted.limit, recalled, made)

    @routes.get("/lab")
    async def lab(request: Request, caller: Caller = reader) -> Response:
        query = asked(LabQuery, request)
        values: dict[str, Any] = {
            "tenant": query.tenant_of(caller),
            "user": query.given_user or (query.owner(caller).id if caller.users else None),
            "query": query,
            "presets": get_args(Preset),
            "profiles": get_args(RankingProfile),
            "sensitivities": SENSITIVITIES,
        }
        if "cue" not in request.query_params:
            return pages.page(request, "lab.html", caller=caller, answers=[], **values)
        about = await checked(query, caller, None, record_reader)
        moment = now()
        answers = [await answer(each, about, moment) for each in (query, query.second()) if each is not None]
        missing = {part.part: part for each in answers for part in (*each.recalled.missing, *each.made.missing)}
        return pages.page(
            request,
            "lab.html",
            caller=caller,
            answers=answers,
            missing=[*missing.values()],
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
            **values,
        )

    return routes
