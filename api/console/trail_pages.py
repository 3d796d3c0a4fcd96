"""Screen Trail: the turns of a user in order, with the stage of each turn and the outcome of each statement."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Final, get_args
from urllib.parse import quote

from fastapi import APIRouter, Path, Request
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from ...recall.record_filters import RecordSelection
from ...recall.record_reader import TURNS_MAX, RecordReader
from ...recall.turn_search import TurnFinder, TurnSearch
from ...recall.turn_trace import TurnOutcome, TurnStage, TurnTracer
from ...schemas.errors import Transient
from ...schemas.facts import Fact
from ...schemas.turns import SENSITIVITIES, Owner, Sensitivity
from ...streams.log.fanout import TopicFanout
from ...streams.log.stage_lag import StageLag
from ..credentials import Caller
from ..owner_params import Id, one_of
from ..problems import not_found
from ..records import TURNS_DEFAULT, Cursor, SessionQuery, within_bounds
from ..turn_outcomes import TurnQuery
from .as_commands import as_commands
from .live import position, stream_query
from .pages import ConsolePages, asked

ReadLags = Callable[[], Awaitable[Sequence[StageLag]]]
WORDS_MAX: Final = 500
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _day(value: object) -> object:
    """Parse a day. Pydantic would also accept numbers, as seconds since 1970."""
    if not isinstance(value, str) or _DAY.fullmatch(value) is None:
        raise ValueError("expected a day such as 2026-11-20")
    return date.fromisoformat(value)


Day = Annotated[date, BeforeValidator(_day)]


class TrailQuery(SessionQuery):
    session_id: Annotated[Id | None, Field(description="Only turns of this session.")] = None
    words: Annotated[str, Field(max_length=WORDS_MAX, description="Only turns that say all of these words.")] = ""
    since: Annotated[Day | None, Field(description="Only turns of this day or later, in UTC.")] = None
    until: Annotated[Day | None, Field(description="Only turns of this day or earlier, in UTC.")] = None
    stage: Annotated[TurnStage | None, Field(description="Only turns that have this stage.")] = None
    limit: Annotated[int, Field(ge=1, le=TURNS_MAX)] = TURNS_DEFAULT
    cursor: Cursor = None

    def turns(self, caller: Caller) -> RecordSelection:
        user, tenant_id = caller.user(one_of("user_id", self.user_id, "user", self.user)), self.tenant_of(caller)
        caller.check_ceiling(self.ceiling, tenant_id, Owner(scope="user", id=user))
        day = self.until
        return RecordSelection(
            tenant_id,
            user_id=user,
            session_id=self.session_id,
            ceiling=self.ceiling,
            said_from=None if self.since is None else _midnight(self.since),
            said_before=None if day is None or day == date.max else _midnight(day + timedelta(days=1)),
        )


def _user(user_id: str | None) -> Owner | None:
    return None if user_id is None else Owner(scope="user", id=user_id)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def router(
    pages: ConsolePages,
    reader: Caller,
    *,
    record_reader: RecordReader,
    turn_tracer: TurnTracer,
    lags: ReadLags,
    followers: TopicFanout,
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class(), include_in_schema=False)
    finder = TurnFinder(record_reader, turn_tracer)

    async def facts_of(
        outcomes: Iterable[TurnOutcome], tenant_id: str, caller: Caller, ceiling: Sensitivity
    ) -> Mapping[str, Fact]:
        """Read the facts that the statements name, as far as the caller may see them."""
        statements = [statement for each in outcomes for statement in each.statements]
        named = [
            each for one in statements for each in (one.fact_id, one.other_fact_id, *one.closes) if each is not None
        ]
        return await record_reader.facts_by_id(tenant_id, list(dict.fromkeys(named)), sees=caller.sees, ceiling=ceiling)

    @routes.get("/trail")
    async def trail(request: Request, caller: Caller = reader) -> Response:
        query = asked(TrailQuery, request)
        selection = query.turns(caller)
        search = TurnSearch.of(query.words, query.stage)
        after = await position(followers)
        reading = finder.page(selection, search, limit=query.limit, cursor=query.cursor, sees=caller.sees)
        found = await within_bounds(reading)
        return pages.page(
            request,
            "trail.html",
            caller=caller,
            tenant=selection.tenant_id,
            user=selection.user_id,
            live=stream_query(after, selection.tenant_id, _user(selection.user_id), query.ceiling, of="turns"),
            query=query,
            turns=found.turns,
            missing=found.missing,
            next_page=found.next,
            facts=await facts_of(found.turns, selection.tenant_id, caller, query.ceiling),
            lags=await known_lags(lags),
            sensitivities=SENSITIVITIES,
            stages=get_args(TurnStage),
            commands=as_commands(
                request,
                None,
                query,
                cli=[
                    "show",
                    "turns",
                    "--tenant",
                    selection.tenant_id,
                    "--user",
                    selection.user_id,
                    "--session",
                    query.session_id,
                ],
            ),
        )

    @routes.get("/turns/{turn_id:path}")
    async def turn(request: Request, turn_id: Annotated[Id, Path()], caller: Caller = reader) -> Response:
        query = asked(TurnQuery, request)
        ref = query.ref(caller, turn_id)
        after = await position(followers)
        traced = await turn_tracer.trace(ref)
        if not traced.turns:
            raise not_found(f"there is no turn {turn_id} here, or it may not be read")
        return pages.page(
            request,
            "turn.html",
            caller=caller,
            tenant=ref.tenant_id,
            user=ref.user_id,
            live=stream_query(after, ref.tenant_id, _user(ref.user_id), query.ceiling, of="turns"),
            ceiling=query.ceiling,
            turns=traced.turns,
            missing=traced.missing,
            facts=await facts_of(traced.turns, ref.tenant_id, caller, query.ceiling),
            lags=await known_lags(lags),
            commands=as_commands(
                request,
                f"turns/{quote(turn_id, safe='')}",
                query,
                cli=[
                    "trace",
                    "--turn",
                    turn_id,
                    "--tenant",
                    ref.tenant_id,
                    "--user",
                    ref.user_id,
                    "--session",
                    ref.session_id,
                ],
            ),
        )

    return routes


async def known_lags(lags: ReadLags) -> Sequence[StageLag]:
    """Read the lags of the stages; none when the log does not answer, so that the page still shows the rest."""
    try:
        return await lags()
    except Transient:
        return ()
