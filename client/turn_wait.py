"""Wait until memory has observed or reflected a turn."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from pydantic import JsonValue

from .errors import NotFound, TurnRefused, Unavailable
from .http_client import Api, TurnReport
from .turns import TurnLike, encode_turn

TurnWait = Literal["observed", "reflected"]
WAIT_SECONDS: Final = 30.0
_DONE: Final = {"observed": ("observed", "reflected"), "reflected": ("reflected",)}
_FIRST, _LONGEST = 0.1, 1.0
"""Seconds between two questions, doubled each time."""


async def wait_for_turn(api: Api, turn: TurnLike, wait: TurnWait, *, seconds: float) -> TurnReport:
    """Return the report of a turn after it has reached the stage `wait`.

    The server reads its newest records first. So the question has no time: the clocks of client, server and log differ.

    Raises TurnRefused when the turn is a dead letter, and Unavailable after `seconds`.
    """
    read, _ = encode_turn(turn, "off")
    fields: dict[str, JsonValue] = {"tenant_id": read.tenant_id, "user_id": read.user_id, "ceiling": "public"}
    pause, report = _FIRST, None
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    report = await api.turn(read.turn_id, session_id=read.session_id, **fields)
                except NotFound:
                    report = None
                if report is not None and report.stage in _DONE[wait]:
                    return report
                if report is not None and report.stage == "refused":
                    raise TurnRefused(report.why or "the turn is a dead letter")
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST)
    except TimeoutError:
        state = "not known to the server" if report is None else f"{report.stage}: {report.why or 'not reflected yet'}"
        raise Unavailable(f"the turn is written, but not {wait} within {seconds:g} s; it is {state}") from None
