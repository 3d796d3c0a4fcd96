"""Turns on their way in: read as the observer will read them, appended under their session's key."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from ..schemas.errors import Poison
from ..schemas.turns import Turn, turn_value
from ..streams.engine.turn_sender import TurnSender, read_turn
from ..streams.log.port import Log, Position
from .errors import translated

TurnLike = Turn | Mapping[str, Any]
"""As the contract has it (README, "Turns"); fields that it does not know are kept."""
ON_THE_WAY = 1_000
"""Turns that may wait for their acknowledgement at once; further calls wait for room."""


class Turns(Protocol):
    """A way for turns into memory."""

    async def produce(self, turn: TurnLike) -> Position:
        """Where the turn lies, once that is durable. To send it again is harmless: the same turn_id of a session counts
        once. Raises InvalidTurn, TooLarge, Unavailable, Misconfigured."""
        ...


class LogTurns:
    """Turns straight onto the log: acknowledged by all replicas, by an idempotent producer, on the partition that
    murmur2 gives the session's key. Turns of one session lie in the order of their calls."""

    def __init__(self, *, log: Log) -> None:
        self._sender = TurnSender(log, "client")
        self._room = asyncio.Semaphore(ON_THE_WAY)

    async def produce(self, turn: TurnLike) -> Position:
        with translated():
            read, value = checked(turn)
            async with self._room:
                return await self._sender.send(read, value)


def checked(turn: TurnLike) -> tuple[Turn, bytes]:
    """The turn and the bytes that will lie on the topic. Raises Poison."""
    try:
        value = turn.to_bytes() if isinstance(turn, Turn) else turn_value(dict(turn))
    except (TypeError, ValueError, RecursionError) as error:  # no JSON: a set, a lone surrogate, a circle
        raise Poison("undecodable", f"the turn is no JSON: {error}") from None
    return read_turn(value), value
