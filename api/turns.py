"""`POST /v1/turns`: turns onto memory.turns. No model is waited for: the answer comes when the log has them."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict

from ..schemas.turns import Turn
from ..streams.ports import Position
from ..streams.sending import TurnSender
from .accepting import accepted
from .bodies import decoded, json_body
from .credentials import Caller, Credentials, caller_with
from .documents import body_of
from .limits import Limits


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
        taken = accepted(sent, caller=caller, limit=limits.turns)
        # Shielded: a caller who goes away leaves no session with a gap in what it had handed in.
        sending = asyncio.gather(*(sender.send(each.turn, each.value) for each in taken))
        positions = await asyncio.shield(sending)
        written = [_written(position, each.turn) for position, each in zip(positions, taken, strict=True)]
        return written if isinstance(sent, list) else written[0]

    return routes


def _written(position: Position, turn: Turn) -> Written:
    return Written(topic=position.topic, partition=position.partition, offset=position.offset, turn_id=turn.turn_id)
