"""`POST /v1/turns`: turns onto memory.turns. No model is waited for: the answer comes when the log has them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict

from ..schemas.turns import Turn
from ..streams.engine.turn_sender import TurnSender
from ..streams.log.port import Position
from .credentials import Caller, Credentials, caller_with
from .limits import Limits
from .openapi import body_of
from .request_body import decoded, json_body
from .turn_validation import ValidTurn, valid_turns


class Written(BaseModel):
    """Where the event lies."""

    model_config = ConfigDict(extra="forbid")

    topic: str
    partition: int
    offset: int
    turn_id: str


def router(*, sender: TurnSender, credentials: Credentials, limits: Limits) -> APIRouter:
    routes = APIRouter(tags=["turns"])
    writer = Depends(caller_with(credentials, "turns:write"))

    @routes.post(
        "/v1/turns",
        status_code=HTTPStatus.ACCEPTED,
        response_model=Written | list[Written],
        openapi_extra=body_of(Turn, without=("tenant_id",), many=limits.turns),
        summary="Hand in a turn, or several",
    )
    async def take(request: Request, caller: Caller = writer) -> Written | list[Written]:
        """Answered when the log has acknowledged every turn; those of one session are written in the order given. A
        list is answered by a list. Sent again under its turn_id a turn does nothing, so after a 503 send all again."""
        sent = decoded(await json_body(request, limit=limits.body))
        taken = valid_turns(sent, caller=caller, limit=limits.turns)
        sessions: dict[str, list[ValidTurn]] = {}
        for each in taken:
            sessions.setdefault(each.turn.session_key, []).append(each)
        # Shielded: what a caller has handed in is written, also when it does not wait for the answer.
        done = await asyncio.shield(asyncio.gather(*(_in_order(sender, turns) for turns in sessions.values())))
        positions = {id(turn): position for session in done for turn, position in session}
        written = [_written(positions[id(each)], each.turn) for each in taken]
        return written if isinstance(sent, list) else written[0]

    return routes


async def _in_order(sender: TurnSender, turns: Sequence[ValidTurn]) -> list[tuple[ValidTurn, Position]]:
    """Of one session: with the first that is not written the others wait for the caller to come again."""
    return [(each, await sender.send(each.turn, each.value)) for each in turns]


def _written(position: Position, turn: Turn) -> Written:
    return Written(topic=position.topic, partition=position.partition, offset=position.offset, turn_id=turn.turn_id)
