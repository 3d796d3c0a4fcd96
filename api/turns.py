"""`POST /v1/turns`: append turns to memory.turns. The answer waits for the log, not for a model."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict

from ..schemas.turns import Owner, Turn
from ..streams.log.port import Position
from ..streams.senders.turns import TurnSender
from ..tools.audit import audit
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .openapi import body_of
from .request_body import decode_json, read_body
from .turn_limits import TurnLimits
from .turn_validation import ValidTurn, valid_turns


class Written(BaseModel):
    """Position of a turn's record in the log."""

    model_config = ConfigDict(extra="forbid")

    topic: str
    partition: int
    offset: int
    turn_id: str


def router(
    *,
    sender: TurnSender,
    credentials: Credentials,
    limits: Limits,
    turn_limits: TurnLimits,
    now: Callable[[], datetime],
    clock_ahead: timedelta,
) -> APIRouter:
    """Build the route. The time of a turn may be ahead of `now` by at most `clock_ahead`."""
    routes = APIRouter(tags=["turns"])
    writer = Depends(caller_with(credentials, "turns:write"))

    @routes.post(
        "/v1/turns",
        status_code=HTTPStatus.ACCEPTED,
        response_model=Written | list[Written],
        openapi_extra=body_of(Turn, without=("tenant_id",), many=limits.turns),
        summary="Send one turn or several",
    )
    async def take(request: Request, caller: Caller = writer) -> Written | list[Written]:
        """Answers after the log has acknowledged every turn. Turns of one session are written in the given order. The
        answer to a list is a list. A turn that is sent again with the same turn_id has no effect, so send all turns
        again after a 503. No turn of a request that is answered 429 is written."""
        sent = decode_json(await read_body(request, limit=limits.body))
        taken = valid_turns(sent, caller=caller, limit=limits.turns, latest=now() + clock_ahead)
        turn_limits.take(Counter(each.turn.tenant_id for each in taken), caller.name)
        sessions: dict[str, list[ValidTurn]] = {}
        for each in taken:
            sessions.setdefault(each.turn.session_key, []).append(each)
        result = "failed"
        # shield: accepted turns are written even if the caller disconnects.
        try:
            done = await asyncio.shield(asyncio.gather(*(_in_order(sender, turns) for turns in sessions.values())))
            result = "written"
        finally:
            for each in taken:
                _audit(each.turn, caller, result)
        positions = {id(turn): position for session in done for turn, position in session}
        written = [_written(positions[id(each)], each.turn) for each in taken]
        return written if isinstance(sent, list) else written[0]

    return routes


async def _in_order(sender: TurnSender, turns: Sequence[ValidTurn]) -> list[tuple[ValidTurn, Position]]:
    """Send the turns of one session in order. If a turn cannot be written, later turns are not sent; the caller sends
    all turns again."""
    return [(each, await sender.send(each.turn, each.value)) for each in turns]


def _audit(turn: Turn, caller: Caller, result: str) -> None:
    audit(
        "turns.produce",
        who=caller.name,
        tenant_id=turn.tenant_id,
        owner=Owner(scope="user", id=turn.user_id),
        result=result,
        session_id=turn.session_id,
        turn_id=turn.turn_id,
    )


def _written(position: Position, turn: Turn) -> Written:
    return Written(topic=position.topic, partition=position.partition, offset=position.offset, turn_id=turn.turn_id)
