"""Dead letters and parked keys: the list, one letter, and the form that puts a letter back."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from ...schemas.errors import DeadLetterReason, StageError
from ...schemas.topics import STAGES
from ..credentials import Caller
from ..dead_letters import (
    DeadLetters,
    LetterPlace,
    LetterQuery,
    LettersQuery,
    ParkedAnswer,
    ParkedQuery,
    RedriveQuery,
    letter_place,
)
from .as_commands import as_commands
from .pages import ConsolePages, Noticed, asked, checked_model

PARKED_SHOWN = 20
"""Parked keys above the list."""


class LetterListQuery(LettersQuery, Noticed):
    """Query of the list of dead letters."""


class LetterPageQuery(LetterQuery, Noticed):
    """Query of the page of one letter."""


class ShownKeys(ParkedQuery):
    limit: Annotated[int, Field(ge=1)] = PARKED_SHOWN


def router(pages: ConsolePages, reader: Caller, *, dead_letters: DeadLetters) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class(), include_in_schema=False)
    position = Depends(letter_place)

    async def parked_keys(query: LetterListQuery, caller: Caller) -> tuple[ParkedAnswer | None, str]:
        """Return the parked keys of a query, or the reason why they cannot be read."""
        shared = {name: getattr(query, name) for name in ("tenant_id", "tenant", "user_id", "stage")}
        try:
            return await dead_letters.parked(ShownKeys(**shared), caller), ""
        except StageError as away:
            return None, f"{away} ({away.remedy})" if away.remedy else str(away)

    @routes.get("/dead-letters")
    async def letters(request: Request, caller: Caller = reader) -> Response:
        query = asked(LetterListQuery, request)
        page = await dead_letters.page(query, caller)
        parked, parked_why = (None, "") if query.cursor else await parked_keys(query, caller)
        tenant = query.tenant_or_all(caller)
        return pages.page(
            request,
            "letters.html",
            caller=caller,
            tenant=tenant,
            query=query,
            page=page,
            parked=parked,
            parked_why=parked_why,
            stages=STAGES,
            reasons=get_args(DeadLetterReason),
            admin="memory:admin" in caller.scopes,
            commands=as_commands(
                request,
                "dead-letters",
                query,
                cli=[
                    "dlq",
                    "list",
                    "--tenant",
                    tenant,
                    "--user",
                    query.user_id,
                    "--stage",
                    query.stage,
                    "--reason",
                    query.reason,
                    "--topic",
                    query.topic,
                ],
            ),
        )

    @routes.get("/dead-letters/{topic}/{partition}/{offset}")
    async def letter(request: Request, place: LetterPlace = position, caller: Caller = reader) -> Response:
        query = asked(LetterPageQuery, request)
        found = await dead_letters.one(place, query, caller)
        return pages.page(
            request,
            "letter.html",
            caller=caller,
            tenant=query.tenant_or_all(caller),
            query=query,
            letter=found.letter,
            content=found.content,
            admin="memory:admin" in caller.scopes,
            commands=as_commands(
                request,
                f"dead-letters/{place.topic}/{place.partition}/{place.offset}",
                query,
                cli=["dlq", "show", place.topic, str(place.partition), str(place.offset)],
            ),
        )

    @routes.post("/dead-letters/{topic}/{partition}/{offset}/redrive")
    async def redrive(request: Request, place: LetterPlace = position, caller: Caller = reader) -> Response:
        form = await pages.forms.form(request)
        back = form.pop("back", None)
        caller.require("memory:admin")
        answer = await dead_letters.redrive(place, checked_model(RedriveQuery, form), caller)
        return pages.done(request, back, answer.action)

    return routes
